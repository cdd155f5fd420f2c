"""Our hooks and permission rules in a settings file: read strictly, put in and taken out; all else
keeps its bytes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

from ...common.errors import SessionMemoryError
from ...common.text.json_comments import without_bom, without_comments, without_last_commas
from ...sessions.runtimes.install import Hook, Install
from ._json_edit import StrictJsonError, edited, parse, position

IsOurs = Callable[[str], bool]
# A command for a status line that ours stands behind: it gets the same input, and its output comes
# first, even if ours is gone.
_THEIRS, _OURS = (
    'in=$(cat); out=$(printf %s "$in" | {\n',
    '\n}); [ -z "$out" ] || printf "%s\\n" "$out"; printf %s "$in" | ',
)
_Way = tuple[str | int, ...]  # keys and indexes that lead to a value


class SettingsFileError(SessionMemoryError):
    """A settings file that is not safe to edit; the message begins with `path:line:column`."""

    def __init__(self, path: str, error: StrictJsonError) -> None:
        where = f"{path}:{error.line}:{error.column}"
        super().__init__(f"{where}: {error}", "it was left as it is; correct it and run this again")


@dataclass(frozen=True)
class HookSettings:
    """A settings file: the hooks in it, the permission rules of what may be done without asking,
    and all its values."""

    hooks: list[Hook]
    rules: list[str]
    values: dict[str, Any]


def read(content: bytes, path: str, dialect: Install | None = None) -> HookSettings:
    """Return the settings in `content`, read from `path` as the runtime of `dialect` reads it.
    Raises SettingsFileError."""
    _, values = _checked(content, path, dialect)
    hooks = [
        Hook(event, group.get("matcher"), entry)
        for event, groups in (values.get("hooks") or {}).items()
        for group in groups
        for entry in group.get("hooks", ())
    ]
    return HookSettings(hooks, [rule for rule in _rules(values) if isinstance(rule, str)], values)


def with_hooks(
    content: bytes | None,
    path: str,
    wanted: list[Hook],
    is_ours: IsOurs,
    dialect: Install | None = None,
) -> bytes:
    """Return the settings with the hooks `wanted`, which replace those whose command `is_ours`
    recognises; `content` is None for a new file. Raises SettingsFileError."""
    text, values = _checked(b"{}\n" if content is None else content, path, dialect)
    renewed, missing = _renewed(values, wanted, is_ours)
    hooks: dict[str, Any] = dict(renewed.get("hooks") or {})
    for hook in missing:
        group = {} if hook.matcher is None else {"matcher": hook.matcher}
        hooks[hook.event] = [*hooks.get(hook.event, ()), {**group, "hooks": [hook.entry]}]
    return edited(
        edited(text, renewed), {**renewed, "hooks": hooks} if missing else renewed
    ).encode()


def without_hooks(
    content: bytes, path: str, is_ours: IsOurs, dialect: Install | None = None
) -> bytes:
    """Return the settings without our hooks, nor groups and events that held nothing else. Raises
    SettingsFileError."""
    text, values = _checked(content, path, dialect)
    return edited(text, _renewed(values, [], is_ours)[0]).encode()


def with_rules(
    content: bytes, path: str, wanted: Sequence[str], dialect: Install | None = None
) -> bytes:
    """Return the settings with the permission rules `wanted`, each once. Raises
    SettingsFileError."""
    text, values = _checked(content, path, dialect)
    permissions, rules = values.get("permissions"), _rules(values)
    missing = [rule for rule in dict.fromkeys(wanted) if rule not in rules]
    if missing:
        _expect(
            text, path, permissions, ("permissions",), dict, "`permissions` should be an object"
        )
        allowed = permissions.get("allow") if permissions else None
        _expect(
            text,
            path,
            allowed,
            ("permissions", "allow"),
            list,
            "`permissions.allow` should be a list",
        )
        values = {**values, "permissions": {**(permissions or {}), "allow": [*rules, *missing]}}
    return edited(text, values).encode()


def without_rules(
    content: bytes, path: str, rules: Collection[str], dialect: Install | None = None
) -> bytes:
    """Return the settings without these permission rules, nor a list of nothing else. Raises
    SettingsFileError."""
    text, values = _checked(content, path, dialect)
    before = _rules(values)
    left = [rule for rule in before if rule not in rules]
    if len(left) < len(before):
        values = _with(values, "permissions", _with(values["permissions"], "allow", left))
    return edited(text, values).encode()


def with_status_line(
    content: bytes | None, path: str, install: Install, command: str, is_ours: IsOurs
) -> bytes:
    """Return the settings with `command` for the status line, behind the one that is there, if any;
    all else that stands beside it stays. Raises SettingsFileError."""
    text, values = _decoded(b"{}\n" if content is None else content, path, install)
    way = install.STATUS_LINE
    for depth in range(1, len(way)):
        above = _at(values, way[:depth])
        _expect(
            text,
            path,
            {} if above is None else above,
            way[:depth],
            dict,
            f"`{way[depth - 1]}` should be an object",
        )
    entry = _at(values, way)
    if entry is None:
        return edited(
            text, _put(values, way, {**install.STATUS_LINE_ENTRY, "command": command})
        ).encode()
    there = _command(entry)
    if there is None:
        message = f"`{'.'.join(way)}` is not a command, so none can be added to it"
        raise SettingsFileError(path, StrictJsonError(message, text, position(text, way)))
    theirs = _beside_ours(there, is_ours)
    theirs = there if theirs is None else theirs
    joined = f"{_THEIRS}{theirs}{_OURS}{command}" if theirs else command
    return edited(text, _put(values, way, {**entry, "command": joined})).encode()


def without_status_line(content: bytes, path: str, install: Install, is_ours: IsOurs) -> bytes:
    """Return the settings without our status line, with the one that it was put behind. Raises
    SettingsFileError."""
    text, values = _decoded(content, path, install)
    way = install.STATUS_LINE
    entry = _at(values, way)
    theirs = _beside_ours(_command(entry) or "", is_ours)
    if theirs is not None:
        values = _put(values, way, {**entry, "command": theirs} if theirs else None)
    return edited(text, values).encode()


def has_status_line(content: bytes, path: str, install: Install, is_ours: IsOurs) -> bool:
    """Check if our status line is in the settings. Raises SettingsFileError."""
    _, values = _decoded(content, path, install)
    return _beside_ours(_command(_at(values, install.STATUS_LINE)) or "", is_ours) is not None


def value_of(
    content: bytes | None, path: str, key: str, dialect: Install | None = None
) -> dict[str, Any]:
    """Return the object under a key of the settings; {} if there is none. Raises
    SettingsFileError."""
    text, values = _decoded(b"{}\n" if content is None else content, path, dialect)
    found = values.get(key)
    _expect(
        text, path, {} if found is None else found, (key,), dict, f"`{key}` should be an object"
    )
    return found or {}


def with_value(
    content: bytes | None,
    path: str,
    way: tuple[str, ...],
    value: Any,
    dialect: Install | None = None,
) -> bytes:
    """Return the settings with a value where keys lead to; None takes it out, and what is empty
    then. Raises SettingsFileError."""
    text, values = _decoded(b"{}\n" if content is None else content, path, dialect)
    return edited(text, _put(values, way, value)).encode()


def _beside_ours(command: str, is_ours: IsOurs) -> str | None:
    """Return the command that ours was put behind, '' for none; None if ours is not there."""
    theirs, mark, own = command.rpartition(_OURS)
    return theirs.removeprefix(_THEIRS) if is_ours(own if mark else command) else None


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
    """Return `values` with another value where keys lead to; None leaves it out, and what is empty
    then."""
    inner = _put(values.get(way[0]) or {}, way[1:], value) if way[1:] else value
    if inner:
        return {**values, way[0]: inner}
    return {key: one for key, one in values.items() if key != way[0]}


def _renewed(
    values: dict[str, Any], wanted: list[Hook], is_ours: IsOurs
) -> tuple[dict[str, Any], list[Hook]]:
    """Return the settings in which each hook of ours is as `wanted` has it for its event and
    matcher, or removed; and those of `wanted` that are not in them."""
    missing = list(wanted)

    def entries_left(event: str, group: dict[str, Any]) -> list[Any]:
        left = []
        for entry in group["hooks"]:
            hook = Hook(event, group.get("matcher"), entry)
            alike = [
                one for one in missing if (one.event, one.matcher) == (hook.event, hook.matcher)
            ]
            if not is_ours(hook.command):
                left.append(entry)
            elif alike:
                missing.remove(hook if hook in alike else alike[0])
                left.append(entry if hook in alike else alike[0].entry)
        return left

    hooks = values.get("hooks") or {}
    for event, groups in list(hooks.items()):
        left = [
            _with(group, "hooks", entries_left(event, group)) if "hooks" in group else group
            for group in groups
        ]
        left = [new for old, new in zip(groups, left) if "hooks" in new or "hooks" not in old]
        hooks = _with(hooks, event, left)
    return _with(values, "hooks", hooks) if values.get("hooks") else values, missing


def _with(container: dict[str, Any], key: str, value: Any) -> dict[str, Any]:
    """Return `container` with a value in the place of the one under `key`; without the key if
    nothing is left of it."""
    if value or not container.get(key):
        return {**container, key: value} if key in container else container
    return {name: one for name, one in container.items() if name != key}


def _rules(values: dict[str, Any]) -> list[Any]:
    """Return the rules for what may be done without asking."""
    permissions = values.get("permissions")
    allowed = permissions.get("allow") if isinstance(permissions, dict) else None
    return allowed if isinstance(allowed, list) else []


def _decoded(content: bytes, path: str, dialect: Install | None) -> tuple[str, dict[str, Any]]:
    """Return the text and its values, as the runtime of `dialect` reads it. Raises
    SettingsFileError."""
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        before = content[: error.start].decode()
        raise SettingsFileError(
            path, StrictJsonError("it is not UTF-8", before, len(before))
        ) from None
    try:
        values = parse(_as_json(text, dialect) if dialect else text)
    except StrictJsonError as error:
        raise SettingsFileError(path, error) from None
    _expect(text, path, values, (), dict, "the settings should be an object")
    return text, values


def _as_json(text: str, dialect: Install) -> str:
    """Return a text of the same length without what the runtime of `dialect` reads although JSON
    does not allow it."""
    plain = without_bom(text) if dialect.HAS_BOM else text
    plain = without_comments(plain) if dialect.HAS_COMMENTS else plain
    return without_last_commas(plain) if dialect.HAS_LAST_COMMAS else plain


def _checked(content: bytes, path: str, dialect: Install | None) -> tuple[str, dict[str, Any]]:
    """Return the text and its values, whose `hooks` have the documented shape. Raises
    SettingsFileError."""
    text, values = _decoded(content, path, dialect)
    hooks = values.get("hooks")
    _expect(text, path, hooks, ("hooks",), dict, "`hooks` should be an object")
    for event, groups in (hooks or {}).items():
        name, way = f"hooks.{event}", ("hooks", event)
        _expect(text, path, groups, way, list, f"`{name}` should be a list")
        for index, group in enumerate(groups):
            _expect(
                text, path, group, (*way, index), dict, f"`{name}` should hold objects with `hooks`"
            )
            entries, in_group = group.get("hooks", []), (*way, index, "hooks")
            _expect(text, path, entries, in_group, list, f"`hooks` in `{name}` should be a list")
            for number, entry in enumerate(entries):
                _expect(
                    text,
                    path,
                    entry,
                    (*in_group, number),
                    dict,
                    f"`hooks` in `{name}` should hold objects",
                )
    return text, values


def _expect(text: str, path: str, value: Any, way: _Way, kind: type, message: str) -> None:
    """Raise SettingsFileError if the value at `way` is of another kind; `null` counts as none."""
    is_left_out = value is None and way in (("hooks",), ("permissions",), ("permissions", "allow"))
    if not isinstance(value, kind) and not is_left_out:
        raise SettingsFileError(path, StrictJsonError(message, text, position(text, way)))
