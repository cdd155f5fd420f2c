"""Cuts the items of a file into conversations: a silence longer than the gap ends one. Pure.

Only the last conversation of a file can grow, so what was appended is folded onto that one alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class TimedItem(NamedTuple):
    """An entry or tool use, as cutting needs it. `message` is 0 if every record is a message of its own."""

    id: int
    message: int
    timestamp: int | None
    text_bytes: int


class ConversationSpan:
    """A conversation while it is being cut. `id` is None until it is stored, `count` counts messages."""

    def __init__(self, item: TimedItem) -> None:
        self.id: int | None = None
        self.first_item = self.last_item = item.id
        self.first_at = self.last_at = item.timestamp
        self.count = 0
        self.last_message = 0
        self.text_bytes = 0

    def add(self, item: TimedItem) -> None:
        """Add the next item. The records of one API message count once."""
        self.last_item = item.id
        if not item.message or item.message != self.last_message:
            self.count += 1
        self.last_message = item.message
        self.text_bytes += item.text_bytes
        if item.timestamp is not None:
            self.first_at = item.timestamp if self.first_at is None else self.first_at
            self.last_at = item.timestamp if self.last_at is None else max(self.last_at, item.timestamp)


def fold(last: ConversationSpan | None, items: Iterable[TimedItem], gap: int) -> list[ConversationSpan]:
    """Return the conversations that `items` belong to, in order, beginning with `last` if it continues.

    `gap` is in milliseconds. Only a step forward in time cuts: clocks go back, and a missing time is not a silence.
    """
    touched: list[ConversationSpan] = []
    span = last
    for item in items:
        is_silent = (
            span is not None
            and span.last_at is not None
            and item.timestamp is not None
            and item.timestamp - span.last_at > gap
        )
        if span is None or is_silent:
            span = ConversationSpan(item)
        if not touched or touched[-1] is not span:
            touched.append(span)
        span.add(item)
    return touched
