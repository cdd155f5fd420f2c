"""Our hooks and permission rules in a settings file.

The file is parsed strictly. Adding or removing them leaves all other bytes alone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...common.errors import SessionMemoryError
from ...common.text.json_comments import without_bom, without_comments, without_last_commas
from ...common.text.json_edit import StrictJsonError, edited, parse, position
from ...sessions.runtimes.install import Hook, Install

IsOurs = Callable[[str], bool]
# A status line command that runs the person's command and then ours with the same input. It also
# works if our program is gone.
_THEIRS, _OURS = (
    'in=$(cat); out=$(printf %s "$in" | {\n',
    '\n}); [ -z "$out" ] || printf "%s\\n" "$out"; printf %s "$in" | ',
)
_Way = tuple[str | int, ...]  # keys and indexes that lead to a value


class SettingsFileError(SessionMemoryError):
    """A settings file that is not safe to edit; the message begins with `path:line:column`.

    With `needs_package`, only a package is missing that an install brings."""

    def __init__(self, path: str, error: StrictJsonError, *, needs_package: bool = False) -> None:
        self.needs_package = needs_package
        where = f"{path}:{error.line}:{error.column}"
        hint = error.hint or "correct it and run this command again"
        super().__init__(f"{where}: {error}", f"the file was left as it is; {hint}")


@dataclass(frozen=True)
class HookSettings:
    """A settings file: its hooks, its rules for calls without permission, and all its values."""

    hooks: list[Hook]
    rules: list[str]
    values: dict[str, Any]


class SettingsFile:
    """The `content` of a settings file at `path`, read as the runtime of `dialect` reads it.

    Each method raises SettingsFileError if the file is not safe to edit."""

    def __init__(
        self, content: bytes | None, path: Path | str, dialect: Install | None = None
    ) -> None:
        """Take the content; None is a file that is to be made."""
        self.content = b"{}\n" if content is None else content
        self._path, self._dialect = str(path), dialect

    def read(self) -> HookSettings:
        """Return the hooks, the permission rules and the values in it."""
        _, values = self._checked()
        hooks = [
            Hook(event, matcher.get("matcher"), entry)
            for event, matchers in (values.get("hooks") or {}).items()
            for matcher in matchers
            for entry in matcher.get("hooks", ())
        ]
        rules = [rule for rule in _rules(values) if isinstance(rule, str)]
        return HookSettings(hooks, rules, values)

    def with_hooks(self, wanted: list[Hook], is_ours: IsOurs) -> SettingsFile:
        """Return the file with the hooks `wanted` instead of those whose command `is_ours`."""
        text, values = self._checked()
        renewed, missing = _renewed(values, wanted, is_ours)
        hooks: dict[str, Any] = dict(renewed.get("hooks") or {})
        for hook in missing:
            matcher = {} if hook.matcher is None else {"matcher": hook.matcher}
            hooks[hook.event] = [*hooks.get(hook.event, ()), {**matcher, "hooks": [hook.entry]}]
        after = {**renewed, "hooks": hooks} if missing else renewed
        return self._edited(edited(text, renewed), after)

    def without_hooks(self, is_ours: IsOurs) -> SettingsFile:
        """Return the file without our hooks, and without matchers and events that become empty."""
        text, values = self._checked()
        return self._edited(text, _renewed(values, [], is_ours)[0])

    def with_rules(self, wanted: Sequence[str]) -> SettingsFile:
        """Return it with the permission rules `wanted`, each once."""
        text, values = self._checked()
        permissions, rules = values.get("permissions"), _rules(values)
        missing = [rule for rule in dict.fromkeys(wanted) if rule not in rules]
        if missing:
            way: _Way = ("permissions",)
            self._expect(text, permissions, way, dict, "`permissions` should be an object")
            allowed = permissions.get("allow") if permissions else None
            message = "`permissions.allow` should be a list"
            self._expect(text, allowed, (*way, "allow"), list, message)
            values = {**values, "permissions": {**(permissions or {}), "allow": [*rules, *missing]}}
        return self._edited(text, values)

    def without_rules(self, rules: Collection[str]) -> SettingsFile:
        """Return the file without these permission rules, and without lists that become empty."""
        text, values = self._checked()
        before = _rules(values)
        left = [rule for rule in before if rule not in rules]
        if len(left) < len(before):
            values = _with(values, "permissions", _with(values["permissions"], "allow", left))
        return self._edited(text, values)

    def with_status_line(self, install: Install, command: str, is_ours: IsOurs) -> SettingsFile:
        """Return the file with `command` for the status line, after the person's command if any.

        Other settings of the line stay."""
        text, values = self.decoded()
        way = install.STATUS_LINE
        self._object_at(text, values, way[:-1])
        entry = _at(values, way)
        if entry is None:
            entry = {**install.STATUS_LINE_ENTRY, "command": command}
            return self._edited(text, _put(values, way, entry))
        present = _command(entry)
        if present is None:
            message = (
                f"`{'.'.join(way)}` is not a command, so session-memory cannot add its own to it"
            )
            raise SettingsFileError(self._path, StrictJsonError(message, text, position(text, way)))
        theirs = _beside_ours(present, is_ours)
        theirs = present if theirs is None else theirs
        joined = f"{_THEIRS}{theirs}{_OURS}{command}" if theirs else command
        return self._edited(text, _put(values, way, {**entry, "command": joined}))

    def without_status_line(self, install: Install, is_ours: IsOurs) -> SettingsFile:
        """Return the file without our status line, and with the person's own line again."""
        text, values = self.decoded()
        way = install.STATUS_LINE
        entry = _at(values, way)
        theirs = _beside_ours(_command(entry) or "", is_ours)
        if theirs is not None:
            values = _put(values, way, {**entry, "command": theirs} if theirs else None)
        return self._edited(text, values)

    def has_status_line(self, install: Install, is_ours: IsOurs) -> bool:
        """Check if our status line is in it."""
        _, values = self.decoded()
        return _beside_ours(_command(_at(values, install.STATUS_LINE)) or "", is_ours) is not None

    def value_of(self, *way: str) -> dict[str, Any]:
        """Return the object at the end of these keys; {} if there is none."""
        text, values = self.decoded()
        return self._object_at(text, values, way)

    def _object_at(self, text: str, values: dict[str, Any], way: tuple[str, ...]) -> dict[str, Any]:
        for depth in range(1, len(way) + 1):
            value = _at(values, way[:depth])
            message = f"`{'.'.join(way[:depth])}` should be an object"
            self._expect(text, {} if value is None else value, way[:depth], dict, message)
        return _at(values, way) or {}

    def with_value(self, way: tuple[str, ...], value: Any) -> SettingsFile:
        """Return the file with a value at the end of these keys.

        None removes the value, and the objects that become empty."""
        text, values = self.decoded()
        return self._edited(text, _put(values, way, value))

    def keeping_containers(self, stripped: bytes, original: str) -> SettingsFile:
        """Return the file `stripped`, with objects and lists from it that became empty.

        They are kept if the `original` file had them too, so they are not ours. It may be ''."""
        less = SettingsFile(stripped, self._path, self._dialect)
        if not original:
            return less
        text, values = self.decoded()
        _, first = SettingsFile(original.encode(), self._path, self._dialect).decoded()
        left = less.decoded()[1]
        kept = _with_containers(left, values, first)
        return less if kept == left else self._edited(text, kept)

    def _edited(self, text: str, values: dict[str, Any]) -> SettingsFile:
        return SettingsFile(edited(text, values).encode(), self._path, self._dialect)

    def decoded(self) -> tuple[str, dict[str, Any]]:
        """Return the text and its values."""
        try:
            text = self.content.decode()
        except UnicodeDecodeError as error:
            before = self.content[: error.start].decode()
            raise SettingsFileError(
                self._path, StrictJsonError("it is not UTF-8", before, len(before))
            ) from None
        try:
            values = parse(_as_json(text, self._dialect) if self._dialect else text)
        except StrictJsonError as error:
            raise SettingsFileError(self._path, error) from None
        self._expect(text, values, (), dict, "the settings should be an object")
        return text, values

    def _checked(self) -> tuple[str, dict[str, Any]]:
        """Return the text and its values, after checking that `hooks` have the documented shape."""
        text, values = self.decoded()
        hooks = values.get("hooks")
        self._expect(text, hooks, ("hooks",), dict, "`hooks` should be an object")
        for event, matchers in (hooks or {}).items():
            self._check_matchers(text, event, matchers)
        return text, values

    def _check_matchers(self, text: str, event: str, matchers: Any) -> None:
        name, way = f"hooks.{event}", ("hooks", event)
        self._expect(text, matchers, way, list, f"`{name}` should be a list")
        for index, matcher in enumerate(matchers):
            message = f"`{name}` should contain objects with `hooks`"
            self._expect(text, matcher, (*way, index), dict, message)
            entries, inside = matcher.get("hooks", []), (*way, index, "hooks")
            self._expect(text, entries, inside, list, f"`hooks` in `{name}` should be a list")
            for number, entry in enumerate(entries):
                message = f"`hooks` in `{name}` should contain objects"
                self._expect(text, entry, (*inside, number), dict, message)

    def _expect(self, text: str, value: Any, way: _Way, kind: type, message: str) -> None:
        """Raise SettingsFileError if the value at `way` has another type, except `null`."""
        optional = (("hooks",), ("permissions",), ("permissions", "allow"))
        if not isinstance(value, kind) and not (value is None and way in optional):
            error = StrictJsonError(message, text, position(text, way))
            raise SettingsFileError(self._path, error)


def _as_json(text: str, dialect: Install) -> str:
    """Return a text of the same length in which everything that JSON forbids is blank.

    This covers what the runtime of `dialect` reads nevertheless, such as comments."""
    plain = without_bom(text) if dialect.HAS_BOM else text
    plain = without_comments(plain) if dialect.HAS_COMMENTS else plain
    return without_last_commas(plain) if dialect.HAS_LAST_COMMAS else plain


def _beside_ours(command: str, is_ours: IsOurs) -> str | None:
    """Return the person's command in front of ours, or ''; None if our command is not there."""
    theirs, mark, command_of_ours = command.rpartition(_OURS)
    return theirs.removeprefix(_THEIRS) if is_ours(command_of_ours if mark else command) else None


def _command(entry: Any) -> str | None:
    command = (
        entry.get("command") if isinstance(entry, dict) and entry.get("type") == "command" else None
    )
    return command if isinstance(command, str) else None


def _at(values: Any, way: tuple[str, ...]) -> Any:
    """Return what keys lead to, None if nothing."""
    for key in way:
        values = values.get(key) if isinstance(values, dict) else None
    return values


def _put(values: dict[str, Any], way: tuple[str, ...], value: Any) -> dict[str, Any]:
    """Return `values` with another value at the keys.

    None removes the value, and objects that become empty."""
    inner = _put(values.get(way[0]) or {}, way[1:], value) if way[1:] else value
    if inner:
        return {**values, way[0]: inner}
    return {key: inner for key, inner in values.items() if key != way[0]}


def _with_containers(
    left: dict[str, Any], values: dict[str, Any], original: dict[str, Any]
) -> dict[str, Any]:
    """Return `left` with the objects and lists, now empty, that `values` and `original` have."""
    kept = dict(left)
    for key, first in original.items():
        value = values.get(key)
        if isinstance(first, dict) and isinstance(value, dict):
            kept[key] = _with_containers(left.get(key, {}), value, first)
        elif isinstance(first, list) and isinstance(value, list):
            kept.setdefault(key, [])
    return kept


def _renewed(
    values: dict[str, Any], wanted: list[Hook], is_ours: IsOurs
) -> tuple[dict[str, Any], list[Hook]]:
    """Return the settings with our hooks replaced or removed, and the missing hooks.

    A hook in `wanted` replaces the one with its event and matcher; it is missing if the settings
    have none."""
    missing = list(wanted)

    def entries_left(event: str, matcher: dict[str, Any]) -> list[Any]:
        left = []
        for entry in matcher["hooks"]:
            hook = Hook(event, matcher.get("matcher"), entry)
            alike = [
                hook_missing
                for hook_missing in missing
                if (hook_missing.event, hook_missing.matcher) == (hook.event, hook.matcher)
            ]
            if not is_ours(hook.command):
                left.append(entry)
            elif alike:
                missing.remove(hook if hook in alike else alike[0])
                left.append(entry if hook in alike else alike[0].entry)
        return left

    hooks = values.get("hooks") or {}
    for event, matchers in list(hooks.items()):
        left = [
            _with(matcher, "hooks", entries_left(event, matcher)) if "hooks" in matcher else matcher
            for matcher in matchers
        ]
        left = [new for old, new in zip(matchers, left) if "hooks" in new or "hooks" not in old]
        hooks = _with(hooks, event, left)
    return _with(values, "hooks", hooks) if values.get("hooks") else values, missing


def _with(container: dict[str, Any], key: str, value: Any) -> dict[str, Any]:
    """Return `container` with a new value at `key`, or without a key that becomes empty."""
    if value or not container.get(key):
        return {**container, key: value} if key in container else container
    return {name: inner for name, inner in container.items() if name != key}


def _rules(values: dict[str, Any]) -> list[Any]:
    """Return the rules for calls that need no permission."""
    permissions = values.get("permissions")
    allowed = permissions.get("allow") if isinstance(permissions, dict) else None
    return allowed if isinstance(allowed, list) else []
