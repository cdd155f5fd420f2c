"""The settings of a home: config.yaml, compiled to JSON once, so that a prompt does not pay for a YAML parser."""

from __future__ import annotations

from ..system.files import os, read_whole
from ..system.json import unsealed
from ..text.names import is_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from os import stat_result
    from typing import Any

    from .rules import KnownDirectories, PatternRule, Rule

TELL, ASK, OFF = "tell", "ask", "off"  # what is done about collisions
# What a prompt, an archive and the start of a session go by. The table of all keys takes these defaults from here: a
# prompt does not load it.
DEFAULTS: dict[str, Any] = {
    "scope": "project",
    "first_sight_hours": 24,
    "max_characters": 500,
    "collisions": TELL,
    "assistant_name": "Assistant",
    "archive_message_characters": 0,
    "archive_tools": False,
    "recent_conversations": 0,
    "upkeep": "sessions",
}
PROMPT_CHARACTERS = 200  # of memories; the default of a key in the section `memories`


class Settings:
    """What config.yaml sets, or its defaults; docs/use/configuration.md tells what each key means.

    `memory`, `memories`, `team` and `host` are those sections as far as they are set, for sections.py. `rules` are
    patterns of sessions with a rule each, `projects` those of directories. `faults` say, a line each, what in the files
    could not be understood.
    """

    def __init__(
        self, values: dict[str, Any], rules: Iterable[PatternRule] = (), faults: Sequence[str] = (),
        projects: Iterable[PatternRule] = (),
    ) -> None:  # fmt: skip
        merged = {**DEFAULTS, **values}
        self.scope: str = merged["scope"]
        self.first_sight_seconds: float = merged["first_sight_hours"] * 3600
        self.max_characters: int = merged["max_characters"]
        self.collisions: str = merged["collisions"]
        self.assistant_name: str = merged["assistant_name"]
        self.archive_message_characters: int = merged["archive_message_characters"]
        self.archive_tools: bool = merged["archive_tools"]
        self.recent_conversations: int = merged["recent_conversations"]
        self.upkeep: str = merged["upkeep"]
        self.memory: dict[str, Any] = values.get("memory", {})
        self.memories: dict[str, Any] = values.get("memories", {})
        self.team: dict[str, Any] = values.get("team", {})
        self.host: dict[str, Any] = values.get("host", {})
        self.faults = faults
        self._rules = [(pattern, rule) for pattern, rule in rules]
        self._projects = [(pattern, rule) for pattern, rule in projects]
        self._directories: KnownDirectories | None = None

    @property
    def has_rules(self) -> bool:
        """Whether there is a rule for any session or project."""
        return bool(self._rules or self._projects)

    @property
    def has_project_rules(self) -> bool:
        """Whether there is a rule for any project."""
        return bool(self._projects)

    @property
    def has_name_rules(self) -> bool:
        """Return whether a rule may be meant for a session's name or title, beside its id."""
        return any([pattern != "*" and not is_id(pattern) for pattern, _ in self._rules])

    def rule(self, *names: str, directory: str = "") -> Rule:
        """The rule for a session known by any of `names` that was started in `directory` ('' where that is not known);
        where several fit, the strictest of each."""
        from .rules import stricter, strictest

        rule = strictest(self._rules, names)
        return stricter(rule, self.rule_for_directory(directory)) if self._projects else rule

    def rule_for_directory(self, directory: str) -> Rule:
        """Return the rule for what is said while in `directory`, in any session."""
        from .rules import KnownDirectories, strictest_in

        self._directories = self._directories or KnownDirectories()
        return strictest_in(self._projects, directory, self._directories)


def load(config_file: str, compiled_file: str, rules_files: Sequence[str] = ()) -> Settings | None:
    """The settings in `config_file`, or the defaults where there is none, with the rules of `rules_files` too; None
    where `compiled_file` was not made from these files as they are now (see `check.compile_files`)."""
    stamps = stamps_of(config_file, rules_files)
    if not any(stamps):
        return Settings({})
    try:
        compiled = unsealed(read_whole(compiled_file))
        if compiled["stamps"] == stamps:
            return Settings(compiled["values"], compiled["rules"], compiled["faults"], compiled["projects"])
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return None


def stamps_of(config_file: str, rules_files: Sequence[str]) -> list[list[int] | None]:
    """The stamps of these files, of which settings are made."""
    return [stamp(path) for path in (config_file, *rules_files)]


def stamp(path: str) -> list[int] | None:
    """What changes when a file does, or what is in a directory; None where there is none."""
    try:
        status: stat_result = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:  # it is there and cannot be read, which is told
        return [0, 0, 0]
    return [status.st_mtime_ns, status.st_size, status.st_ino]
