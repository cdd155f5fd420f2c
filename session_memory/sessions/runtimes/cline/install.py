"""The install into Cline: its plugin file and servers, and the commands that its user types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ....common.system.files import user_dir
from ...settings.homes import environment
from ..install import Install


class ClineInstall(Install):
    """Our hooks come as a plugin file."""

    HOME_FOLDER = ".cline"
    MCP_FILES, MCP_KEY = ("data/settings/cline_mcp_settings.json",), "mcpServers"
    COMMAND = "cline"
    CLEAR = "/clear"
    RESUME = "cline -i --id {id}"
    START = "cline -i {prompt}"

    def settings_dir(self, environ: Mapping[str, str]) -> str:
        """Return `$CLINE_DIR`, else `~/.cline`."""
        return environ.get("CLINE_DIR", "").rstrip("/") or f"{user_dir(environ)}/.cline"

    def mcp_files(self, settings_dir: str) -> list[str]:
        """Return the file with the servers, which is in Cline's data directory.

        Variables move that directory or the file itself, for the usual settings only."""
        environ = environment()
        if settings_dir != self.settings_dir(environ):
            return super().mcp_files(settings_dir)
        usual = f"{self.runtime.config_dir(environ)}/settings/cline_mcp_settings.json"
        return [environ.get("CLINE_MCP_SETTINGS_PATH") or usual]

    def wanted_files(self, declared: str, python: str, app: str) -> dict[str, str]:
        plugin = self.extension(python, f"{app}/hooks/cline/index.js")
        return {"plugins/session-memory.js": plugin}

    def prompt_event(
        self, session_id: str, transcript_path: str, cwd: str, prompt: str
    ) -> dict[str, Any]:
        event = super().prompt_event(session_id, transcript_path, cwd, prompt)
        del event["transcript_path"]
        return {**event, "runtime": self.runtime.name}
