"""JSON text read strictly and edited in place: every value that is not changed keeps its bytes. Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from ..errors import SessionMemoryError

_INDENT_UNIT = "  "  # where a text has no indentation to go by
_DEEPEST = 200
_DECODER = json.JSONDecoder()
_SCALAR_STARTS = '"-0123456789tfn'  # json.JSONDecoder also takes NaN and Infinity


class StrictJsonError(SessionMemoryError):
    """Text that is not strict JSON; `line` and `column` count from 1."""

    def __init__(self, message: str, text: str, at: int) -> None:
        super().__init__(message)
        self.line = text.count("\n", 0, at) + 1
        self.column = at - (text.rfind("\n", 0, at) + 1) + 1


@dataclass
class JsonNode:
    """The value that stands at `text[start:end]`. Children are the items of an array, or the values of an object, whose
    keys are in `keys` and begin at `key_starts`."""

    value: Any
    start: int
    end: int
    children: list[JsonNode] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    key_starts: list[int] = field(default_factory=list)

    def get(self, key: str) -> JsonNode | None:
        """The member `key` of an object; None if it has none, or this is no object."""
        return self.children[self.keys.index(key)] if key in self.keys else None

    def child_start(self, index: int) -> int:
        """The offset at which the child begins, its key included."""
        return self.key_starts[index] if self.keys else self.children[index].start


def parse(text: str) -> JsonNode:
    """The value of a text in the JSON of RFC 8259, with no key twice in an object. Raises StrictJsonError."""
    if text.startswith("\ufeff"):
        raise StrictJsonError("it begins with a byte order mark", text, 0)
    node = _value(text, _skip(text, 0), 0)
    end = _skip(text, node.end)
    if end < len(text):
        raise _unexpected(text, end, "the end of the file")
    return node


def _value(text: str, at: int, depth: int) -> JsonNode:
    if depth > _DEEPEST:
        raise StrictJsonError("it is nested too deeply", text, at)
    character = text[at : at + 1]
    if character == "{":
        return _object(text, at, depth)
    if character == "[":
        return _array(text, at, depth)
    if character and character in _SCALAR_STARTS and not text.startswith("-I", at):
        return _scalar(text, at)
    raise _unexpected(text, at, "a value")


def _object(text: str, start: int, depth: int) -> JsonNode:
    node = JsonNode({}, start, start)
    at = _skip(text, start + 1)
    while text[at : at + 1] != "}":
        if node.children:
            at = _after_comma(text, at, "}")
        if text[at : at + 1] != '"':
            raise _unexpected(text, at, "a key in double quotes")
        key = _scalar(text, at)
        if key.value in node.value:
            raise StrictJsonError(f"the key {json.dumps(key.value)} stands there twice", text, at)
        colon = _skip(text, key.end)
        if text[colon : colon + 1] != ":":
            raise _unexpected(text, colon, "a colon")
        child = _value(text, _skip(text, colon + 1), depth + 1)
        node.keys.append(key.value)
        node.key_starts.append(key.start)
        node.children.append(child)
        node.value[key.value] = child.value
        at = _skip(text, child.end)
    node.end = at + 1
    return node


def _array(text: str, start: int, depth: int) -> JsonNode:
    node = JsonNode([], start, start)
    at = _skip(text, start + 1)
    while text[at : at + 1] != "]":
        if node.children:
            at = _after_comma(text, at, "]")
        child = _value(text, at, depth + 1)
        node.children.append(child)
        node.value.append(child.value)
        at = _skip(text, child.end)
    node.end = at + 1
    return node


def _after_comma(text: str, at: int, closing: str) -> int:
    if text[at : at + 1] != ",":
        raise _unexpected(text, at, f"a comma or {closing}")
    behind = _skip(text, at + 1)
    if text[behind : behind + 1] == closing:
        raise StrictJsonError(f"a comma stands before {closing}", text, at)
    return behind


def _scalar(text: str, start: int) -> JsonNode:
    try:
        value, end = _DECODER.raw_decode(text, start)
    except json.JSONDecodeError as error:
        if text[start] != '"':
            raise _unexpected(text, start, "a value") from None
        raise StrictJsonError(error.msg[0].lower() + error.msg[1:], text, min(error.pos, len(text))) from None
    except ValueError:  # Python's own limit of digits
        raise StrictJsonError("a number has too many digits", text, start) from None
    return JsonNode(value, start, end)


def _skip(text: str, at: int) -> int:
    """The next position that is no white space."""
    while at < len(text) and text[at] in " \t\r\n":
        at += 1
    return at


def _unexpected(text: str, at: int, expected: str) -> StrictJsonError:
    if at >= len(text):
        found = "the end of the file" if text.strip() else "an empty file"
    elif text.startswith(("//", "/*", "#"), at):
        found = "a comment"
    else:
        found = json.dumps(text[at], ensure_ascii=False)
    return StrictJsonError(f"expected {expected}, found {found}", text, at)


class JsonStyle:
    """The layout of a text: its line ending, its indentation, and what follows a comma or a colon."""

    def __init__(self, text: str, root: JsonNode) -> None:
        self.newline = "\r\n" if "\r\n" in text else "\n"
        between = text[root.start + 1 : root.child_start(0)] if root.children else "\n" + _INDENT_UNIT
        self.is_multiline = "\n" in between
        self.unit = between.rpartition("\n")[2] if self.is_multiline else ""
        # `"key": value` or `"key":value`, as the first member of the text has it.
        first_value = text[: root.children[0].start] if root.keys else ": "
        self.gap = "" if first_value.endswith(":") else " "

    def render(self, value: Any, indent: str, is_multiline: bool) -> str:
        """`value` as text whose lines after the first are indented by `indent` and more."""
        if not is_multiline:
            return json.dumps(value, ensure_ascii=False, separators=("," + self.gap, ":" + self.gap))
        text = json.dumps(value, ensure_ascii=False, indent=self.unit, separators=(",", ":" + (self.gap or " ")))
        return text.replace("\n", self.newline + indent)


def replaced(text: str, style: JsonStyle, node: JsonNode, value: Any) -> str:
    """`text` with `value` in the place of `node`."""
    is_multiline = "\n" in text[node.start : node.end] or (style.is_multiline and not node.children)
    return text[: node.start] + style.render(value, _indent_at(text, node.start), is_multiline) + text[node.end :]


def appended(text: str, style: JsonStyle, container: JsonNode, value: Any, key: str | None = None) -> str:
    """`text` with `value` as the last child of `container`: of an object under `key`, of an array without one."""
    if not container.children:
        return _filled(text, style, container, value, key)
    last = container.children[-1]
    last_start = container.child_start(len(container.children) - 1)
    before = text[:last_start]
    space = before[len(before.rstrip(" \t\r\n")) :]
    is_multiline = "\n" in space
    if not is_multiline:
        space = style.gap
    child = _member(key, style) + style.render(value, space.rpartition("\n")[2], is_multiline)
    return text[: last.end] + "," + space + child + text[last.end :]


def removed(text: str, container: JsonNode, index: int) -> str:
    """`text` without a child of `container`, and without the comma that goes with it."""
    children = container.children
    if len(children) == 1:
        return text[: container.start + 1] + text[container.end - 1 :]
    if index == 0:
        return text[: container.child_start(0)] + text[container.child_start(1) :]
    return text[: children[index - 1].end] + text[children[index].end :]


def _filled(text: str, style: JsonStyle, container: JsonNode, value: Any, key: str | None) -> str:
    """`text` with `value` as the only child of the empty `container`."""
    opening, closing = text[container.start], text[container.end - 1]
    outer = _indent_at(text, container.start)
    if style.is_multiline:
        inner = outer + style.unit
        child = _member(key, style) + style.render(value, inner, True)
        inside = f"{style.newline}{inner}{child}{style.newline}{outer}"
    else:
        inside = _member(key, style) + style.render(value, outer, False)
    return text[: container.start] + opening + inside + closing + text[container.end :]


def _member(key: str | None, style: JsonStyle) -> str:
    return "" if key is None else f"{json.dumps(key, ensure_ascii=False)}:{style.gap}"


def _indent_at(text: str, at: int) -> str:
    """The white space that the line of position `at` begins with."""
    start = text.rfind("\n", 0, at) + 1
    line = text[start:at]
    return line[: len(line) - len(line.lstrip(" \t"))]
