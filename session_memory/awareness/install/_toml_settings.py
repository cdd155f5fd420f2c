"""Our hooks in a TOML settings file, as tables `[[hooks]]`. The file keeps all other bytes."""

from __future__ import annotations

from typing import Any

from ...common.text.toml_edit import parse_toml, with_table, without_tables
from ...sessions.runtimes.install import Hook
from ._text_settings import KEY, TextSettings
from .settings_file import IsOurs

_HEADER = "[[hooks]]"


class TomlSettings(TextSettings):
    """A TOML settings file, which has a table with an event and a command for each hook.

    Each method raises SettingsFileError on Python before 3.11."""

    def parsed(self, text: str) -> dict[str, Any]:
        return parse_toml(text)

    def with_hooks(self, wanted: list[Hook], is_ours: IsOurs) -> TomlSettings:
        if [hook for hook in self.read().hooks if is_ours(hook.command)] == wanted:
            return self
        bare = self.without_hooks(is_ours)
        after, values = bare.decoded()
        for hook in wanted:
            after = with_table(after, _HEADER, _table(hook))
        tables = [*values.get(KEY, ()), *map(_table, wanted)]
        message = f"`hooks` are not tables {_HEADER}, so session-memory cannot add its own"
        return bare._checked_text(after, {**values, KEY: tables}, message)

    def without_hooks(self, is_ours: IsOurs) -> TomlSettings:
        text, values = self.decoded()
        theirs = [
            table
            for table, hook in zip(values.get(KEY, ()), self.hooks_in(values))
            if not is_ours(hook.command)
        ]
        if len(theirs) == len(values.get(KEY, ())):
            return self

        def is_removed(table: str) -> bool:
            hooks = parse_toml(table).get(KEY) if "[[" in table else None
            return isinstance(hooks, list) and is_ours(str(hooks[0].get("command", "")))

        left = {key: value for key, value in values.items() if key != KEY}
        left |= {KEY: theirs} if theirs else {}
        message = f"a hook of session-memory is not in a table {_HEADER} of its own"
        return self._checked_text(without_tables(text, is_removed), left, message)

    def hooks_in(self, values: dict[str, Any]) -> list[Hook]:
        tables = values.get(KEY, [])
        if not isinstance(tables, list) or not all(isinstance(each, dict) for each in tables):
            raise self.refused(f"`hooks` should be tables {_HEADER}")
        return [_hook(table) for table in tables]

    def _checked_text(self, after: str, wanted: dict[str, Any], message: str) -> TomlSettings:
        """Return the file with the text `after`, if that has the values `wanted`.

        Else raise SettingsFileError with the place of hooks in this file."""
        if self.values_of(after) != wanted:
            raise self.refused(message)
        return TomlSettings(after.encode(), self._path, self._dialect)


def _hook(table: dict[str, Any]) -> Hook:
    matcher = table.get("matcher")
    entry = {key: value for key, value in table.items() if key not in ("event", "matcher")}
    return Hook(str(table.get("event", "")), None if matcher is None else str(matcher), entry)


def _table(hook: Hook) -> dict[str, Any]:
    matcher = {} if hook.matcher is None else {"matcher": hook.matcher}
    return {"event": hook.event, **matcher, **hook.entry}
