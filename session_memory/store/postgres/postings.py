"""Rows of `posting`: which items of a segment have a term, as bytes. Pure."""

from __future__ import annotations

import sys
from array import array
from collections import defaultdict
from typing import TYPE_CHECKING
from zlib import crc32

from ..values import ITEM_BITS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

LONGEST_TERM = 500


class NewPostings:
    """The postings of a batch: `add` the texts of its items, in order; `rows` are then what is to be written."""

    def __init__(self, terms_in: Callable[[str], list[str]]) -> None:
        self._terms_in = terms_in
        self._items: dict[int, defaultdict[str, list[int]]] = {}

    def add(self, segment: int, texts: Iterable[tuple[int, str]]) -> tuple[int, int]:
        """Adds texts by the ids of their items; returns how many these are, and how many terms they have in all."""
        items = self._items.setdefault(segment, defaultdict(list))
        terms_in = self._terms_in
        count = total = 0
        for id, text in texts:
            terms = terms_in(text)
            count, total = count + 1, total + len(terms)
            for term in set(terms):
                items[term].append(id)
        return count, total

    def rows(self) -> list[tuple[str, int, bytes]]:
        """Term, segment and items, in the order of the table's key, which is written in half of the time by that."""
        rows = []
        for segment, items in self._items.items():
            kept: dict[str, list[int]] = {}
            for term, ids in items.items():
                kept.setdefault(clipped(term), []).extend(ids)
            rows += [(term, segment, packed(ids)) for term, ids in kept.items()]
        return sorted(rows)


def clipped(term: str) -> str:
    """A term as it is kept: an index takes none that are longer, so that of these there are beginning and checksum."""
    return term if len(term) <= LONGEST_TERM else term[:LONGEST_TERM] + f"{crc32(term.encode()):08x}"


def packed(items: list[int]) -> bytes:
    """Ids of items as a row has them."""
    if len(items) == 1:
        return items[0].to_bytes(8, "big")
    return _swapped(array("Q", items)).tobytes()


def unpacked(items: bytes, sessions: frozenset[int]) -> list[int]:
    """The ids of a row, of those that are of these sessions: not all need be, if somebody else's program wrote it."""
    if len(items) == 8:
        id = int.from_bytes(items, "big")
        return [id] if id >> ITEM_BITS in sessions else []
    ids = _swapped(array("Q", items)).tolist()
    if sessions.issuperset(_swapped(array("I", items))[::2]):  # the upper halves: in a quarter of the time
        return ids
    return [id for id in ids if id >> ITEM_BITS in sessions]


def _swapped(values: array[int]) -> array[int]:
    """Numbers with the highest byte first as this machine has them, or the other way round."""
    if sys.byteorder == "little":
        values.byteswap()
    return values
