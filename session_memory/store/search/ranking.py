"""How well something fits a query: BM25 for entries and for conversations, and the sum of both. Pure.

The figures were found by measuring (docs/search.md). A conversation's score counts its entries that have a term, an
entry's how often the term is in it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ..values import ITEM_BITS
from .index import Posting

PASSAGE_BITS = 5  # 32 items that follow each other: about what a conversation is, without looking up which
ENTRY_K, ENTRY_B = 0.9, 0.4
CONVERSATION_K, CONVERSATION_B = 2.0, 0.75
RECENCY = 0.02  # what being the latest is worth against being the best: it decides between equals
RECENCY_HALF_LIFE = 30 * 24 * 3600 * 1000  # milliseconds


class Weight(NamedTuple):
    """What having a part is worth: its inverse document frequency among entries, and among conversations."""

    entry: float
    conversation: float


def weigh(posting: Posting, having: int, total: int) -> Weight:
    """The weight of a part that `having` of `total` items have; `posting` may hold only the newest of these."""
    if not posting.items:
        return Weight(0.0, 0.0)
    passages = len({item >> PASSAGE_BITS for item in posting.items}) * having // len(posting.items)
    entry = _idf(total, having)
    return Weight(entry, (entry + _idf((total >> PASSAGE_BITS) + 1, passages)) / 2)


def _idf(total: int, having: int) -> float:
    return math.log(1 + max(0.0, total - having + 0.5) / (min(having, total) + 0.5))


def promising_files(
    postings: list[Posting], weights: Iterable[Weight], candidates: set[int] | None, limit: int
) -> set[int]:
    """The `limit` files that are likely to have the best conversations, by how many of their items have each part, and
    whether one has several; of equals the newest. `candidates` are the items that may be shown, None for all."""
    scores: dict[int, float] = {}
    for posting, (_, weight) in zip(postings, weights):
        for file, count in Counter([item >> ITEM_BITS for item in posting.items]).items():
            scores[file] = scores.get(file, 0.0) + weight * count * (CONVERSATION_K + 1) / (count + CONVERSATION_K)
    if candidates is not None:
        files = {item >> ITEM_BITS for item in candidates}
        scores = {file: score for file, score in scores.items() if file in files}
    if len(scores) <= limit:
        return set(scores)
    for file in {item >> ITEM_BITS for item in _with_several(postings)} & scores.keys():
        scores[file] *= 1.5
    return set(sorted(scores, key=scores.__getitem__, reverse=True)[:limit])


def _with_several(postings: Iterable[Posting]) -> set[int]:
    """The items that have more than one part."""
    seen: set[int] = set()
    several: set[int] = set()
    for posting in postings:
        items = set(posting.items)
        several |= seen & items
        seen |= items
    return several


def conversation_score(counts: Iterable[tuple[Weight, int]], size: int, average_size: float) -> float:
    """BM25 of a conversation of `size` bytes: `counts` says of how many of its entries have each part."""
    norm = CONVERSATION_K * (1 - CONVERSATION_B + CONVERSATION_B * size / average_size)
    return sum([weight.conversation * count * (CONVERSATION_K + 1) / (count + norm) for weight, count in counts])


def entry_score(counts: Iterable[tuple[Weight, float]], size: float, average_size: float) -> float:
    """BM25 of an entry of `size` terms: `counts` says how often it has each part."""
    norm = ENTRY_K * (1 - ENTRY_B + ENTRY_B * size / average_size)
    return sum([weight.entry * count * (ENTRY_K + 1) / (count + norm) for weight, count in counts])


def fused(
    entries: Mapping[int, float], conversations: Mapping[int, float], ages: Mapping[int, int]
) -> dict[int, float]:
    """The score of each conversation: that of its best entry and its own, each as a share of the highest of all, and a
    little for being recent. `ages` are in milliseconds before the latest of them."""
    best_entry = max(entries.values(), default=0.0) or 1.0
    best_conversation = max(conversations.values(), default=0.0) or 1.0
    return {
        one: entries[one] / best_entry
        + conversations[one] / best_conversation
        + RECENCY * 0.5 ** (ages[one] / RECENCY_HALF_LIFE)
        for one in conversations
    }
