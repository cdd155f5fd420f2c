"""Adding, replacing and removing single values in JSON text, in the text's own style; all else stays as it is. Pure."""

from __future__ import annotations

import json
import re
from typing import Any

from .strict_json import Node

_INDENT_UNIT = "  "  # where a text has no indentation to go by


class Style:
    """How a text is laid out: its line ending, what a level is indented by, and what follows a comma or a colon."""

    def __init__(self, text: str, root: Node) -> None:
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


def replaced(text: str, style: Style, node: Node, value: Any) -> str:
    """`text` with `value` in the place of `node`."""
    is_multiline = "\n" in text[node.start : node.end] or (style.is_multiline and not node.children)
    return text[: node.start] + style.render(value, _indent_at(text, node.start), is_multiline) + text[node.end :]


def appended(text: str, style: Style, container: Node, value: Any, key: str | None = None) -> str:
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


def removed(text: str, container: Node, index: int) -> str:
    """`text` without a child of `container`, and without the comma that goes with it."""
    children = container.children
    if len(children) == 1:
        return text[: container.start + 1] + text[container.end - 1 :]
    if index == 0:
        return text[: container.child_start(0)] + text[container.child_start(1) :]
    return text[: children[index - 1].end] + text[children[index].end :]


def _filled(text: str, style: Style, container: Node, value: Any, key: str | None) -> str:
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


def _member(key: str | None, style: Style) -> str:
    return "" if key is None else f"{json.dumps(key, ensure_ascii=False)}:{style.gap}"


def _indent_at(text: str, at: int) -> str:
    """The white space that the line of position `at` begins with."""
    match = re.compile(r"[ \t]*").match(text, text.rfind("\n", 0, at) + 1)
    return match.group() if match else ""
