"""Our hooks and permission rules in a settings file: read strictly, put in and taken out; all else keeps its bytes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import SessionMemoryError
from ..runtimes.install import Hook
from .json_edit import JsonNode, JsonStyle, StrictJsonError, appended, parse, removed, replaced

IsOurs = Callable[[str], bool]
_PERMISSIONS, _ALLOWED = "permissions", "allow"
_Step = tuple[JsonNode, int]  # a container, and which child of it


class SettingsFileError(SessionMemoryError):
    """A settings file that is not safe to edit; the message begins with `path:line:column`."""


@dataclass(frozen=True)
class HookSettings:
    """A settings file: the hooks in it, the permission rules of what may be done without asking, and all its values."""

    hooks: list[Hook]
    rules: list[str]
    values: dict[str, Any]

    def is_on(self, key: str) -> bool:
        """Check if `key` is true."""
        return self.values.get(key) is True


def read(content: bytes, path: str) -> HookSettings:
    """The settings in `content`, read from `path`. Raises SettingsFileError."""
    root = _checked(_decoded(content, path), path)
    rules = [node.value for node, _ in _rules(root) if isinstance(node.value, str)]
    return HookSettings([hook for hook, _, _ in _hooks(root)], rules, root.value)


def with_hooks(content: bytes | None, path: str, wanted: list[Hook], is_ours: IsOurs) -> bytes:
    """The settings with the hooks `wanted`, which replace those whose command `is_ours` recognises; `content` is None
    for a new file. Everything else keeps its bytes. Raises SettingsFileError."""
    text, missing = _renewed("{}\n" if content is None else _decoded(content, path), path, wanted, is_ours)
    for hook in missing:
        root = _checked(text, path)
        text = _with_hook(text, root, JsonStyle(text, root), hook)
    return text.encode()


def without_hooks(content: bytes, path: str, is_ours: IsOurs) -> bytes:
    """The settings without our hooks, nor the groups and events that held nothing else. Raises SettingsFileError."""
    return _renewed(_decoded(content, path), path, [], is_ours)[0].encode()


def with_rules(content: bytes, path: str, wanted: Sequence[str]) -> bytes:
    """The settings with the permission rules `wanted`, each once. Everything else keeps its bytes. Raises
    SettingsFileError."""
    text = _decoded(content, path)
    for rule in wanted:
        root = _checked(text, path)
        if all(node.value != rule for node, _ in _rules(root)):
            text = _with_rule(text, path, root, rule)
    return text.encode()


def without_rules(content: bytes, path: str, rules: Collection[str]) -> bytes:
    """The settings without these permission rules, nor the list that held nothing else. Raises SettingsFileError."""
    text = _decoded(content, path)
    while True:
        way = next((way for node, way in _rules(_checked(text, path)) if node.value in rules), None)
        if way is None:
            return text.encode()
        text = _without(text, way)


def _renewed(text: str, path: str, wanted: list[Hook], is_ours: IsOurs) -> tuple[str, list[Hook]]:
    """`text` in which each hook of ours is as `wanted` has it for its event and matcher, or removed; and those of
    `wanted` that are not in it. Makes one edit at a time, after which all positions are read anew."""
    while True:
        root, missing = _checked(text, path), list(wanted)
        for hook, node, way in _hooks(root):
            if not is_ours(hook.command):
                continue
            alike = [one for one in missing if (one.event, one.matcher) == (hook.event, hook.matcher)]
            if hook in alike:
                missing.remove(hook)
            elif alike:
                text = replaced(text, JsonStyle(text, root), node, alike[0].entry)
                break
            else:
                text = _without(text, way)
                break
        else:
            return text, missing


def _hooks(root: JsonNode) -> Iterator[tuple[Hook, JsonNode, list[_Step]]]:
    """Each hook with the object that it is, and the way to it: `hooks[event][group].hooks[index]`."""
    hooks = root.get("hooks")
    if hooks is None:
        return
    for event_at, groups in enumerate(hooks.children):
        for group_at, group in enumerate(groups.children):
            entries = group.get("hooks")
            if entries is None:
                continue
            for at, node in enumerate(entries.children):
                hook = Hook(hooks.keys[event_at], group.value.get("matcher"), node.value)
                way = [(root, root.keys.index("hooks")), (hooks, event_at), (groups, group_at), (entries, at)]
                yield hook, node, way


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


def _rules(root: JsonNode) -> Iterator[tuple[JsonNode, list[_Step]]]:
    """Each rule for what may be done without asking, and the way to it: `permissions.allow[index]`."""
    permissions = root.get(_PERMISSIONS)
    allowed = permissions.get(_ALLOWED) if permissions else None
    if permissions is None or allowed is None:
        return
    for at, node in enumerate(allowed.children):
        way = [(root, root.keys.index(_PERMISSIONS)), (permissions, permissions.keys.index(_ALLOWED)), (allowed, at)]
        yield node, way


def _with_rule(text: str, path: str, root: JsonNode, rule: str) -> str:
    style, permissions = JsonStyle(text, root), root.get(_PERMISSIONS)
    if permissions is None:
        return appended(text, style, root, {_ALLOWED: [rule]}, _PERMISSIONS)
    _expect(permissions, dict, f"`{_PERMISSIONS}` should be an object", text, path)
    allowed = permissions.get(_ALLOWED)
    if allowed is None:
        return appended(text, style, permissions, [rule], _ALLOWED)
    _expect(allowed, list, f"`{_PERMISSIONS}.{_ALLOWED}` should be a list", text, path)
    return appended(text, style, allowed, rule)


def _without(text: str, way: list[_Step]) -> str:
    """`text` without what is at the end of the way, nor the containers on it that held nothing else."""
    while len(way) > 1 and len(way[-1][0].children) == 1:
        way = way[:-1]
    return removed(text, *way[-1])


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
        f"{path}:{line}:{column}: {message}", "it was left as it is; correct it and run this again"
    )
