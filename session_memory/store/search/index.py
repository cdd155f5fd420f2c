"""The interface between search and an engine: the items that have a term, and texts. All else is the same for every
engine.

Expressions are those of FTS5: `"word"`, `"one" AND "two"`, `"beginning" *`, `(...) NOT (...)`. Items are named by id.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol

from ..values import NUMBERS, Conversation, Filter, StoredEntry
from .terms import Terms


class Scope(NamedTuple):
    """The files that a search is limited to: their items as ranges of ids, the newest first. `files` is None for all
    files; `share` is the fraction of all files."""

    ranges: list[tuple[int, int]]
    files: frozenset[int] | None
    share: float


class ConversationTable(NamedTuple):
    """The values that ranking needs of each conversation, in the order of their items: the first item, the number of
    items, the end in milliseconds since the epoch (0: unknown), and the `ranking.length_norms` of its size. Each
    extends to the start of the next."""

    starts: list[int]
    counts: list[int]
    ends: list[int]
    norms: list[float]


class ConversationRange(NamedTuple):
    """A conversation: its first and last item, its id, its end in milliseconds since the epoch (0: unknown), and its
    session's id, which orders conversations with equal scores."""

    first_item: int
    last_item: int
    conversation_id: int
    ended: int
    session_id: str

    @property
    def order(self) -> tuple[int, str, int]:
        """Return a sort key that is the same in every engine: the time, then the session and the number in it."""
        return self.ended, self.session_id, self.first_item & NUMBERS


class TextStart(NamedTuple):
    """The beginning of an item's text; `size` is that of all of it, in bytes."""

    text: str
    size: int
    is_tool: bool


class SearchIndex(Protocol):
    """The index of an engine. Methods raise the errors of the engine's driver."""

    @property
    def terms(self) -> Terms:
        """Make terms of texts as the index does."""

    def snapshot(self) -> AbstractContextManager[object]:
        """Read one state of the store within the block, even if others write meanwhile."""

    def files(self, wanted: Filter) -> tuple[list[int], int] | None:
        """Return the ids of the files that a filter allows, the newest first, and their number at most; None if it
        allows all. The filter's conditions on conversations and entries are ignored."""

    def items_with(self, expression: str, scope: Scope, newest: int = 0) -> list[int]:
        """Return the matching items of the scope, in order of id; at most `newest` of the newest, if not 0."""

    def left_out(self, expression: str, scope: Scope) -> int:
        """Return how many older matching items `items_with` omitted."""

    def count_with(self, expression: str) -> int:
        """Count the matching items of the whole store."""

    def size(self) -> tuple[int, float]:
        """Return the number of indexed items, and the average number of terms of one."""

    def items_saying(self, text: str, scope: Scope) -> list[int]:
        """Return entries that contain `text` verbatim, among the newest of the scope."""

    def fitting(self, items: list[int], wanted: Filter) -> list[int]:
        """Return the `items` of the wanted role, kind and time."""

    def table(self) -> ConversationTable:
        """Return all conversations of the store."""

    def conversations_at(self, starts: Iterable[int], wanted: Filter) -> list[ConversationRange]:
        """Return the conversations that begin with these items, of those that fit the filter."""

    def text_starts(self, items: Iterable[int], characters: int) -> dict[int, TextStart]:
        """Return the beginnings of the texts of these items, at most `characters` of each."""

    def items(self, ids: Iterable[int]) -> dict[int, StoredEntry]:
        """Return the entries and tool uses of these ids."""

    def conversations(self, ids: Iterable[int]) -> dict[int, Conversation]:
        """Return the conversations of these ids."""
