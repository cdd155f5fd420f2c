"""Where Codex looks for hooks and skills, and what its user types."""

from __future__ import annotations

import json
import os
import re
from uuid import uuid4

from ..claude import install as claude
from ..settings_hooks import Hook
from . import files, hooks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

TITLE = "Codex"
HOME_FOLDER = ".codex"
SETTINGS_FILE = "hooks.json"
LOCAL_SETTINGS_FILE = ""
FAIL_OPEN = claude.FAIL_OPEN
HOOKS_ARE_OFF = ONLY_MANAGED_HOOKS = PLUGIN_ROOT = ""
COMMAND_RULE = READ_RULE = TOOL_RULE = ""
COMMAND = "codex"
SKILLS_FOLDER = ""
AFTER_INSTALL = (
    "Codex runs the hooks once you have trusted them: start `codex`, which asks, and take `Trust all and continue`."
)
_CONFIG_FILE = "config.toml"
_TOOLS = {"Bash": "Bash", "Edit|MultiEdit|Write|NotebookEdit": "apply_patch"}  # by the matcher for Claude Code's
# What config.toml holds of a hook, after its user was asked about it, under file, event and position.
_STATE = re.compile(r"""^\[hooks\.state\.("(?:[^"\\]|\\.)*"|'[^']*')\]([^\[]*)""", re.MULTILINE)
MANAGED_SETTINGS: Mapping[str, str] = {}

RENAME, CLEAR, RESUME = "/rename {name}", "/new", "codex resume {id}"


def plugin_data_dirs(environ: Mapping[str, str], plugin: str) -> list[str]:
    """None: a plugin of Codex has no directory for its data that is known."""
    return []


def settings_dir(environ: Mapping[str, str]) -> str:
    """Codex's own directory."""
    return files.config_dir(environ)


def plugins_named(settings_dir: str, plugin: str) -> list[str]:
    """The plugins of this name, as `plugin@marketplace`, that config.toml has and does not switch off."""
    entry = re.compile(rf"""^\[plugins\.["'](({re.escape(plugin)})@[^"']+)["']\]([^\[]*)""", re.MULTILINE)
    found = entry.finditer(_text(f"{settings_dir}/{_CONFIG_FILE}"))
    return [match.group(1) for match in found if not re.search(r"^enabled\s*=\s*false", match.group(3), re.MULTILINE)]


def wanted_hooks(declared: str, python: str, app: str) -> list[Hook]:
    """The hooks for hooks.json, which has the form of Claude Code's: for the tools that Codex has in place of its."""
    found = []
    for hook in claude.hooks_declared(declared, python, app, "codex"):
        if hook.event == hooks.TOOL_EVENT:
            entry = {key: value for key, value in hook.entry.items() if key != "if"}
            found.append(Hook(hook.event, _TOOLS[hook.matcher or ""], entry))
        else:
            found.append(hook)
    return found


def wanted_files(declared: str, python: str, app: str) -> dict[str, str]:
    """None: the hooks are all that it needs."""
    return {}


def untrusted_hooks(settings_dir: str) -> list[str]:
    """The events of those hooks in hooks.json that config.toml does not say to be trusted. Whether one was changed
    since is not told: Codex compares a checksum of its own."""
    path = os.path.realpath(f"{settings_dir}/{SETTINGS_FILE}")
    trusted = set()
    for match in _STATE.finditer(_text(f"{settings_dir}/{_CONFIG_FILE}")):
        quoted, body = match.groups()
        file, _, place = (json.loads(quoted) if quoted[0] == '"' else quoted[1:-1]).partition(f"{SETTINGS_FILE}:")
        is_on = "trusted_hash" in body and not re.search(r"^enabled\s*=\s*false", body, re.MULTILINE)
        if is_on and os.path.realpath(f"{file}{SETTINGS_FILE}") == path:
            trusted.add(place)
    try:
        declared = json.loads(_text(path))["hooks"]
        return [
            event
            for event, groups in declared.items()
            for group_at, group in enumerate(groups)
            for at in range(len(group["hooks"]))
            if f"{_key(event)}:{group_at}:{at}" not in trusted
        ]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return []


def _key(event: str) -> str:
    """What config.toml calls an event: `user_prompt_submit`."""
    return re.sub(r"(?<!^)([A-Z])", r"_\1", event).lower()


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def prompt_event(session_id: str, transcript_path: str, cwd: str, prompt: str) -> dict[str, Any]:
    """The event that a prompt hook reads from its stdin."""
    return {
        "session_id": session_id,
        "turn_id": str(uuid4()),
        "transcript_path": transcript_path,
        "cwd": cwd,
        "hook_event_name": hooks.PROMPT_EVENT,
        "model": "",
        "permission_mode": "default",
        "prompt": prompt,
    }


def hook_variables(session_id: str, start: str) -> dict[str, str]:
    """Nothing: hooks get the environment that Codex runs in."""
    return {}
