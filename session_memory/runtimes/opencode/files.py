"""Where OpenCode keeps its sessions, and where their mirrors lie: `opencode/<directory>/<session>.jsonl` in the state
of whoever uses it.

OpenCode keeps all sessions in one database, whose rows it changes, and before in files, which it wrote anew. So each
session has a mirror (see transcripts/mirror.py and mirrors.py), in a folder for the directory that it was started in;
that of a sub-agent lies in `<session>/` beside.
"""

from __future__ import annotations

from ...settings.homes import environment, runtime_home
from ...system.files import is_directory, path_stamp
from ...transcripts.folders import SessionFolders

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

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


def refresh(config_dir: str, everything: bool = False) -> None:
    """Brings the mirrors up to date, if the database has changed. What is read for a prompt is bounded."""
    database, storage = f"{config_dir}/{DATABASE}", f"{config_dir}/storage"
    stamps = [path_stamp(database + suffix) for suffix in _STAMPED]
    root = transcripts_dir(config_dir)
    if stamps[0][0]:
        from ...transcripts.mirror import read_state

        state = read_state(root)
        if state.get("stamps") != stamps or (everything and not state.get("is_whole")):
            from .mirrors import bring_up_to_date

            bring_up_to_date(database, storage, root, stamps, everything)
    if everything and is_directory(f"{storage}/session"):
        from .mirrors import take_files

        take_files(database, storage, root)


def _folder_name(directory: str) -> str:
    from .rows import folder_name

    return folder_name(directory)


_FOLDERS = SessionFolders(transcripts_dir, _folder_name)
mirror_of = _FOLDERS.transcript_of
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
