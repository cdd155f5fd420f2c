"""Reads JSON text strictly and edits it in place. Pure.

Comments and each unchanged value keep their bytes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import SessionMemoryError
from .json_comments import COMMENT, without_bom, without_comments, without_last_commas

_INDENT_UNIT = "  "  # of a text without any indentation
_DECODER = json.JSONDecoder()
_SPACE = re.compile(r"[ \t\r\n]*")
# The layout at the beginning of a text: the space before the root's first child, and the text
# between a key and its value.
_BEGINNING = re.compile(
    r'\s*[{\[](?P<space>\s*)(?:"(?:[^"\\]|\\.)*"\s*:(?P<gap>\s*)|[^}\]\s])?', re.DOTALL
)


class StrictJsonError(SessionMemoryError):
    """Text that is not strict JSON, or not TOML; `line` and `column` count from 1."""

    def __init__(self, message: str, text: str, at: int, hint: str = "") -> None:
        super().__init__(message, hint)
        self.line = text.count("\n", 0, at) + 1
        self.column = at - (text.rfind("\n", 0, at) + 1) + 1


@dataclass(frozen=True)
class JsonChild:
    """A child of a container: an item of an array, or a member of an object with its `key`.

    It begins at `start`; its value extends from `value_start` to `end`."""

    start: int
    value_start: int
    end: int
    value: Any
    key: str | None = None


def parse(text: str) -> Any:
    """Return the value of a text in the JSON of RFC 8259, without duplicate keys.

    Raises StrictJsonError."""
    is_lax = False

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal is_lax
        pairs_by_key = dict(pairs)
        is_lax = is_lax or len(pairs_by_key) < len(pairs)
        return pairs_by_key

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
        message = (
            error.msg[:1].lower()
            + error.msg[1:]
            + (" (JSON has no comments)" if is_comment else "")
        )
        raise StrictJsonError(message, text, error.pos) from None
    except RecursionError:
        raise StrictJsonError("it is nested too deeply", text, 0) from None
    except ValueError:  # Python's own limit of digits
        raise StrictJsonError("a number has too many digits", text, 0) from None


def _refuse_lax(text: str, at: int) -> None:
    """Raise StrictJsonError if the value at `at` has anything that only Python accepts as JSON."""
    if text.startswith(("NaN", "Infinity", "-Infinity"), at):
        raise StrictJsonError("JSON has neither NaN nor Infinity", text, at)
    keys: set[str] = set()
    for child in _children(text, at) if text[at] in "{[" else ():
        if child.key is not None and child.key in keys:
            raise StrictJsonError(
                f"the key {json.dumps(child.key)} occurs twice", text, child.start
            )
        keys.add(child.key or "")
        _refuse_lax(text, child.value_start)


def _children(text: str, start: int) -> Iterator[JsonChild]:
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
    text = without_last_commas(without_comments(without_bom(text)))
    at = _space_end(text, 0)
    for step in way:
        places = [
            child.value_start
            for child in _children(text, at)
            if isinstance(step, int) or child.key == step
        ]
        at = places[step if isinstance(step, int) else 0]
    return at


def edited(text: str, value: Any) -> str:
    """Return `text` changed to the text of `value`; equal parts keep their bytes.

    In a list, remove or replace items in one edit, and append items in another: items that moved
    are written anew."""
    edit = _Edit(text)
    start = _space_end(edit.plain, 0)
    old, end = _DECODER.raw_decode(edit.plain, start)
    root = JsonChild(start, start, end, old)
    return text if old == value else text[:start] + edit.written(root, value) + text[end:]


class _Edit:
    """An edit of a text that keeps its layout.

    The layout is the line ending, the indentation, and the space after commas and colons. `plain`
    is the text as strict JSON, with everything at the same place."""

    def __init__(self, text: str) -> None:
        self._text, self._uncommented = text, without_comments(without_bom(text))
        self.plain = without_last_commas(self._uncommented)
        opening = _BEGINNING.match(self.plain)
        is_empty = opening is None or opening.end() == opening.end("space")
        space = "\n" + _INDENT_UNIT if opening is None or is_empty else opening["space"]
        self._newline = "\r\n" if "\r\n" in text else "\n"
        self._is_multiline = "\n" in space
        self._unit = space.rpartition("\n")[2] if self._is_multiline else ""
        self._gap = "" if opening and opening["gap"] == "" else " "

    def written(self, place: JsonChild, value: Any) -> str:
        """Return the text of `value` as a replacement for the current one."""
        text, start, end, old = self._text, place.value_start, place.end, place.value
        if old == value:
            return text[start:end]
        there = list(_children(self.plain, start)) if isinstance(old, dict | list) else []
        kept: dict[int, Any] = {}  # new values by the index of the child that they replace
        added: list[tuple[str | None, Any]] = []
        if isinstance(old, dict) and isinstance(value, dict):
            kept = {
                index: value[child.key] for index, child in enumerate(there) if child.key in value
            }
            added = [(key, item) for key, item in value.items() if key not in old]
        elif isinstance(old, list) and isinstance(value, list):
            kept = _aligned(old, value)
            added = [(None, item) for item in value[len(kept) :]]
        is_commented = type(old) is type(value) and self._has_comment(start, end)
        if not kept and not is_commented:
            is_multiline = "\n" in text[start:end] or (self._is_multiline and not there)
            return self._rendered(value, _indent_at(text, start), is_multiline)
        if not kept:
            return self._refilled(start, there, end, added)
        parts = [text[start : there[0].start]]
        before = -1
        for index, item in kept.items():  # in ascending order
            child = there[index]
            parts.append(self._between(there, before, index) if before >= 0 else "")
            before = index
            parts.append(text[child.start : child.value_start] + self.written(child, item))
        return "".join(parts) + self._end(start, there, max(kept), end, added)

    def _between(self, there: list[JsonChild], before: int, index: int) -> str:
        """Return the text between two remaining children, with the comments that belong to them.

        These are the comment after the first, and the one before the second."""
        start, end = there[index - 1].end, there[index].start
        if before == index - 1:
            return self._text[start:end]
        first, cut = (
            self._line_end(there[before].end, there[before + 1].start),
            self._line_end(start, end),
        )
        head, head_plain = (
            self._text[there[before].end : first],
            self._uncommented[there[before].end : first],
        )
        commas = head_plain.count(",") + self._uncommented[cut:end].count(",")
        if commas == 2:
            head = _without_comma(head, head_plain)
        return ("" if commas else ",") + self._joined(head, self._text[cut:end])

    def _end(
        self,
        start: int,
        there: list[JsonChild],
        last: int,
        end: int,
        added: list[tuple[str | None, Any]],
    ) -> str:
        """Return the text after the last remaining child: the comment after it, and additions."""
        at, is_last = there[last].end, last == len(there) - 1
        if not added and is_last:
            return self._text[at:end]
        first = self._line_end(at, end - 1 if is_last else there[last + 1].start)
        head, head_plain = self._text[at:first], self._uncommented[at:first]
        cut = first if is_last else self._line_end(there[-1].end, end - 1)
        has_last_comma = "," in self._uncommented[there[-1].end : end]
        is_tail_with_comma = "," in self._uncommented[cut:end]
        if "," in head_plain and not added and (is_tail_with_comma or not has_last_comma):
            head = _without_comma(head, head_plain)
        before = there[-2].end if len(there) > 1 else start + 1
        space = self.plain[before : there[-1].start].rpartition(",")[2]
        is_multiline = "\n" in space
        if not is_multiline:
            space = self._gap
        elif self._has_comment(before, there[-1].start):
            space = self._newline + space.rpartition("\n")[2]
        items = [
            f"{space}{self._item(*pair, space.rpartition(chr(10))[2], is_multiline)}"
            for pair in added
        ]
        comma = "," if items and "," not in head_plain else ""
        last_comma = "," if has_last_comma and items and not is_tail_with_comma else ""
        return comma + self._joined(head, ",".join(items) + last_comma + self._text[cut:end])

    def _refilled(
        self, start: int, there: list[JsonChild], end: int, added: list[tuple[str | None, Any]]
    ) -> str:
        """Return a container with other children or none, with the comments around the old ones."""
        indent = _indent_at(self._text, start)
        lead = self._text[start : there[0].start if there else end - 1].rstrip()
        cut = self._line_end(there[-1].end, end - 1) if there else end - 1
        tail, tail_plain = self._text[cut : end - 1].rstrip(), self._uncommented[cut : end - 1]
        tail = (_without_comma(tail, tail_plain) if "," in tail_plain else tail).strip()
        tail = tail and self._newline + indent + self._unit + tail
        items = [
            self._newline + indent + self._unit + self._item(*pair, indent + self._unit, True)
            for pair in added
        ]
        return lead + ",".join(items) + tail + self._newline + indent + self._text[end - 1]

    def _item(self, key: str | None, value: Any, indent: str, is_multiline: bool) -> str:
        name = "" if key is None else f"{json.dumps(key, ensure_ascii=False)}:{self._gap}"
        return name + self._rendered(value, indent, is_multiline)

    def _joined(self, head: str, tail: str) -> str:
        """Return the end of a line with a text after it, outside any comment on that line."""
        is_line_over = tail.lstrip(" \t\r").startswith("\n")
        return head + ("" if is_line_over or "//" not in head else self._newline) + tail

    def _has_comment(self, start: int, end: int) -> bool:
        return self._text[start:end] != self._uncommented[start:end]

    def _line_end(self, at: int, limit: int) -> int:
        """Return the end of the comment or last comma after a child that ends at `at`, else `at`.

        Only its own line is searched."""
        line = self._text[at:limit].partition("\n")[0]
        cut = at + len(line.rstrip())
        is_bare = self.plain[at : at + len(line)] == line
        is_in_comment = any(
            match.start() < cut < match.end() for match in COMMENT.finditer(self._text, at, limit)
        )
        return at if is_bare or is_in_comment else cut

    def _rendered(self, value: Any, indent: str, is_multiline: bool) -> str:
        """Return a new value as text, indented by `indent` or more from the second line on."""
        if not is_multiline:
            return json.dumps(
                value, ensure_ascii=False, separators=("," + self._gap, ":" + self._gap)
            )
        text = json.dumps(
            value, ensure_ascii=False, indent=self._unit, separators=(",", ":" + (self._gap or " "))
        )
        return text.replace("\n", self._newline + indent)


def _without_comma(text: str, plain: str) -> str:
    """Return a text without its first comma; `plain` is the text without comments."""
    at = plain.index(",")
    return text[:at] + text[at + 1 :]


def _aligned(old: list[Any], new: list[Any]) -> dict[int, Any]:
    """Return the indexes of the items of `old` that stay, each with its new value.

    The new values are the first items of `new`, in order."""
    kept: dict[int, Any] = {}
    for index, item in enumerate(old):
        if len(kept) < len(new) and (
            item == new[len(kept)] or len(old) - index <= len(new) - len(kept)
        ):
            kept[index] = new[len(kept)]
    return kept


def _space_end(text: str, at: int) -> int:
    """Return the next position without white space."""
    space = _SPACE.match(text, at)
    return space.end() if space else at


def _indent_at(text: str, at: int) -> str:
    """Return the white space at the beginning of the line of position `at`."""
    start = text.rfind("\n", 0, at) + 1
    return text[start : min(at, _space_end(text, start))]
