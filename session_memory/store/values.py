"""What goes into the store and comes out of it. Values only; times are in milliseconds since the epoch."""

from __future__ import annotations

from hashlib import blake2b
from typing import NamedTuple

from ..text.format import counted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

ITEM_BITS = 32  # an item's id is `file id << ITEM_BITS | its number in the file`
ENTRY_ROLES = ("user", "assistant")
TOOL_ROLE = "tool"
KINDS = ("command", "edit", "read", "other")  # of tool uses
STATUSES = ("active", "ready", "processing", "archived", "skipped")


class FileState(NamedTuple):
    """What is known of a transcript: how far it was read, and what tells whether it is still the same file.

    `file_path` is the file's key, relative to `root`; `home` the group it belongs to ('' without groups). `status` is
    idle, ingesting (some of its bytes are in, more will follow) or gone (the runtime deleted it; its entries stay).
    `offset` is where reading goes on, in the `generation` of the file that `inode`, `head` and `tail` identify.
    """

    home: str
    file_path: str
    root: str
    source: str
    session_id: str
    id: int = 0
    status: str = "idle"
    last_modified: int = 0
    file_size: int = 0
    offset: int = 0
    generation: int = 1
    inode: int = 0
    head: int = 0
    tail: int = 0
    next_ordinal: int = 0
    unreadable: int = 0
    first_entry_timestamp: int | None = None
    last_entry_timestamp: int | None = None
    cwd: str = ""
    title: str = ""
    title_rank: int = -1


class UnreadFile(NamedTuple):
    """A file among the transcripts of which nothing, or not all, could be taken in as it was (`inode`, `file_size`,
    `last_modified`), and the `problem` with it: FOREIGN of ingest/sources where it is no transcript at all. One that
    `is_lasting` (0 or 1) stays until the file changes.
    """

    home: str
    file_path: str
    root: str
    inode: int
    file_size: int
    last_modified: int
    noted_at: int
    problem: str
    is_lasting: int


class ToolOutcome(NamedTuple):
    """How a tool call ended: ok or error, the line of the error that tells most ('' if it went well), the size of the
    result's text in characters and in lines."""

    outcome: str
    error: str
    size: int
    lines: int


class NewTool(NamedTuple):
    """A tool use to be stored. `key` identifies it in all files, `call` is the hash of the call's id, by which its
    result is found in the same file; `ended` is None until that has come."""

    key: int
    call: int
    name: str
    kind: str
    argument: str
    ended: ToolOutcome | None = None


class NewEntry(NamedTuple):
    """An entry to be stored. `key` identifies it in all files that have a copy of it; `message` is the same for all
    entries of one API message, 0 for none; `text` may be '' if there are tools. `origin` is the id of the session that
    the record names, '' if that is the file's."""

    key: int
    message: int
    offset: int
    role: str
    text: str
    timestamp: int | None
    cwd: str
    tools: tuple[NewTool, ...] = ()
    origin: str = ""


class Batch(NamedTuple):
    """What was read of one file, to be stored if its state is still `before` (None: the file is new).

    `outcomes` are (call, outcome) of tool uses that were stored before."""

    before: FileState | None
    after: FileState
    entries: list[NewEntry]
    outcomes: list[tuple[int, ToolOutcome]]


class Conversation(NamedTuple):
    """Entries of one file without a silence longer than the gap. `entry_count` counts messages: several records of one
    API message are one. `who` is the member and the machine, as in ann@laptop, where a team's store tells of it."""

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


class StoredSpan(NamedTuple):
    """A conversation as a range of a file: the numbers of its first and its last item there, its times, how many
    messages it has, how many bytes of text."""

    first_number: int
    last_number: int
    first_at: int | None
    last_at: int | None
    message_count: int
    text_bytes: int


class StoredEntry(NamedTuple):
    """An entry, or a tool use (role `tool`: `text` is the primary argument, `tool` the name), as the store holds it.

    `outcome` is '' where none is known, else ok or error; `error` is its first line, `result_size` and `result_lines`
    those of the result, in characters (None if unknown). `offset` is the byte position in the transcript; `message` is
    the same number for all items of one API message, which follow each other.
    """

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
        """The number by which people know it, as in `show --around`: counted from 1, in its file."""
        return (self.id & ((1 << ITEM_BITS) - 1)) + 1


class Filter(NamedTuple):
    """What a listing or a search is limited to. `homes` None is all groups. `project` is part of a directory or of
    a file key, `directories` are those of which one is meant with all below it; `session` an id, or how it begins;
    `since` and `until` are in milliseconds since the epoch; `kind` is that of a tool use, and leaves out all else."""

    homes: tuple[str, ...] | None = None
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


class Hit(NamedTuple):
    """What a search found: the entry, its conversation, and a snippet of its text with where the words in it stand
    (pairs of start and end)."""

    entry: StoredEntry
    conversation: Conversation
    snippet: str
    marks: tuple[tuple[int, int], ...]
    score: float


class Hits(list[Hit]):
    """What a search found, the best first. `unchecked`: so many older entries may fit a phrase in quotes too and were
    not read, since there are too many of them."""

    def __init__(self, found: Iterable[Hit] = (), unchecked: int = 0) -> None:
        super().__init__(found)
        self.unchecked = unchecked

    @property
    def notice(self) -> str:
        """What whoever asked should know of how far the search reached; '' for nothing."""
        if not self.unchecked:
            return ""
        older = counted(self.unchecked, "older entry", "older entries")
        return f"{older} may fit the quoted phrase and were not read for it: limit the time or the project."


class Counts(NamedTuple):
    """How much the store holds: files (and of them gone), entries, tool uses, conversations by status, bytes of text,
    bytes of the database."""

    files: int
    gone: int
    ingesting: int
    entries: int
    tool_uses: int
    conversations: dict[str, int]
    text_bytes: int
    database_bytes: int


class Usage(NamedTuple):
    """What a model's provider reported, or an estimate of it: tokens, and the model's name. `input_tokens` are those
    that were read anew, `cached_tokens` those that came from a cache; the budget counts all three."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    model: str = ""

    @property
    def tokens(self) -> int:
        """All of them."""
        return self.input_tokens + self.output_tokens + self.cached_tokens


def key_of(text: str) -> int:
    """Return a hash of 64 bits by which an id is found again, signed as SQLite's integers are."""
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)
