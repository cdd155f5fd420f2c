"""Our hooks in a YAML settings file, as items of a list for each event.

The file keeps all other bytes.
"""

from __future__ import annotations

import os
from typing import Any

from ...common.text.json_edit import StrictJsonError
from ...common.text.yaml_edit import YamlLists, parse_yaml
from ...sessions.runtimes.install import Hook
from ...sessions.settings.program import add_all_packages
from ._text_settings import KEY, TextSettings
from .settings_file import IsOurs, SettingsFileError


class YamlSettings(TextSettings):
    """A YAML settings file, whose `hooks` are lists of commands by the events' names.

    Each method raises SettingsFileError without PyYAML."""

    def parsed(self, text: str) -> dict[str, Any]:
        try:
            return parse_yaml(text)
        except ImportError:
            add_all_packages(os.environ)
        try:
            return parse_yaml(text)
        except ImportError:
            hint = (
                "an install brings it in its own environment; elsewhere, install it for this Python"
            )
            wrong = StrictJsonError("reading YAML needs PyYAML", text, 0, hint)
            raise SettingsFileError(self._path, wrong, needs_package=True) from None

    def with_hooks(self, wanted: list[Hook], is_ours: IsOurs) -> YamlSettings:
        ours = [hook for hook in self.read().hooks if is_ours(hook.command)]
        if len(ours) == len(wanted) and all(hook in ours for hook in wanted):
            return self
        bare = self.without_hooks(is_ours)
        text, values = bare.decoded()
        lists = _lists(wanted)
        theirs = values.get(KEY) or {}
        added = {event: [*items, *_listed(theirs.get(event))] for event, items in lists.items()}
        after_all = {**values, KEY: {**theirs, **added}}
        for after in YamlLists(text, KEY).with_items(lists):
            edited = YamlSettings(after.encode(), self._path, self._dialect)
            if _is_same(self.values_of(after), after_all) and edited._gives_back(bare, is_ours):
                return edited
        lines = "\n".join(f"    {line}" for line in YamlLists(text, KEY).written(lists))
        raise bare.refused(
            "session-memory cannot add its hooks here without changing something else",
            f"add these lines yourself:\n{lines}\n",
        )

    def without_hooks(self, is_ours: IsOurs) -> YamlSettings:
        text, values = self.decoded()
        if not any(is_ours(hook.command) for hook in self.hooks_in(values)):
            return self

        def is_kept(item: Any) -> bool:
            return not isinstance(item, dict) or not is_ours(_hook("", item).command)

        theirs = {
            event: [item for item in items if is_kept(item)] if isinstance(items, list) else items
            for event, items in values[KEY].items()
        }
        after = text
        try:
            after = YamlLists(text, KEY).without_items(
                lambda item: is_ours(item.get("command", ""))
            )
        except StrictJsonError:
            pass
        left = {**values, KEY: theirs}
        if after == text or not _is_same(_filled(self.values_of(after)), _filled(left)):
            raise self.refused("a hook of session-memory shares its lines with something else")
        return YamlSettings(after.encode(), self._path, self._dialect)

    def hooks_in(self, values: dict[str, Any]) -> list[Hook]:
        hooks = values.get(KEY)
        if hooks is not None and not isinstance(hooks, dict):
            raise self.refused("`hooks` should contain events, such as `pre_llm_call:`")
        return [
            _hook(str(event), item)
            for event, items in (hooks or {}).items()
            for item in _listed(items)
            if isinstance(item, dict)
        ]

    def _gives_back(self, bare: YamlSettings, is_ours: IsOurs) -> bool:
        """Check if an uninstall would give back the bytes of the file before the install."""
        try:
            return self.without_hooks(is_ours).content == bare.content
        except SettingsFileError:
            return False


def _hook(event: str, item: dict[str, Any]) -> Hook:
    matcher = item.get("matcher")
    entry = {key: value for key, value in item.items() if key != "matcher"}
    return Hook(event, None if matcher is None else str(matcher), entry)


def _listed(items: Any) -> list[Any]:
    """Return the items of a list; [] for other values, which are settings beside the events."""
    return items if isinstance(items, list) else []


def _lists(hooks: list[Hook]) -> dict[str, list[dict[str, Any]]]:
    lists: dict[str, list[dict[str, Any]]] = {}
    for hook in hooks:
        matcher = {} if hook.matcher is None else {"matcher": hook.matcher}
        lists.setdefault(hook.event, []).append({**matcher, **hook.entry})
    return lists


def _filled(values: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return values without empty lists of hooks, and without `hooks` if all are empty."""
    if values is None:
        return None
    hooks = {event: items for event, items in (values.get(KEY) or {}).items() if items}
    others = {key: value for key, value in values.items() if key != KEY}
    return {**others, KEY: hooks} if hooks else others


def _is_same(values: object, others: object) -> bool:
    """Compare values; False if a list or mapping contains itself, as in `a: &a [*a]`."""
    try:
        return values == others
    except RecursionError:
        return False
