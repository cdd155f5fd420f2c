"""Where OpenCode looks for plugin files and skills, and what its user types. Our hooks come as a plugin file."""

from __future__ import annotations

import json

from . import hooks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ..settings_hooks import Hook

TITLE = "OpenCode"
HOME_FOLDER = ".opencode"
SETTINGS_FILE = LOCAL_SETTINGS_FILE = ""
HOOKS_ARE_OFF = ONLY_MANAGED_HOOKS = PLUGIN_ROOT = FAIL_OPEN = ""
COMMAND_RULE = READ_RULE = TOOL_RULE = ""
COMMAND = "opencode"
SKILLS_FOLDER = ""
AFTER_INSTALL = ""
MANAGED_SETTINGS: Mapping[str, str] = {}

RENAME, CLEAR, RESUME = "/rename {name}", "/new", "opencode --session {id}"


def plugin_data_dirs(environ: Mapping[str, str], plugin: str) -> list[str]:
    """None: a plugin file has no directory for its data."""
    return []


def settings_dir(environ: Mapping[str, str]) -> str:
    """`$XDG_CONFIG_HOME/opencode`, else `~/.config/opencode`."""
    return f"{environ.get('XDG_CONFIG_HOME') or environ.get('HOME', '') + '/.config'}/opencode"


def plugins_named(settings_dir: str, plugin: str) -> list[str]:
    """None: nothing of us is installed beside the plugin file."""
    return []


def wanted_hooks(declared: str, python: str, app: str) -> list[Hook]:
    """None: they come with the plugin file."""
    return []


def wanted_files(declared: str, python: str, app: str) -> dict[str, str]:
    """A plugin file that loads the program's own, and names it the interpreter to run its entries with."""
    interpreter = f"process.env.SESSION_MEMORY_PYTHON ||= {json.dumps(python)};\n"
    plugin = f"export {{ SessionMemory }} from {json.dumps(f'{app}/hooks/opencode/index.js')};\n"
    return {"plugin/session-memory.js": interpreter + plugin}


def untrusted_hooks(settings_dir: str) -> list[str]:
    """None: a user's own plugin files are loaded."""
    return []


def prompt_event(session_id: str, transcript_path: str, cwd: str, prompt: str) -> dict[str, Any]:
    """The event that our plugin file hands to hooks/user_prompt_submit.py."""
    return {
        "hook_event_name": hooks.PROMPT_EVENT,
        "runtime": "opencode",
        "session_id": session_id,
        "cwd": cwd,
        "prompt": prompt,
    }


def hook_variables(session_id: str, start: str) -> dict[str, str]:
    """Nothing: the plugin file passes on the environment that OpenCode runs in."""
    return {}
