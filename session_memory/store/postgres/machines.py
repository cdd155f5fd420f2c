"""The machines of a team."""

from __future__ import annotations

from typing import NamedTuple

from .engine import TeamStore
from .rows import labels, time_in


class TeamMachine(NamedTuple):
    """A machine: `who` as in ann@laptop, the time of its last push (milliseconds since the epoch, None: never), its
    version of session-memory, and how many of its sessions the asking member may read."""

    who: str
    pushed_at: int | None
    program: str
    sessions: int


def machines_of(store: TeamStore) -> list[TeamMachine]:
    """Return all machines, in the order of their names. Raises TeamError."""
    sql = f"""
        SELECT m.owner || '@' || m.name, {time_in("m.pushed_at")}, m.program,
            (SELECT count(*) FROM session AS s WHERE s.owner = m.owner AND s.machine = m.name)
        FROM machine AS m ORDER BY 1
    """
    with store.asking():
        return [TeamMachine._make(labels(row)) for row in store.connection.execute(sql)]
