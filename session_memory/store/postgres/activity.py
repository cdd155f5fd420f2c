"""The recent activity of other members, and of one's own other machines, for the prompt of a team."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ..values import ITEM_BITS, StoredEntry
from .connection import NOW, explained
from .engine import TeamStore
from .push import TeamPush
from .rows import ITEMS, entry_of, labels, time_in

LATELY_HOURS = 48  # by the server's clock, since a session was pushed to
MOST_SESSIONS = 200
LAST_ITEMS = 60
TEXT_CHARACTERS = 2000
_PROJECTS = (
    "WHERE s.project = ANY(%s) AND NOT (s.owner = current_user AND s.machine = %s) "
    f"AND s.pushed_at > {NOW} - {LATELY_HOURS * 3_600_000}"
)


class RecentSession(NamedTuple):
    """A session of another member or machine: its number in the team, `who` as in ann@laptop, its project, id, title
    and branch, and the last of its items, in order."""

    id: int
    who: str
    project: str
    session_id: str
    title: str
    branch: str
    items: tuple[StoredEntry, ...]


def recent_sessions(team: TeamPush, projects: Iterable[str]) -> list[RecentSession]:
    """Return the sessions that were pushed lately by others, the latest first. Raises TeamError."""
    sql = (
        "SELECT s.id, s.owner || '@' || s.machine, s.project, s.session_id, s.title, s.branch FROM session AS s "
        f"{_PROJECTS} ORDER BY s.pushed_at DESC LIMIT {MOST_SESSIONS}"
    )
    of_sessions = f"i.session = ANY(%s) AND i.number >= s.next_number::bigint - {LAST_ITEMS}"
    last = f"{ITEMS} WHERE {of_sessions} ORDER BY i.session, i.number"
    with explained(team.url, team.connection):
        cursor = team.connection.cursor(binary=True)
        sessions = cursor.execute(sql, (list(projects), team.machine)).fetchall()
        items: dict[int, list[StoredEntry]] = {}
        for row in cursor.execute(last, ([id for id, *_ in sessions],)):
            one = entry_of(row)
            text = one.text[:TEXT_CHARACTERS]
            items.setdefault(one.id >> ITEM_BITS, []).append(one._replace(text=text))
    return [RecentSession._make((*labels(session), tuple(items.get(session[0], ())))) for session in sessions]


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
