"""Ranks the items that were found, and the conversations that they are in, and makes hits of the best."""

from __future__ import annotations

from bisect import bisect_right
from heapq import nlargest
from typing import NamedTuple

from ..values import ITEM_BITS, Filter, Hit
from .query import contains, literal_spans, occurrences
from .ranking import conversation_score, entry_score, fused, promising_files
from .snippet import Span, excerpts, snippet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .index import ConversationRange, SearchIndex
    from .postings import QueryPostings
    from .query import Query

MOST_FILES = 30
MOST_READ = 24  # items whose texts are read to rank them
MOST_READ_OF_FEW = 64  # the same where no part is so common that its items were cut off
MOST_CHECKED = 400  # items whose texts are read for phrases
READ_CHARACTERS = 1500
CHECKED_CHARACTERS = 100_000
BYTES_A_TERM = 6
TOOL_SHARE = 0.8  # what somebody said is worth more than the same words in a command
FEW = 5  # conversations: where no more are found, up to EACH of their entries are shown
EACH = 3


class ConversationMatch(NamedTuple):
    """A conversation in which something was found: its id, its size, when it ended, the items found, the best first."""

    id: int
    text_bytes: int
    last_message_at: int
    items: list[int]
    counts: list[int]  # of its items, how many have each part of the query

    @classmethod
    def of(cls, conversation: ConversationRange, parts: int) -> ConversationMatch:
        """One in which nothing was found yet."""
        return cls(conversation.conversation_id, conversation.text_bytes, conversation.last_message_at, [], [0] * parts)


class Candidates:
    """The items that were found for a query, with their scores; `hits` returns what is shown."""

    def __init__(self, index: SearchIndex, asked: Query, found: QueryPostings, wanted: Filter) -> None:
        self._index = index
        self._terms = index.terms
        self._asked = asked
        self._found = found
        self._wanted = wanted
        self._having = [set(posting.items) for posting in found.postings]
        self._scores: dict[int, float] = {}

    def hits(self) -> list[Hit]:
        """The best item of each of the best conversations; more of each where there are but few."""
        matches = self._matches() if any(self._having) else []
        if not matches:
            return []
        self._read(matches)
        ranked = self._ranked(matches)[: self._wanted.limit]
        chosen = [(match, match.items[0], score) for match, score in ranked]
        if len(ranked) <= FEW:
            more = [(match, item, score) for match, score in ranked for item in match.items[1:EACH]]
            chosen += more[: self._wanted.limit - len(chosen)]
        return self._shown(chosen)

    def _candidates(self) -> set[int] | None:
        """The items that have all required parts and no unwanted phrase; None if the query has neither."""
        found = self._found
        required = [having for part, having in zip(found.parts, self._having) if part.is_required]
        phrases = [part.terms for part in found.parts if part.is_phrase]
        if not required and not self._asked.unwanted_phrases:
            return None
        candidates = set.intersection(*required) if required else set().union(*self._having)
        if phrases or self._asked.unwanted_phrases:
            return self._checked(candidates, phrases)
        return candidates

    def _checked(self, candidates: set[int], phrases: list[tuple[str, ...]]) -> set[int]:
        """The candidates whose text has the phrases and no unwanted one; only the newest MOST_CHECKED are read."""
        kept = set()
        newest = nlargest(MOST_CHECKED, candidates)
        for item, head in self._index.text_starts(newest, CHECKED_CHARACTERS).items():
            terms = self._terms.of(head.text)
            if all(contains(terms, phrase) for phrase in phrases) and not any(
                contains(terms, phrase) for phrase in self._asked.unwanted_phrases
            ):
                kept.add(item)
        return kept

    def _matches(self) -> list[ConversationMatch]:
        """The conversations that fit the filter, of the most promising files, with the items found in them."""
        found, scores, candidates = self._found, self._scores, self._candidates()
        files = promising_files(found.postings, found.weights, candidates, max(MOST_FILES, 2 * self._wanted.limit))
        ranges = self._index.conversations_in(files, self._wanted)
        firsts = [one.first_item for one in ranges]
        matches = [ConversationMatch.of(one, len(found.parts)) for one in ranges]
        for number, (posting, weight) in enumerate(zip(found.postings, found.weights)):
            for item in [item for item in posting.items if item >> ITEM_BITS in files]:
                at = bisect_right(firsts, item) - 1
                if at < 0 or item > ranges[at].last_item:
                    continue  # of a conversation that the filter leaves out
                matches[at].counts[number] += 1
                if item in scores:
                    scores[item] += weight.entry
                elif candidates is None or item in candidates:
                    scores[item] = weight.entry
                    matches[at].items.append(item)
        for match in matches:
            match.items.sort(key=lambda item: (scores[item], -item), reverse=True)
        return [match for match in matches if match.items]

    def _read(self, matches: list[ConversationMatch]) -> None:
        """Reads the texts of the best items, scores these by how often they have each part, and sorts the items."""
        candidates = [item for match in matches for item in match.items[:EACH]]
        is_everything = all(posting.is_complete for posting in self._found.postings)
        most = MOST_READ_OF_FEW if is_everything else MOST_READ
        best = nlargest(most, candidates, key=lambda item: (self._scores[item], item))
        for item, head in self._index.text_starts(best, READ_CHARACTERS).items():
            terms = self._terms.of(head.text)
            often = [
                occurrences(part, head.text, terms) if item in having else 0.0
                for part, having in zip(self._found.parts, self._having)
            ]
            score = entry_score(zip(self._found.weights, often), head.size / BYTES_A_TERM, self._found.average_terms)
            self._scores[item] = score * TOOL_SHARE if head.is_tool else score
        for match in matches:
            match.items[:EACH] = sorted(match.items[:EACH], key=lambda item: self._scores[item], reverse=True)

    def _ranked(self, matches: list[ConversationMatch]) -> list[tuple[ConversationMatch, float]]:
        weights = self._found.weights
        average = sum([match.text_bytes for match in matches]) / len(matches) or 1.0
        latest = max([match.last_message_at for match in matches])
        by_id = {match.id: match for match in matches}
        scores = fused(
            {match.id: self._scores[match.items[0]] for match in matches},
            {match.id: conversation_score(zip(weights, match.counts), match.text_bytes, average) for match in matches},
            {match.id: latest - match.last_message_at for match in matches},
        )
        ranked = sorted(scores.items(), key=lambda ranked: (ranked[1], ranked[0]), reverse=True)
        return [(by_id[id], score) for id, score in ranked]

    def _shown(self, chosen: list[tuple[ConversationMatch, int, float]]) -> list[Hit]:
        entries = self._index.items([item for _, item, _ in chosen])
        conversations = self._index.conversations({match.id for match, _, _ in chosen})
        weights = {
            term: weight.entry for part, weight in zip(self._found.parts, self._found.weights) for term in part.terms
        }
        found = excerpts([entries[item].text for _, item, _ in chosen], weights, self._spans)
        return [
            Hit(entries[item], conversations[match.id], *snippet(excerpt, weights, self._spans), round(score, 4))
            for (match, item, score), excerpt in zip(chosen, found)
        ]

    def _spans(self, text: str) -> list[Span]:
        """The terms of a text as they are to be marked: of a prefix part only its character, and literal parts."""
        spans = self._terms.spans(text)
        for part in self._found.parts:
            if part.is_prefix:
                first = part.terms[0]
                spans = [(at, at + 1, first) if term[0] == first else (at, end, term) for at, end, term in spans]
            elif part.is_literal:
                spans += literal_spans(text, part.terms[0])
        return spans
