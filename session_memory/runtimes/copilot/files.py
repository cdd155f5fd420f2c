"""Where Copilot keeps its sessions, and which there are: `session-state/<id>/events.jsonl`, whatever their project."""

from __future__ import annotations

from ...system.files import names_in, open_regular, os, path_text, read_at, read_end
from ...transcripts.entries import Session
from ...transcripts.folders import UnnamedSessions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ..contract import Folders

SESSIONS_FOLDER = "copilot-sessions"
USUAL_DIR = ".copilot"
CONFIG_VARIABLE = "COPILOT_HOME"
DEEPEST = 2
HAS_PROJECT_FOLDERS = False
OWN_ID_VARIABLE = "COPILOT_AGENT_SESSION_ID"
AGENT_VARIABLES: tuple[str, ...] = (OWN_ID_VARIABLE, "COPILOT_CLI")
PROGRAM = "copilot"
MOST_SESSIONS = 400  # the youngest, of which a prompt may be told
_SESSIONS, _EVENTS = "session-state", "events.jsonl"
_NAME_FILE = "workspace.yaml"
_NAME_BYTES = 16 * 1024
_SEARCHED_BYTES = 2 * 1024 * 1024  # in which a prompt looks for what a sub-agent did
_SUB_AGENTS = (b'"agentId":"', b'"parentToolCallId":"')


def config_dir(environ: Mapping[str, str]) -> str:
    """`$COPILOT_HOME`, else `~/.copilot`."""
    return (environ.get(CONFIG_VARIABLE) or environ.get("HOME", "") + "/" + USUAL_DIR).rstrip("/")


def transcripts_dir(config_dir: str) -> str:
    """The folder of all sessions."""
    return f"{config_dir}/{_SESSIONS}"


def refresh(config_dir: str, everything: bool = False) -> None:
    """Nothing is to be done: Copilot writes its transcripts itself."""


def project_dir(config_dir: str, cwd: str) -> str:
    """The folder of all sessions: there is none for a directory."""
    return f"{config_dir}/{_SESSIONS}"


def events_path(config_dir: str, session_id: str) -> str:
    """Where the events of a session lie, or will lie."""
    return f"{config_dir}/{_SESSIONS}/{session_id}/{_EVENTS}"


def folders_below(config_dir: str, directory: str) -> list[str]:
    """The youngest sessions' events, whatever the directory: only what is in them tells it."""
    return list(_youngest(config_dir))


def listed_dirs(config_dir: str) -> list[str]:
    """The directory of the sessions."""
    return [f"{config_dir}/{_SESSIONS}"]


def sessions_in(folder: str, is_elsewhere: bool = False, worktree: str = "") -> list[Session]:
    """The session whose events are named, or lie in `folder`; or all those in the folder of all sessions."""
    if folder.endswith(".jsonl"):
        paths = [folder]
    elif folder.endswith(f"/{_SESSIONS}"):
        names = [name for name in names_in(folder) if not name.startswith(".")]  # older versions have a file for each
        paths = [f"{folder}/{name}" if name.endswith(".jsonl") else f"{folder}/{name}/{_EVENTS}" for name in names]
    else:
        paths = [f"{folder}/{_EVENTS}" for name in names_in(folder) if name == _EVENTS]
    return [Session(session_id_of(path), path, "", is_elsewhere, worktree) for path in paths]


def other_sessions(
    sessions_dir: str, config_dir: str, own_path: str, scope: str, folders: Folders = ()
) -> list[Session]:
    """The sessions whose events are among `folders`, and with the scope `all` the youngest of the others."""
    from ...transcripts.projects import sessions_of_project

    youngest = _youngest(config_dir)
    return [] if sessions_dir else sessions_of_project("", folders, scope, youngest, sessions_in)


def project_sessions(config_dir: str, own_id: str, directory: str, scope: str, folders: Folders = ()) -> list[Session]:
    """The same."""
    return other_sessions("", config_dir, "", scope, folders)


def session_id_of(path: str) -> str:
    """The id of the session whose events lie at `path`: the name of their folder, or, where they were put elsewhere,
    their own."""
    folder, _, file = path.rpartition("/")
    return path_text(folder.rpartition("/")[2] if file == _EVENTS else file.removesuffix(".jsonl"))


def sub_agents(path: str) -> list[str]:
    """The session's own events, where what they did stands in the end of those."""
    end = read_end(path, _SEARCHED_BYTES)
    return [path] if any([mark in end for mark in _SUB_AGENTS]) else []


def given_name(path: str) -> str:
    """What the user called the session with `/rename`, by the file beside its events; '' for the name that Copilot
    gave it, which is the first prompt."""
    try:
        descriptor = open_regular(f"{path.rpartition('/')[0]}/{_NAME_FILE}")
    except OSError:
        return ""
    try:
        lines = read_at(descriptor, 0, _NAME_BYTES).decode("utf-8", "replace").split("\n")
    finally:
        os.close(descriptor)
    values = {key: value.strip() for key, mark, value in [line.partition(": ") for line in lines] if mark}
    return _scalar(values.get("name", "")) if values.get("user_named") == "true" else ""


def _scalar(text: str) -> str:
    """A value of one line of YAML, without its quotes."""
    if text[:1] == "'" == text[-1:] and len(text) > 1:
        return text[1:-1].replace("''", "'")
    if text[:1] == '"' == text[-1:] and len(text) > 1:
        from ...system.json import as_string, decode

        try:
            return as_string(decode(text))  # JSON is YAML
        except ValueError:
            return text[1:-1]
    return text


def _youngest(config_dir: str) -> Iterator[str]:
    """The events of the sessions that were written to last. Their names tell nothing of when they began."""
    found = [session.path for session in sessions_in(transcripts_dir(config_dir))]
    yield from found if len(found) <= MOST_SESSIONS else sorted(found, key=_written, reverse=True)[:MOST_SESSIONS]


def _written(path: str) -> float:
    try:
        return os.stat(path).st_mtime
    except OSError:  # a session that was begun, and nothing said in it
        return 0.0


_UNNAMED = UnnamedSessions()
copies_dir = _UNNAMED.copies_dir
place_of = _UNNAMED.place_of
named_sessions = _UNNAMED.named_sessions
session_names = _UNNAMED.session_names
live_session_id = _UNNAMED.live_session_id
live_processes = _UNNAMED.live_processes
