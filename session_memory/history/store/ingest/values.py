"""The values that go into the store. Times are in milliseconds since 1970."""

from typing import NamedTuple

from ..values import RuleSubject


class FileState(NamedTuple):
    """The state of a transcript: the file's identity, and how far it was read.

    `file_path` is the file's key, relative to `root`; `home` is its group ('' without groups).
    `status` is idle, ingesting (more of it will follow) or gone (the runtime deleted it; its
    entries stay). Reading continues at `offset`, in the `generation` of the file that `inode`,
    `head` and `tail` identify."""

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

    @property
    def subject(self) -> RuleSubject:
        """Return the transcript as rules see it."""
        return RuleSubject(
            self.id, self.home, self.session_id, self.title, self.cwd, self.file_path
        )


class UnreadFile(NamedTuple):
    """A file that could not be ingested completely in its present state, and its `problem`.

    The state is `inode`, `file_size` and `last_modified`. The problem is FOREIGN of ingest/sources
    for a file that is not a transcript. If the problem `is_lasting` (0 or 1), it is not retried
    until the file changes."""

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
    """The outcome of a tool call.

    It is ok or error, with the error's most informative line ('' for ok) and the size of the
    result's text in characters and in lines."""

    outcome: str
    error: str
    size: int
    lines: int


class NewTool(NamedTuple):
    """A tool use to store.

    `key` identifies it in all files. `call` is the hash of the call's id, with which its result is
    found in the same file. `ended` is None until the result arrives. `lines` are the hashes of the
    lines that it wrote."""

    key: int
    call: int
    name: str
    kind: str
    argument: str
    ended: ToolOutcome | None = None
    lines: tuple[int, ...] = ()


class NewEntry(NamedTuple):
    """An entry to store.

    `key` identifies it in all files that have a copy. `message` is the same for all entries of one
    API message, 0 without one. `text` may be '' if there are tools. `origin` is the id of the
    session that the record names, '' if it is the file's."""

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
    """Entries read from one file.

    They are stored only if the file's state is still `before`: None for a new file, without an id
    the `after` of the batch before, whatever ids its items got. `outcomes` are
    (call, outcome) for tool uses stored earlier, and `lines` are (call, hash) for commits that
    these made and lines that they wrote. Those of the calls in `whole` replace the stored ones."""

    before: FileState | None
    after: FileState
    entries: list[NewEntry]
    outcomes: list[tuple[int, ToolOutcome]]
    lines: tuple[tuple[int, int], ...] = ()
    whole: tuple[int, ...] = ()
