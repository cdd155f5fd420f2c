"""Where Gemini CLI keeps its chats, and where their mirrors lie: `gemini/<directory>/<session>.jsonl` in the state of
whoever uses it.

A chat says nothing of its directory, and may be deleted at any time: so each has a mirror (see transcripts/mirror.py
and mirrors.py), in a folder for the directory that it was started in; that of a sub-agent lies in `<session>/` beside.
"""

from __future__ import annotations

from ...settings.homes import environment, runtime_home
from ...system.files import is_directory, is_file, path_stamp
from ...transcripts.folders import SessionFolders
from ...transcripts.mirror import read_state
from .projects import folder_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

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


def refresh(config_dir: str, everything: bool = False) -> None:
    """Brings the mirrors up to date, if a chat has changed. What is read for a prompt is bounded."""
    if not is_directory(f"{config_dir}/tmp"):
        return
    root = transcripts_dir(config_dir)
    watched = [] if everything else read_state(root).get("watched", [])
    if not watched or any([path_stamp(path) != stamp for path, stamp in watched]):
        from .mirrors import bring_up_to_date

        bring_up_to_date(config_dir, root, everything)


def mirror_path(config_dir: str, directory: str, session_id: str) -> str:
    """The mirror of a session, or where it will lie that of one that is started in `directory`."""
    path = f"{project_dir(config_dir, directory)}/{session_id}.jsonl"
    return path if is_file(path) else _FOLDERS.transcript_of(config_dir, session_id) or path


_FOLDERS = SessionFolders(transcripts_dir, folder_name)
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
sub_agents = _FOLDERS.sub_agents
given_name = _FOLDERS.given_name
live_session_id = _FOLDERS.live_session_id
live_processes = _FOLDERS.live_processes
