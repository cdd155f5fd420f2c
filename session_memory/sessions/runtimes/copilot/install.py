"""The install into Copilot: its hooks and skills, and the commands that its user types."""

from __future__ import annotations

import json
from time import time
from typing import Any

from ....common.text.timestamps import iso_time
from ..install import Install, enabled_plugins, hooks_declared

_HOOKS_FILE = "hooks/session-memory.json"


class CopilotInstall(Install):
    """Hooks in a separate file, named as Claude Code's, so their events come in its form."""

    HOME_FOLDER = ".copilot"
    HAS_BOM = True
    HAS_COMMENTS = True
    HAS_LAST_COMMAS = True
    SWITCH_FILE = _HOOKS_FILE  # the switch in the person's settings applies only to the hooks there
    PROJECT_SWITCH_FILES = tuple(
        f"{folder}/{name}"
        for folder in (".github/copilot", ".claude")
        for name in ("settings.json", "settings.local.json")
    )
    HOOKS_ARE_OFF = "disableAllHooks"
    MCP_FILES, MCP_KEY = ("mcp-config.json",), "mcpServers"
    COMMAND = "copilot"
    STATUS_LINE, STATUS_LINE_ENTRY = ("statusLine",), {"type": "command"}
    RESUME = "copilot --resume={id}"
    START = "copilot -i {prompt}"

    def wanted_server(self, command: str) -> dict[str, Any]:
        return {"type": "local", **super().wanted_server(command), "tools": ["*"]}

    def plugins_named(self, settings_dir: str, plugin: str) -> list[str]:
        return enabled_plugins(f"{settings_dir}/settings.json", plugin, has_comments=True)

    def wanted_files(self, declared: str, python: str, app: str) -> dict[str, str]:
        hooks_by_event: dict[str, list[dict[str, object]]] = {}
        for hook in hooks_declared(declared, python, app, self.runtime.PROGRAM):
            if not self.answers(hook.event):
                continue
            entry = {"type": "command", "bash": hook.command, "timeoutSec": hook.entry["timeout"]}
            is_of_tools = hook.event in (self.runtime.TOOL_EVENT, self.runtime.FAILED_EVENT)
            matcher = {"matcher": hook.matcher} if is_of_tools else {}
            hooks_by_event.setdefault(hook.event, []).append({**matcher, **entry})
        return {_HOOKS_FILE: json.dumps({"version": 1, "hooks": hooks_by_event}, indent=2) + "\n"}

    def prompt_event(
        self, session_id: str, transcript_path: str, cwd: str, prompt: str
    ) -> dict[str, Any]:
        event = super().prompt_event(session_id, transcript_path, cwd, prompt)
        del event["transcript_path"]
        return {**event, "timestamp": iso_time(time())}

    def hook_variables(self, session_id: str, start: str) -> dict[str, str]:
        return {
            self.runtime.AGENT_VARIABLE: "1",
            "COPILOT_PROJECT_DIR": start,
            "CLAUDE_PROJECT_DIR": start,
        }
