"""Ranking: BM25 for entries and conversations, and bonuses. Pure.

The weights were measured (docs/measured/parts.md). The score of a conversation depends on the
number of its entries that have a term, the score of an entry on how often it has the term.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from heapq import nlargest
from typing import NamedTuple, TypeVar

from .index import ConversationTable

T = TypeVar("T")


ENTRY_K, ENTRY_B = 0.9, 0.4
CONVERSATION_K, CONVERSATION_B = 4.0, 0.75
RECENCY = 0.02  # the weight of recency relative to the best score: it only decides between equals
RECENCY_HALF_LIFE = 30 * 24 * 3600 * 1000  # milliseconds
AT_THE_TIME = 1.0  # the weight of the time that the query names
_BEHIND = 1 << 63  # all ids
VERBATIM = 3.0  # the weight of the whole query verbatim: it comes first


class NamedTime(NamedTuple):
    """A named time in milliseconds since 1970, with a day before it and a day after it.

    The extra days are there because people announce or report events a little earlier or later."""

    begin: int
    end: int
    half_life: int


def idf(total: int, having: int) -> float:
    """Return the weight of a term that `having` of `total` items have."""
    return math.log(1 + max(0.0, total - having + 0.5) / (min(having, total) + 0.5))


def conversation_scores(
    table: ConversationTable, postings: Iterable[list[int]], weights: Iterable[float]
) -> list[float]:
    """Return the BM25 score of each conversation.

    It depends on the items in each of `postings` and on their weights."""
    starts, norms = table.starts, table.norms
    scores = [0.0] * len(starts)
    for items, weight in zip(postings, weights):
        worth = weight * (CONVERSATION_K + 1)
        within = _range_of(items, table)
        if 2 * len(items) <= within.stop - within.start:
            for number, count in Counter(
                [bisect_right(starts, item) - 1 for item in items]
            ).items():
                scores[number] += worth * count / (count + norms[number])
        else:
            scores[within] = [
                score + worth * count / (count + norm) if count else score
                for score, count, norm in zip(
                    scores[within], _counts(items, table, within), norms[within]
                )
            ]
    return scores


def conversations_of(items: list[int], table: ConversationTable) -> set[int]:
    """Return the numbers of the conversations that have any of these items."""
    within = _range_of(items, table)
    if 2 * len(items) <= within.stop - within.start:
        return {bisect_right(table.starts, item) - 1 for item in items}
    counts = _counts(items, table, within)
    return {number for number, count in enumerate(counts, within.start) if count}


def best_of(scores: Sequence[float], ends: Sequence[int], most: int) -> list[int]:
    """Return the numbers of the `most` highest scores above 0, the highest first.

    Of equal scores, later ones come first."""
    least = nlargest(most, filter(None, scores))[-1:] or [math.inf]
    best = [
        (score, ends[number], number) for number, score in enumerate(scores) if score >= least[0]
    ]
    return [number for *_, number in sorted(best, reverse=True)[:most]]


def length_norms(sizes: Sequence[int]) -> list[float]:
    """Return the divisors for counts of items, for conversations of these sizes."""
    average = sum(sizes) / max(1, len(sizes)) or 1.0
    constant, slope = (
        CONVERSATION_K * (1 - CONVERSATION_B),
        CONVERSATION_K * CONVERSATION_B / average,
    )
    return [constant + slope * size for size in sizes]


def _range_of(items: list[int], table: ConversationTable) -> slice:
    if not items:
        return slice(0, 0)
    return slice(
        max(0, bisect_right(table.starts, items[0]) - 1), bisect_right(table.starts, items[-1])
    )


def _counts(items: list[int], table: ConversationTable, within: slice) -> list[int]:
    """Count how many of `items` each of these conversations has.

    Most have one or none, which needs no search for the last one. For the others, only the next
    items are searched; searching all items takes two to three times as long."""
    lengths = table.counts[within]
    ends = [*table.starts[within.start + 1 : within.stop + 1], _BEHIND]
    padded = items + [_BEHIND] * (max(lengths, default=0) + 2)
    at = bisect_left(items, table.starts[within.start])
    return [
        0
        if padded[at] >= end
        else 1
        if padded[at := at + 1] >= end
        else 1 - at + (at := bisect_left(padded, end, at + 1, at + length))
        for end, length in zip(ends, lengths)
    ]


def entry_score(counts: Iterable[tuple[float, float]], size: float, average_size: float) -> float:
    """Return the BM25 score of an entry of `size` terms.

    `counts` has the weight and the frequency of each part."""
    norm = ENTRY_K * (1 - ENTRY_B + ENTRY_B * size / average_size)
    return sum([weight * count * (ENTRY_K + 1) / (count + norm) for weight, count in counts])


def standing_together(neighbours: Sequence[str], terms: str) -> float:
    """Return the share of `neighbours` that are also neighbours in a text.

    They are pairs of successive terms of the query. A pair has spaces around and between its terms,
    and so has the text of all `terms`."""
    return sum([pair in terms for pair in neighbours]) / len(neighbours) if neighbours else 0.0


def shares(scores: Mapping[T, float]) -> dict[T, float]:
    """Return each score as a share of the best."""
    best = max(scores.values(), default=0.0) or 1.0
    return {key: score / best for key, score in scores.items()}


def recency(age: int) -> float:
    """Return the bonus for a conversation that ended so many milliseconds before the latest one."""
    return RECENCY * math.exp(-math.log(2) * age / RECENCY_HALF_LIFE)


def closeness(moment: int, times: Sequence[NamedTime]) -> float:
    """Return how close a moment is to the nearest time: 1.0 within it, less further away.

    The moment is in milliseconds since 1970."""
    return max(
        [
            math.pow(2.0, -max(begin - moment, moment - end, 0) / half_life)
            for begin, end, half_life in times
        ]
    )
