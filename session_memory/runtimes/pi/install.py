"""Where Pi looks for skills, and what its user types. Our hooks come as an extension, not as settings."""

from __future__ import annotations

from . import files, hooks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ..settings_hooks import Hook

TITLE = "Pi"
HOME_FOLDER = ".pi"
SETTINGS_FILE = LOCAL_SETTINGS_FILE = ""
HOOKS_ARE_OFF = ONLY_MANAGED_HOOKS = PLUGIN_ROOT = FAIL_OPEN = ""
COMMAND_RULE = READ_RULE = TOOL_RULE = ""
SKILLS_FOLDER = "skills"
MANAGED_SETTINGS: Mapping[str, str] = {}

RENAME, CLEAR, RESUME = "/name {name}", "/new", "pi --session {id}"


def plugin_data_dirs(environ: Mapping[str, str], plugin: str) -> list[str]:
    """A directory of ours in Pi's own, which has none for the data of a package."""
    return [f"{files.config_dir(environ)}/{plugin}"]


def plugins_named(config_dir: str, plugin: str) -> list[str]:
    """None: what Pi loads of us is a package, beside which nothing else is installed."""
    return []


def wanted_hooks(declared: str, python: str, app: str) -> list[Hook]:
    """None: they come with the extension."""
    return []


def prompt_event(session_id: str, transcript_path: str, cwd: str, prompt: str) -> dict[str, Any]:
    """The event that our extension hands to hooks/pi_prompt.py."""
    return {
        "hook_event_name": hooks.PROMPT_EVENT,
        "runtime": "pi",
        "session_id": session_id,
        "transcript_path": transcript_path,
        "session_dir": transcript_path.rpartition("/")[0],
        "cwd": cwd,
        "prompt": prompt,
    }


def hook_variables(session_id: str, start: str) -> dict[str, str]:
    """Nothing: the extension passes on the environment that Pi runs in."""
    return {}
