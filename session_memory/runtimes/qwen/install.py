"""Where Qwen Code looks for hooks and skills, and what its user types."""

from __future__ import annotations

import os
from uuid import uuid4

from ..claude import install as claude
from . import files, hooks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ..settings_hooks import Hook

TITLE = "Qwen Code"
HOME_FOLDER = ".qwen"
SETTINGS_FILE = "settings.json"
LOCAL_SETTINGS_FILE = ""
FAIL_OPEN = claude.FAIL_OPEN
HOOKS_ARE_OFF = ONLY_MANAGED_HOOKS = PLUGIN_ROOT = ""
COMMAND_RULE = READ_RULE = TOOL_RULE = ""
COMMAND = "qwen"
SKILLS_FOLDER = ""
AFTER_INSTALL = ""
MANAGED_SETTINGS: Mapping[str, str] = {}

RENAME, CLEAR, RESUME = "/rename {name}", "/clear", "qwen --resume {id}"


def plugin_data_dirs(environ: Mapping[str, str], plugin: str) -> list[str]:
    """None: an extension has no directory for its data."""
    return []


def settings_dir(environ: Mapping[str, str]) -> str:
    """`~/.qwen`: `$QWEN_RUNTIME_DIR` moves the chats alone."""
    return f"{environ.get('HOME', '')}/{files.USUAL_DIR}"


def plugins_named(settings_dir: str, plugin: str) -> list[str]:
    """The extension of this name, where it is there."""
    return [plugin] if os.path.isdir(f"{settings_dir}/extensions/{plugin}") else []


def wanted_hooks(declared: str, python: str, app: str) -> list[Hook]:
    """The hooks for settings.json, which has the form of Claude Code's: all but those for tools, which it drops."""
    found = claude.hooks_declared(declared, python, app, "qwen")
    return [hook for hook in found if hook.event != hooks.TOOL_EVENT]


def wanted_files(declared: str, python: str, app: str) -> dict[str, str]:
    """None: the hooks are all that it needs."""
    return {}


def untrusted_hooks(settings_dir: str) -> list[str]:
    """None: a user's own hooks are run."""
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
    """Nothing: hooks get the environment that Qwen Code runs in."""
    return {}
