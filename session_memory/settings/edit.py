"""Sets or unsets one key in config.yaml: every other line and comment stays as it is."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Any

from ..errors import ConfigError
from ..system.files import make_private_dir, write_atomically
from .keys import written
from .replaced_keys import as_written
from .yaml_file import KeyPath, read_document, read_text

_BY_HAND = "change it by hand"


def set_key(path: str, at: KeyPath, value: Any) -> None:
    """Sets the key `at` (with its sections, as ("store", "poll_interval_ms")) in the file `path`, made where needed.
    Where the file has the key already its line is replaced, where it has it in a comment the line goes below that, else
    at the end of its section. Raises ConfigError where that cannot be done without changing more, OSError."""
    path = os.path.realpath(path)  # what a link leads to is replaced, not the link
    before, found, lines = _read(path)
    at = as_written(found, at)
    if at in found:
        _replace(lines, found[at] - 1, at[-1], value, path)
    else:
        _insert(lines, found, at, value)
    _write(path, lines, before, at, value)


def unset_key(path: str, at: KeyPath) -> bool:
    """Take the line of the key `at` out of the file `path`, so that its default holds; return False if it has none.
    Raises ConfigError if that cannot be done without changing more, OSError."""
    path = os.path.realpath(path)
    before, found, lines = _read(path)
    at = as_written(found, at)
    if at not in found:
        return False
    _replace(lines, found[at] - 1, at[-1], None, path)  # raises if it takes more than its line
    for depth in range(len(at), 0, -1):  # and sections that hold nothing else
        index = found[at[:depth]] - 1
        rest = lines[index + 1 :]
        if depth < len(at) and (lines[index].rstrip()[-1:] != ":" or any(map(_is_inner(lines[index]), rest[:1]))):
            break
        del lines[index]
    _write(path, lines, before, at, None)
    return True


def _read(path: str) -> tuple[Any, dict[KeyPath, int], list[str]]:
    """Return the values of a file, the line of each key, and its lines; nothing if it is not there."""
    text = read_text(path) if os.path.lexists(path) else ""
    document = read_document(path) if text else None
    lines = text.splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    return (document.values, document.lines, lines) if document else ({}, {}, lines)


def _write(path: str, lines: list[str], before: Any, at: KeyPath, value: Any) -> None:
    make_private_dir(os.path.dirname(path))
    candidate = f"{path}.new"
    write_atomically(candidate, "".join(lines).encode())
    try:
        if not _is_as_meant(candidate, before, at, value):
            raise ConfigError(f"{path}: {'.'.join(at)} cannot be changed without other lines", _BY_HAND)
        os.chmod(candidate, os.stat(path).st_mode & 0o777 if os.path.exists(path) else 0o600)
        os.replace(candidate, path)
    finally:
        if os.path.lexists(candidate):
            os.unlink(candidate)


def _is_as_meant(path: str, before: Any, at: KeyPath, value: Any) -> bool:
    """Check that the file `path` holds what was there `before`, and `value` at the key `at`."""
    try:
        after: Any = read_document(path).values
    except ConfigError:
        return False
    found = after
    for part in at:
        found = found.get(part) if isinstance(found, dict) else None
    return bool(found == value and _without(after, at) == _without(before, at))


def _replace(lines: list[str], index: int, key: str, value: Any, path: str) -> None:
    """Replaces the value on a line, and keeps what stands before it and a comment behind it."""
    match = re.match(rf"(\s*[\"']?{re.escape(key)}[\"']?\s*:)\s*(.*?)(\s+#.*)?\r?\n$", lines[index])
    indent = len(lines[index]) - len(lines[index].lstrip())
    goes_on = index + 1 < len(lines) and _indent(lines[index + 1]) > indent
    if not match or goes_on:
        raise ConfigError(f"{path}:{index + 1}: {key} takes more than one line there, or shares one", _BY_HAND)
    lines[index] = f"{match[1]} {written(value)}{match[3] or ''}\n"


def _insert(lines: list[str], found: dict[KeyPath, int], at: KeyPath, value: Any) -> None:
    """Puts a line for the key where it belongs, with lines for those of its sections that are not there yet."""
    depth = max(depth for depth in range(len(at)) if not depth or at[:depth] in found)
    new = [f"{'  ' * level}{at[level]}:\n" for level in range(depth, len(at) - 1)]
    new.append(f"{'  ' * (len(at) - 1)}{at[-1]}: {written(value)}\n")
    if not depth:
        commented = f"# {at[0]}:"
        index = next((number + 1 for number, line in enumerate(lines) if line.startswith(commented)), len(lines))
        while index < len(lines) and len(at) > 1 and lines[index].startswith("#  "):
            index += 1
        lines[index:index] = new
        return
    start = found[at[:depth]] - 1
    own_indent = _indent(lines[start]) if lines[start].strip() else 0
    end = start + 1
    while end < len(lines) and (not lines[end].strip() or _indent(lines[end]) > own_indent):
        end += 1
    while not lines[end - 1].strip():
        end -= 1
    inner = next((_indent(line) for line in lines[start + 1 : end] if line.strip() and line.lstrip()[0] != "#"), 0)
    shift = " " * (inner or own_indent + 2)
    base = len("  " * depth)
    lines[end:end] = [shift + line[base:] for line in new]


def _is_inner(section: str) -> Callable[[str], bool]:
    """Return the check if a line is one of those of a section, which `section` begins."""
    return lambda line: _indent(line) > _indent(section)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" ")) if line.strip() else 0


def _without(values: Any, at: KeyPath) -> Any:
    """`values` without the key `at`, and without sections that are empty then."""
    if not isinstance(values, dict):
        return values
    rest = {key: one for key, one in values.items() if key != at[0]}
    if len(at) > 1 and at[0] in values:
        inner = _without(values[at[0]] or {}, at[1:])
        if inner:
            rest[at[0]] = inner
    return rest


def parsed(text: str) -> Any:
    """The value that `text` is on a command line: as YAML has it."""
    import yaml

    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError):
        return text
