"""The install into Claude Code: its settings, hooks and skills, and the commands that its user
types."""

from __future__ import annotations

from collections.abc import Mapping
from glob import escape, glob
from typing import Any
from uuid import uuid4

from ..install import SettingsHooks, enabled_plugins

# claude-agent-sdk calls no callbacks for these events, so they need settings
NO_CALLBACK_EVENTS = ("SessionStart", "SessionEnd")


class ClaudeCodeInstall(SettingsHooks):
    """Hooks go into settings.json, or come with the plugin."""

    HOME_FOLDER = ".claude"
    HAS_BOM = True
    MCP_FILES = ("settings.json", ".claude.json", "../.claude.json")
    LOCAL_SETTINGS_FILE = "settings.local.json"
    COMMAND = "claude"
    SKILLS_FOLDER = "skills"
    MANAGED_SETTINGS = {
        "darwin": "/Library/Application Support/ClaudeCode/managed-settings.json",
        "linux": "/etc/claude-code/managed-settings.json",
    }
    STATUS_LINE = ("statusLine",)
    HOOKS_ARE_OFF = "disableAllHooks"
    ONLY_MANAGED_HOOKS = "allowManagedHooksOnly"
    PLUGIN_ROOT = "${CLAUDE_PLUGIN_ROOT}"
    # Rules of `permissions.allow`. A command rule also allows piping into commands that only read,
    # but nothing after or inside the command. Words and quotes are compared literally.
    COMMAND_RULE, READ_RULE, TOOL_RULE = (
        "Bash({command}:*)",
        "Read(/{directory}/**)",
        "mcp__{server}__{tool}",
    )
    RESUME = "claude --resume {id}"
    START = "claude {prompt}"

    def plugin_data_dirs(self, environ: Mapping[str, str], plugin: str) -> list[str]:
        """Return the plugin's data directories, one for each marketplace that it came from."""
        return sorted(glob(f"{escape(self.runtime.config_dir(environ))}/plugins/data/{plugin}-*"))

    def plugins_named(self, settings_dir: str, plugin: str) -> list[str]:
        return enabled_plugins(f"{settings_dir}/{self.SETTINGS_FILE}", plugin)

    def prompt_event(
        self, session_id: str, transcript_path: str, cwd: str, prompt: str
    ) -> dict[str, Any]:
        event = super().prompt_event(session_id, transcript_path, cwd, prompt)
        return {**event, "prompt_id": str(uuid4()), "permission_mode": "default"}

    def hook_variables(self, session_id: str, start: str) -> dict[str, str]:
        return {
            "CLAUDECODE": "1",
            "CLAUDE_PROJECT_DIR": start,
            self.runtime.OWN_ID_VARIABLE: session_id,
        }
