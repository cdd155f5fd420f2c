"""How well something fits a query: BM25 for entries and for conversations, and what is added to it. Pure.

The figures were found by measuring (docs/search.md). A conversation's score counts its entries that have a term, an
entry's how often the term is in it.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import Counter
from heapq import nlargest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import TypeVar

    from .index import ConversationTable

    T = TypeVar("T")

ENTRY_K, ENTRY_B = 0.9, 0.4
CONVERSATION_K, CONVERSATION_B = 4.0, 0.75
RECENCY = 0.02  # what being the latest is worth against being the best: it decides between equals
RECENCY_HALF_LIFE = 30 * 24 * 3600 * 1000  # milliseconds
AT_THE_TIME = 1.0  # what being of the time that the query names is worth
_BEHIND = 1 << 63  # all ids
VERBATIM = 3.0  # and what having the whole query as it stands is: it comes first


def idf(total: int, having: int) -> float:
    """What having something is worth that `having` of `total` have."""
    return math.log(1 + max(0.0, total - having + 0.5) / (min(having, total) + 0.5))


def conversation_scores(
    table: ConversationTable, postings: Iterable[list[int]], weights: Iterable[float]
) -> list[float]:
    """BM25 of each conversation of the table: how many of its items are in each of `postings`, and what that is
    worth."""
    starts, norms = table.starts, table.norms
    scores = [0.0] * len(starts)
    for items, weight in zip(postings, weights):
        worth = weight * (CONVERSATION_K + 1)
        within = _range_of(items, table)
        if 2 * len(items) <= within.stop - within.start:
            for number, count in Counter([bisect_right(starts, item) - 1 for item in items]).items():
                scores[number] += worth * count / (count + norms[number])
        else:
            scores[within] = [
                score + worth * count / (count + norm) if count else score
                for score, count, norm in zip(scores[within], _counts(items, table, within), norms[within])
            ]
    return scores


def conversations_of(items: list[int], table: ConversationTable) -> set[int]:
    """The numbers of the conversations that have some of these items."""
    within = _range_of(items, table)
    if 2 * len(items) <= within.stop - within.start:
        return {bisect_right(table.starts, item) - 1 for item in items}
    counts = _counts(items, table, within)
    return {number for number, count in enumerate(counts, within.start) if count}


def best_of(scores: Sequence[float], ends: Sequence[int], most: int) -> list[int]:
    """The numbers of the `most` highest scores, the highest first; of equals those that ended later. Without zeros."""
    least = nlargest(most, filter(None, scores))[-1:] or [math.inf]
    found = [(score, ends[number], number) for number, score in enumerate(scores) if score >= least[0]]
    return [number for *_, number in sorted(found, reverse=True)[:most]]


def length_norms(sizes: Sequence[int]) -> list[float]:
    """For conversations of these sizes, what a count of items has to be set against."""
    average = sum(sizes) / max(1, len(sizes)) or 1.0
    constant, slope = CONVERSATION_K * (1 - CONVERSATION_B), CONVERSATION_K * CONVERSATION_B / average
    return [constant + slope * size for size in sizes]


def _range_of(items: list[int], table: ConversationTable) -> slice:
    """The conversations from that of the first to that of the last of these items."""
    if not items:
        return slice(0, 0)
    return slice(max(0, bisect_right(table.starts, items[0]) - 1), bisect_right(table.starts, items[-1]))


def _counts(items: list[int], table: ConversationTable, within: slice) -> list[int]:
    """How many of `items` each of these conversations has. Most have none of them, or one: that shows without looking
    for where theirs end, which is looked for only among as many as the conversation has. Looking for each, among all
    items, takes two to three times as long."""
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
    """BM25 of an entry of `size` terms: `counts` says what each part is worth, and how often the entry has it."""
    norm = ENTRY_K * (1 - ENTRY_B + ENTRY_B * size / average_size)
    return sum([weight * count * (ENTRY_K + 1) / (count + norm) for weight, count in counts])


def standing_together(neighbours: Sequence[str], terms: str) -> float:
    """The share of `neighbours`, pairs of terms that follow each other in the query, that follow each other in a text
    too. A pair has a space around and between its terms, as all `terms` of the text have."""
    return sum([pair in terms for pair in neighbours]) / len(neighbours) if neighbours else 0.0


def shares(scores: Mapping[T, float]) -> dict[T, float]:
    """Each score as a share of the highest."""
    best = max(scores.values(), default=0.0) or 1.0
    return {one: score / best for one, score in scores.items()}


def recency(age: int) -> float:
    """What having ended so many milliseconds before the latest is worth."""
    return RECENCY * math.exp(-math.log(2) * age / RECENCY_HALF_LIFE)
