"""Finds the messages that a person took back by rewinding, in a transcript whose reader keeps them.

Claude Code leaves these messages in the file, and the next prompt gets the same parent as the first
of them. Search, costs and archives have them too: they were said, and paid.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ...common.system.json import objects_in
from ..runtimes.records import (
    CALLS,
    LINKS,
    MESSAGES,
    RESULTS,
    CallResult,
    Compaction,
    ParentLink,
    Records,
)
from .entries import Entry
from .lines import lines_forward

_WANTED = MESSAGES | CALLS | RESULTS | LINKS


class _Node(NamedTuple):
    """A record in the tree; `has_content` is whether it has a message, call, result or summary."""

    id: str
    parent_id: str
    offset: int
    is_message: bool
    has_content: bool
    is_prompt: bool


def _nodes(meaning: Records, descriptor: int) -> Iterator[_Node]:
    for offset, line in lines_forward(descriptor, 0, os.fstat(descriptor).st_size):
        if meaning.prefilter(line, _WANTED):
            for index, record in enumerate(objects_in(line)):
                events = meaning.events(record, offset + index, _WANTED)
                for event in events:
                    if isinstance(event, ParentLink) and event.id:
                        yield _node(event, offset + index, events)


def _node(link: ParentLink, offset: int, events: Iterable[object]) -> _Node:
    content = [event for event in events if isinstance(event, Entry | CallResult | Compaction)]
    are_said = [isinstance(event, Entry) and event.role == "user" for event in content]
    is_prompt = link.is_message and bool(content) and all(are_said)
    return _Node(link.id, link.parent_id, offset, link.is_message, bool(content), is_prompt)


class RecordTree:
    """The records of a transcript by id. The live branch ends at the last message."""

    def __init__(self, meaning: Records, descriptor: int) -> None:
        """Read a whole transcript. Raises OSError."""
        self._nodes: dict[str, _Node] = {}
        self._children: dict[str, list[_Node]] = {}
        last = None
        for node in _nodes(meaning, descriptor):
            if node.id not in self._nodes:
                self._nodes[node.id] = node
                self._children.setdefault(node.parent_id, []).append(node)
                last = node if node.is_message and node.has_content else last
        self._live: dict[str, _Node] = {}  # from the last message to the first
        while last is not None and last.id not in self._live:
            self._live[last.id] = last
            last = self._nodes.get(last.parent_id)

    def rewound_offsets(self) -> set[int]:
        """Return the offsets of records that were taken back with a prompt.

        A prompt was taken back if the conversation goes on with another prompt at the same place,
        after everything that followed the first one. So results of parallel calls, a summary, and
        another process in the same session stay. A first prompt stays too: without a parent it may
        as well begin another part of the file."""
        rewound: set[int] = set()
        for top, offsets, successor in self._left_branches():
            if top.is_prompt and successor.is_prompt and max(offsets) < successor.offset:
                rewound.update(offsets)
        return rewound

    def _left_branches(self) -> Iterator[tuple[_Node, list[int], _Node]]:
        """Yield each branch that was left: its first record with content and all their offsets.

        The third is the live branch's next record with content after the same place."""
        successor: _Node | None = None
        for node in self._live.values():
            for child in self._children.get(node.id, ()):
                if successor is not None and child.id not in self._live:
                    for top, offsets in self._below(child):
                        yield top, offsets, successor
            successor = node if node.has_content else successor

    def _below(self, root: _Node) -> Iterator[tuple[_Node, list[int]]]:
        """Yield the first records with content below `root`, each with the offsets after it."""
        waiting = [root]
        while waiting:
            node = waiting.pop()
            if node.has_content:
                yield node, [each.offset for each in self._all_below(node) if each.has_content]
            else:
                waiting += self._children.get(node.id, ())

    def _all_below(self, root: _Node) -> Iterator[_Node]:
        waiting = [root]
        while waiting:
            node = waiting.pop()
            yield node
            waiting += self._children.get(node.id, ())
