"""The install into Kimi Code: its user adds our server and skills by hand."""

from __future__ import annotations

from ..install import Install


class KimiCodeInstall(Install):
    """Nothing is installed: Kimi Code's hooks are tables of its config.toml."""

    HOME_FOLDER = ".kimi-code"
    MCP_FILES = ("mcp.json",)
    COMMAND = "kimi"
    RESUME = "kimi -r {id}"
    CLEAR = "/new"
    RENAME = "/title {name}"
