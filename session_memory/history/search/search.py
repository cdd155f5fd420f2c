"""Search: from a query to the best entries, each in its conversation, with a snippet.

The index only tells which items have a term, and this ranks the conversations. Then the texts of
the best items in the best conversations are read, to count terms and to check phrases.
"""

from __future__ import annotations

import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from heapq import nlargest
from itertools import pairwise
from operator import attrgetter

from ...common.text.format import one_line, shorten
from ...common.text.letters import Aligned
from ...common.text.sanitize import beginning, for_prompt, plain
from ..store.values import Filter, Hit, Hits
from . import ranking
from ._time_words import words_of_times
from .index import ConversationRange, SearchIndex
from .postings import (
    CHECKED_CHARACTERS,
    WHOLE,
    QueryPostings,
    both,
    either,
    has,
    in_sequence,
    postings_of,
    postings_of_literal,
    scope_of,
)
from .query import (
    LONGEST,
    Query,
    contains,
    literal_spans,
    occurrences,
    parse,
    relaxed,
    verbatim_form,
)

# items are ranked for this many conversations; reading more changes nothing
MOST_CONVERSATIONS = 50
EACH = 3  # items of each that are read to rank them
MOST_READ = 100
ENOUGH = 200  # items with a phrase; then no older ones are read
READ_CHARACTERS = 1500
BYTES_A_TERM = 6
TOOL_SHARE = 0.9  # the weight of a message against the same words in a command
FEW = 5  # with fewer conversations than this, up to EACH entries of each one are shown
SNIPPET_CHARACTERS = 200
_BEFORE = 60  # characters before the first matching word
_STEP = 2000
_MOST = 40_000
Span = tuple[int, int, str]
Spans = Callable[[str], list[Span]]


def search(
    index: SearchIndex, query: str, wanted: Filter, *, now: float | None = None, whole: int = WHOLE
) -> Hits:
    """Return the entries that fit `query`, asked at `now` (seconds since 1970), the best first.

    Up to `whole` items, nothing is omitted. Raises the errors of the engine's driver."""
    text = plain(query[:LONGEST]).strip()
    parsed = parse(text, index.terms)
    times = _times_in(text, time.time() if now is None else now)
    with index.snapshot():
        scope = scope_of(index, wanted)
        if parsed.parts or parsed.verbatim:
            postings = postings_of(index, parsed, scope, wanted, whole)
        else:
            postings = postings_of_literal(index, text, scope, wanted)
        hits = Candidates(index, parsed, postings, wanted, times).hits()
        if not hits and any(part.is_required for part in parsed.parts):
            parsed, unchecked = relaxed(parsed), hits.unchecked
            hits = Candidates(
                index, parsed, postings_of(index, parsed, scope, wanted, whole), wanted, times
            ).hits()
            hits.unchecked = max(hits.unchecked, unchecked)
    return hits


def _times_in(text: str, now: float) -> list[ranking.NamedTime]:
    if not words_of_times(text):
        return []
    from ._dates import times_in  # imported late: few questions name a time

    return times_in(text, now)


class Candidates:
    """The items found for a query; `hits` returns the ones to show.

    `times` are the times that the query names."""

    def __init__(
        self,
        index: SearchIndex,
        query: Query,
        postings: QueryPostings,
        wanted: Filter,
        times: Sequence[ranking.NamedTime],
    ) -> None:
        self._index = index
        self._terms = index.terms
        self._asked = query
        self._found = postings
        self._wanted = wanted
        self._times = times
        self._scores: dict[int, float] = {}
        self._unchecked = 0
        self._verbatim = self._saying_it(postings.perhaps_verbatim)
        self._allowed = self._those_allowed()

    def hits(self) -> Hits:
        """Return the best item of each of the best conversations, and more of each if conversations
        are few."""
        scores = self._conversations()
        items_by_conversation = {
            conversation: self._items_of(conversation)
            for conversation in self._index.conversations_at(scores, self._wanted)
        }
        items = {conversation: best for conversation, best in items_by_conversation.items() if best}
        self._read(
            [
                item
                for conversation in sorted(items, key=attrgetter("order"), reverse=True)
                for item in items[conversation]
            ]
        )
        for best in items.values():
            best.sort(key=lambda item: (item in self._verbatim, self._scores[item]), reverse=True)
        of_items = ranking.shares(
            {conversation: self._scores[best[0]] for conversation, best in items.items()}
        )
        totals = {
            conversation: scores[conversation.first_item] + share
            for conversation, share in of_items.items()
        }
        ranked = sorted(
            totals,
            key=lambda conversation: (totals[conversation], conversation.order),
            reverse=True,
        )[: self._wanted.limit]
        chosen = [(conversation, items[conversation][0]) for conversation in ranked]
        if len(ranked) <= FEW:
            more = [
                (conversation, item) for conversation in ranked for item in items[conversation][1:]
            ]
            chosen += more[: self._wanted.limit - len(chosen)]
        return self._shown(
            [
                (conversation.conversation_id, item, totals[conversation])
                for conversation, item in chosen
            ]
        )

    def _saying_it(self, items: Sequence[int]) -> set[int]:
        """Return the items whose text contains the query as typed.

        If there are none and the query excludes nothing, return the items whose beginning has the
        same terms in sequence."""
        verbatim = self._asked.verbatim
        if not verbatim:
            return set()
        heads = self._index.text_starts(items, CHECKED_CHARACTERS)
        literally = {
            item for item, head in heads.items() if verbatim.text in verbatim_form(head.text)
        }
        if literally or self._asked.unwanted or self._asked.unwanted_phrases:
            return literally
        return {
            item
            for item, head in heads.items()
            if contains(self._terms.of(head.text[:READ_CHARACTERS]), verbatim.terms)
        }

    def _those_allowed(self) -> list[int] | None:
        """Return the items with all required parts and no unwanted phrase.

        Return None if the query has neither."""
        postings = self._found
        required = [
            having for part, having in zip(postings.parts, postings.postings) if part.is_required
        ]
        if not required and not self._asked.unwanted_phrases:
            return None
        allowed = (
            reduce(both, sorted(required, key=len))
            if required
            else reduce(either, [[], *postings.postings])
        )
        phrases = [part.terms for part in postings.parts if part.is_phrase]
        if phrases or self._asked.unwanted_phrases:
            allowed, self._unchecked = in_sequence(
                self._index, allowed, phrases, self._asked.unwanted_phrases, ENOUGH
            )
        return either(allowed, sorted(self._verbatim))

    def _conversations(self) -> dict[int, float]:
        """Return the best conversations, by first items, with the bonus for their best item."""
        postings, table = self._found, self._index.table()
        starts, ends = table.starts, table.ends
        scores = ranking.conversation_scores(table, postings.postings, postings.weights)
        best = max(scores, default=0.0) or 1.0
        verbatim = {bisect_right(starts, item) - 1 for item in self._verbatim}
        for number in verbatim:
            scores[number] += ranking.VERBATIM * best
        if self._times:
            at_the_time, times = ranking.AT_THE_TIME * best, self._times
            scores = [
                score + at_the_time * ranking.closeness(end, times) if score else 0.0
                for score, end in zip(scores, ends)
            ]
        if self._allowed is not None:
            every, scores = scores, [0.0] * len(scores)
            for number in ranking.conversations_of(self._allowed, table):
                scores[number] = every[number]
        chosen = ranking.best_of(scores, ends, max(MOST_CONVERSATIONS, 2 * self._wanted.limit))
        latest = max([ends[number] for number in chosen], default=0)
        return {
            starts[number]: scores[number] / best + ranking.recency(latest - ends[number])
            for number in chosen
        }

    def _items_of(self, conversation: ConversationRange) -> list[int]:
        """Return the EACH visible items of a conversation that have the most significant parts."""
        scores = {
            item: 0.0
            for item in self._verbatim
            if conversation.first_item <= item <= conversation.last_item
        }
        for items, weight in zip(self._found.postings, self._found.weights):
            first = bisect_left(items, conversation.first_item)
            for item in items[first : bisect_right(items, conversation.last_item, first)]:
                if self._allowed is None or has(self._allowed, item):
                    scores[item] = scores.get(item, 0.0) + weight
        self._scores.update(scores)
        return nlargest(
            EACH, scores, key=lambda item: (item in self._verbatim, scores[item], -item)
        )

    def _read(self, items: list[int]) -> None:
        """Read the texts of the best items, and score them.

        Of equal items, the first ones are read. The score depends on how often an item has each
        part, and on how much of the query it has in sequence."""
        postings = self._found
        of_query = [term for part in postings.parts for term in part.terms]
        neighbours = [f" {first} {second} " for first, second in pairwise(of_query)]
        best = nlargest(MOST_READ, items, key=self._scores.__getitem__)
        for item, head in self._index.text_starts(best, READ_CHARACTERS).items():
            terms = self._terms.of(head.text)
            often = [
                occurrences(part, head.text, terms) if has(posting, item) else 0.0
                for part, posting in zip(postings.parts, postings.postings)
            ]
            score = ranking.entry_score(
                zip(postings.weights, often), head.size / BYTES_A_TERM, postings.average_terms
            )
            score *= 1 + ranking.standing_together(neighbours, f" {' '.join(terms)} ")
            self._scores[item] = score * TOOL_SHARE if head.is_tool else score

    def _shown(self, chosen: list[tuple[int, int, float]]) -> Hits:
        entries = self._index.items([item for _, item, _ in chosen])
        conversations = self._index.conversations({id for id, _, _ in chosen})
        chosen = [
            choice for choice in chosen if choice[0] in conversations and choice[1] in entries
        ]
        weights = {
            term: weight
            for part, weight in zip(self._found.parts, self._found.weights)
            for term in part.terms
        }
        hits = []
        for id, item, score in chosen:
            shown = _snippet(entries[item].text, weights, self._spans)
            hits.append(Hit(entries[item], conversations[id], *shown, round(score, 4)))
        return Hits(hits, self._unchecked)

    def _spans(self, text: str) -> list[Span]:
        """Return the terms of a text to highlight, and literal parts.

        For a prefix part, only the prefix is highlighted."""
        spans = self._terms.spans(text)
        for part in self._found.parts:
            if part.words.is_prefix:
                first = part.terms[0]
                size = len(first)
                spans = [
                    (at, at + Aligned(text[at:end]).span(0, size)[1], first)
                    if term.startswith(first)
                    else (at, end, term)
                    for at, end, term in spans
                ]
            elif not part.words.each:
                spans += literal_spans(text, part.terms[0])
        return spans


def _snippet(
    text: str, weights: Mapping[str, float], spans: Spans
) -> tuple[str, tuple[tuple[int, int], ...]]:
    """Return the best part of a text for prompts, on one line, and the terms' positions in it.

    It has about SNIPPET_CHARACTERS, and as many of the terms in `weights` as possible. A position
    is a pair of start and end. `spans` finds the terms of a text."""
    begin = _best_start(text, weights, spans)
    if begin <= _BEFORE + 20:
        begin = 0
    else:  # at a word, some characters before
        begin = text.rfind(" ", begin - _BEFORE - 20, begin - _BEFORE) + 1 or begin - _BEFORE
    shown = shorten(
        one_line(for_prompt(beginning(text[begin:], 2 * SNIPPET_CHARACTERS))), SNIPPET_CHARACTERS
    )
    if len(text) > begin + 2 * SNIPPET_CHARACTERS and not shown.endswith("…"):
        shown += "…"
    if begin:
        shown = f"…{shown}"
    return shown, _merged([(at, end) for at, end, term in spans(shown) if term in weights])


def _merged(ranges: list[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Return `ranges` in order, with overlapping ones merged."""
    joined: list[tuple[int, int]] = []
    for start, end in ranges:
        if joined and start < joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return tuple(joined)


def _best_start(text: str, weights: Mapping[str, float], spans: Spans) -> int:
    """Return the start of the stretch with the heaviest terms, or 0.

    Of a long text, only the first step with any of the terms is searched."""
    for begin in range(0, min(len(text), _MOST), _STEP):
        hits = [span for span in spans(text[begin : begin + _STEP]) if span[2] in weights]
        best, best_start = -1.0, 0
        for number, (start, _, _) in enumerate(hits):  # each term counts once
            terms = {
                term
                for at, _, term in hits[number : number + 40]
                if at < start + SNIPPET_CHARACTERS - _BEFORE
            }
            weight = sum([weights[term] for term in terms])
            if weight > best + 1e-9:
                best, best_start = weight, start
        if hits:
            return begin + best_start
    return 0
