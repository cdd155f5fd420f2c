"""The memories that a team's members share, listed and searched like one's own."""

from __future__ import annotations

from typing import Any

from ...text.characters import plain
from ..search.query import LONGEST, parse, whole_expression
from ..search.ranking import idf
from ..search.terms import Terms
from ..sqlite.memory_index import IndexedMemory, MemoryFilter, Origin
from ..sqlite.search_index import terms_of
from ..values import ITEM_BITS
from .engine import TeamStore
from .expressions import items_of
from .postings import clipped
from .rows import labels, time_in

MOST_HAVING = 20_000  # memories that have a term: the newest
_K, _B = 1.2, 0.75  # of BM25, as in FTS5
# A memory, and the conversation of the team that shows its source (0: none): the one with its message, else the last
# one of its session up to its time.
_MEMORIES = f"""
    SELECT m.home, m.id, m.kind, m.title, m.content, m.subject, m.quote, {time_in("m.at")}, m.session_id, m.message,
        m.strategy, m.cwd, m.doubts, m.owner || '@' || m.machine, coalesce((
            SELECT c.session << {ITEM_BITS} | c.first_number
            FROM session AS s JOIN conversation AS c ON c.session = s.id
            WHERE s.owner = m.owner AND s.machine = m.machine AND s.home = m.home AND s.session_id = m.session_id
                AND CASE WHEN m.message > 0 THEN m.message - 1 BETWEEN c.first_number AND c.last_number
                    ELSE m.at IS NULL OR c.first_at <= m.at END
            ORDER BY c.first_at DESC NULLS LAST LIMIT 1
        ), 0)
    FROM memory AS m
"""
_LATEST = f"ORDER BY {time_in('m.at')} DESC NULLS LAST, m.number DESC"
_LENGTH = "greatest(m.term_count, 1)"
_OFTEN = 1000  # at most, in a memory


class TeamMemories:
    """The memories that the member of `store` sees: their own of all machines, and those shared with the team. Read
    like a MemoryIndex; a team has only current ones, of trusted sessions. Methods raise TeamError."""

    def __init__(self, store: TeamStore) -> None:
        self._store = store

    def memories(self, wanted: MemoryFilter) -> list[IndexedMemory]:
        """Return the memories that fit, the latest first."""
        condition, values = _where(wanted)
        return self._memories(f"{condition} {_LATEST} LIMIT %s", [*values, _limit(wanted)])

    def beginning_with(self, id: str, homes: tuple[str, ...] | None) -> list[IndexedMemory]:
        """Return the memories whose id is, or begins with, `id`: one for each machine that has it."""
        return self._memories("(%s::text[] IS NULL OR m.home = ANY(%s)) AND starts_with(m.id, %s) " + _LATEST,
                              [homes and list(homes), homes and list(homes), id])  # fmt: skip

    def search(self, query: str, wanted: MemoryFilter) -> list[IndexedMemory]:
        """Return the memories that fit a query best, best first. Any text is a query."""
        import apsw

        terms = terms_of(apsw.Connection(":memory:"))
        expression = whole_expression(parse(query[:LONGEST], terms))
        if not expression:
            return []
        condition, values = _where(wanted)
        with self._store.asking(), self._store.connection.transaction():
            scores = self._scores(expression, terms)
            at = f"coalesce({time_in('m.at')}, 0)"
            sql = f"SELECT m.number, {at} FROM memory AS m WHERE m.number = ANY(%s) AND {condition}"
            found = self._store.connection.execute(sql, [list(scores), *values]).fetchall()
            best = sorted(found, key=lambda row: (scores[row[0]], row[1], row[0]), reverse=True)
            numbers = [number for number, _ in best][: _limit(wanted)]
            return self._memories("m.number = ANY(%s) ORDER BY array_position(%s, m.number)", [numbers, numbers])

    def _scores(self, expression: str, terms: Terms) -> dict[int, float]:
        """Return the BM25 score of each memory that matches an expression."""
        having: dict[tuple[str, bool], dict[int, tuple[float, int]]] = {}

        def postings(term: str, is_prefix: bool, _: list[int] | None = None) -> list[int]:
            if (term, is_prefix) not in having:
                having[term, is_prefix] = self._having(term, is_prefix)
            return sorted(having[term, is_prefix])

        matching = items_of(expression, terms, postings)
        sql = f"SELECT count(*), coalesce(avg({_LENGTH}), 1)::float8 FROM memory AS m"
        total, average = self._store.connection.execute(sql).fetchone() or (0, 1.0)
        scores = dict.fromkeys(matching, 0.0)
        for found in having.values():
            worth = idf(total, len(found)) * (_K + 1)
            for number in found.keys() & scores.keys():
                often, length = found[number]
                scores[number] += worth * often / (often + _K * (1 - _B + _B * length / average))
        return scores

    def _having(self, term: str, is_prefix: bool) -> dict[int, tuple[float, int]]:
        """Return how often each memory has a term, or the terms with this prefix, and how many terms it has in all."""
        condition, values = "p.term = %s", [clipped(term)]
        if is_prefix:
            condition, values = "p.term >= %s AND p.term < %s", [term, term[:-1] + chr(ord(term[-1]) + 1)]
        sql = (
            f"SELECT p.memory, sum(least(greatest(p.frequency, 0), {_OFTEN}))::float8, {_LENGTH} "
            f"FROM memory_posting AS p JOIN memory AS m ON m.number = p.memory WHERE {condition} "
            f"GROUP BY p.memory, m.term_count ORDER BY p.memory DESC LIMIT {MOST_HAVING}"
        )
        return {number: (often, length) for number, often, length in self._store.connection.execute(sql, values)}

    def _memories(self, condition: str, values: list[Any]) -> list[IndexedMemory]:
        with self._store.asking():
            rows = self._store.connection.execute(f"{_MEMORIES} WHERE {condition}", values).fetchall()
        return [_memory(row) for row in rows]


def _memory(row: tuple[Any, ...]) -> IndexedMemory:
    home, id, kind, title, _, subject, _, at, session, message, strategy, cwd, _, who, conversation = labels(row)
    text, quote, doubts = plain(row[4]), plain(row[6]), labels(row[12])
    origin = Origin(at, session, conversation, strategy, message, cwd)
    return IndexedMemory(home, "", id, kind, title, text, subject, quote, (origin,), doubts=tuple(doubts), who=who)


def _limit(wanted: MemoryFilter) -> int | None:
    return wanted.limit if wanted.limit >= 0 else None


def _where(wanted: MemoryFilter) -> tuple[str, list[Any]]:
    conditions = ["NOT %s"]
    values: list[Any] = [bool(wanted.is_untrusted)]
    if wanted.homes is not None:
        conditions.append("m.home = ANY(%s)")
        values.append(list(wanted.homes))
    if wanted.kinds:
        conditions.append("m.kind = ANY(%s)")
        values.append(list(wanted.kinds))
    return " AND ".join(conditions), values
