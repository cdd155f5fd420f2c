"""Where Qwen Code looks for hooks and skills, and what its user types."""

from __future__ import annotations

from uuid import uuid4

from . import hooks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ..settings_hooks import Hook

TITLE = "Qwen Code"
HOME_FOLDER = ".qwen"
SETTINGS_FILE = "settings.json"
LOCAL_SETTINGS_FILE = ""
HOOKS_ARE_OFF = ONLY_MANAGED_HOOKS = PLUGIN_ROOT = FAIL_OPEN = ""
COMMAND_RULE = READ_RULE = TOOL_RULE = ""
SKILLS_FOLDER = "skills"
MANAGED_SETTINGS: Mapping[str, str] = {}

RENAME, CLEAR, RESUME = "/rename {name}", "/clear", "qwen --resume {id}"


def plugin_data_dirs(environ: Mapping[str, str], plugin: str) -> list[str]:
    """None: an extension has no directory for its data."""
    return []


def plugins_named(config_dir: str, plugin: str) -> list[str]:
    """None: nothing of us is installed beside the hooks."""
    return []


def wanted_hooks(declared: str, python: str, app: str) -> list[Hook]:
    """None: they come with the extension."""
    return []


def prompt_event(session_id: str, transcript_path: str, cwd: str, prompt: str) -> dict[str, Any]:
    """The event that a prompt hook reads from its stdin."""
    return {
        "session_id": session_id,
        "transcript_path": transcript_path,
        "cwd": cwd,
        "hook_event_name": hooks.PROMPT_EVENT,
        "permission_mode": "default",
        "prompt_id": str(uuid4()),
        "prompt": prompt,
        "submitted_prompt": prompt,
    }


def hook_variables(session_id: str, start: str) -> dict[str, str]:
    """Nothing: hooks get the environment that Codex runs in."""
    return {}
