"""The postings of a query: the items that have each of its parts, and the parts' weights."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from functools import cache
from typing import NamedTuple

from ..store.values import Filter, items_of_file
from .index import Expression, Scope, SearchIndex, Words
from .query import Part, Query, alternatives, contains
from .ranking import idf

WHOLE = 200_000  # items; up to this number, all parts count
MOST_ITEMS = 400_000  # above that, only the rarest parts count; of two parts both
# of the items with all parts, so many of the newest are checked for the verbatim query
MOST_VERBATIM = 64
# Phrases are checked by reading the newest MOST_CHECKED items with all words, which takes 1 to 40
# ms per query. Positions in the index would take 0.1 to 7 ms. But the store would grow by 0.25
# (real texts) to 0.66 (invented texts) bytes per byte of text, each store would have to be indexed
# again at 10 MB of text per second, and a team's posting lists have no positions either.
MOST_CHECKED = 20_000  # short ones take half a second
CHECKED_CHARACTERS = 100_000
READ_FOR_ONE = 10  # texts that are read at once, for each that is looked for
Phrase = tuple[str, ...]  # terms in sequence
_EVERYTHING = Scope([(0, (1 << 63) - 1)], None, 1.0)


class QueryPostings(NamedTuple):
    """The index's answer to a query.

    It has the query's parts, their items in order of id, their weights, the number of terms of each
    text, and the items that may contain the query verbatim."""

    parts: list[Part]
    postings: list[list[int]]
    weights: list[float]
    average_terms: float = 1.0
    perhaps_verbatim: tuple[int, ...] = ()


def scope_of(index: SearchIndex, wanted: Filter) -> Scope:
    """Return the items that a filter allows."""
    allowed = index.files(wanted)
    if allowed is None:
        return _EVERYTHING
    files, newest = allowed
    return Scope(_ranges(files), frozenset(files), len(files) / max(1, newest))


def postings_of(
    index: SearchIndex, query: Query, scope: Scope, wanted: Filter, whole: int = WHOLE
) -> QueryPostings:
    """Return the items for each part of a query; the rarest parts' if above `whole` items."""
    total, average_terms = index.size()
    within = max(1, round(total * scope.share))

    @cache
    def items_of(part: Part) -> list[int]:
        return _fitting(index, index.items_with(_expression(part, query), scope), wanted)

    def has_any(part: Part) -> bool:
        items = items_of(part)
        return bool(
            in_sequence(index, items, [], query.unwanted_phrases, 1)[0]
            if query.unwanted_phrases
            else items
        )

    chosen: dict[Part, None] = {}
    for part in query.parts:  # or one for each of its terms if no item has them together
        others = [] if part.is_required else alternatives(part)
        chosen.update(dict.fromkeys(others if others and not has_any(part) else [part]))
    parts = list(chosen)
    counts = (
        [index.count_with(Expression((part.words,))) for part in parts]
        if within > whole and len(parts) > 2
        else []
    )
    looked_for = _rarest(counts) if counts else range(len(parts))
    postings = [items_of(part) if number in looked_for else [] for number, part in enumerate(parts)]
    having = [
        len(items) + index.left_out(_expression(parts[number], query), scope)
        if number in looked_for
        else round(counts[number] * scope.share)
        for number, items in enumerate(postings)
    ]
    weights = [idf(max(within, count), count) if count else 0.0 for count in having]
    verbatim: list[int] = []
    if query.verbatim:
        verbatim = _fitting(
            index, index.items_with(query.verbatim.expression, scope, MOST_VERBATIM), wanted
        )
    return QueryPostings(parts, postings, weights, average_terms, tuple(verbatim))


def postings_of_literal(
    index: SearchIndex, text: str, scope: Scope, wanted: Filter
) -> QueryPostings:
    """Return the newest items that contain a query without words, such as an emoji, verbatim."""
    if not text or text.startswith("-"):
        return QueryPostings([], [], [])
    items = sorted(index.fitting(index.items_saying(text, scope), wanted))
    return QueryPostings([Part(Words(()), (text,))], [items], [1.0])


def in_sequence(
    index: SearchIndex,
    items: list[int],
    phrases: Iterable[Phrase],
    unwanted: Iterable[Phrase],
    enough: int,
) -> tuple[list[int], int]:
    """Return the items with all `phrases` and no `unwanted` one, and the number of unread ones.

    Texts are read from the newest on until `enough` fit, at most MOST_CHECKED of them; older items
    stay unread."""
    kept: list[int] = []
    newest = items[: -MOST_CHECKED - 1 : -1]
    at_once = READ_FOR_ONE * enough
    for at in range(0, len(newest), at_once):
        for item, head in index.text_starts(newest[at : at + at_once], CHECKED_CHARACTERS).items():
            terms = index.terms.of(head.text)
            if all(contains(terms, phrase) for phrase in phrases) and not any(
                contains(terms, phrase) for phrase in unwanted
            ):
                kept.append(item)
        if len(kept) >= enough:
            return sorted(kept), 0
    return sorted(kept), len(items) - len(newest)


def _rarest(counts: list[int]) -> set[int]:
    """Return the numbers of the rarest parts: at least two, with at most MOST_ITEMS items."""
    chosen: set[int] = set()
    left = MOST_ITEMS
    for number in sorted(range(len(counts)), key=counts.__getitem__):
        left -= counts[number]
        if left >= 0 or len(chosen) < 2:
            chosen.add(number)
    return chosen


def _expression(part: Part, query: Query) -> Expression:
    return Expression((part.words,), (), query.unwanted)


def _fitting(index: SearchIndex, items: list[int], wanted: Filter) -> list[int]:
    if not wanted.role and not wanted.kind and wanted.since is None and wanted.until is None:
        return items
    return index.fitting(items, wanted)


def _ranges(files: list[int]) -> list[tuple[int, int]]:
    """Return the items of files, the newest first, as few ranges of ids."""
    ranges: list[tuple[int, int]] = []
    for file in files:
        first, last = items_of_file(file)
        if ranges and ranges[-1][0] == last + 1:
            ranges[-1] = (first, ranges[-1][1])
        else:
            ranges.append((first, last))
    return ranges


# If one list is this many times longer, items are looked up in it by bisection, which takes ten
# times as long per item as a set.
_FEW = 10


def has(items: Sequence[int], item: int) -> bool:
    """Check if an item is among sorted items."""
    at = bisect_left(items, item)
    return at < len(items) and items[at] == item


def both(items: list[int], other: list[int]) -> list[int]:
    """Return the items that are in both sorted lists."""
    few, many = (items, other) if len(items) < len(other) else (other, items)
    if _FEW * len(few) < len(many):
        return [item for item in few if has(many, item)]
    wanted = set(few)
    return [item for item in many if item in wanted]


def either(items: list[int], other: list[int]) -> list[int]:
    """Return the items that are in one of two sorted lists, in order."""
    if not items or not other:
        return items or other
    return list(dict.fromkeys(sorted([*items, *other])))


def without(items: list[int], other: list[int]) -> list[int]:
    """Return the items of one list that are not in the other."""
    unwanted = set(other)
    return [item for item in items if item not in unwanted] if unwanted else items
