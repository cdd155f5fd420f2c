"""Factory's Droid."""

from __future__ import annotations

from ....common.system.files import real_path, user_dir
from ....common.system.json import as_string
from ...transcripts.edits import patch_uses
from ...transcripts.entries import called
from ..base import ProjectFolders

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...transcripts.entries import ToolUse
    from ..base import Event

_PATCHES = {"ApplyPatch": ("edit", "input")}


class Droid(ProjectFolders):
    """Droid: sessions are at `sessions/<directory>/<id>.jsonl`.

    In `droid exec` no hook runs with a prompt, so the start of a session is answered as one. Output
    before a tool call reaches the agent only as the reason for a refusal."""

    name = "droid"
    TITLE = "Droid"
    USUAL_DIR = ".factory"
    CONFIG_VARIABLE = "FACTORY_HOME_OVERRIDE"
    TRANSCRIPTS = "sessions"
    SESSIONS_FOLDER = "droid-sessions"
    PROGRAM = "droid"
    PACKAGE = "@factory/cli"
    SERVERS = ("daemon", "mcp", "plugin", "search", "find", "update", "doctor")
    CONTINUES = ("--last",)
    OWN_ID_VARIABLE = "DROID_SESSION_ID"
    VARIABLES_KEY = "CLAUDE_ENV_FILE"
    AGENT_VARIABLE = "BUN_PTY_LIB"
    PROJECT_VARIABLE = "FACTORY_PROJECT_DIR"
    TELLS_AT_START = True
    REFUSES = True
    HAS_BACKUP = True
    TOOLS = {
        "Edit": ("edit", "file_path"),
        "Create": ("edit", "file_path"),
        "ApplyPatch": ("edit", "input"),
        "Execute": ("command", "command"),
    }

    def config_dir(self, environ: Mapping[str, str]) -> str:
        """Return `$FACTORY_HOME_OVERRIDE/.factory`, else `~/.factory`."""
        above = environ.get(self.CONFIG_VARIABLE) or user_dir(environ)
        return f"{above.rstrip('/')}/{self.USUAL_DIR}"

    def folder_name(self, directory: str) -> str:
        return real_path(directory).replace("/", "-")

    def is_own(self, event: Event, environ: Mapping[str, str]) -> bool:
        """Return whether Droid started the hook; it also sets Claude Code's variables."""
        path = as_string(event.get("transcript_path"))
        return "FACTORY_PROJECT_DIR" in environ and "/sessions/-" in path

    def forked_from(self, event: Event, path: str) -> str:
        before = as_string(event.get("previous_session_id"))
        return "" if before == event.get("session_id") else before

    def tool_calls(self, event: Event) -> tuple[ToolUse, ...]:
        """Return the edit or command; for a patch an edit per file."""
        patch = called(event, _PATCHES)
        return patch_uses(*patch) if patch else called(event, self.TOOLS)


RUNTIME = Droid()
