"""What a search needs of an engine: which items have a term, and texts. The rest is the same for every engine.

Expressions are those of FTS5: `"word"`, `"one" AND "two"`, `"beginning" *`, `(...) NOT (...)`. Items are named by id.
"""

from __future__ import annotations

from typing import NamedTuple

from ..values import ITEM_BITS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from contextlib import AbstractContextManager
    from typing import Protocol

    from ..values import Conversation, Filter, StoredEntry
    from .terms import Terms

    class SearchIndex(Protocol):
        """Methods raise what the engine's driver raises."""

        @property
        def terms(self) -> Terms:
            """Makes terms of texts as the index does."""

        def snapshot(self) -> AbstractContextManager[object]:
            """Within it all that is read is of one state of the store, whatever is written meanwhile."""

        def files(self, wanted: Filter) -> tuple[list[int], int] | None:
            """The ids of the files that a filter allows, the newest first, and how many there are at most; None if it
            allows all. What it says of conversations and entries is not looked at."""

        def items_with(self, expression: str, scope: Scope, newest: int = 0) -> list[int]:
            """The items of the scope that match an expression, in the order of ids; only so many of the newest, if
            that is not 0."""

        def left_out(self, expression: str, scope: Scope) -> int:
            """How many older items match that `items_with` left out."""

        def count_with(self, expression: str, most: int = 0) -> int:
            """How many items of the whole store match an expression; if `most` is not 0, that many may do."""

        def size(self) -> tuple[int, float]:
            """How many items are indexed, and how many terms one of them has on average."""

        def items_saying(self, text: str, scope: Scope) -> list[int]:
            """Entries that have `text` as it stands, among the newest of the scope."""

        def fitting(self, items: list[int], wanted: Filter) -> list[int]:
            """Of `items` those of the role, of the kind and from the time that are wanted."""

        def table(self) -> ConversationTable:
            """All conversations of the store."""

        def conversations_at(self, starts: Iterable[int], wanted: Filter) -> list[ConversationRange]:
            """The conversations that begin with these items, of those that fit the filter."""

        def text_starts(self, items: Iterable[int], characters: int) -> dict[int, TextStart]:
            """How the texts of these items begin: at most so many characters of each."""

        def items(self, ids: Iterable[int]) -> dict[int, StoredEntry]:
            """The entries and tool uses of these ids."""

        def conversations(self, ids: Iterable[int]) -> dict[int, Conversation]:
            """The conversations of these ids."""


_NUMBER = (1 << ITEM_BITS) - 1


class Scope(NamedTuple):
    """The files that a search is limited to: their items as ranges of ids, the newest first. `files` is None where
    that is all of them; `share` says which part of all files they are."""

    ranges: list[tuple[int, int]]
    files: frozenset[int] | None
    share: float


class ConversationTable(NamedTuple):
    """What ranking needs of each conversation, in the order of their items: its first item, how many it has, when it
    ended in milliseconds since the epoch (0: not known), and what `ranking.length_norms` makes of its size in bytes.
    Each goes on to where the next one begins."""

    starts: list[int]
    counts: list[int]
    ends: list[int]
    norms: list[float]


class ConversationRange(NamedTuple):
    """A conversation: its first and its last item, its id; when it ended, in milliseconds since the epoch (0: not
    known), and its session's id, by which those are put in order that fit a query as well."""

    first_item: int
    last_item: int
    conversation_id: int
    ended: int
    session_id: str

    @property
    def order(self) -> tuple[int, str, int]:
        """The same in every engine: the time, then the key, that is the session and the number in it."""
        return self.ended, self.session_id, self.first_item & _NUMBER


class TextStart(NamedTuple):
    """The beginning of an item's text; `size` is that of all of it, in bytes."""

    text: str
    size: int
    is_tool: bool
