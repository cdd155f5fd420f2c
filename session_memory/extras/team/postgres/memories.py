"""The memories that a team's members share, listed and searched like one's own."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple
from zlib import crc32

from ....common.text.sanitize import plain
from ....history.search.index import TERMS_VERSION, Expression, Terms
from ....history.search.query import LONGEST, parse, whole_expression
from ....history.store.sqlite.search_index import local_terms
from ....history.store.values import ITEM_BITS, joined
from ....memory.memory_index import WEIGHTS, IndexedMemory, MemoryFilter, Origin
from ._search_index import items_of
from ._session_push import clipped
from .connection import NOW
from .engine import TeamStore
from .push import TeamPush
from .rows import labels, time_in

if TYPE_CHECKING:
    from ....history.store.values import Visible

MOST_DOUBTS = 20
MOST_HAVING = 20_000  # memories that have a term: the newest
# the constants of BM25 in FTS5, so a team's order is the same as in your own store
_K, _B, _LEAST_RARITY = 1.2, 0.75, 1e-6
# A memory, and the team's conversation that shows its source (0: none): the one with its message,
# else the last one of its session up to its time.
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
_RANK = (
    "CASE WHEN m.kind IN ('decision', 'preference') THEN 0 WHEN m.kind = 'episode' THEN 2 "
    "ELSE 1 END"
)
_LATEST = f"ORDER BY {_RANK}, {time_in('m.at')} DESC NULLS LAST, m.number DESC"
_LENGTH = "greatest(m.term_count, 1)"
_OFTEN = 1000  # at most, in a memory


class TeamMemories:
    """The memories that the member of `store` sees.

    They are their own on all machines, and the memories shared with the team. They are read like a
    MemoryIndex; a team has only current ones, of trusted sessions. Methods raise TeamError."""

    def __init__(self, store: TeamStore) -> None:
        self._store = store

    def memories(self, wanted: MemoryFilter) -> list[IndexedMemory]:
        condition, values = _where(wanted, self._store.visible)
        return self._memories(f"{condition} {_LATEST} LIMIT %s", [*values, _limit(wanted)])

    def beginning_with(self, id: str) -> list[IndexedMemory]:
        """Return the memories whose id begins with `id`, one for each machine that has it."""
        condition, values = _where(MemoryFilter(), self._store.visible)
        return self._memories(f"{condition} AND starts_with(m.id, %s) {_LATEST}", [*values, id])

    def search(self, query: str, wanted: MemoryFilter) -> list[IndexedMemory]:
        terms = local_terms()
        expression = whole_expression(parse(query[:LONGEST], terms))
        if not expression:
            return []
        condition, values = _where(wanted, self._store.visible)
        with self._store.asking(), self._store.connection.transaction():
            scores = self._scores(expression, terms)
            at = f"coalesce({time_in('m.at')}, 0)"
            sql = f"SELECT m.number, {at} FROM memory AS m WHERE m.number = ANY(%s) AND {condition}"
            rows = self._store.connection.execute(sql, [list(scores), *values]).fetchall()
            best = sorted(rows, key=lambda row: (scores[row[0]], row[1], row[0]), reverse=True)
            numbers = [number for number, _ in best][: _limit(wanted)]
            return self._memories(
                "m.number = ANY(%s) ORDER BY array_position(%s, m.number)", [numbers, numbers]
            )

    def _scores(self, expression: Expression, terms: Terms) -> dict[int, float]:
        having: dict[tuple[str, bool], dict[int, tuple[float, int]]] = {}

        def postings(term: str, is_prefix: bool, _: list[int] | None = None) -> list[int]:
            if (term, is_prefix) not in having:
                having[term, is_prefix] = self._having(term, is_prefix)
            return sorted(having[term, is_prefix])

        matching = items_of(expression, terms, postings)
        sql = f"SELECT count(*), coalesce(avg({_LENGTH}), 1)::float8 FROM memory AS m"
        total, average = self._store.connection.execute(sql).fetchone() or (0, 1.0)
        scores = dict.fromkeys(matching, 0.0)
        each = [
            (terms.of_word(word), words.is_prefix)
            for words in chain(*expression[:2])
            for word in words.each
        ]
        for frequencies in [having[term] for term in each]:  # a repeated term counts twice
            rarity = math.log((total - len(frequencies) + 0.5) / (len(frequencies) + 0.5))
            worth = max(rarity, _LEAST_RARITY) * (_K + 1)
            for number in frequencies.keys() & scores.keys():
                often, length = frequencies[number]
                scores[number] += worth * often / (often + _K * (1 - _B + _B * length / average))
        return scores

    def _having(self, term: str, is_prefix: bool) -> dict[int, tuple[float, int]]:
        """Return how often each memory has a term or its forms, and its total number of terms.

        With a prefix, all terms that begin with it count."""
        condition, values = "p.term = %s", [clipped(term)]
        if is_prefix:
            condition, values = (
                "p.term >= %s AND p.term < %s",
                [term, term[:-1] + chr(ord(term[-1]) + 1)],
            )
        sql = (
            f"SELECT p.memory, sum(least(greatest(p.frequency, 0), {_OFTEN}))::float8, {_LENGTH} "
            f"FROM memory_posting AS p JOIN memory AS m ON m.number = p.memory WHERE {condition} "
            f"GROUP BY p.memory, m.term_count ORDER BY p.memory DESC LIMIT {MOST_HAVING}"
        )
        return {
            number: (often, length)
            for number, often, length in self._store.connection.execute(sql, values)
        }

    def _memories(self, condition: str, values: list[Any]) -> list[IndexedMemory]:
        with self._store.asking():
            rows = self._store.connection.execute(
                f"{_MEMORIES} WHERE {condition}", values
            ).fetchall()
        return [_memory(row) for row in rows]


def _memory(row: tuple[Any, ...]) -> IndexedMemory:
    (
        home,
        id,
        kind,
        title,
        _,
        subject,
        _,
        at,
        session,
        message,
        strategy,
        cwd,
        _,
        who,
        conversation,
    ) = labels(row)
    text, quote = plain(row[4]), plain(row[6])
    # others may have arrays in them
    doubts = [doubt for doubt in labels(row[12][:MOST_DOUBTS]) if isinstance(doubt, str)]
    origin = Origin(at, session, conversation, strategy, message, cwd)
    return IndexedMemory(
        home, "", id, kind, title, text, subject, quote, (origin,), doubts=tuple(doubts), who=who
    )


def _limit(wanted: MemoryFilter) -> int | None:
    return wanted.limit if wanted.limit >= 0 else None


def _where(wanted: MemoryFilter, visible: Visible) -> tuple[str, list[Any]]:
    return joined(
        (wanted.is_untrusted, "false", ()),
        (visible is not None, "m.home = ANY(%s)", [list(visible or ())]),
        (wanted.home is not None, "m.home = %s", [wanted.home]),
        (wanted.kinds, "m.kind = ANY(%s)", [list(wanted.kinds)]),
    )


_WITHDRAWN = (
    "DELETE FROM memory_posting WHERE memory = ANY(%s)",
    "DELETE FROM memory WHERE number = ANY(%s)",
)


class MemoryPush(NamedTuple):
    """A memory in the form for the team.

    `project`, `share` and `cwd` are as in SharedSession; `at` is in milliseconds since the epoch.
    It has the last of its source sessions, and the number of the message there, 0 for no single
    one."""

    home: str
    id: str
    project: str
    share: str
    kind: str
    title: str
    content: str
    subject: str
    quote: str
    at: int | None
    session_id: str
    message: int
    strategy: str
    cwd: str
    doubts: tuple[str, ...]

    @property
    def key(self) -> tuple[str, str]:
        return self.home, self.id

    @property
    def mark(self) -> int:
        return crc32(json.dumps((TERMS_VERSION, *self)).encode())


class PushedMemory(NamedTuple):
    """A memory in the team's store: its number there, and the checksum of the pushed content."""

    number: int
    mark: int


def pushed_memories(team: TeamPush) -> dict[tuple[str, str], PushedMemory]:
    """Return the team's copies of this machine's memories, by their keys. Raises TeamError."""
    sql = "SELECT home, id, number, mark FROM memory WHERE owner = current_user AND machine = %s"
    with team.asking():
        rows = team.connection.execute(sql, (team.machine,)).fetchall()
    return {(home, id): PushedMemory(number, mark) for home, id, number, mark in rows}


def push_memories(team: TeamPush, memories: Sequence[MemoryPush], replaced: Collection[int]) -> int:
    """Write all memories or none; return how many.

    They replace the memories with the numbers `replaced`. Raises TeamError."""
    terms = local_terms()
    frequencies = {memory.key: _frequencies(memory, terms) for memory in memories}
    rows = [
        {
            **memory._asdict(),
            "machine": team.machine,
            "mark": memory.mark,
            "term_count": frequencies[memory.key][1],
        }
        for memory in memories
    ]
    columns = f"machine, {', '.join(MemoryPush._fields)}, term_count, mark"
    sql = (
        f"INSERT INTO memory ({columns}, pushed_at) SELECT {columns}, {NOW} "
        "FROM jsonb_populate_recordset(NULL::memory, %s::jsonb) "
        "ON CONFLICT (owner, machine, home, id) DO NOTHING RETURNING number, home, id"
    )
    with team.asking(), team.connection.transaction():
        withdraw_memories(team, replaced)
        added = team.connection.execute(sql, (json.dumps(rows),)).fetchall()
        postings = [
            (term, number, often)
            for number, home, id in added
            for term, often in frequencies[home, id][0].items()
        ]
        team.connection.execute(
            "INSERT INTO memory_posting SELECT * FROM unnest(%s::text[], %s::bigint[], %s::real[])",
            [[posting[column] for posting in postings] for column in range(3)],
        )
    return len(added)


def withdraw_memories(team: TeamPush, numbers: Iterable[int]) -> None:
    """Delete memories by their numbers in the team. Raises TeamError."""
    gone = list(numbers)
    if not gone:
        return
    with team.asking(), team.connection.transaction():
        for sql in _WITHDRAWN:
            team.connection.execute(sql, (gone,))


def _frequencies(memory: MemoryPush, terms: Terms) -> tuple[dict[str, float], int]:
    """Return how often a memory has each of its terms, and how many it has in all."""
    often: Counter[str] = Counter()
    count = 0
    for text, weight in zip((memory.title, memory.subject, memory.content, memory.quote), WEIGHTS):
        for term in terms.of(text):
            often[clipped(term)] += weight  # type: ignore[assignment]
            count += 1
    return dict(often), count
