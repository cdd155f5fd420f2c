"""Where Pi looks for skills, and what its user types. Our hooks come as an extension, not as settings."""

from __future__ import annotations

import json
import os

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
COMMAND = ""  # other programs are called `pi`
SKILLS_FOLDER = ""
AFTER_INSTALL = ""
MANAGED_SETTINGS: Mapping[str, str] = {}

RENAME, CLEAR, RESUME = "/name {name}", "/new", "pi --session {id}"


def plugin_data_dirs(environ: Mapping[str, str], plugin: str) -> list[str]:
    """A directory of ours in Pi's own, which has none for the data of a package."""
    return [f"{files.config_dir(environ)}/{plugin}"]


def settings_dir(environ: Mapping[str, str]) -> str:
    """Pi's own directory."""
    return files.config_dir(environ)


def plugins_named(settings_dir: str, plugin: str) -> list[str]:
    """The packages of this name in settings.json: a directory with that in its package.json, or one from npm or git."""
    try:
        with open(f"{settings_dir}/settings.json", "rb") as file:
            packages = json.loads(file.read())["packages"]
        sources = [source["source"] if isinstance(source, dict) else source for source in packages]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return []
    return [source for source in sources if _package_name(str(source), settings_dir) == plugin]


def wanted_hooks(declared: str, python: str, app: str) -> list[Hook]:
    """None: they come with the extension."""
    return []


def wanted_files(declared: str, python: str, app: str) -> dict[str, str]:
    """An extension that loads the program's own, and names it the interpreter to run its entries with."""
    interpreter = f"process.env.SESSION_MEMORY_PYTHON ||= {json.dumps(python)};\n"
    extension = f"export {{ default }} from {json.dumps(f'{app}/hooks/pi/index.ts')};\n"
    return {"extensions/session-memory.ts": interpreter + extension}


def untrusted_hooks(settings_dir: str) -> list[str]:
    """None: a user's own extensions are loaded."""
    return []


def _package_name(source: str, settings_dir: str) -> str:
    """What a package is called, by the source that settings.json has for it: `npm:name@1.0`, `git:host/user/name@v1`,
    the address of a repository, or a directory; '' where nothing tells."""
    if source.startswith(("npm:", "git:", "https:", "http:", "ssh:")):
        return source.rpartition("/")[2].rpartition(":")[2].partition("@")[0].removesuffix(".git")
    directory = os.path.join(settings_dir, os.path.expanduser(source))
    try:
        with open(f"{directory}/package.json", "rb") as file:
            return str(json.loads(file.read())["name"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return ""


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
