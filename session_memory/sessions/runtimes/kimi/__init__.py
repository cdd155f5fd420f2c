"""Kimi Code."""

from __future__ import annotations

from ....common.system.files import is_file, names_in, path_stamp, path_text, read_end
from ....common.system.json import as_string, objects_in
from ...transcripts.entries import Session
from ..base import Runtime

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..base import Event

MOST_SESSIONS = 400  # the newest ones; a prompt may report only these
TRANSCRIPT = "agents/main/wire.jsonl"  # in the folder of a session
_AGENT_FILE = "wire.jsonl"
_MAIN = "main"
_STATE = "state.json"
_STATE_BYTES = 256 * 1024  # more than its size ever is


class KimiCode(Runtime):
    """Kimi Code: a session is at `sessions/<directory>/<id>/agents/main/wire.jsonl`.

    The name of `<directory>` has a checksum, so sessions are found by the directory in their first
    lines. Kimi Code deletes none. Its hooks are in a TOML file, to which an install adds none."""

    name = "kimi"
    TITLE = "Kimi Code"
    USUAL_DIR = ".kimi-code"
    CONFIG_VARIABLE = "KIMI_CODE_HOME"
    TRANSCRIPTS = "sessions"
    DEEPEST = 5
    SESSIONS_FOLDER = "kimi-sessions"
    PROGRAM = "kimi"
    PACKAGE = "@moonshot-ai/kimi-code"
    SERVERS = ("acp", "mcp", "server", "web")
    CONTINUES = ("--continue", "-c")
    OWN_ID_VARIABLE = "KIMI_CODE_SESSION_ID"
    AGENT_VARIABLE = "KIMI_CODE_AGENT"
    PROMPT_EVENT = ""
    START_EVENT = ""
    TOOL_EVENT = ""
    SHOWS_WHAT_WAS_TOLD = False
    HAS_BACKUP = True

    def transcript_path(self, config_dir: str, cwd: str, session_id: str) -> str:
        """Return the path of a session that exists, wherever it was started."""
        root = self.transcripts_dir(config_dir)
        paths = [f"{root}/{name}/{session_id}/{TRANSCRIPT}" for name in names_in(root)]
        return next((path for path in paths if is_file(path)), f"{root}/{session_id}/{TRANSCRIPT}")

    def all_folders(self, config_dir: str) -> list[str]:
        """Return the transcripts of the most recently written sessions."""
        root = self.transcripts_dir(config_dir)
        paths = [
            session.path
            for name in names_in(root)
            for session in self.sessions_in(f"{root}/{name}")
        ]
        if len(paths) > MOST_SESSIONS:
            paths = sorted(paths, key=lambda path: -path_stamp(path)[2])[:MOST_SESSIONS]
        return paths

    def sessions_in(
        self, folder: str, is_elsewhere: bool = False, worktree: str = ""
    ) -> list[Session]:
        """Return the session of a transcript or its folder, or the sessions of a directory."""
        if folder.endswith(".jsonl"):
            paths = [folder]
        elif f"{folder}/{_AGENT_FILE}".endswith(f"/{TRANSCRIPT}"):
            paths = [f"{folder}/{_AGENT_FILE}"]
        else:
            names = [name for name in names_in(folder) if not name.startswith(".")]
            paths = [f"{folder}/{name}/{TRANSCRIPT}" for name in names]
        return [
            Session(self.session_id_of(path), path, "", is_elsewhere, worktree)
            for path in paths
            if is_file(path)
        ]

    def session_id_of(self, path: str) -> str:
        """Return the name of the session's folder, or of the file if it was moved elsewhere."""
        session = path.removesuffix(f"/{TRANSCRIPT}")
        return path_text(session.rpartition("/")[2].removesuffix(".jsonl"))

    def folder_beside(self, path: str) -> str:
        return path.removesuffix(f"/{TRANSCRIPT}") if path.endswith(f"/{TRANSCRIPT}") else ""

    def sub_agents_beside(self, path: str) -> list[str]:
        session = self.folder_beside(path)
        names = sorted(names_in(f"{session}/agents")) if session else ()
        paths = [f"{session}/agents/{name}/{_AGENT_FILE}" for name in names if name != _MAIN]
        return [path for path in paths if is_file(path)]

    def given_name(self, path: str) -> str:
        """Return the user's title of the session, from the file beside its agents."""
        session = self.folder_beside(path)
        content = read_end(f"{session}/{_STATE}", _STATE_BYTES) if session else b""
        document = next(iter(objects_in(content)), {})
        is_given = document.get("isCustomTitle") is True
        return as_string(document.get("title")).strip() if is_given else ""

    def is_own(self, event: Event, environ: Mapping[str, str]) -> bool:
        return False


RUNTIME = KimiCode()
