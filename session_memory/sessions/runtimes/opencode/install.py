"""The install into OpenCode: its plugin files and skills, and the commands that its user types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ....common.system.files import user_dir
from ..install import Install


class OpenCodeInstall(Install):
    """Our hooks come as a plugin file."""

    PLUGIN = "hooks/opencode/index.js"  # what it loads from the program's directory

    HOME_FOLDER = ".opencode"
    MCP_FILES: tuple[str, ...] = ("opencode.json", "opencode.jsonc")
    MCP_KEY = "mcp"
    HAS_COMMENTS = True
    HAS_LAST_COMMAS = True
    HAS_BOM = True
    COMMAND = "opencode"
    CLEAR, RESUME = "/new", "opencode --session {id}"
    START = "opencode --prompt {prompt}"

    def settings_dir(self, environ: Mapping[str, str]) -> str:
        """Return `$XDG_CONFIG_HOME/opencode`, else `~/.config/opencode`."""
        above = environ.get("XDG_CONFIG_HOME") or f"{user_dir(environ)}/.config"
        return f"{above}/{self.COMMAND}"

    def wanted_server(self, command: str) -> dict[str, Any]:
        return {"type": "local", "command": [command, "mcp"], "enabled": True}

    def wanted_files(self, declared: str, python: str, app: str) -> dict[str, str]:
        plugin = self.extension(python, f"{app}/{self.PLUGIN}", "SessionMemory")
        return {"plugin/session-memory.js": plugin}

    def prompt_event(
        self, session_id: str, transcript_path: str, cwd: str, prompt: str
    ) -> dict[str, Any]:
        event = super().prompt_event(session_id, transcript_path, cwd, prompt)
        del event["transcript_path"]
        return {**event, "runtime": self.runtime.name}
