"""JSON text read strictly and edited in place: every value that is not changed keeps its bytes. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import SessionMemoryError

_INDENT_UNIT = "  "  # of a text without any indentation
_DECODER = json.JSONDecoder()
_SPACE = re.compile(r"[ \t\r\n]*")
# The beginning of a text: the space before the first child of the root, and what is between a key and its value.
_BEGINNING = re.compile(r'\s*[{\[](?P<space>\s*)(?:"(?:[^"\\]|\\.)*"\s*:(?P<gap>\s*)|[^}\]\s])?', re.DOTALL)


class StrictJsonError(SessionMemoryError):
    """Text that is not strict JSON; `line` and `column` count from 1."""

    def __init__(self, message: str, text: str, at: int) -> None:
        super().__init__(message)
        self.line = text.count("\n", 0, at) + 1
        self.column = at - (text.rfind("\n", 0, at) + 1) + 1


@dataclass(frozen=True)
class JsonChild:
    """A child of a container, which begins at `start`: an item of an array, or a member of an object with its `key`.
    Its value stands from `value_start` to `end`."""

    start: int
    value_start: int
    end: int
    value: Any
    key: str | None = None


def parse(text: str) -> Any:
    """Return the value of a text in the JSON of RFC 8259, with no key twice in an object. Raises StrictJsonError."""
    is_lax = False

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal is_lax
        found = dict(pairs)
        is_lax = is_lax or len(found) < len(pairs)
        return found

    def constant(name: str) -> None:
        nonlocal is_lax
        is_lax = True

    try:
        value = json.loads(text, object_pairs_hook=members, parse_constant=constant)
        if is_lax:
            _refuse_lax(text, _space_end(text, 0))
        return value
    except json.JSONDecodeError as error:
        is_comment = text.startswith(("//", "/*", "#"), error.pos)
        message = error.msg[:1].lower() + error.msg[1:] + (" (JSON has no comments)" if is_comment else "")
        raise StrictJsonError(message, text, error.pos) from None
    except RecursionError:
        raise StrictJsonError("it is nested too deeply", text, 0) from None
    except ValueError:  # Python's own limit of digits
        raise StrictJsonError("a number has too many digits", text, 0) from None


def _refuse_lax(text: str, at: int) -> None:
    """Find in the value at `at` what Python reads although it is no JSON, and raise StrictJsonError."""
    if text.startswith(("NaN", "Infinity", "-Infinity"), at):
        raise StrictJsonError("JSON has neither NaN nor Infinity", text, at)
    keys: set[str] = set()
    for child in children(text, at) if text[at] in "{[" else ():
        if child.key is not None and child.key in keys:
            raise StrictJsonError(f"the key {json.dumps(child.key)} is there twice", text, child.start)
        keys.add(child.key or "")
        _refuse_lax(text, child.value_start)


def children(text: str, start: int) -> Iterator[JsonChild]:
    """Yield the children of the container that begins at `start` of a valid text."""
    at = _space_end(text, start + 1)
    while text[at] not in "}]":
        begin, key = at, None
        if text[start] == "{":
            key, at = _DECODER.raw_decode(text, at)
            at = _space_end(text, _space_end(text, at) + 1)
        value, end = _DECODER.raw_decode(text, at)
        yield JsonChild(begin, at, end, value, key)
        at = _space_end(text, end)
        if text[at] == ",":
            at = _space_end(text, at + 1)


def position(text: str, way: Sequence[str | int]) -> int:
    """Return the offset of the value that keys and indexes lead to."""
    at = _space_end(text, 0)
    for step in way:
        found = [child.value_start for child in children(text, at) if isinstance(step, int) or child.key == step]
        at = found[step if isinstance(step, int) else 0]
    return at


def edited(text: str, value: Any) -> str:
    """Return `text` as the text of `value`, in which all that is equal keeps its bytes. Of a list, remove or replace
    items in one edit, and append in another: items that moved are written anew."""
    start = _space_end(text, 0)
    old, end = _DECODER.raw_decode(text, start)
    root = JsonChild(start, start, end, old)
    return text if old == value else text[:start] + _Edit(text).written(root, value) + text[end:]


class _Edit:
    """An edit of a text in its layout: its line ending, its indentation, and the space after a comma or a colon."""

    def __init__(self, text: str) -> None:
        found = _BEGINNING.match(text)
        is_empty = found is None or found.end() == found.end("space")
        space = "\n" + _INDENT_UNIT if found is None or is_empty else found["space"]
        self._text = text
        self._newline = "\r\n" if "\r\n" in text else "\n"
        self._is_multiline = "\n" in space
        self._unit = space.rpartition("\n")[2] if self._is_multiline else ""
        self._gap = "" if found and found["gap"] == "" else " "

    def written(self, place: JsonChild, value: Any) -> str:
        """Return the text of `value` in the place of the one that is there."""
        text, start, end, old = self._text, place.value_start, place.end, place.value
        if old == value:
            return text[start:end]
        there = list(children(text, start)) if isinstance(old, dict | list) else []
        kept: dict[int, Any] = {}  # new values by the index of the child that they replace
        added: list[tuple[str | None, Any]] = []
        if isinstance(old, dict) and isinstance(value, dict):
            kept = {index: value[child.key] for index, child in enumerate(there) if child.key in value}
            added = [(key, one) for key, one in value.items() if key not in old]
        elif isinstance(old, list) and isinstance(value, list):
            kept = _aligned(old, value)
            added = [(None, one) for one in value[len(kept) :]]
        if not kept:
            is_multiline = "\n" in text[start:end] or (self._is_multiline and not there)
            return self._rendered(value, _indent_at(text, start), is_multiline)
        parts = [text[start : there[0].start]]
        for index, one in kept.items():
            child = there[index]
            between = text[there[index - 1].end : child.start] if len(parts) > 1 else ""
            parts.append(between + text[child.start : child.value_start])
            parts.append(self.written(child, one))
        last_space = text[there[-2].end if len(there) > 1 else start + 1 : there[-1].start].rpartition(",")[2]
        is_multiline = "\n" in last_space
        space, indent = (last_space, last_space.rpartition("\n")[2]) if is_multiline else (self._gap, "")
        for key, one in added:
            name = "" if key is None else f"{json.dumps(key, ensure_ascii=False)}:{self._gap}"
            parts.append(f",{space}{name}{self._rendered(one, indent, is_multiline)}")
        return "".join(parts) + text[there[-1].end : end]

    def _rendered(self, value: Any, indent: str, is_multiline: bool) -> str:
        """Return a new value as text whose lines after the first are indented by `indent` and more."""
        if not is_multiline:
            return json.dumps(value, ensure_ascii=False, separators=("," + self._gap, ":" + self._gap))
        text = json.dumps(value, ensure_ascii=False, indent=self._unit, separators=(",", ":" + (self._gap or " ")))
        return text.replace("\n", self._newline + indent)


def _aligned(old: list[Any], new: list[Any]) -> dict[int, Any]:
    """Return which items of `old` stay, with the item of `new` that each becomes: the first of `new`, in order."""
    found: dict[int, Any] = {}
    for index, one in enumerate(old):
        if len(found) < len(new) and (one == new[len(found)] or len(old) - index <= len(new) - len(found)):
            found[index] = new[len(found)]
    return found


def _space_end(text: str, at: int) -> int:
    """Return the next position that is no white space."""
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _indent_at(text: str, at: int) -> str:
    """Return the white space that the line of position `at` begins with."""
    start = text.rfind("\n", 0, at) + 1
    return text[start : min(at, _space_end(text, start))]
