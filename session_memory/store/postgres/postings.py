"""Rows of `posting`: which items of a segment have a term, as bytes. Pure."""

from __future__ import annotations

import re
import sys
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, chain, pairwise
from typing import NamedTuple
from zlib import crc32

from ..search.postings import both, either, without
from ..search.terms import Terms
from ..values import ITEM_BITS

LONGEST_TERM = 500
ID_BYTES = 8
_UPPER = slice(1 if sys.byteorder == "little" else 0, None, 2)  # of an id in two halves


class PostingRows(NamedTuple):
    """Rows for one segment, except for the numbers that the server assigns. `counts` is the number of items of each of
    `terms`; `items` are those of all terms, with a session's index in the batch instead of its number."""

    terms: list[str]
    counts: list[int]
    items: array[int]

    def copied(self, segment: int, sessions: Sequence[int]) -> Iterator[tuple[int, str, bytes]]:
        """Yield the rows with the number of their segment and those of the sessions, by their places."""
        halves = array("I", self.items.tobytes())
        halves[_UPPER] = array("I", map(sessions.__getitem__, halves[_UPPER]))
        ids = _swapped(array("Q", halves.tobytes())).tobytes()
        ends = accumulate(self.counts, initial=0)
        for term, (first, end) in zip(self.terms, pairwise(ends)):
            yield segment, term, ids[ID_BYTES * first : ID_BYTES * end]


class NewPostings:
    """The postings of one segment in a batch: `add` the texts of its items in order, then write `rows`."""

    def __init__(self, terms_in: Callable[[str], list[str]]) -> None:
        self._terms_in = terms_in
        self._items: defaultdict[str, list[int]] = defaultdict(list)

    def add(self, texts: Iterable[tuple[int, str]]) -> tuple[int, int]:
        """Add texts by the ids of their items; return how many these are, and how many terms they have in all."""
        terms_in, items_of = self._terms_in, self._items.__getitem__
        count = total = 0
        for id, text in texts:
            terms = terms_in(text)
            count, total = count + 1, total + len(terms)
            for items in map(items_of, set(terms)):
                items.append(id)
        return count, total

    def rows(self) -> PostingRows:
        """Return the rows in the order of the table's key, which is written in half of the time by that."""
        kept = self._items
        for term in [term for term in kept if len(term) > LONGEST_TERM]:
            kept[clipped(term)] += kept.pop(term)
        terms = sorted(kept)
        lists = [kept[term] for term in terms]
        return PostingRows(terms, [len(items) for items in lists], array("Q", chain.from_iterable(lists)))


def clipped(term: str) -> str:
    """Return a term as it is stored: an index takes no longer ones, so these end with a checksum."""
    return term if len(term) <= LONGEST_TERM else term[:LONGEST_TERM] + f"{crc32(term.encode()):08x}"


def packed(items: list[int]) -> bytes:
    """Return ids of items as a row has them."""
    return _swapped(array("Q", items)).tobytes()


def unpacked(items: bytes, sessions: frozenset[int]) -> list[int]:
    """Return the ids of a row that belong to these sessions: a member's own program may have written others."""
    items = items[: len(items) - len(items) % ID_BYTES]
    if len(items) == ID_BYTES:
        id = int.from_bytes(items, "big")
        return [id] if id >> ITEM_BITS in sessions else []
    ids = _swapped(array("Q", items)).tolist()
    if sessions.issuperset(_swapped(array("I", items))[::2]):  # the upper halves: in a quarter of the time
        return ids
    return [id for id in ids if id >> ITEM_BITS in sessions]


def _swapped(values: array[int]) -> array[int]:
    """Convert big-endian numbers to this machine's byte order, or back."""
    if sys.byteorder == "little":
        values.byteswap()
    return values


PostingsOf = Callable[[str, bool, list[int] | None], list[int]]

_TOKEN = re.compile(r'"(?P<word>[^"]*)"(?P<prefix> \*)?|(?P<sign>AND|OR|NOT|\(|\))')
_ALL_OF = re.compile(r'"[^"]*"(?: AND "[^"]*"(?! \*))+')
_JOINED = {"AND": both, "OR": either, "NOT": without}


def items_of(expression: str, terms: Terms, postings: PostingsOf) -> list[int]:
    """Return the items that match an expression, in order."""

    def rarest_first(words: re.Match[str]) -> str:
        """Order words that are all required so that joining them is cheap."""
        each = words[0].split(" AND ")
        return " AND ".join(sorted(each, key=lambda word: len(postings(terms.of_word(word[1:-1]), False, None))))

    tokens = list(_TOKEN.finditer(_ALL_OF.sub(rarest_first, expression)))
    if len(tokens) == 1:
        return postings(terms.of_word(tokens[0]["word"]), bool(tokens[0]["prefix"]), None)
    return _joined(tokens, 0, terms, postings)[0]


def _joined(tokens: list[re.Match[str]], at: int, terms: Terms, postings: PostingsOf) -> tuple[list[int], int]:
    """Return the items of the expression from `at` up to the end or a closing parenthesis, and the position behind it.
    An expression has one kind of operator, so that no precedence is needed."""
    found: list[int] = []
    sign = "OR"
    while at < len(tokens) and tokens[at]["sign"] != ")":
        token = tokens[at]
        if token["sign"] in _JOINED:
            sign = token["sign"]
        else:
            if token["sign"] == "(":
                one, at = _joined(tokens, at + 1, terms, postings)
            else:
                among = found if sign != "OR" else None
                one = postings(terms.of_word(token["word"]), bool(token["prefix"]), among)
            found = _JOINED[sign](found, one)
        at += 1
    return found, at
