"""Reads YAML text, and adds or removes items of its lists. Pure.

All other bytes stay as they are. The lists are in a mapping of the root, and each item is a mapping
with plain values:

    key:
      name:
        - command: "a"
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from .json_edit import StrictJsonError

if TYPE_CHECKING:
    from yaml import Node

Lists = Mapping[str, Sequence[Mapping[str, Any]]]
_MARK = "  # session-memory"  # behind a key that was added, which goes with its last item
_INDENT = 2
# what JSON allows in a text, but YAML forbids or reads as the end of a line
_NOT_IN_YAML = re.compile("[\x7f-\x9f\u2028\u2029\ufeff]")


class _Pair(NamedTuple):
    """A key of a mapping, and its value."""

    key: Node
    value: Node


def parse_yaml(text: str) -> dict[str, Any]:
    """Return the values of a YAML text, which are not to be changed.

    Raises StrictJsonError; ImportError without PyYAML."""
    import yaml

    try:
        values = _loaded(text)
    except yaml.MarkedYAMLError as error:
        at = error.problem_mark.index if error.problem_mark else 0
        problem = ", ".join(filter(None, (error.context, error.problem)))
        raise StrictJsonError(problem, text, at) from None
    except yaml.reader.ReaderError as error:
        raise StrictJsonError(str(error.reason), text, error.position) from None
    except (ValueError, RecursionError) as error:
        raise StrictJsonError(str(error), text, 0) from None
    if values is not None and not isinstance(values, dict):
        raise StrictJsonError("it should contain keys and values, such as `a: 1`", text, 0)
    return values or {}


class YamlLists:
    """The lists in the mapping `key` of a YAML text.

    The caller parses each text that this returns, because some places cannot be edited."""

    def __init__(self, text: str, key: str) -> None:
        self._text, self._key = text, key

    def with_items(self, added: Lists) -> Iterator[str]:
        """Yield texts that may have these items first in their lists.

        Missing keys are added. The caller takes the first text that is right."""
        for is_beside_child in (False, True):
            after = self._text
            try:
                for name in reversed(list(added)):  # each is put before the ones after it
                    document, items = _Document(after), added[name]
                    after = document.with_list(self._key, name, items, is_beside_child)
            except StrictJsonError:  # the text in between is not right
                continue
            yield after

    def without_items(self, is_removed: Callable[[Mapping[str, str]], bool]) -> str:
        """Return the text without some items.

        Keys that were added for them go too, unless a person added other items. An item that shares
        its line with others is not removed correctly. Raises StrictJsonError."""
        text = self._text
        has_marks = _MARK in text  # a program that writes all values again drops all comments
        while cuts := _Document(text, has_marks).cuts(self._key, is_removed):
            for start, end in sorted(cuts, reverse=True):
                text = text[:start] + text[end:]
        return text

    def written(self, lists: Lists) -> list[str]:
        """Return the lines of the mapping if it has these lists."""
        lines = [line for name in lists for line in _list(name, lists[name], _INDENT)]
        return [f"{self._key}:", *lines]


class _Document:
    """A YAML text with the places of its values. Raises StrictJsonError."""

    def __init__(self, text: str, has_marks: bool = True) -> None:
        self._text = text
        self._has_marks = has_marks
        self._root = _composed(text)

    def with_list(
        self, key: str, name: str, items: Sequence[Mapping[str, Any]], is_beside_child: bool
    ) -> str:
        """Return the text with items in a list, below its key or before its first item."""
        root, outer = self._root, _pair(self._root, key)
        if outer is None:
            if root and _is_flow(root):
                return self._with_flow(root, f"{json.dumps(key)}: {{{_flow_list(name, items)}}}")
            return self._with_mapping(key, name, items, is_beside_child)
        inner = _pair(outer.value, name)
        above, siblings = inner or outer
        if _is_flow(siblings):
            flow = _flow_items(items) if inner else _flow_list(name, items)
            return self._with_flow(siblings, flow)
        has_children, column = bool(_inside(siblings)), above.start_mark.column + _INDENT
        if has_children:  # a mark before a mapping is at its anchor
            siblings = _pairs(siblings)[0].key if _pairs(siblings) else siblings
            column = siblings.start_mark.column
        lines = _items(items, column) if inner else _list(name, items, column, _MARK)
        is_before = has_children and is_beside_child
        at = self._lines_of(siblings)[0] if is_before else self._lines_of(above)[1]
        return self._with_lines(lines, at)

    def cuts(
        self, key: str, is_removed: Callable[[Mapping[str, str]], bool]
    ) -> list[tuple[int, int]]:
        """Return the places of the first item to remove, else of the marks of keys that stay."""
        outer = _pair(self._root, key)
        if outer is None:
            return []
        lists = _pairs(outer.value)
        for pair in lists:
            for item in _children(pair.value):
                if is_removed(_plain(item)):
                    return self._cuts_of(outer, pair, item)
        keys = [pair.key for pair in (outer, *lists)] if self._has_marks else []
        ends = [self._content_end(key) for key in keys if self._is_marked(key)]
        return [(end - len(_MARK), end) for end in ends]

    def _cuts_of(self, outer: _Pair, pair: _Pair, item: Node) -> list[tuple[int, int]]:
        """Return the places of an item, and of the keys above it if it is their last one."""
        items, lists = _children(pair.value), _pairs(outer.value)
        is_last = len(items) == 1
        if is_last and len(lists) == 1 and _is_flow(self._root):
            return [_flow_cut(_pairs(self._root), outer)]
        if is_last and _is_flow(outer.value):
            return [_flow_cut(lists, pair)]
        if _is_flow(pair.value):
            return [_flow_cut([_Pair(each, each) for each in items], _Pair(item, item))]
        cuts = [self._lines_of(item)]
        if is_last and self._is_marked(pair.key):
            cuts.append(self._lines_of(pair.key))
            if len(lists) == 1 and self._is_marked(outer.key):
                return self._with_blank_line([*cuts, self._lines_of(outer.key)])
        if max(cuts)[1] == len(self._text) and not self._text.endswith("\n"):
            cuts.append(self._newline_before(min(cuts)[0]))
        return cuts

    def _with_blank_line(self, cuts: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """Return the places of all that was added at the end of a text, with the line before it.

        Without a blank line, the text had no newline at its end."""
        first, last = min(cuts)[0], max(cuts)[1]
        end = self._newline_before(first)
        above = self._text[: end[0]]
        if end[0] < first and (not above or above.endswith("\n")):
            return [*cuts, end]
        is_open = self._has_marks and last == len(self._text)
        return [*cuts, end] if is_open else cuts

    def _with_mapping(
        self, key: str, name: str, items: Sequence[Mapping[str, Any]], is_beside_child: bool
    ) -> str:
        """Return the text with a new key, at its end or before its first key."""
        text, has_keys = self._text, bool(_pairs(self._root))
        column = self._root.start_mark.column if self._root and has_keys else 0
        lines = [f"{' ' * column}{key}:{_MARK}", *_list(name, items, column + _INDENT, _MARK)]
        if self._root and has_keys and is_beside_child:
            return self._with_lines(lines, self._lines_of(self._root)[0])
        newline = self._newline()
        return text + (newline if text else "") + newline.join([*lines, ""])

    def _with_lines(self, lines: list[str], at: int) -> str:
        text, newline = self._text, self._newline()
        if at == len(text) and not text.endswith("\n"):
            return text + newline + newline.join(lines)
        return text[:at] + newline.join([*lines, ""]) + text[at:]

    def _with_flow(self, node: Node, added: str) -> str:
        """Return the text with further content at the beginning of a flow such as `[a, b]`."""
        inside = _inside(node)
        at = inside[0].start_mark.index if inside else node.end_mark.index - 1
        return self._text[:at] + added + (", " if inside else "") + self._text[at:]

    def _newline(self) -> str:
        return "\r\n" if "\r\n" in self._text else "\n"

    def _newline_before(self, at: int) -> tuple[int, int]:
        above = self._text[:at]
        return len(above.removesuffix("\n").removesuffix("\r")), at

    def _content_end(self, node: Node) -> int:
        """Return the end of the line on which a node ends, without its newline."""
        end = self._text.find("\n", _end(node))
        return len(self._text) if end < 0 else end - self._text[:end].endswith("\r")

    def _lines_of(self, node: Node) -> tuple[int, int]:
        """Return the place of the lines of a node, with the last newline."""
        end = self._text.find("\n", _end(node))
        start = self._text.rfind("\n", 0, node.start_mark.index) + 1
        return start, len(self._text) if end < 0 else end + 1

    def _is_marked(self, key: Node) -> bool:
        return not self._has_marks or self._text[: self._content_end(key)].endswith(_MARK)


@lru_cache(maxsize=8)  # an install reads a text many times, and the parser reads 2 MB in a second
def _loaded(text: str) -> Any:
    import yaml

    return yaml.safe_load(text)


@lru_cache(maxsize=8)
def _composed(text: str) -> Node | None:
    import yaml

    try:
        node: Node | None = yaml.compose(text, yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError) as error:
        raise StrictJsonError(str(error), text, 0) from None
    return node


def _is_flow(node: Node | None) -> bool:
    return node is not None and getattr(node, "flow_style", False) is True


def _pairs(node: Node | None) -> list[_Pair]:
    """Return the pairs of a mapping; [] for other values."""
    import yaml

    return [_Pair(*pair) for pair in node.value] if isinstance(node, yaml.MappingNode) else []


def _children(node: Node) -> list[Node]:
    """Return the items of a list; [] for other values."""
    import yaml

    return list(node.value) if isinstance(node, yaml.SequenceNode) else []


def _pair(node: Node | None, key: str) -> _Pair | None:
    """Return the pair with a key in a mapping, the last if it is there twice."""
    pairs = [pair for pair in _pairs(node) if pair.key.value == key]
    return pairs[-1] if pairs else None


def _plain(item: Node) -> dict[str, str]:
    """Return the texts of an item's plain values."""
    pairs = [(pair.key.value, pair.value.value) for pair in _pairs(item)]
    return {key: value for key, value in pairs if isinstance(key, str) and isinstance(value, str)}


def _end(node: Node) -> int:
    """Return where a node's content ends; a mark after a block is behind its comments."""
    while not _is_flow(node) and (children := _inside(node)):
        node = children[-1]
    return int(node.end_mark.index)


def _inside(node: Node) -> list[Node]:
    return _children(node) or [each for pair in _pairs(node) for each in pair]


def _flow_cut(pairs: list[_Pair], pair: _Pair) -> tuple[int, int]:
    """Return the place of a pair or item in a flow, with the comma."""
    at = pairs.index(pair)
    start, end = pair.key.start_mark.index, pair.value.end_mark.index
    if at + 1 < len(pairs):
        return start, pairs[at + 1].key.start_mark.index
    return (pairs[at - 1].value.end_mark.index if at else start), end


def _list(name: str, items: Sequence[Mapping[str, Any]], column: int, mark: str = "") -> list[str]:
    return [f"{' ' * column}{name}:{mark}", *_items(items, column + _INDENT)]


def _items(items: Sequence[Mapping[str, Any]], column: int) -> list[str]:
    lines = []
    for item in items:
        values = [f"{key}: {_written(value)}" for key, value in item.items()]
        starts = ["- ", *["  "] * (len(values) - 1)]
        lines += [f"{' ' * column}{start}{value}" for start, value in zip(starts, values)]
    return lines


def _flow_list(name: str, items: Sequence[Mapping[str, Any]]) -> str:
    return f"{json.dumps(name)}: [{_flow_items(items)}]"


def _flow_items(items: Sequence[Mapping[str, Any]]) -> str:
    return ", ".join([_written(dict(item)) for item in items])


def _written(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return _NOT_IN_YAML.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
