"""Where Claude Code looks for settings, hooks and skills, and what its user types."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from glob import escape, glob
from typing import Any
from uuid import uuid4

from ..settings_hooks import Hook
from . import files, hooks

TITLE = "Claude Code"
HOME_FOLDER = ".claude"
SETTINGS_FILE = "settings.json"
LOCAL_SETTINGS_FILE = "settings.local.json"
COMMAND = "claude"
SKILLS_FOLDER = "skills"
AFTER_INSTALL = ""
MANAGED_SETTINGS: Mapping[str, str] = {
    "darwin": "/Library/Application Support/ClaudeCode/managed-settings.json",
    "linux": "/etc/claude-code/managed-settings.json",
}
HOOKS_ARE_OFF = "disableAllHooks"  # the key that, if true, keeps every hook from running
ONLY_MANAGED_HOOKS = "allowManagedHooksOnly"  # the key of managed settings that keeps all other hooks from running
PLUGIN_ROOT = "${CLAUDE_PLUGIN_ROOT}"  # stands for the plugin's directory in the commands of hooks.json and of skills
# Rules of `permissions.allow`. A command rule also lets it be piped into commands that only read, and nothing be run
# behind it or in it; words and quotes are compared as they stand.
COMMAND_RULE, READ_RULE, TOOL_RULE = "Bash({command}:*)", "Read(/{directory}/**)", "mcp__{server}__{tool}"
FAIL_OPEN = " || exit 0"  # ends the commands of hooks: a prompt goes on whatever becomes of them
NO_CALLBACK_EVENTS = ("SessionStart", "SessionEnd")  # claude-agent-sdk calls no callback for these: they need settings

_PLUGIN_ONLY = "/hooks/plugin_start.py"  # sets up in a plugin's data directory what an install has in its environment
_PLUGIN_PATH = re.compile(rf'"?{re.escape(PLUGIN_ROOT)}([^"\s]*)"?')

RENAME, CLEAR, RESUME = "/rename {name}", "/clear", "claude --resume {id}"


def plugin_data_dirs(environ: Mapping[str, str], plugin: str) -> list[str]:
    """The directories for the data of the plugin, one a marketplace that it came from."""
    return sorted(glob(f"{escape(files.config_dir(environ))}/plugins/data/{plugin}-*"))


def settings_dir(environ: Mapping[str, str]) -> str:
    """Claude Code's own directory."""
    return files.config_dir(environ)


def plugins_named(settings_dir: str, plugin: str) -> list[str]:
    """The plugins of this name, as `plugin@marketplace`, that the user's settings have switched on."""
    try:
        with open(f"{settings_dir}/{SETTINGS_FILE}", "rb") as file:
            enabled = json.loads(file.read())["enabledPlugins"]
        return [name for name, is_on in enabled.items() if is_on and name.partition("@")[0] == plugin]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return []


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


def wanted_hooks(declared: str, python: str, app: str) -> list[Hook]:
    """The hooks that `declared` (the text of hooks.json) lists, to be run by `python` from the directory `app`."""
    return hooks_declared(declared, python, app)


def hooks_declared(declared: str, python: str, app: str, argument: str = "") -> list[Hook]:
    """The same, for Claude Code or another runtime with hooks of its form, which `argument` then names to the scripts.

    Python ends with 2 where it cannot open the script, and here 2 means: drop the prompt. Any failure
    therefore becomes 0: a program directory or an interpreter that is gone locks nobody out, nor is each prompt told of
    it. `session-memory doctor` tells.
    """
    hooks = []
    behind = f" {argument}" if argument else ""
    for event, groups in json.loads(declared)["hooks"].items():
        for group in groups:
            for entry in group["hooks"]:
                if _PLUGIN_ONLY in entry["command"]:
                    continue
                command = _PLUGIN_PATH.sub(lambda match: shlex.quote(app + match.group(1)) + behind, entry["command"])
                command = re.sub(r"^python3 ", lambda _: shlex.quote(python) + " ", command)
                if "||" not in entry["command"]:
                    command += FAIL_OPEN
                hooks.append(Hook(event, group.get("matcher"), {**entry, "command": command}))
    return hooks


def wanted_files(declared: str, python: str, app: str) -> dict[str, str]:
    """None: hooks in the settings are all that it needs."""
    return {}


def untrusted_hooks(settings_dir: str) -> list[str]:
    """None: a user's own hooks are run."""
    return []
