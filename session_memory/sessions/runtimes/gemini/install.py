"""The install into Gemini CLI: its hooks and skills, and the commands that its user types."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any

from ....common.system.json import as_list, as_object
from ...settings.homes import environment
from ..install import Hook, SettingsHooks
from . import CHATS

# Gemini's names for the events of hooks.json. The event of a compaction is missing, because it
# comes before every request to the model.
_EVENTS = {
    "UserPromptSubmit": "BeforeAgent",
    "SessionStart": "SessionStart",
    "SessionEnd": "SessionEnd",
    "Stop": "AfterAgent",
    "PermissionRequest": "Notification",
}


_NAME = "session-memory"  # of our hooks


class GeminiInstall(SettingsHooks):
    """Hooks in settings.json, with times in milliseconds. Gemini does not use the plugin."""

    HOME_FOLDER = ".gemini"
    MANAGED_SETTINGS = {
        "darwin": "/Library/Application Support/GeminiCli/settings.json",
        "linux": "/etc/gemini-cli/settings.json",
    }
    MCP_FILES, MCP_KEY = ("settings.json",), "mcpServers"
    HAS_COMMENTS = True
    COMMAND = "gemini"
    RENAME, RESUME = "/chat save {name}", "gemini --resume {id}"
    START = "gemini -i {prompt}"

    def switched_off(self, values: Mapping[str, Any]) -> str:
        switch = as_object(values.get("hooksConfig"))
        if switch.get("enabled") is False:
            return "hooksConfig.enabled is false"
        return (
            f"hooksConfig.disabled has {_NAME}" if _NAME in as_list(switch.get("disabled")) else ""
        )

    def adapted(self, hook: Hook) -> Hook | None:
        if hook.event not in _EVENTS:
            return None
        entry = {**hook.entry, "name": _NAME, "timeout": hook.entry["timeout"] * 1000}
        return Hook(_EVENTS[hook.event], None, entry)

    def prompt_event(
        self, session_id: str, transcript_path: str, cwd: str, prompt: str
    ) -> dict[str, Any]:
        """Return the event that a prompt hook reads from stdin.

        It names a chat; `transcript_path` is a mirror."""
        event = super().prompt_event(session_id, transcript_path, cwd, prompt)
        now = datetime.now(timezone.utc)
        chat = f"session-{now:%Y-%m-%dT%H-%M}-{session_id[:8]}.jsonl"
        return {
            **event,
            "transcript_path": f"{self.runtime.config_dir(environment())}/tmp/trial/{CHATS}/{chat}",
            "timestamp": now.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        }

    def hook_variables(self, session_id: str, start: str) -> dict[str, str]:
        return {
            self.runtime.OWN_ID_VARIABLE: session_id,
            "GEMINI_PROJECT_DIR": start,
            "CLAUDE_PROJECT_DIR": start,
        }
