"""Sessions on other machines, kept by upkeep on this one and read like any transcript.

Each project has a folder, and each session a small file. A session's start directory names a file
with three lines: the folder's name, the place of the repository here, and the directory; before
upkeep has asked the team, only the last.

A session's file has one JSON object a line: `{"title": "...", "branch": "..."}`, then entries:
`{"role": "user", "text": "...", "at": 1780000000.5, "id": "...", "tools": [["Edit", "edit",
"src/a.py"]]}`. File names are relative to the repository; directories are not included."""

from __future__ import annotations

from ...common.system.files import is_file, names_in, read_whole, write_atomically
from ...common.system.json import decode
from ..runtimes.base import Runtime
from ..runtimes.records import Records, Title
from .entries import Entry, Session, ToolUse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..runtimes.records import Event, Record, Wanted

ENDING = ".jsonl"
_SEPARATOR = "~"
_TITLE_RANK = 3


class RemoteRecords(Records):
    """The records of a remote session: only entries and a title."""

    def events(self, record: Record, offset: int, wanted: Wanted) -> list[Event]:
        if not wanted.messages:
            return []
        if record.get("role") in ("user", "assistant"):
            tools = tuple(
                [ToolUse(name, argument, kind) for name, kind, argument in record.get("tools", ())]
            )
            text, at = record["text"], record.get("at")
            return [
                Entry(
                    record["role"], text, tools=tools, timestamp=at, id=record["id"], offset=offset
                )
            ]
        return [Title(_TITLE_RANK, record["title"])] if record.get("title") else []


class RemoteRuntime(Runtime):
    """Replaces the runtime for a remote session: `name` is its owner, as in ann@laptop."""

    def __init__(self, name: str) -> None:
        self.name = self.TITLE = name

    def load(self, part: str) -> RemoteRecords:
        return RemoteRecords()

    def session_id_of(self, path: str) -> str:
        """Return the number of the session in the team."""
        return path.rpartition(_SEPARATOR)[2].removesuffix(ENDING)


def remote_sessions(remote_dir: str, start_file: str) -> list[Session]:
    """Return the sessions of the project whose folder `start_file` names; none if it is missing."""
    name, root, _ = read_start(start_file)
    folder = f"{remote_dir}/{name}"
    sessions = []
    for name in names_in(folder) if root else ():
        if name.endswith(ENDING):
            session = Session(f"team:{name}", f"{folder}/{name}")
            session.local_root = root
            session.runtime = RemoteRuntime(name.rpartition(_SEPARATOR)[0])
            sessions.append(session)
    return sessions


def note_start(start_file: str, start: str) -> None:
    """Make upkeep ask the team about the project of `start`, in time for its first session.

    Raises OSError."""
    if "\n" not in start and not is_file(start_file):
        write_atomically(start_file, start_content("", "", start))


def start_content(folder: str, root: str, start: str) -> bytes:
    """Return the content of the file for a directory in which sessions are started."""
    return f"{folder}\n{root}\n{start}".encode("utf-8", "surrogateescape")


def read_start(start_file: str) -> tuple[str, str, str]:
    """Parse a start file: return folder, root and directory, '' for missing ones."""
    try:
        lines = read_whole(start_file).decode("utf-8", "surrogateescape").split("\n")
    except OSError:
        lines = []
    folder, root, start = (*lines, "", "", "")[:3]
    return folder, root, start


def branch_of(path: str) -> str:
    """Return the branch of a session, from its file; '' if unknown."""
    try:
        first = decode(read_whole(path).partition(b"\n")[0].decode())
    except (OSError, ValueError):
        return ""
    return str(first.get("branch", ""))


def file_name(who: str, number: int) -> str:
    """Return the name of a session's file: its owner, and its number in the team."""
    safe = "".join([c if c.isalnum() or c in "@._-" else "-" for c in who]).lstrip(".")
    return f"{safe}{_SEPARATOR}{number}{ENDING}"
