"""JSON read strictly, each value with where it stands, so that a file can be edited without writing it anew. Pure."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

from ..errors import SessionMemoryError

_SPACE = re.compile(r"[ \t\r\n]*")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_WORDS = {"true": True, "false": False, "null": None}
_DEEPEST = 200
_DECODER = json.JSONDecoder()


class StrictJsonError(SessionMemoryError):
    """Text that is not strict JSON; `line` and `column` count from 1."""

    def __init__(self, message: str, text: str, at: int) -> None:
        super().__init__(message)
        self.line = text.count("\n", 0, at) + 1
        self.column = at - (text.rfind("\n", 0, at) + 1) + 1


@dataclass
class Node:
    """A value of `text[start:end]`. An object's children are its members' values, `keys` and `key_starts` go along."""

    value: Any
    start: int
    end: int
    children: list[Node] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    key_starts: list[int] = field(default_factory=list)

    def get(self, key: str) -> Node | None:
        """The member `key` of an object; None if it has none, or this is no object."""
        return self.children[self.keys.index(key)] if key in self.keys else None

    def child_start(self, index: int) -> int:
        """Where the child begins, its key included."""
        return self.key_starts[index] if self.keys else self.children[index].start


def parse(text: str) -> Node:
    """The value that `text` holds, as RFC 8259 has it, and no key twice in an object. Raises StrictJsonError."""
    if text.startswith("\ufeff"):
        raise StrictJsonError("it begins with a byte order mark", text, 0)
    node = _value(text, _skip(text, 0), 0)
    end = _skip(text, node.end)
    if end < len(text):
        raise _unexpected(text, end, "the end of the file")
    return node


def _value(text: str, at: int, depth: int) -> Node:
    if depth > _DEEPEST:
        raise StrictJsonError("it is nested too deeply", text, at)
    character = text[at : at + 1]
    if character == "{":
        return _object(text, at, depth)
    if character == "[":
        return _array(text, at, depth)
    if character == '"':
        return _string(text, at)
    number = _NUMBER.match(text, at)
    if number:
        return Node(json.loads(number.group()), at, number.end())
    for word, value in _WORDS.items():
        if text.startswith(word, at):
            return Node(value, at, at + len(word))
    raise _unexpected(text, at, "a value")


def _object(text: str, start: int, depth: int) -> Node:
    node = Node({}, start, start)
    at = _skip(text, start + 1)
    while text[at : at + 1] != "}":
        if node.children:
            at = _after_comma(text, at, "}")
        if text[at : at + 1] != '"':
            raise _unexpected(text, at, "a key in double quotes")
        key = _string(text, at)
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


def _array(text: str, start: int, depth: int) -> Node:
    node = Node([], start, start)
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


def _string(text: str, start: int) -> Node:
    try:
        value, end = _DECODER.raw_decode(text, start)
    except json.JSONDecodeError as error:
        raise StrictJsonError(error.msg[0].lower() + error.msg[1:], text, min(error.pos, len(text))) from None
    return Node(value, start, end)


def _skip(text: str, at: int) -> int:
    """The next position that holds no white space. (The pattern fits the empty string, so there is always a match.)"""
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _unexpected(text: str, at: int, expected: str) -> StrictJsonError:
    if at >= len(text):
        found = "the end of the file" if text.strip() else "an empty file"
    elif text.startswith(("//", "/*", "#"), at):
        found = "a comment"
    else:
        found = json.dumps(text[at], ensure_ascii=False)
    return StrictJsonError(f"expected {expected}, found {found}", text, at)
