"""The files of Claude Code's sessions, and its cleanup 30 days after the last change.

Measured with 2.1.330: the merged settings of the project where a session starts apply to the
transcripts of all projects. A settings file with a wrong `cleanupPeriodDays` is ignored as a
whole."""

from __future__ import annotations

import json
from collections.abc import Iterable

from ..backup import Backup, Deletion
from ..install import values_in

DAYS = 30
_KEY = "cleanupPeriodDays"
_FILES = ("settings.json", "settings.local.json")


class ClaudeCodeBackup(Backup):
    """A session is `<id>.jsonl` and everything in `<id>/`: sub-agents and the results of tools."""

    def deletion(self, config_dir: str, directories: Iterable[str]) -> Deletion:
        days, source, traps, shorter = DAYS, "", [], []
        user = f"{config_dir}/{_FILES[0]}"
        projects = [
            f"{directory}/.claude/{name}"
            for directory in directories
            if directory.startswith("/")
            for name in _FILES
        ]
        for path in dict.fromkeys([user, *projects]):
            value = values_in(path).get(_KEY)
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int) or value <= 0:
                traps.append(
                    f"{path}: {_KEY}: {json.dumps(value)} is not a whole number above 0, so "
                    "Claude Code ignores the whole file, including its hooks: correct it"
                )
            elif path == user:
                days, source = value, path
            elif value < days:
                shorter.append(value)
                traps.append(
                    f"{path}: {_KEY}: {value} deletes the transcripts of all projects, not only "
                    f"of this one, when Claude Code starts in this project: raise or remove it"
                )
        return Deletion(days, source, tuple(traps), min([days, *shorter]))
