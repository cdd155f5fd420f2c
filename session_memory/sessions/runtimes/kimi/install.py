"""The install into Kimi Code: its hooks, and the commands that its user types."""

from __future__ import annotations

from typing import Any

from ..install import Hook, SettingsHooks

# by the matcher for Claude Code's; Kimi Code finds a matcher anywhere in the name of a tool
_TOOLS = {"Bash": "^Bash$", "Edit|MultiEdit|Write|NotebookEdit": "^(Edit|Write)$"}
_KEYS = ("command", "timeout")  # of a hook; with any other key, Kimi Code ignores all hooks


class KimiCodeInstall(SettingsHooks):
    """Hooks are tables of config.toml, and use Kimi Code's names for Claude Code's tools."""

    HOME_FOLDER = ".kimi-code"
    SETTINGS_FILE = "config.toml"
    MCP_FILES, MCP_KEY = ("mcp.json",), "mcpServers"
    COMMAND = "kimi"
    RESUME = "kimi -r {id}"
    CLEAR = "/new"
    RENAME = "/title {name}"

    def adapted(self, hook: Hook) -> Hook | None:
        if not self.answers(hook.event):
            return None
        matcher = _TOOLS.get(hook.matcher or "", hook.matcher)
        return Hook(hook.event, matcher, {key: hook.entry[key] for key in _KEYS})

    def adapted_event(self, event: dict[str, Any]) -> dict[str, Any]:
        named = {key: event[key] for key in ("hook_event_name", "session_id", "cwd")}
        prompt = [{"type": "text", "text": event["prompt"]}]
        return {**named, "client_type": "kimi_code_cli", "prompt": prompt, "is_steer": False}
