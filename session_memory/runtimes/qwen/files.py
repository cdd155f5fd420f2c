"""Where Qwen Code keeps its chats, and which sessions there are: `projects/<directory>/chats/<id>.jsonl`."""

from __future__ import annotations

from ...system.files import is_directory, names_in, path_text
from ...transcripts.entries import Session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ..contract import Folders

SESSIONS_FOLDER = "qwen-sessions"
USUAL_DIR = ".qwen"
CONFIG_VARIABLE = "QWEN_RUNTIME_DIR"
DEEPEST = 3
HAS_PROJECT_FOLDERS = True
OWN_ID_VARIABLE = "QWEN_CODE_SESSION_ID"
AGENT_VARIABLES: tuple[str, ...] = (OWN_ID_VARIABLE, "QWEN_CODE")
PROGRAM = "qwen"
_CHATS = "chats"


def config_dir(environ: Mapping[str, str]) -> str:
    """`$QWEN_RUNTIME_DIR`, else `~/.qwen`."""
    return (environ.get(CONFIG_VARIABLE) or environ.get("HOME", "") + "/" + USUAL_DIR).rstrip("/")


def transcripts_dir(config_dir: str) -> str:
    """`projects/`."""
    return f"{config_dir}/projects"


def copies_dir(config_dir: str) -> str:
    """Always '': Qwen Code compresses nothing."""
    return ""


def refresh(config_dir: str, everything: bool = False) -> None:
    """Nothing is to be done: Qwen Code writes its transcripts itself."""


def project_dir(config_dir: str, cwd: str) -> str:
    """The directory for the chats of sessions that are started in `cwd`."""
    from os.path import realpath

    from ...text.paths import dashed

    return f"{config_dir}/projects/{dashed(realpath(cwd))}/{_CHATS}"


def folders_below(config_dir: str, directory: str) -> list[str]:
    """The folders whose names begin as that of `directory` does."""
    from ...text.paths import dashed

    name = dashed(directory)
    names = [(folder, folder.split("/")[-2]) for folder in _folders(config_dir)]
    return [folder for folder, one in names if one == name or one.startswith(f"{name}-")]


def listed_dirs(config_dir: str) -> list[str]:
    """The directory of the folders."""
    return [f"{config_dir}/projects"]


def sessions_in(folder: str, is_elsewhere: bool = False, worktree: str = "") -> list[Session]:
    """The sessions whose chats lie in `folder`."""
    return [
        Session(path_text(file[:-6]), f"{folder}/{file}", "", is_elsewhere, worktree)
        for file in names_in(folder)
        if file.endswith(".jsonl") and not file.startswith(".")
    ]


def other_sessions(
    sessions_dir: str, config_dir: str, own_path: str, scope: str, folders: Folders = ()
) -> list[Session]:
    """The sessions of the project that the own chat lies in, and in `folders`, or of all."""
    return [] if sessions_dir else _sessions(config_dir, own_path.rpartition("/")[0], scope, folders)


def project_sessions(config_dir: str, own_id: str, directory: str, scope: str, folders: Folders = ()) -> list[Session]:
    """The sessions of the project of `own_id`, or of `directory`, or of `all` projects."""
    found = next((folder for folder in _folders(config_dir) if own_id and f"{own_id}.jsonl" in names_in(folder)), "")
    return _sessions(config_dir, found or project_dir(config_dir, directory), scope, folders)


def named_sessions(sessions_dir: str, config_dir: str, root: str) -> list[Session]:
    """None: an agent home has no sessions of Qwen Code."""
    return []


def session_names(sessions_dir: str) -> list[str]:
    """None, as above."""
    return []


def session_id_of(path: str) -> str:
    """The id of the session whose chat lies at `path`."""
    return path_text(path.rpartition("/")[2].removesuffix(".jsonl"))


def sub_agents(path: str) -> list[str]:
    """The chats of a session's sub-agents: `subagents/<id>/agent-*.jsonl` beside the chats of the project."""
    above = path.rpartition("/")[0].rpartition("/")[0]
    directory = f"{above}/subagents/{session_id_of(path)}"
    if not is_directory(directory):
        return []
    return [f"{directory}/{name}" for name in sorted(names_in(directory)) if name.endswith(".jsonl")]


def given_name(path: str) -> str:
    """Always '': a chat holds its session's name."""
    return ""


def live_session_id(config_dir: str, pid: int) -> str:
    """Always '': Qwen Code notes nothing of its processes."""
    return ""


def live_processes(config_dir: str) -> list[tuple[int, str]]:
    """Always empty, as above."""
    return []


def _sessions(config_dir: str, own_dir: str, scope: str, folders: Folders) -> list[Session]:
    from ...transcripts.projects import sessions_of_project

    return sessions_of_project(own_dir, folders, scope, _folders(config_dir), sessions_in)


def _folders(config_dir: str) -> Iterator[str]:
    """The folders of all projects. What they lie in is listed when the first is asked for."""
    projects_dir = f"{config_dir}/projects"
    for name in names_in(projects_dir):
        yield f"{projects_dir}/{name}/{_CHATS}"
