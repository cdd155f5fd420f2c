"""The postings of a query: which items have each of its parts, and what having it is worth."""

from __future__ import annotations

from typing import NamedTuple

from ..values import ITEM_BITS, Filter
from .index import Posting, Scope
from .query import Part, alternatives
from .ranking import Weight, weigh

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .index import SearchIndex
    from .query import Query

MOST_ITEMS = 4000  # of a query of one part: the newest
LEAST_ITEMS = 400  # of each of several parts; and of those that have two of them
MOST_COUNTED = 5000
FILTERED = 4  # times as many where only some of them are of the role or the time that is wanted
FEW_FILES = 12  # in so few files of a rare part, a common one is counted to the end
_EVERYTHING = Scope([(0, (1 << 63) - 1)], None, 1.0)


class QueryPostings(NamedTuple):
    """What the index has for a query: its parts, their items, what each is worth; how many terms a text has."""

    parts: list[Part]
    postings: list[Posting]
    weights: list[Weight]
    average_terms: float


def scope_of(index: SearchIndex, wanted: Filter) -> Scope:
    """The files that `wanted` allows."""
    allowed = index.files(wanted)
    if allowed is None:
        return _EVERYTHING
    files, newest = allowed
    return Scope(_ranges(files), frozenset(files), len(files) / max(1, newest))


def postings_of(index: SearchIndex, asked: Query, scope: Scope, wanted: Filter) -> QueryPostings:
    """The items that have each part of a query; where nothing has all terms of a part, those that have each of them."""
    limit = MOST_ITEMS if len(asked.parts) == 1 else LEAST_ITEMS
    parts: list[Part] = []
    postings: list[Posting] = []
    for part in asked.parts:
        tried = {part: _posting(index, part, asked, scope, wanted, limit)}
        if not tried[part].items and (others := alternatives(part)):
            tried = {other: _posting(index, other, asked, scope, wanted, limit) for other in others}
        parts += tried.keys()
        postings += tried.values()
    known = [part for part, posting in zip(parts, postings) if posting.items]
    if not known:
        return QueryPostings(parts, postings, [Weight(0.0, 0.0)] * len(parts), 1.0)
    total, average_terms = index.size(known[0].match)
    within = round(total * scope.share)
    weights = [
        weigh(posting, _count(index, part.match, posting, scope), within) for part, posting in zip(parts, postings)
    ]
    found = QueryPostings(parts, postings, weights, average_terms)
    return found._replace(postings=_completed(index, asked, found, scope, wanted))


def postings_of_literal(index: SearchIndex, text: str, scope: Scope, wanted: Filter) -> QueryPostings:
    """For a query without a word (an emoji, an operator): what has it as it stands, among the newest."""
    if not text or text.startswith("-"):
        return QueryPostings([], [], [], 1.0)
    items = index.fitting(index.items_saying(text, scope), wanted)
    return QueryPostings([Part("", (text,))], [Posting(items, True)], [Weight(1.0, 1.0)], 1.0)


def _posting(index: SearchIndex, part: Part, asked: Query, scope: Scope, wanted: Filter, limit: int) -> Posting:
    """The items that have a part and are wanted."""
    match = f"({part.match}) NOT ({asked.unwanted})" if asked.unwanted else part.match
    if not wanted.role and wanted.since is None and wanted.until is None:
        return index.items_with(match, scope, limit)
    found = index.items_with(match, scope, limit * FILTERED)
    return Posting(index.fitting(found.items, wanted), found.is_complete)


def _count(index: SearchIndex, match: str, posting: Posting, scope: Scope) -> int:
    """How many items match within the scope. What very many have is judged by how many files the newest are in."""
    if posting.is_complete:
        return len(posting.items)
    counted = index.count_with(match, MOST_COUNTED)
    if counted == MOST_COUNTED:
        newest, oldest = posting.items[0] >> ITEM_BITS, posting.items[-1] >> ITEM_BITS
        counted = max(counted, len(posting.items) * newest // (newest - oldest + 1))
    return max(len(posting.items), round(counted * scope.share))


def _completed(index: SearchIndex, asked: Query, found: QueryPostings, scope: Scope, wanted: Filter) -> list[Posting]:
    """The postings, and where some were cut off also those of their items that are worth most: in the few files that a
    rare part is in, or else those that have two parts."""
    cut_off = [number for number, posting in enumerate(found.postings) if not posting.is_complete]
    if not cut_off or len(found.parts) == 1:
        return found.postings
    files = {item >> ITEM_BITS for posting in found.postings if posting.is_complete for item in posting.items}
    if files and len(files) <= FEW_FILES:
        near = Scope([_items_of(file) for file in sorted(files, reverse=True)], None, 0.0)
        more = {number: _posting(index, found.parts[number], asked, near, wanted, LEAST_ITEMS) for number in cut_off}
    else:
        first, second = sorted(range(len(found.parts)), key=lambda number: found.weights[number].entry)[-2:]
        both = Part(f"({found.parts[first].match}) AND ({found.parts[second].match})", ())
        having_both = _posting(index, both, asked, scope, wanted, LEAST_ITEMS // 2)
        more = dict.fromkeys((first, second), having_both)
    return [
        posting.with_items(more[number].items) if number in more else posting
        for number, posting in enumerate(found.postings)
    ]


def _ranges(files: list[int]) -> list[tuple[int, int]]:
    """The items of files, which come newest first, as few ranges of ids."""
    ranges: list[tuple[int, int]] = []
    for file in files:
        first, last = _items_of(file)
        if ranges and ranges[-1][0] == last + 1:
            ranges[-1] = (first, ranges[-1][1])
        else:
            ranges.append((first, last))
    return ranges


def _items_of(file: int) -> tuple[int, int]:
    """The first and the last id that an item of a file may have."""
    return file << ITEM_BITS, (file + 1 << ITEM_BITS) - 1
