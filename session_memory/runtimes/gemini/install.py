"""Where Gemini CLI looks for hooks and skills, and what its user types."""

from __future__ import annotations

from datetime import datetime, timezone

from ...settings.homes import environment
from ..claude import install as claude
from ..settings_hooks import Hook
from . import files, hooks, projects

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

TITLE = "Gemini CLI"
HOME_FOLDER = ".gemini"
SETTINGS_FILE = "settings.json"
LOCAL_SETTINGS_FILE = ""
FAIL_OPEN = claude.FAIL_OPEN
HOOKS_ARE_OFF = ONLY_MANAGED_HOOKS = PLUGIN_ROOT = ""
COMMAND_RULE = READ_RULE = TOOL_RULE = ""
COMMAND = "gemini"
SKILLS_FOLDER = ""
AFTER_INSTALL = ""
MANAGED_SETTINGS: Mapping[str, str] = {}
# What Gemini calls the events of hooks.json. Not that of a compaction: it comes before every request to the model.
_EVENTS = {"UserPromptSubmit": hooks.PROMPT_EVENT, "SessionStart": "SessionStart", "SessionEnd": "SessionEnd"}

RENAME, CLEAR, RESUME = "/chat save {name}", "/clear", "gemini --resume {id}"


def plugin_data_dirs(environ: Mapping[str, str], plugin: str) -> list[str]:
    """None: an extension has no directory for its data."""
    return []


def settings_dir(environ: Mapping[str, str]) -> str:
    """Gemini's own directory."""
    return files.config_dir(environ)


def plugins_named(settings_dir: str, plugin: str) -> list[str]:
    """None: Gemini does not take the plugin."""
    return []


def wanted_hooks(declared: str, python: str, app: str) -> list[Hook]:
    """The hooks for settings.json, in which times are milliseconds."""
    found = []
    for hook in claude.hooks_declared(declared, python, app, "gemini"):
        if hook.event in _EVENTS:
            entry = {**hook.entry, "name": "session-memory", "timeout": hook.entry["timeout"] * 1000}
            found.append(Hook(_EVENTS[hook.event], None, entry))
    return found


def wanted_files(declared: str, python: str, app: str) -> dict[str, str]:
    """None: the hooks are all that it needs."""
    return {}


def untrusted_hooks(settings_dir: str) -> list[str]:
    """None: a user's own hooks are run."""
    return []


def prompt_event(session_id: str, transcript_path: str, cwd: str, prompt: str) -> dict[str, Any]:
    """The event that a prompt hook reads from its stdin. It names a chat, where `transcript_path` is a mirror."""
    now = datetime.now(timezone.utc)
    chat = f"session-{now:%Y-%m-%dT%H-%M}-{session_id[:8]}.jsonl"
    return {
        "session_id": session_id,
        "transcript_path": f"{files.config_dir(environment())}/tmp/trial/{projects.CHATS}/{chat}",
        "cwd": cwd,
        "hook_event_name": hooks.PROMPT_EVENT,
        "timestamp": now.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "prompt": prompt,
    }


def hook_variables(session_id: str, start: str) -> dict[str, str]:
    """What Gemini adds to a hook's environment in a session that was started in `start`."""
    return {files.OWN_ID_VARIABLE: session_id, "GEMINI_PROJECT_DIR": start, "CLAUDE_PROJECT_DIR": start}
