"""Our hooks in a TOML settings file, as tables `[[hooks]]`. The file keeps all other bytes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ...common.text.json_edit import StrictJsonError
from ...common.text.toml_edit import parse_toml, with_table, without_tables
from ...sessions.runtimes.install import Hook, Install
from .settings_file import HookSettings, IsOurs, SettingsFile, SettingsFileError

_KEY, _HEADER = "hooks", "[[hooks]]"
_LINE = re.compile(r"^[ \t]*\[?[ \t]*hooks\b", re.MULTILINE)


class TomlSettings(SettingsFile):
    """A TOML settings file, which has a table with an event and a command for each hook."""

    def __init__(
        self, content: bytes | None, path: Path | str, dialect: Install | None = None
    ) -> None:
        super().__init__(content or b"", path, dialect)

    @staticmethod
    def or_json(content: bytes | None, path: Path | str, dialect: Install) -> SettingsFile:
        """Return the settings file at `path`, as TOML if its name says so, else as JSON."""
        kind = TomlSettings if str(path).endswith(".toml") else SettingsFile
        return kind(content, path, dialect)

    def read(self) -> HookSettings:
        _, values = self.decoded()
        return HookSettings(self._hooks(values), [], values)

    def with_hooks(self, wanted: list[Hook], is_ours: IsOurs) -> TomlSettings:
        if [hook for hook in self.read().hooks if is_ours(hook.command)] == wanted:
            return self
        text, values = self.without_hooks(is_ours).decoded()
        after = text
        for hook in wanted:
            after = with_table(after, _HEADER, _table(hook))
        tables = [*values.get(_KEY, ()), *map(_table, wanted)]
        message = f"`hooks` are not tables {_HEADER}, so session-memory cannot add its own"
        return self._edited_text(after, {**values, _KEY: tables}, text, message)

    def without_hooks(self, is_ours: IsOurs) -> TomlSettings:
        text, values = self.decoded()
        theirs = [
            table
            for table, hook in zip(values.get(_KEY, ()), self._hooks(values))
            if not is_ours(hook.command)
        ]
        if len(theirs) == len(values.get(_KEY, ())):
            return self

        def is_removed(table: str) -> bool:
            hooks = parse_toml(table).get(_KEY) if "[[" in table else None
            return isinstance(hooks, list) and is_ours(str(hooks[0].get("command", "")))

        left = {key: value for key, value in values.items() if key != _KEY}
        left |= {_KEY: theirs} if theirs else {}
        message = f"a hook of session-memory is not in a table {_HEADER} of its own"
        return self._edited_text(without_tables(text, is_removed), left, text, message)

    def with_rules(self, wanted: Sequence[str]) -> TomlSettings:
        return self

    def without_rules(self, rules: object) -> TomlSettings:
        return self

    def decoded(self) -> tuple[str, dict[str, Any]]:
        """Return the text and its values.

        Raises SettingsFileError, always on Python before 3.11."""
        try:
            text = self.content.decode()
            return text, parse_toml(text)
        except UnicodeDecodeError as error:
            before = self.content[: error.start].decode()
            wrong = StrictJsonError("it is not UTF-8", before, len(before))
            raise SettingsFileError(self._path, wrong) from None
        except StrictJsonError as error:
            raise SettingsFileError(self._path, error) from None

    def _hooks(self, values: dict[str, Any]) -> list[Hook]:
        """Return the hooks in the values of a file. Raises SettingsFileError."""
        tables = values.get(_KEY, [])
        if not isinstance(tables, list) or not all(isinstance(each, dict) for each in tables):
            text = self.content.decode()
            raise self._error(f"`hooks` should be tables {_HEADER}", text)
        return [_hook(table) for table in tables]

    def _edited_text(
        self, after: str, wanted: dict[str, Any], before: str, message: str
    ) -> TomlSettings:
        """Return the file with the text `after`, if that has the values `wanted`.

        Else raise SettingsFileError with the place of hooks in the text `before`."""
        try:
            is_right = parse_toml(after) == wanted
        except StrictJsonError:
            is_right = False
        if not is_right:
            raise self._error(message, before)
        return TomlSettings(after.encode(), self._path, self._dialect)

    def _error(self, message: str, text: str) -> SettingsFileError:
        place = _LINE.search(text)
        at = place.start() if place else len(text)
        return SettingsFileError(self._path, StrictJsonError(message, text, at))


def _hook(table: dict[str, Any]) -> Hook:
    matcher = table.get("matcher")
    entry = {key: value for key, value in table.items() if key not in ("event", "matcher")}
    return Hook(str(table.get("event", "")), None if matcher is None else str(matcher), entry)


def _table(hook: Hook) -> dict[str, Any]:
    matcher = {} if hook.matcher is None else {"matcher": hook.matcher}
    return {"event": hook.event, **matcher, **hook.entry}
