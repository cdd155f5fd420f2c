"""The install into Droid: its hooks and servers, and the commands that its user types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ....common.system.json import as_object
from ..install import Hook, SettingsHooks

# by the matcher for Claude Code's
_TOOLS = {"Bash": "Execute", "Edit|MultiEdit|Write|NotebookEdit": "Edit|Create|ApplyPatch"}


class DroidInstall(SettingsHooks):
    """Hooks in settings.json; hooks for tools use Droid's names for Claude Code's tools."""

    HOME_FOLDER = ".factory"
    HAS_COMMENTS = True
    MCP_FILES, MCP_KEY = ("mcp.json",), "mcpServers"
    COMMAND = "droid"
    RESUME = "droid --resume {id}"
    START = "droid {prompt}"

    def switched_off(self, values: Mapping[str, Any]) -> str:
        is_off = as_object(values.get("hooks")).get("hooksDisabled") is True
        return "hooks.hooksDisabled is true" if is_off else ""

    def adapted(self, hook: Hook) -> Hook | None:
        if hook.event == self.runtime.TOOL_EVENT:
            return Hook(hook.event, _TOOLS[hook.matcher or ""], hook.entry)
        return hook if self.answers(hook.event) else None
