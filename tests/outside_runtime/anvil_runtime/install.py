"""The install into Anvil: hooks in Claude Code's form."""

from session_memory.sessions.runtimes.install import SettingsHooks


class AnvilInstall(SettingsHooks):
    HOME_FOLDER = ".anvil"
    MCP_FILES, MCP_KEY = ("mcp.json",), "mcpServers"
    COMMAND = "anvil"
    RESUME = "anvil --resume {id}"
