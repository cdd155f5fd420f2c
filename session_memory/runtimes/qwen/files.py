"""Where Qwen Code keeps its chats, and which sessions there are: `projects/<directory>/chats/<id>.jsonl`."""

from __future__ import annotations

from ...system.files import is_directory, names_in, real_path
from ...transcripts.folders import SessionFolders

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

SESSIONS_FOLDER = "qwen-sessions"
USUAL_DIR = ".qwen"
CONFIG_VARIABLE = "QWEN_RUNTIME_DIR"
DEEPEST = 3
HAS_PROJECT_FOLDERS = True
OWN_ID_VARIABLE = "QWEN_CODE_SESSION_ID"
AGENT_VARIABLES: tuple[str, ...] = (OWN_ID_VARIABLE, "QWEN_CODE")
PROGRAM = "qwen"


def config_dir(environ: Mapping[str, str]) -> str:
    """`$QWEN_RUNTIME_DIR`, else `~/.qwen`."""
    return (environ.get(CONFIG_VARIABLE) or environ.get("HOME", "") + "/" + USUAL_DIR).rstrip("/")


def transcripts_dir(config_dir: str) -> str:
    """`projects/`."""
    return f"{config_dir}/projects"


def refresh(config_dir: str, everything: bool = False) -> None:
    """Nothing is to be done: Qwen Code writes its transcripts itself."""


def sub_agents(path: str) -> list[str]:
    """The chats of a session's sub-agents: `subagents/<id>/agent-*.jsonl` beside the chats of the project."""
    above = path.rpartition("/")[0].rpartition("/")[0]
    directory = f"{above}/subagents/{session_id_of(path)}"
    if not is_directory(directory):
        return []
    return [f"{directory}/{name}" for name in sorted(names_in(directory)) if name.endswith(".jsonl")]


def _folder_name(directory: str) -> str:
    from ...text.paths import dashed

    return dashed(real_path(directory))


_FOLDERS = SessionFolders(transcripts_dir, _folder_name, "/chats")
project_dir = _FOLDERS.project_dir
folders_below = _FOLDERS.folders_below
listed_dirs = _FOLDERS.listed_dirs
sessions_in = _FOLDERS.sessions_in
other_sessions = _FOLDERS.other_sessions
project_sessions = _FOLDERS.project_sessions
copies_dir = _FOLDERS.copies_dir
place_of = _FOLDERS.place_of
named_sessions = _FOLDERS.named_sessions
session_names = _FOLDERS.session_names
session_id_of = _FOLDERS.session_id_of
given_name = _FOLDERS.given_name
live_session_id = _FOLDERS.live_session_id
live_processes = _FOLDERS.live_processes
