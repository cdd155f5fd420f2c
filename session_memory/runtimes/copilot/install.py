"""Where Copilot looks for hooks and skills, and what its user types."""

from __future__ import annotations

import json

from ..claude import install as claude
from . import files, hooks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ..settings_hooks import Hook

TITLE = "Copilot CLI"
HOME_FOLDER = ".copilot"
SETTINGS_FILE = ""
LOCAL_SETTINGS_FILE = ""
HOOKS_ARE_OFF = ONLY_MANAGED_HOOKS = PLUGIN_ROOT = FAIL_OPEN = ""
COMMAND_RULE = READ_RULE = TOOL_RULE = ""
COMMAND = "copilot"
SKILLS_FOLDER = ""
AFTER_INSTALL = ""
MANAGED_SETTINGS: Mapping[str, str] = {}

RENAME, CLEAR, RESUME = "/rename {name}", "/clear", "copilot --resume={id}"


def plugin_data_dirs(environ: Mapping[str, str], plugin: str) -> list[str]:
    """None: a plugin of Copilot has no directory for its data that is known."""
    return []


def settings_dir(environ: Mapping[str, str]) -> str:
    """Copilot's own directory."""
    return files.config_dir(environ)


def plugins_named(settings_dir: str, plugin: str) -> list[str]:
    """The plugins of this name that settings.json has switched on, in the form of Claude Code's."""
    return claude.plugins_named(settings_dir, plugin)


def wanted_hooks(declared: str, python: str, app: str) -> list[Hook]:
    """None: they come in a file of their own."""
    return []


def wanted_files(declared: str, python: str, app: str) -> dict[str, str]:
    """A file of hooks: with names as Claude Code's their events come in the form of its events."""
    found: dict[str, list[dict[str, object]]] = {}
    for hook in claude.hooks_declared(declared, python, app, "copilot"):
        entry = {"type": "command", "bash": hook.command, "timeoutSec": hook.entry["timeout"]}
        matcher = {"matcher": hook.matcher} if hook.event == hooks.TOOL_EVENT else {}
        found.setdefault(hook.event, []).append({**matcher, **entry})
    return {"hooks/session-memory.json": json.dumps({"version": 1, "hooks": found}, indent=2) + "\n"}


def untrusted_hooks(settings_dir: str) -> list[str]:
    """None: a user's own hooks are run."""
    return []


def prompt_event(session_id: str, transcript_path: str, cwd: str, prompt: str) -> dict[str, Any]:
    """The event that a prompt hook reads from its stdin."""
    from datetime import datetime, timezone

    return {
        "hook_event_name": hooks.PROMPT_EVENT,
        "session_id": session_id,
        "timestamp": datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "cwd": cwd,
        "prompt": prompt,
    }


def hook_variables(session_id: str, start: str) -> dict[str, str]:
    """What Copilot adds to a hook's environment in a session that was started in `start`."""
    return {"COPILOT_CLI": "1", "COPILOT_PROJECT_DIR": start, "CLAUDE_PROJECT_DIR": start}
