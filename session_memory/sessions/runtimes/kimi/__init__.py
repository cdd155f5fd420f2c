"""Kimi Code."""

from __future__ import annotations

from ....common.system.files import (
    is_directory,
    is_file,
    names_in,
    path_stamp,
    path_text,
    read_end,
)
from ....common.system.json import as_string, objects_in, objects_of
from ...transcripts.entries import Session
from ..base import Runtime

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ..base import Event

MOST_SESSIONS = 400  # the newest ones; a prompt may report only these
TRANSCRIPT = "agents/main/wire.jsonl"  # in the folder of a session
_AGENT_FILE = "wire.jsonl"
_MAIN = "main"
_NOTED = "state.json"
_NOTED_BYTES = 256 * 1024  # more than its size ever is


class KimiCode(Runtime):
    """Kimi Code: a session is at `sessions/<directory>/<id>/agents/main/wire.jsonl`.

    The name of `<directory>` has a checksum, so sessions are found by the directory in their first
    lines. Kimi Code deletes none. Its events name no transcript, and nothing in the environment of
    its commands names the session. Output before a tool call reaches the agent only as the reason
    for a refusal."""

    name = "kimi"
    TITLE = "Kimi Code"
    USUAL_DIR = ".kimi-code"
    CONFIG_VARIABLE = "KIMI_CODE_HOME"
    TRANSCRIPTS = "sessions"
    DEEPEST = 5
    SESSIONS_FOLDER = "kimi-sessions"
    PROGRAM = "kimi"
    PROCESS_TITLE = "kimi-code"
    PACKAGE = "@moonshot-ai/kimi-code"
    SERVERS = ("acp", "mcp", "server", "web")
    CONTINUES = ("--continue", "-c")
    OWN_ID_VARIABLE = AGENT_VARIABLE = ""
    START_EVENT = ""  # its output reaches nobody
    CONTEXT_KEY = "message"
    REFUSES = True
    WAITING_EVENTS = ("Stop", "PermissionRequest")
    HAS_BACKUP = True
    TOOLS = {
        "Edit": ("edit", "path"),
        "Write": ("edit", "path"),
        "Bash": ("command", "command"),
    }

    def transcript_path(self, config_dir: str, cwd: str, session_id: str) -> str:
        """Return the path of a session whose folder exists, wherever it was started."""
        root = self.transcripts_dir(config_dir)
        folders = [f"{root}/{name}/{session_id}" for name in names_in(root)]
        folder = next((path for path in folders if is_directory(path)), f"{root}/{session_id}")
        return f"{folder}/{TRANSCRIPT}"

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
        noted = self._noted(path)
        is_given = noted.get("isCustomTitle") is True
        return as_string(noted.get("title")).strip() if is_given else ""

    def is_own(self, event: Event, environ: Mapping[str, str]) -> bool:
        return as_string(event.get("client_type")).startswith("kimi_code")

    def prompt(self, event: Event) -> str:
        """Return the text of a prompt, which is a list of parts."""
        texts = [as_string(part.get("text")) for part in objects_of(event.get("prompt"))]
        return "\n".join([text for text in texts if text])

    def forked_from(self, event: Event, path: str) -> str:
        """Return the original of a fork, whose first event is a resume."""
        return as_string(self._noted(path).get("forkedFrom"))

    def _noted(self, path: str) -> dict[str, Any]:
        """Return the values in the file beside a session's agents; {} if it cannot be read."""
        session = self.folder_beside(path)
        content = read_end(f"{session}/{_NOTED}", _NOTED_BYTES) if session else b""
        return next(iter(objects_in(content)), {})


RUNTIME = KimiCode()
