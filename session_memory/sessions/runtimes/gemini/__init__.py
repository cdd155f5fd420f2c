"""Gemini CLI."""

from __future__ import annotations

from ....common.system.files import user_dir
from ....common.system.json import as_string
from .._mirrored import MirroredSessions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from ..base import Event


CHATS = "chats"


class Gemini(MirroredSessions):
    """Gemini CLI: a chat names no directory and may be deleted at any time, so it has a mirror.

    Output of a hook at a session's start makes Gemini lose the prompt on a resume, and output
    before a tool call does not reach the agent. So neither event is answered. No prompt event comes
    in a sub-agent."""

    name = "gemini"
    TITLE = "Gemini CLI"
    USUAL_DIR = ".gemini"
    CONFIG_VARIABLE = "GEMINI_CLI_HOME"
    SOURCE = "tmp"
    SESSIONS_FOLDER = "gemini-sessions"
    PROGRAM = "gemini"
    CONTINUES = ("latest",)
    PACKAGE = "@google/gemini-cli"
    SERVERS = ("mcp", "extensions")
    OWN_ID_VARIABLE = "GEMINI_SESSION_ID"
    AGENT_VARIABLE = "GEMINI_CLI"
    HAS_BACKUP = True
    PROJECT_VARIABLE = "GEMINI_PROJECT_DIR"
    PROMPT_EVENT = "BeforeAgent"
    START_EVENT = ""
    TOOL_EVENT = "BeforeTool"
    PROMPT_ID_KEY = "timestamp"

    def config_dir(self, environ: Mapping[str, str]) -> str:
        """Return `$GEMINI_CLI_HOME/.gemini`, else `~/.gemini`."""
        return (environ.get(self.CONFIG_VARIABLE) or user_dir(environ)).rstrip(
            "/"
        ) + f"/{self.USUAL_DIR}"

    def is_own(self, event: Event, environ: Mapping[str, str]) -> bool:
        folder, _, file = as_string(event.get("transcript_path")).rpartition("/")
        return folder.endswith("/chats") and file.startswith("session-") and "/tmp/" in folder

    def event_config_dir(self, event: Event, environ: Mapping[str, str]) -> str:
        """Return the directory that the variable names, else the one above
        `tmp/<project>/chats/`."""
        above, mark, _ = as_string(event.get("transcript_path")).rpartition("/tmp/")
        return above if mark and not environ.get(self.CONFIG_VARIABLE) else self.config_dir(environ)

    def exported_lines(self, content: bytes) -> Sequence[dict[str, Any] | bytes]:
        from .mirrors import exported_lines

        return exported_lines(content)


RUNTIME = Gemini()
