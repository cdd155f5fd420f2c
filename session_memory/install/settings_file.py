"""Our hooks in a settings file: read strictly, put in and taken out; everything else keeps its bytes. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from ..errors import SessionMemoryError
from ..runtimes.claude.install import Hook
from .json_edit import JsonNode, JsonStyle, StrictJsonError, appended, parse, removed, replaced

IsOurs = Callable[[str], bool]


class SettingsFileError(SessionMemoryError):
    """A settings file that is not safe to edit; the message begins with `path:line:column`."""


@dataclass(frozen=True)
class HookSettings:
    """A settings file: the hooks in it, and all its values."""

    hooks: list[Hook]
    values: dict[str, Any]

    def is_on(self, key: str) -> bool:
        """Whether `key` is true."""
        return self.values.get(key) is True


def read(content: bytes, path: str) -> HookSettings:
    """The settings in `content`, read from `path`. Raises SettingsFileError."""
    root = _checked(_decoded(content, path), path)
    return HookSettings([hook for hook, _ in _hooks(root)], root.value)


def with_hooks(content: bytes | None, path: str, wanted: list[Hook], is_ours: IsOurs) -> bytes:
    """The settings with the hooks `wanted`, which replace those whose command `is_ours` recognises; `content` is None
    for a new file. Everything else keeps its bytes. Raises SettingsFileError."""
    text = "{}\n" if content is None else _decoded(content, path)
    missing = list(wanted)
    text = _edited(text, path, lambda text, root, style: _update(text, root, style, missing, is_ours))
    for hook in missing:
        root = _checked(text, path)
        text = _with_hook(text, root, JsonStyle(text, root), hook)
    return text.encode()


def without_hooks(content: bytes, path: str, is_ours: IsOurs) -> bytes:
    """The settings without our hooks, nor the groups and events that held nothing else. Raises SettingsFileError."""
    text = _decoded(content, path)
    return _edited(text, path, lambda text, root, style: _update(text, root, style, [], is_ours)).encode()


def _edited(text: str, path: str, edit: Callable[[str, JsonNode, JsonStyle], str | None]) -> str:
    """`text` after all edits: `edit` makes one in the text that it is given, and returns None where none is left."""
    while True:
        root = _checked(text, path)
        after = edit(text, root, JsonStyle(text, root))
        if after is None:
            return text
        text = after


def _update(text: str, root: JsonNode, style: JsonStyle, missing: list[Hook], is_ours: IsOurs) -> str | None:
    """`text` after one edit of a hook of ours, which is replaced by one of `missing` or removed. None if all of them in
    the text are as wanted; these are then taken out of `missing`."""
    kept: list[Hook] = []
    for hook, position in _hooks(root):
        if not is_ours(hook.command):
            continue
        alike = [w for w in missing if (w.event, w.matcher) == (hook.event, hook.matcher) and w not in kept]
        if not alike:
            return _without_hook(text, root, position)
        if hook not in alike:
            return replaced(text, style, position.node, alike[0].entry)
        kept.append(hook)
    for hook in kept:
        missing.remove(hook)
    return None


@dataclass(frozen=True)
class _Position:
    """Where a hook stands: `hooks[event][group].hooks[index]`."""

    event: str
    group: int
    index: int
    node: JsonNode


def _hooks(root: JsonNode) -> Iterator[tuple[Hook, _Position]]:
    hooks = root.get("hooks")
    for event, groups in zip(hooks.keys, hooks.children) if hooks else ():
        for group_index, group in enumerate(groups.children):
            entries = group.get("hooks")
            for index, node in enumerate(entries.children if entries else ()):
                matcher = group.value.get("matcher")
                yield Hook(event, matcher, node.value), _Position(event, group_index, index, node)


def _with_hook(text: str, root: JsonNode, style: JsonStyle, hook: Hook) -> str:
    group: dict[str, Any] = {} if hook.matcher is None else {"matcher": hook.matcher}
    group["hooks"] = [hook.entry]
    hooks = root.get("hooks")
    if hooks is None:
        return appended(text, style, root, {hook.event: [group]}, "hooks")
    groups = hooks.get(hook.event)
    if groups is None:
        return appended(text, style, hooks, [group], hook.event)
    return appended(text, style, groups, group)


def _without_hook(text: str, root: JsonNode, position: _Position) -> str:
    """`text` without the hook, and without its group, event and `hooks` where it was the only thing in them."""
    hooks = root.get("hooks")
    groups = hooks.get(position.event) if hooks else None
    entries = groups.children[position.group].get("hooks") if groups else None
    if hooks is None or groups is None or entries is None:
        return text
    if len(entries.children) > 1:
        return removed(text, entries, position.index)
    if len(groups.children) > 1:
        return removed(text, groups, position.group)
    if len(hooks.children) > 1:
        return removed(text, hooks, hooks.keys.index(position.event))
    return removed(text, root, root.keys.index("hooks"))


def _decoded(content: bytes, path: str) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        before = content[: error.start].decode()
        found = StrictJsonError("it is not UTF-8", before, len(before))
        raise _refusal(path, found.line, found.column, f"{found}") from None


def _checked(text: str, path: str) -> JsonNode:
    """The parsed text, whose `hooks` have the shape that the runtime documents. Raises SettingsFileError."""
    try:
        root = parse(text)
    except StrictJsonError as error:
        raise _refusal(path, error.line, error.column, f"{error}") from None
    _expect(root, dict, "the settings should be an object", text, path)
    hooks = root.get("hooks")
    if hooks is not None:
        _expect(hooks, dict, "`hooks` should be an object", text, path)
        for event, groups in zip(hooks.keys, hooks.children):
            _expect(groups, list, f"`hooks.{event}` should be a list", text, path)
            for group in groups.children:
                _expect(group, dict, f"`hooks.{event}` should hold objects with `hooks`", text, path)
                _check_entries(group.get("hooks"), event, text, path)
    return root


def _check_entries(entries: JsonNode | None, event: str, text: str, path: str) -> None:
    if entries is not None:
        _expect(entries, list, f"`hooks` in `hooks.{event}` should be a list", text, path)
        for entry in entries.children:
            _expect(entry, dict, f"`hooks` in `hooks.{event}` should hold objects", text, path)


def _expect(node: JsonNode, kind: type, message: str, text: str, path: str) -> None:
    if not isinstance(node.value, kind):
        error = StrictJsonError(message, text, node.start)
        raise _refusal(path, error.line, error.column, message)


def _refusal(path: str, line: int, column: int, message: str) -> SettingsFileError:
    return SettingsFileError(
        f"{path}:{line}:{column}: {message}", "nothing was changed; correct the file and run this again"
    )
