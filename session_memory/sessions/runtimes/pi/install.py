"""The install into Pi: its extensions and skills, and the commands that its user types."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from ....common.system.files import expanded
from ....common.system.json import as_list, as_string
from ..install import Install, values_in


class PiInstall(Install):
    """Our hooks come as an extension."""

    HOME_FOLDER = ".pi"
    MCP_FILES, MCP_KEY = ("mcp.json",), "mcpServers"  # Pi before 0.99 ignores it
    # otherwise Pi would switch on `codemode` for our tools, and only its scripts could call them
    SERVER_DEFAULTS: Mapping[str, Any] = {"exposure": "direct"}
    HAS_BOM = True
    SHOWS_STATUS = True
    RENAME, CLEAR, RESUME = "/name {name}", "/new", "pi --session {id}"
    START = "pi {prompt}"

    def plugin_data_dirs(self, environ: Mapping[str, str], plugin: str) -> list[str]:
        """Return our directory in Pi's directory, because Pi has none for a package's data."""
        return [f"{self.runtime.config_dir(environ)}/{plugin}"]

    def plugins_named(self, settings_dir: str, plugin: str) -> list[str]:
        """Return the packages of this name in settings.json: by their package.json, or from npm or
        git."""
        packages = as_list(values_in(f"{settings_dir}/settings.json").get("packages"))
        sources = [
            as_string(package.get("source") if isinstance(package, dict) else package)
            for package in packages
        ]
        return [source for source in sources if _package_name(source, settings_dir) == plugin]

    def wanted_files(self, declared: str, python: str, app: str) -> dict[str, str]:
        extension = self.extension(python, f"{app}/hooks/pi/index.ts")
        return {"extensions/session-memory.ts": extension}

    def prompt_event(
        self, session_id: str, transcript_path: str, cwd: str, prompt: str
    ) -> dict[str, Any]:
        event = super().prompt_event(session_id, transcript_path, cwd, prompt)
        return {
            **event,
            "runtime": self.runtime.name,
            "session_dir": transcript_path.rpartition("/")[0],
        }


def _package_name(source: str, settings_dir: str) -> str:
    """Return the name of a package from its source in settings.json; '' if it has none.

    A source is `npm:name@1.0`, `git:host/user/name@v1`, the address of a repository, or a
    directory."""
    if source.startswith(("npm:", "git:", "https:", "http:", "ssh:")):
        return source.rpartition("/")[2].rpartition(":")[2].partition("@")[0].removesuffix(".git")
    directory = os.path.join(settings_dir, expanded(source, os.environ))
    return as_string(values_in(f"{directory}/package.json").get("name"))
