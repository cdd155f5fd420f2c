"""Where Claude Code looks for settings, hooks and skills, and what its user types."""

from __future__ import annotations

from uuid import uuid4

from . import files, hooks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

TITLE = "Claude Code"
HOME_FOLDER = ".claude"
SETTINGS_FILE = "settings.json"
SKILLS_FOLDER = "skills"
MANAGED_SETTINGS: Mapping[str, str] = {
    "darwin": "/Library/Application Support/ClaudeCode/managed-settings.json",
    "linux": "/etc/claude-code/managed-settings.json",
}
HOOKS_ARE_OFF = "disableAllHooks"  # the key that, if true, keeps every hook from running
ONLY_MANAGED_HOOKS = "allowManagedHooksOnly"  # the key of managed settings that keeps all other hooks from running
PLUGIN_ROOT = "${CLAUDE_PLUGIN_ROOT}"  # stands for the plugin's directory in the commands of hooks.json
SKILL_DIR = "${CLAUDE_SKILL_DIR}"  # stands for the skill's directory in the commands of a SKILL.md
NO_CALLBACK_EVENTS = ("SessionStart", "SessionEnd")  # claude-agent-sdk calls no callback for these: they need settings

RENAME, CLEAR, RESUME = "/rename {name}", "/clear", "claude --resume {id}"


def prompt_event(session_id: str, transcript_path: str, cwd: str, prompt: str) -> dict[str, Any]:
    """The event that a prompt hook reads from its stdin."""
    return {
        "session_id": session_id,
        "transcript_path": transcript_path,
        "cwd": cwd,
        "prompt_id": str(uuid4()),
        "permission_mode": "default",
        "hook_event_name": hooks.PROMPT_EVENT,
        "prompt": prompt,
    }


def hook_variables(session_id: str, start: str) -> dict[str, str]:
    """What Claude Code adds to a hook's environment in a session that was started in `start`."""
    return {"CLAUDECODE": "1", "CLAUDE_PROJECT_DIR": start, files.OWN_ID_VARIABLE: session_id}
