"""The install into Droid: hooks in Claude Code's form."""

from session_memory.sessions.runtimes.install import SettingsHooks


class DroidInstall(SettingsHooks):
    HOME_FOLDER = ".factory"
    MCP_FILES, MCP_KEY = ("mcp.json",), "mcpServers"
    COMMAND = "droid"
    RESUME = "droid --resume {id}"
