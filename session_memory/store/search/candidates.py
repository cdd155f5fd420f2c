"""Which of the items that were found are shown: the best of the best conversations."""

from __future__ import annotations

from bisect import bisect_right
from heapq import nlargest
from typing import NamedTuple

from ...system.sqlite import fetch
from ..sqlite.filters import CONVERSATION_COLUMNS, where
from ..sqlite.items import ids_of, items_of, text_starts
from ..sqlite.schema import ITEM_BITS
from ..values import Conversation, Filter, Hit
from .query import contains, literal_spans, occurrences
from .ranking import conversation_score, entry_score, fused, promising_files
from .snippet import Span, excerpts, snippet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from apsw import Connection

    from .query import Query
    from .results import QueryPostings
    from .terms import Terms

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
    """A conversation: its id, its size, when it ended, and the items in it that were found, the best first."""

    id: int
    text_bytes: int
    last_message_at: int
    items: list[int]
    counts: list[int]


class Candidates:
    """Ranks what was found for a query. `hits` returns what is shown."""

    def __init__(
        self, connection: Connection, terms: Terms, asked: Query, found: QueryPostings, wanted: Filter
    ) -> None:
        self._connection = connection
        self._terms = terms
        self._asked = asked
        self._found = found
        self._wanted = wanted
        self._having = [set(posting.items) for posting in found.postings]
        self._scores: dict[int, float] = {}

    def hits(self) -> list[Hit]:
        """The best item of each of the best conversations; more of each where there are but few."""
        places = self._places() if any(self._having) else []
        if not places:
            return []
        self._read(places)
        ranked = self._ranked(places)[: self._wanted.limit]
        chosen = [(place, place.items[0], score) for place, score in ranked]
        if len(ranked) <= FEW:
            more = [(place, item, score) for place, score in ranked for item in place.items[1:EACH]]
            chosen += more[: self._wanted.limit - len(chosen)]
        return self._shown(chosen)

    def _candidates(self) -> set[int] | None:
        """The items that have all that is required; None if nothing is."""
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
        """Of the candidates, the newest, those whose text has the phrases, and none that is unwanted."""
        kept = set()
        newest = nlargest(MOST_CHECKED, candidates)
        for item, head in text_starts(self._connection, newest, CHECKED_CHARACTERS).items():
            terms = self._terms.of(head.text)
            if all(contains(terms, phrase) for phrase in phrases) and not any(
                contains(terms, phrase) for phrase in self._asked.unwanted_phrases
            ):
                kept.add(item)
        return kept

    def _places(self) -> list[ConversationMatch]:
        """The conversations that fit the filter, in the files that promise most, with the items that they have."""
        found, scores, candidates = self._found, self._scores, self._candidates()
        files = promising_files(
            found.postings, found.weights, candidates, ITEM_BITS, max(MOST_FILES, 2 * self._wanted.limit)
        )
        firsts, lasts, places = self._places_in(files)
        for number, (posting, weight) in enumerate(zip(found.postings, found.weights)):
            for item in [item for item in posting.items if item >> ITEM_BITS in files]:
                at = bisect_right(firsts, item) - 1
                if at < 0 or item > lasts[at]:
                    continue  # of a conversation that the filter leaves out
                places[at].counts[number] += 1
                if item in scores:
                    scores[item] += weight.entry
                elif candidates is None or item in candidates:
                    scores[item] = weight.entry
                    places[at].items.append(item)
        for place in places:
            place.items.sort(key=lambda item: (scores[item], -item), reverse=True)
        return [place for place in places if place.items]

    def _places_in(self, files: set[int]) -> tuple[list[int], list[int], list[ConversationMatch]]:
        """The conversations of these files: where each begins, where it ends, and what it is."""
        condition, values = where(self._wanted)
        # CROSS JOIN has SQLite begin with the few files, not with all that fit the filter.
        sql = (
            "SELECT c.first_item, c.last_item, c.id, c.text_bytes, coalesce(c.last_message_at, 0) "
            "FROM memory_conversations AS c CROSS JOIN memory_file_states AS f ON f.id = c.file_id "
            f"WHERE {condition} AND c.file_id IN carray(?) ORDER BY c.file_id, c.first_item"
        )
        rows = fetch(self._connection, sql, (*values, ids_of(files)))
        number = len(self._found.parts)
        places = [ConversationMatch(id, size, ended, [], [0] * number) for _, _, id, size, ended in rows]
        return [row[0] for row in rows], [row[1] for row in rows], places

    def _read(self, places: list[ConversationMatch]) -> None:
        """Replaces the scores of the best items by what their texts tell, and sorts the items by them."""
        candidates = [item for place in places for item in place.items[:EACH]]
        is_everything = all(posting.is_complete for posting in self._found.postings)
        most = MOST_READ_OF_FEW if is_everything else MOST_READ
        best = nlargest(most, candidates, key=lambda item: (self._scores[item], item))
        for item, head in text_starts(self._connection, best, READ_CHARACTERS).items():
            terms = self._terms.of(head.text)
            often = [
                occurrences(part, head.text, terms) if item in having else 0.0
                for part, having in zip(self._found.parts, self._having)
            ]
            score = entry_score(zip(self._found.weights, often), head.size / BYTES_A_TERM, self._found.average_terms)
            self._scores[item] = score * TOOL_SHARE if head.is_tool else score
        for place in places:
            place.items[:EACH] = sorted(place.items[:EACH], key=lambda item: self._scores[item], reverse=True)

    def _ranked(self, places: list[ConversationMatch]) -> list[tuple[ConversationMatch, float]]:
        weights = self._found.weights
        average = sum([place.text_bytes for place in places]) / len(places) or 1.0
        latest = max([place.last_message_at for place in places])
        by_id = {place.id: place for place in places}
        scores = fused(
            {place.id: self._scores[place.items[0]] for place in places},
            {place.id: conversation_score(zip(weights, place.counts), place.text_bytes, average) for place in places},
            {place.id: latest - place.last_message_at for place in places},
        )
        ranked = sorted(scores.items(), key=lambda ranked: (ranked[1], ranked[0]), reverse=True)
        return [(by_id[id], score) for id, score in ranked]

    def _shown(self, chosen: list[tuple[ConversationMatch, int, float]]) -> list[Hit]:
        entries = items_of(self._connection, [item for _, item, _ in chosen])
        conversations = self._conversations({place.id for place, _, _ in chosen})
        weights = {
            term: weight.entry for part, weight in zip(self._found.parts, self._found.weights) for term in part.terms
        }
        found = excerpts([entries[item].text for _, item, _ in chosen], weights, self._spans)
        return [
            Hit(entries[item], conversations[place.id], *snippet(excerpt, weights, self._spans), round(score, 4))
            for (place, item, score), excerpt in zip(chosen, found)
        ]

    def _conversations(self, ids: set[int]) -> dict[int, Conversation]:
        sql = (
            f"SELECT {CONVERSATION_COLUMNS} FROM memory_conversations AS c "
            "JOIN memory_file_states AS f ON f.id = c.file_id WHERE c.id IN carray(?)"
        )
        rows = self._connection.execute(sql, (ids_of(ids),))
        return {row[0]: Conversation._make(row) for row in rows}

    def _spans(self, text: str) -> list[Span]:
        """The terms of a text; of a part that is but the beginning of terms, that beginning; a literal part itself."""
        spans = self._terms.spans(text)
        for part in self._found.parts:
            if part.is_prefix:
                first = part.terms[0]
                spans = [(at, at + 1, first) if term[0] == first else (at, end, term) for at, end, term in spans]
            elif part.is_literal:
                spans += literal_spans(text, part.terms[0])
        return spans
