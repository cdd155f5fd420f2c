"""The sessions of a team as upkeep keeps them on this machine: a folder a project, a small file a session, which is
read as any transcript is.

A folder is found by the directory that a session was started in: a file called after that holds, a line each, the
folder's name, where the repository lies here, and the directory; before upkeep has asked the team, the last alone.
"""

from __future__ import annotations

from ..runtimes.base import Runtime
from ..system.files import is_file, names_in, read_whole, write_atomically
from ..system.json import decode
from .entries import Session
from .team_records import TeamRecords

ENDING = ".jsonl"
_SEPARATOR = "~"


class TeamRuntime(Runtime):
    """Stands for the runtime of a session of a team: `name` is whose it is, as in ann@laptop."""

    def __init__(self, name: str) -> None:
        self.name = name

    def load_records(self) -> TeamRecords:
        return TeamRecords()

    def session_id_of(self, path: str) -> str:
        """Return the number of the session in the team."""
        return path.rpartition(_SEPARATOR)[2].removesuffix(ENDING)


def team_sessions(team_dir: str, start_file: str) -> list[Session]:
    """The sessions of the project for which `start_file` holds the folder's name; none where it is not there."""
    name, root, _ = read_start(start_file)
    folder = f"{team_dir}/{name}"
    found = []
    for name in names_in(folder) if root else ():
        if name.endswith(ENDING):
            session = Session(f"team:{name}", f"{folder}/{name}")
            session.team_root = root
            session.runtime = TeamRuntime(name.rpartition(_SEPARATOR)[0])
            found.append(session)
    return found


def note_start(start_file: str, start: str) -> None:
    """Has upkeep ask the team what it does in the project of sessions that are started in `start`: in time for the
    first one there. Raises OSError."""
    if "\n" not in start and not is_file(start_file):
        write_atomically(start_file, start_content("", "", start))


def start_content(folder: str, root: str, start: str) -> bytes:
    """What the file of a directory holds that sessions are started in."""
    return f"{folder}\n{root}\n{start}".encode("utf-8", "surrogateescape")


def read_start(start_file: str) -> tuple[str, str, str]:
    """The same again: folder, root and directory, '' for what it does not say."""
    try:
        lines = read_whole(start_file).decode("utf-8", "surrogateescape").split("\n")
    except OSError:
        lines = []
    folder, root, start = (*lines, "", "", "")[:3]
    return folder, root, start


def branch_of(path: str) -> str:
    """The branch that a session is on by its file; '' where that is not known."""
    try:
        first = decode(read_whole(path).partition(b"\n")[0].decode())
    except (OSError, ValueError):
        return ""
    return str(first.get("branch", ""))


def file_name(who: str, number: int) -> str:
    """What the file of a session is called: whose it is, and its number in the team."""
    safe = "".join([c if c.isalnum() or c in "@._-" else "-" for c in who]).lstrip(".")
    return f"{safe}{_SEPARATOR}{number}{ENDING}"
