"""Where OpenCode keeps its sessions, and where their mirrors lie: `opencode/<directory>/<session>.jsonl` in the state
of whoever uses it.

OpenCode keeps all sessions in one database, whose rows it changes. So each session has a mirror (see
transcripts/mirror.py and mirrors.py), in a folder for the directory that it was started in; that of a sub-agent lies in
`<session>/` beside.
"""

from __future__ import annotations

from ...settings.homes import environment, runtime_home
from ...system.files import is_file, names_in, path_stamp, path_text
from ...transcripts.entries import Session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ..contract import Folders

SESSIONS_FOLDER = "opencode-sessions"
USUAL_DIR = ".local/share/opencode"
CONFIG_VARIABLE = "XDG_DATA_HOME"
DEEPEST = 2  # what lies deeper belongs to sub-agents
HAS_PROJECT_FOLDERS = True
OWN_ID_VARIABLE = "OPENCODE_SESSION_ID"
AGENT_VARIABLES: tuple[str, ...] = (OWN_ID_VARIABLE, "OPENCODE")
PROGRAM = "opencode"
DATABASE = "opencode.db"
_STAMPED = ("", "-wal")  # what is behind the names of the files that change with it


def config_dir(environ: Mapping[str, str]) -> str:
    """`$XDG_DATA_HOME/opencode`, else `~/.local/share/opencode`."""
    data_dir = environ.get(CONFIG_VARIABLE)
    return f"{data_dir.rstrip('/')}/opencode" if data_dir else f"{environ.get('HOME', '')}/{USUAL_DIR}"


def transcripts_dir(config_dir: str) -> str:
    """Where the mirrors of the sessions lie whose database is in `config_dir`."""
    return f"{runtime_home(config_dir, USUAL_DIR, environment()).state_dir}/opencode"


def copies_dir(config_dir: str) -> str:
    """Always '': OpenCode compresses nothing."""
    return ""


def refresh(config_dir: str, everything: bool = False) -> None:
    """Brings the mirrors up to date, if the database has changed. What is read for a prompt is bounded."""
    database = f"{config_dir}/{DATABASE}"
    stamps = [path_stamp(database + suffix) for suffix in _STAMPED]
    if not stamps[0][0]:
        return
    from ...transcripts.mirror import read_state

    root = transcripts_dir(config_dir)
    state = read_state(root)
    if state.get("stamps") != stamps or (everything and not state.get("is_whole")):
        from .mirrors import bring_up_to_date

        bring_up_to_date(database, root, stamps, everything)


def project_dir(config_dir: str, cwd: str) -> str:
    """The folder for the mirrors of sessions that are started in `cwd`."""
    from .rows import folder_name

    return f"{transcripts_dir(config_dir)}/{folder_name(cwd)}"


def folders_below(config_dir: str, directory: str) -> list[str]:
    """The folders whose names begin as that of `directory` does."""
    from .rows import folder_name

    name = folder_name(directory)
    names = [(folder, folder.rpartition("/")[2]) for folder in _folders(config_dir)]
    return [folder for folder, one in names if one == name or one.startswith(f"{name}-")]


def listed_dirs(config_dir: str) -> list[str]:
    """The directory of the folders."""
    return [transcripts_dir(config_dir)]


def sessions_in(folder: str, is_elsewhere: bool = False, worktree: str = "") -> list[Session]:
    """The sessions whose mirrors lie in `folder`."""
    return [
        Session(path_text(file[:-6]), f"{folder}/{file}", "", is_elsewhere, worktree)
        for file in names_in(folder)
        if file.endswith(".jsonl") and not file.startswith(".")
    ]


def other_sessions(
    sessions_dir: str, config_dir: str, own_path: str, scope: str, folders: Folders = ()
) -> list[Session]:
    """The sessions of the project that the own mirror lies in, and in `folders`, or of all."""
    return [] if sessions_dir else _sessions(config_dir, own_path.rpartition("/")[0], scope, folders)


def project_sessions(config_dir: str, own_id: str, directory: str, scope: str, folders: Folders = ()) -> list[Session]:
    """The sessions of the project of `own_id`, or of `directory`, or of `all` projects."""
    own_dir = mirror_of(config_dir, own_id).rpartition("/")[0] if own_id else ""
    return _sessions(config_dir, own_dir or project_dir(config_dir, directory), scope, folders)


def mirror_of(config_dir: str, session_id: str) -> str:
    """The mirror of a session, wherever that was started; '' where there is none yet."""
    mirrors = (f"{folder}/{session_id}.jsonl" for folder in _folders(config_dir))
    return next((path for path in mirrors if is_file(path)), "")


def named_sessions(sessions_dir: str, config_dir: str, root: str) -> list[Session]:
    """None: an agent home has no sessions of OpenCode."""
    return []


def session_names(sessions_dir: str) -> list[str]:
    """None, as above."""
    return []


def session_id_of(path: str) -> str:
    """The id of the session whose mirror lies at `path`."""
    return path_text(path.rpartition("/")[2].removesuffix(".jsonl"))


def sub_agents(path: str) -> list[str]:
    """The mirrors of a session's sub-agents."""
    folder = path.removesuffix(".jsonl")
    return [f"{folder}/{name}" for name in sorted(names_in(folder)) if name.endswith(".jsonl")]


def given_name(path: str) -> str:
    """Always '': a mirror holds its session's name."""
    return ""


def live_session_id(config_dir: str, pid: int) -> str:
    """Always '': OpenCode notes nothing of its processes."""
    return ""


def live_processes(config_dir: str) -> list[tuple[int, str]]:
    """Always empty, as above."""
    return []


def _sessions(config_dir: str, own_dir: str, scope: str, folders: Folders) -> list[Session]:
    from ...transcripts.projects import sessions_of_project

    return sessions_of_project(own_dir, folders, scope, _folders(config_dir), sessions_in)


def _folders(config_dir: str) -> Iterator[str]:
    """The folders of all projects. What they lie in is listed when the first is asked for."""
    root = transcripts_dir(config_dir)
    for name in names_in(root):
        if not name.startswith("."):
            yield f"{root}/{name}"
