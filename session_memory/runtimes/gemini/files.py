"""Where Gemini CLI keeps its chats, and where their mirrors lie: `gemini/<directory>/<session>.jsonl` in the state of
whoever uses it.

A chat says nothing of its directory, and may be deleted at any time: so each has a mirror (see transcripts/mirror.py
and mirrors.py), in a folder for the directory that it was started in; that of a sub-agent lies in `<session>/` beside.
"""

from __future__ import annotations

from ...settings.homes import environment, runtime_home
from ...system.files import is_directory, is_file, names_in, path_stamp, path_text
from ...transcripts.entries import Session
from ...transcripts.mirror import read_state
from .projects import folder_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ..contract import Folders

SESSIONS_FOLDER = "gemini-sessions"
USUAL_DIR = ".gemini"
CONFIG_VARIABLE = "GEMINI_CLI_HOME"
DEEPEST = 2  # what lies deeper belongs to sub-agents
HAS_PROJECT_FOLDERS = True
OWN_ID_VARIABLE = "GEMINI_SESSION_ID"
AGENT_VARIABLES: tuple[str, ...] = (OWN_ID_VARIABLE, "GEMINI_CLI")
PROGRAM = "gemini"


def config_dir(environ: Mapping[str, str]) -> str:
    """`$GEMINI_CLI_HOME/.gemini`, else `~/.gemini`."""
    return (environ.get(CONFIG_VARIABLE) or environ.get("HOME", "")).rstrip("/") + "/" + USUAL_DIR


def transcripts_dir(config_dir: str) -> str:
    """Where the mirrors of the chats lie that are in `config_dir`."""
    return f"{runtime_home(config_dir, USUAL_DIR, environment()).state_dir}/gemini"


def copies_dir(config_dir: str) -> str:
    """Always '': Gemini compresses nothing."""
    return ""


def refresh(config_dir: str, everything: bool = False) -> None:
    """Brings the mirrors up to date, if a chat has changed. What is read for a prompt is bounded."""
    if not is_directory(f"{config_dir}/tmp"):
        return
    root = transcripts_dir(config_dir)
    watched = [] if everything else read_state(root).get("watched", [])
    if not watched or any([path_stamp(path) != stamp for path, stamp in watched]):
        from .mirrors import bring_up_to_date

        bring_up_to_date(config_dir, root, everything)


def project_dir(config_dir: str, cwd: str) -> str:
    """The folder for the mirrors of chats that are started in `cwd`."""
    return f"{transcripts_dir(config_dir)}/{folder_name(cwd)}"


def folders_below(config_dir: str, directory: str) -> list[str]:
    """The folders whose names begin as that of `directory` does."""
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
    own_dir = _mirror_of(config_dir, own_id).rpartition("/")[0] if own_id else ""
    return _sessions(config_dir, own_dir or project_dir(config_dir, directory), scope, folders)


def mirror_path(config_dir: str, directory: str, session_id: str) -> str:
    """The mirror of a session, or where it will lie that of one that is started in `directory`."""
    path = f"{project_dir(config_dir, directory)}/{session_id}.jsonl"
    return path if is_file(path) else _mirror_of(config_dir, session_id) or path


def named_sessions(sessions_dir: str, config_dir: str, root: str) -> list[Session]:
    """None: an agent home has no sessions of Gemini."""
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
    """Always '': Gemini notes nothing of its processes."""
    return ""


def live_processes(config_dir: str) -> list[tuple[int, str]]:
    """Always empty, as above."""
    return []


def _sessions(config_dir: str, own_dir: str, scope: str, folders: Folders) -> list[Session]:
    from ...transcripts.projects import sessions_of_project

    return sessions_of_project(own_dir, folders, scope, _folders(config_dir), sessions_in)


def _mirror_of(config_dir: str, session_id: str) -> str:
    """The mirror of a session, wherever that was started; '' where there is none yet."""
    mirrors = (f"{folder}/{session_id}.jsonl" for folder in _folders(config_dir))
    return next((path for path in mirrors if is_file(path)), "")


def _folders(config_dir: str) -> Iterator[str]:
    """The folders of all projects. What they lie in is listed when the first is asked for."""
    root = transcripts_dir(config_dir)
    for name in names_in(root):
        if not name.startswith("."):
            yield f"{root}/{name}"
