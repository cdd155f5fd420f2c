"""Where Pi keeps its session files, and which sessions there are."""

from __future__ import annotations

from ...system.files import is_directory, names_in, os, path_text
from ...transcripts.entries import Session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ..contract import Folders

SESSIONS_FOLDER = "pi-sessions"
USUAL_DIR = ".pi/agent"
CONFIG_VARIABLE = "PI_CODING_AGENT_DIR"
DEEPEST = 2
HAS_PROJECT_FOLDERS = True
OWN_ID_VARIABLE = "PI_SESSION_ID"
AGENT_VARIABLES: tuple[str, ...] = (OWN_ID_VARIABLE, "PI_CODING_AGENT")
PROGRAM = "pi"


def config_dir(environ: Mapping[str, str]) -> str:
    """`$PI_CODING_AGENT_DIR`, else `~/.pi/agent`."""
    home = environ.get("HOME", "")
    path = environ.get(CONFIG_VARIABLE) or "~/.pi/agent"
    return (home + path[1:] if path == "~" or path.startswith("~/") else path).rstrip("/")


def transcripts_dir(config_dir: str) -> str:
    """`sessions/`."""
    return f"{config_dir}/sessions"


def copies_dir(config_dir: str) -> str:
    """Always '': Pi compresses nothing."""
    return ""


def place_of(file: str) -> str:
    """Always '': names do not tell in which folder a transcript belongs."""
    return ""


def refresh(config_dir: str, everything: bool = False) -> None:
    """Nothing is to be done: Pi writes its transcripts itself."""


def project_dir(config_dir: str, cwd: str) -> str:
    """The directory for the transcripts of sessions that are started in `cwd`."""
    return f"{config_dir}/sessions/{encode_cwd(cwd)}"


def encode_cwd(cwd: str) -> str:
    """The name of the directory for sessions started in `cwd`."""
    return f"--{cwd.lstrip('/').replace('/', '-').replace(':', '-')}--"


def folders_below(config_dir: str, directory: str) -> list[str]:
    """The folders whose names begin as that of `directory` does."""
    name = encode_cwd(directory.rstrip("/"))
    within = name[: -len("--")] + "-"
    names = [(folder, folder.rpartition("/")[2]) for folder in _folders(config_dir)]
    return [folder for folder, one in names if one == name or one.startswith(within)]


def listed_dirs(config_dir: str) -> list[str]:
    """The directory of the folders."""
    return [f"{config_dir}/sessions"]


def sessions_in(folder: str, is_elsewhere: bool = False, worktree: str = "") -> list[Session]:
    """A session for each file `<time>_<id>.jsonl`. Ids begin with the time as well: none may be shortened."""
    return [
        Session(session_id_of(file), f"{folder}/{file}", "", is_elsewhere, worktree)
        for file in names_in(folder)
        if file.endswith(".jsonl") and not file.startswith(".")
    ]


def sub_agents(path: str) -> list[str]:
    """None: Pi has no sub-agents of its own."""
    return []


def other_sessions(
    sessions_dir: str, config_dir: str, own_path: str, scope: str, folders: Folders = ()
) -> list[Session]:
    """The named sessions of an agent home, each with the file that was written last; else those of the project, which
    is the folder that the own file lies in and `folders`, or of all projects."""
    if sessions_dir:
        names = session_names(sessions_dir)
        found = [Session(path_text(name), latest_transcript(sessions_dir, name), path_text(name)) for name in names]
    else:
        from ...transcripts.projects import sessions_of_project

        own_dir = own_path.rpartition("/")[0]
        found = sessions_of_project(own_dir, folders, scope, _folders(config_dir), sessions_in)
    return [session for session in found if session.path and session.path != own_path]


def project_sessions(config_dir: str, own_id: str, directory: str, scope: str, folders: Folders = ()) -> list[Session]:
    """The sessions of the project of `own_id`, or of `directory`, or of `all` projects."""
    found = next((folder for folder in _folders(config_dir) if own_id and _holds(folder, own_id)), "")
    return other_sessions("", config_dir, f"{found or project_dir(config_dir, directory)}/", scope, folders)


def named_sessions(sessions_dir: str, config_dir: str, root: str) -> list[Session]:
    """The named sessions of an agent home, each with the file that was written last."""
    return other_sessions(sessions_dir, config_dir, "", "project")


def session_names(sessions_dir: str) -> list[str]:
    """The names of the sessions of an agent home: one directory each, without `new-*`, which are just being made."""
    names = names_in(sessions_dir)
    return [name for name in names if not name.startswith((".", "new-")) and is_directory(f"{sessions_dir}/{name}")]


def latest_transcript(sessions_dir: str, name: str) -> str:
    """The session file of `<sessions_dir>/<name>/` written last, which pi would continue; '' if there is none."""
    latest, latest_time = "", -1
    for session in sessions_in(f"{sessions_dir}/{name}"):
        try:
            modified = os.stat(session.path).st_mtime_ns
        except OSError:
            continue
        if modified > latest_time:
            latest, latest_time = session.path, modified
    return latest


def session_id_of(path: str) -> str:
    """The id of the session whose file lies at `path`."""
    name = path_text(path.rpartition("/")[2].removesuffix(".jsonl"))
    return name.partition("_")[2] or name


def given_name(path: str) -> str:
    """Always '': a transcript holds its session's name."""
    return ""


def live_session_id(config_dir: str, pid: int) -> str:
    """Always '': pi notes nothing of its processes."""
    return ""


def live_processes(config_dir: str) -> list[tuple[int, str]]:
    """Always empty: pi notes nothing of its processes."""
    return []


def _folders(config_dir: str) -> Iterator[str]:
    """The folders of all projects. What they lie in is listed when the first is asked for."""
    sessions_dir = f"{config_dir}/sessions"
    for name in names_in(sessions_dir):
        yield f"{sessions_dir}/{name}"


def _holds(directory: str, session_id: str) -> bool:
    return any(session.key == session_id for session in sessions_in(directory))
