"""Pushes memories to a team; a changed memory replaces its earlier version."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple
from zlib import crc32

from ..search.terms import Terms
from ..sqlite.memory_index import WEIGHTS
from ..sqlite.search_index import terms_of
from .connection import NOW, explained
from .postings import clipped
from .push import TeamPush

_WITHDRAWN = (
    "DELETE FROM memory_posting WHERE memory = ANY(%s)",
    "DELETE FROM memory WHERE number = ANY(%s)",
)


class MemoryPush(NamedTuple):
    """A memory as the team is to know it: `project`, `share` and `cwd` as of a SharedSession; `at` in milliseconds
    since the epoch; the last session that it was drawn from, and the number of the message there, 0 for no single
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
        """Return the key of the memory among those of its machine."""
        return self.home, self.id

    @property
    def mark(self) -> int:
        """Return a checksum of all of it."""
        return crc32(json.dumps(self).encode())


class PushedMemory(NamedTuple):
    """A memory in the team's store: its number there, and the checksum of what was pushed."""

    number: int
    mark: int


def pushed_memories(team: TeamPush) -> dict[tuple[str, str], PushedMemory]:
    """Return the team's copies of this machine's memories, by their keys. Raises TeamError."""
    sql = "SELECT home, id, number, mark FROM memory WHERE owner = current_user AND machine = %s"
    with explained(team.url, team.connection):
        rows = team.connection.execute(sql, (team.machine,)).fetchall()
    return {(home, id): PushedMemory(number, mark) for home, id, number, mark in rows}


def push_memories(team: TeamPush, memories: Sequence[MemoryPush], replaced: Collection[int]) -> int:
    """Write memories in place of those with the numbers `replaced`, or, if anything fails, nothing of it; return how
    many. Raises TeamError."""
    import apsw

    terms = terms_of(apsw.Connection(":memory:"))
    found = {one.key: _frequencies(one, terms) for one in memories}
    rows = [
        {**one._asdict(), "machine": team.machine, "mark": one.mark, "term_count": found[one.key][1]}
        for one in memories
    ]
    columns = f"machine, {', '.join(MemoryPush._fields)}, term_count, mark"
    sql = (
        f"INSERT INTO memory ({columns}, pushed_at) SELECT {columns}, {NOW} "
        "FROM jsonb_populate_recordset(NULL::memory, %s::jsonb) "
        "ON CONFLICT (owner, machine, home, id) DO NOTHING RETURNING number, home, id"
    )
    with explained(team.url, team.connection), team.connection.transaction():
        withdraw_memories(team, replaced)
        added = team.connection.execute(sql, (json.dumps(rows),)).fetchall()
        postings = [(term, number, often) for number, home, id in added for term, often in found[home, id][0].items()]
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
    with explained(team.url, team.connection), team.connection.transaction():
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
