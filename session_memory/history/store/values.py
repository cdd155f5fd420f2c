"""The values that the store returns, and some that it is given.

Times are in milliseconds since the epoch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from ...common.text.format import counted
from ...sessions.transcripts.marks import key_of as key_of

ITEM_BITS = 32  # an item's id is `file id << ITEM_BITS | its number in the file`
NUMBERS = (1 << ITEM_BITS) - 1  # the bits of an item's id that are its number
ENTRY_ROLES = ("user", "assistant")
TOOL_ROLE = "tool"
KINDS = ("command", "edit", "read", "other")  # of tool uses
MOST_ORIGINS = 3  # that a notice names
STATUSES = ("active", "ready", "processing", "archived", "skipped")
Progress = Callable[[str, int], None]  # told of a file and how much of it was read, in bytes


# The end of the root of sessions that a repository stores in git: below its `.git`, where a clone
# puts nothing. Such sessions are history of a project and not the person's, so no memories are made
# of them and no team gets them.
FOREIGN_ROOT = "/#checkpoints"


class RuleSubject(NamedTuple):
    """A stored transcript as rules see it.

    `home` is its group, `cwd` the directory in which it was started."""

    id: int
    home: str
    session_id: str
    title: str
    cwd: str
    file_path: str


class Conversation(NamedTuple):
    """Entries of one file without a silence longer than the gap.

    `entry_count` counts messages; several records of one API message are one. In a team's store,
    `who` is the member and the machine, as in ann@laptop."""

    id: int
    session_id: str
    source_file: str
    home: str
    runtime: str
    cwd: str
    title: str
    first_message_at: int | None
    last_message_at: int | None
    entry_count: int
    status: str
    reason: str
    who: str = ""

    @property
    def origin(self) -> str:
        """Return where the session was read from; '' for a runtime on this machine."""
        if f"{FOREIGN_ROOT}/" not in self.source_file:
            return ""
        return f"from checkpoints of {self.cwd.rpartition('/')[2]}"


class StoredSpan(NamedTuple):
    """A conversation as a range of a file: its first and last item's numbers, times and sizes."""

    first_number: int
    last_number: int
    first_at: int | None
    last_at: int | None
    message_count: int
    text_bytes: int


class StoredEntry(NamedTuple):
    """An entry or a tool use in the store.

    A tool use has the role `tool`; its `text` is the primary argument and `tool` its name.
    `outcome` is '' if unknown, else ok or error; `error` is the error line. `result_size` and
    `result_lines` are the size of the result in characters and lines (None if unknown). `offset` is
    the byte position in the transcript. `message` is the same number for all items of one API
    message, which are consecutive."""

    id: int
    role: str
    text: str
    timestamp: int | None
    cwd: str
    offset: int
    message: int = 0
    tool: str = ""
    kind: str = ""
    outcome: str = ""
    error: str = ""
    result_size: int | None = None
    result_lines: int | None = None

    @property
    def number(self) -> int:
        """Return the number for people, as in `read --around`, counted from 1 in the file."""
        return (self.id & NUMBERS) + 1

    def edited_files(self, directory: str) -> list[str]:
        """Return the absolute paths of the files that a tool use edited.

        The session was started in `directory`."""
        from ...sessions.transcripts.edits import (
            edited_files,  # imported late: a search asks for none
        )

        return (
            edited_files(self.kind, self.text, self.cwd or directory, self.outcome)
            if self.kind
            else []
        )


def edits_in(calls: Iterable[StoredEntry], directory: str) -> list[tuple[StoredEntry, str]]:
    """Return a session's edits in order, each with the absolute path of the file.

    The session was started in `directory`. `calls` are its items and its sub-agents' calls
    (`SqliteStore.sub_agent_calls`)."""
    ordered = sorted(calls, key=lambda call: call.id)
    return [(call, path) for call in ordered for path in call.edited_files(directory)]


# The `home` of the files whose rows a store shows; None for all.
Visible = tuple[str, ...] | None


class Filter(NamedTuple):
    """The limits of a listing or a search.

    `project` is part of a directory or of a file key. With `directories`, a conversation must be in
    or below one of them, or its session must have continued there and have its transcript in one of
    `folders`. `session` is an id or its beginning. `since` and `until` are in milliseconds since
    the epoch. `kind` is the kind of a tool use, and excludes everything else."""

    project: str = ""
    directories: tuple[str, ...] = ()
    session: str = ""
    status: str = ""
    role: str = ""
    since: int | None = None
    until: int | None = None
    limit: int = 20
    runtime: str = ""
    kind: str = ""
    folders: tuple[str, ...] = ()


def joined(*conditions: tuple[object, str, Iterable[Any]]) -> tuple[str, list[Any]]:
    """Return SQL that joins the conditions whose first element is true, and their values."""
    wanted = [(sql, values) for is_wanted, sql, values in conditions if is_wanted]
    return " AND ".join(["true", *[sql for sql, _ in wanted]]), [
        value for _, values in wanted for value in values
    ]


def project_patterns(project: str, escape: Callable[[str], str]) -> list[str]:
    """Return patterns for a part of a directory and of a file key, for each Unicode form.

    The directory's patterns come first. A letter matches in either case, as `[uU]`; `escape` quotes
    any other character for the engine."""
    from unicodedata import normalize  # imported late: few searches are limited to a project

    directory = project.rstrip("/")
    texts = [
        text
        for written in (directory, directory.replace("/", "-"))
        for text in (normalize("NFC", written), normalize("NFD", written))
    ]

    def pattern(character: str) -> str:
        lower, upper = character.lower(), character.upper()
        return (
            f"[{lower}{upper}]"
            if lower != upper and len(lower) == len(upper) == 1
            else escape(character)
        )

    return ["".join(map(pattern, text)) for text in texts]


class Hit(NamedTuple):
    """A search hit, with a snippet and the positions (start, end) of the query's words in it."""

    entry: StoredEntry
    conversation: Conversation
    snippet: str
    marks: tuple[tuple[int, int], ...]
    score: float

    @property
    def pieces(self) -> list[str]:
        """Return the snippet in pieces that alternately do not and do match the query."""
        ends = [0, *[position for mark in self.marks for position in mark], len(self.snippet)]
        return [self.snippet[start:end] for start, end in pairwise(ends)]


class Hits(list[Hit]):
    """Search hits, the best first.

    `unchecked` counts older candidates for a phrase that were too many to read. If one session was
    searched, `origins` are the ids of the sessions from which it copied matching items."""

    def __init__(
        self, hits: Iterable[Hit] = (), unchecked: int = 0, origins: Sequence[str] = ()
    ) -> None:
        super().__init__(hits)
        self.unchecked = unchecked
        self.origins = origins

    @property
    def notice(self) -> str:
        """Return a notice of how far the search reached; '' for nothing."""
        said = []
        if self.unchecked:
            older = counted(self.unchecked, "older entry", "older entries")
            said.append(
                f"{older} may contain the quoted phrase but were not read; limit the time or the "
                f"project to include them."
            )
        if self.origins:
            said.append(
                f"The session copied messages from {', '.join(self.origins[:MOST_ORIGINS])}; "
                f"search finds them there."
            )
        return " ".join(said)


class Counts(NamedTuple):
    """The sizes of the store.

    `files` includes the files that are `gone`; `conversations` are counted by status."""

    files: int
    gone: int
    ingesting: int
    entries: int
    tool_uses: int
    conversations: dict[str, int]
    text_bytes: int
    database_bytes: int


class Usage(NamedTuple):
    """Token usage that a model's provider reported, or an estimate, and the model's name.

    `input_tokens` were read fresh, `cached_tokens` came from a cache. The budget counts all three.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    model: str = ""

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens + self.cached_tokens


def items_of_file(file_id: int) -> tuple[int, int]:
    """Return the lowest and the highest id of an item in a file."""
    return file_id << ITEM_BITS, file_id << ITEM_BITS | NUMBERS
