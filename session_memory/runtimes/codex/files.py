"""Where Codex keeps its rollouts, and which sessions there are.

A rollout is `sessions/<year>/<month>/<day>/rollout-<time>-<id>.jsonl`, by the day that the session began, whatever its
project; one that its user has archived lies in `archived_sessions/`.
"""

from __future__ import annotations

from ...system.files import is_directory, names_in, open_regular, os, path_text, read_at
from ...system.json import as_string, objects_in
from ...transcripts.entries import Session
from ...transcripts.folders import UnnamedSessions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ..contract import Folders

SESSIONS_FOLDER = "codex-sessions"
USUAL_DIR = ".codex"
CONFIG_VARIABLE = "CODEX_HOME"
DEEPEST = 4
HAS_PROJECT_FOLDERS = False
OWN_ID_VARIABLE = "CODEX_SESSION_ID"
AGENT_VARIABLES: tuple[str, ...] = (OWN_ID_VARIABLE, "CODEX_THREAD_ID")
PROGRAM = "codex"
MOST_SESSIONS = 400  # the youngest, of which a prompt may be told
_ID_CHARACTERS = 36  # a UUID, which ends the name
_NAMES_FILE = "session_index.jsonl"
_NAMES_BYTES = 256 * 1024  # of its end


def config_dir(environ: Mapping[str, str]) -> str:
    """`$CODEX_HOME`, else `~/.codex`."""
    return (environ.get(CONFIG_VARIABLE) or environ.get("HOME", "") + "/" + USUAL_DIR).rstrip("/")


def transcripts_dir(config_dir: str) -> str:
    """`sessions/`."""
    return f"{config_dir}/sessions"


def copies_dir(config_dir: str) -> str:
    """Where copies of the rollouts lie that Codex has compressed or archived."""
    from ...settings.homes import environment, runtime_home

    return f"{runtime_home(config_dir, USUAL_DIR, environment()).state_dir}/codex"


def refresh(config_dir: str, everything: bool = False) -> None:
    """Brings the copies of compressed and archived rollouts up to date, unless it is for a prompt: such are old, or not
    wanted there."""
    if everything and is_directory(f"{config_dir}/sessions"):
        from .copies import bring_up_to_date

        bring_up_to_date(config_dir, copies_dir(config_dir), place_of)


def place_of(file: str) -> str:
    """In the folder of its day: `rollout-2026-11-20T10-00-00-<id>.jsonl` in `2026/11/20/`."""
    year, month, day = file[8:12], file[13:15], file[16:18]
    is_dated = file.startswith("rollout-") and file.endswith(".jsonl") and (year + month + day).isdigit()
    return f"{year}/{month}/{day}/{file}" if is_dated else ""


def project_dir(config_dir: str, cwd: str) -> str:
    """The folder of today: there is none for a directory."""
    from time import strftime

    return f"{config_dir}/sessions/{strftime('%Y/%m/%d')}"


def folders_below(config_dir: str, directory: str) -> list[str]:
    """The youngest rollouts, and the youngest copies, whatever the directory: only what is in them tells it."""
    return [*_youngest(transcripts_dir(config_dir)), *_youngest(copies_dir(config_dir))]


def listed_dirs(config_dir: str) -> list[str]:
    """The directories whose listings change as soon as there is another session."""
    path = f"{config_dir}/sessions"
    found = [path]
    for _ in ("year", "month", "day"):
        names = [name for name in names_in(path) if name.isdigit()]
        if not names:
            break
        path = f"{path}/{max(names)}"
        found.append(path)
    return found


def sessions_in(folder: str, is_elsewhere: bool = False, worktree: str = "") -> list[Session]:
    """The sessions in a folder of a day; of a rollout, its own."""
    if folder.endswith(".jsonl"):
        folder, _, file = folder.rpartition("/")
        files = [file]
    else:
        files = names_in(folder)
    return [
        Session(session_id_of(file), f"{folder}/{file}", "", is_elsewhere, worktree)
        for file in files
        if file.startswith("rollout-") and file.endswith(".jsonl")
    ]


def other_sessions(
    sessions_dir: str, config_dir: str, own_path: str, scope: str, folders: Folders = ()
) -> list[Session]:
    """The sessions whose rollouts are among `folders`, and with the scope `all` the youngest of the others; none that
    is compressed."""
    if sessions_dir:
        return []
    place = transcripts_dir(config_dir)
    plain = [(path, worktree) for path, worktree in folders if path.startswith(f"{place}/")]
    return _sessions(plain, scope, _youngest(place))


def project_sessions(config_dir: str, own_id: str, directory: str, scope: str, folders: Folders = ()) -> list[Session]:
    """The same, and those that are compressed."""
    return _sessions(folders, scope, folders_below(config_dir, directory))


def session_id_of(path: str) -> str:
    """The id of the session whose rollout lies at `path`."""
    return path_text(path.rpartition("/")[2].removesuffix(".jsonl"))[-_ID_CHARACTERS:]


def sub_agents(path: str) -> list[str]:
    """None: they lie among all other rollouts, and only what is in them tells whose they are."""
    return []


def given_name(path: str) -> str:
    """What the user called the session with `/rename`: the last name for it in the index."""
    config_dir, session_id = _config_dir_of(path), session_id_of(path)
    try:
        descriptor = open_regular(f"{config_dir}/{_NAMES_FILE}")
    except OSError:
        return ""
    try:
        size = os.fstat(descriptor).st_size
        lines = read_at(descriptor, max(0, size - _NAMES_BYTES), size).split(b"\n")
    finally:
        os.close(descriptor)
    wanted = session_id.encode("utf-8", "surrogateescape")
    for line in reversed(lines):
        if wanted in line:
            for record in objects_in(line):
                if record.get("id") == session_id:
                    return as_string(record.get("thread_name")).strip()
    return ""


def _sessions(folders: Folders, scope: str, youngest: Iterable[str]) -> list[Session]:
    from ...transcripts.projects import sessions_of_project

    return sessions_of_project("", folders, scope, youngest, sessions_in)


def _config_dir_of(path: str) -> str:
    """Codex's directory, over a rollout or what a copy is of."""
    above, mark, _ = path.rpartition("/sessions/")
    if mark:
        return above
    from ...transcripts.mirror import read_state

    copied = read_state(path.rsplit("/", DEEPEST)[0]).get("sessions", "")
    return as_string(copied).rpartition("/sessions")[0]


def _youngest(directory: str) -> Iterator[str]:
    """The rollouts of those sessions that began last, by the names of their folders and files."""
    left = MOST_SESSIONS
    for folder in _days(directory):
        of_day = sorted([session.path for session in sessions_in(folder)], reverse=True)[:left]
        yield from of_day
        left -= len(of_day)
        if not left:
            return


def _days(directory: str) -> Iterator[str]:
    """The folders of days, the last one first."""
    for year in _numbers(directory):
        for month in _numbers(year):
            yield from _numbers(month)


def _numbers(directory: str) -> list[str]:
    return [f"{directory}/{name}" for name in sorted(names_in(directory), reverse=True) if name.isdigit()]


_UNNAMED = UnnamedSessions()
named_sessions = _UNNAMED.named_sessions
session_names = _UNNAMED.session_names
live_session_id = _UNNAMED.live_session_id
live_processes = _UNNAMED.live_processes
