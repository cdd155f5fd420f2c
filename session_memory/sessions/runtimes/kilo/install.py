"""The install into Kilo: its plugin files and skills, and the commands that its user types."""

from __future__ import annotations

from ..opencode.install import OpenCodeInstall


class KiloInstall(OpenCodeInstall):
    """Our hooks come as a plugin file, which states that it is Kilo's."""

    PLUGIN = "hooks/kilo/index.js"
    HOME_FOLDER = ".kilo"
    MCP_FILES = ("kilo.json", "kilo.jsonc", "opencode.json", "opencode.jsonc")
    COMMAND = "kilo"
    RESUME = "kilo --session {id}"
    START = "kilo --prompt {prompt}"
