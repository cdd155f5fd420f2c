"""The settings of a home: config.yaml, compiled to JSON once, so that a prompt does not pay for a YAML parser."""

from __future__ import annotations

from ..errors import ConfigError
from ..system.files import os, read_whole, write_atomically
from ..system.json import decode, encode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

DEFAULTS: dict[str, Any] = {
    "scope": "project",
    "first_sight_hours": 24,
    "max_characters": 500,
    "sessions": {},
    "assistant_name": "Assistant",
    "archive_message_characters": 2000,
    "archive_tools": False,
    "recent_conversations": 0,
}


class Rule:
    """What may be told of a session: nothing at all (`ignore`), or only who, when and how much (`text` false). What is
    said in one that is `untrusted` is remembered apart from the rest."""

    __slots__ = ("ignore", "text", "untrusted")

    def __init__(self, ignore: bool = False, text: bool = True, untrusted: bool = False) -> None:
        self.ignore = ignore
        self.text = text
        self.untrusted = untrusted


class Settings:
    """What config.yaml sets, or its defaults; `configuration.md` tells what each means. `memory` and `memories` are
    those sections as they stand, for those whom they concern."""

    def __init__(self, values: dict[str, Any]) -> None:
        merged = {**DEFAULTS, **values}
        self.scope: str = merged["scope"]
        self.first_sight_seconds: float = merged["first_sight_hours"] * 3600
        self.max_characters: int = merged["max_characters"]
        self.assistant_name: str = merged["assistant_name"]
        self.archive_message_characters: int = merged["archive_message_characters"]
        self.archive_tools: bool = merged["archive_tools"]
        self.recent_conversations: int = merged["recent_conversations"]
        self.memory: dict[str, Any] = values.get("memory", {})
        self.memories: dict[str, Any] = values.get("memories", {})
        sets = [merged["sessions"], *values.get("shared_sessions", [])]
        self._rules = [(pattern, Rule(**rule)) for rules in sets for pattern, rule in rules.items()]

    @property
    def has_rules(self) -> bool:
        """Whether there is a rule for any session."""
        return bool(self._rules)

    def rule(self, *names: str) -> Rule:
        """The rule for a session known by any of `names`; where several patterns fit, the strictest of each."""
        found = Rule()
        for pattern, rule in self._rules:
            if any(_fits(pattern, name) for name in names):
                found.ignore = found.ignore or rule.ignore
                found.text = found.text and rule.text
                found.untrusted = found.untrusted or rule.untrusted
        return found


def load(config_file: str, compiled_file: str, rules_files: Sequence[str] = ()) -> Settings:
    """The settings in `config_file`, or the defaults where there is none, with the rules for sessions of `rules_files`
    too. Raises ConfigError where it cannot be used.

    `compiled_file` is kept in step with them, as JSON with the stamps of the files it was made from.
    """
    files = (config_file, *rules_files)
    stamps = [_stamp(path) for path in files]
    if not any(stamps):
        return Settings({})
    try:
        compiled = decode(read_whole(compiled_file).decode())
        if compiled["stamps"] == stamps:
            return Settings(compiled["values"])
    except (OSError, ValueError, KeyError, TypeError):
        pass
    from .check import combined, read

    values = combined([read(path) if stamp else {} for path, stamp in zip(files, stamps)])
    _keep(compiled_file, encode({"stamps": stamps, "values": values}))
    return Settings(values)


def _stamp(path: str) -> list[int] | None:
    """What changes when a file does; None where there is none."""
    try:
        status = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return [status.st_mtime_ns, status.st_size, status.st_ino]


def _keep(path: str, text: str) -> None:
    """Writes atomically; a state directory that cannot be written only costs the next prompt the same again."""
    try:
        write_atomically(path, text.encode())
    except OSError:
        pass


def _fits(pattern: str, name: str) -> bool:
    """Whether `name` is `pattern`, or begins with it where it ends in `*`."""
    return name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern


__all__ = ["DEFAULTS", "ConfigError", "Rule", "Settings", "load"]
