"""The hooks that hooks/hooks.json declares for plugins, as they stand in the settings of a runtime."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass
from typing import Any

_PLUGIN_ONLY = "/hooks/plugin_start.py"  # sets up in a plugin's data directory what an install has in its environment
_PLUGIN_PATH = re.compile(r'"?\$\{CLAUDE_PLUGIN_ROOT\}([^"\s]*)"?')


@dataclass(frozen=True)
class Hook:
    """One hook of a settings file: the event, the matcher (None for all), and the object that stands in `hooks`."""

    event: str
    matcher: str | None
    entry: dict[str, Any]

    @property
    def command(self) -> str:
        """The shell command; '' for a hook that is no command."""
        command = self.entry.get("command")
        return command if isinstance(command, str) else ""


def wanted_hooks(declared: str, python: str, app: str) -> list[Hook]:
    """The hooks that `declared` (the text of hooks.json) lists, to be run by `python` from the directory `app`.

    Python ends with 2 where it cannot open the script, and for Claude Code 2 means: drop the prompt. Any failure
    therefore becomes 1, which is only reported: nobody is locked out by a program directory that is gone.
    """
    hooks = []
    for event, groups in json.loads(declared)["hooks"].items():
        for group in groups:
            for entry in group["hooks"]:
                if _PLUGIN_ONLY in entry["command"]:
                    continue
                command = _PLUGIN_PATH.sub(lambda match: shlex.quote(app + match.group(1)), entry["command"])
                command = re.sub(r"^python3 ", lambda _: shlex.quote(python) + " ", command)
                if "||" not in entry["command"]:
                    command += " || exit 1"
                hooks.append(Hook(event, group.get("matcher"), {**entry, "command": command}))
    return hooks
