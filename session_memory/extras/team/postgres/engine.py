"""A team's store, read and searched: the reading half of `SqliteStore`, in PostgreSQL.

It also has the files that live sessions changed and nobody has merged yet, as git objects and
lines.
"""

from __future__ import annotations

import json
import re
import threading
import time
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from ....common.text.format import counted
from ....common.text.sanitize import plain
from ....history.search.search import search
from ....history.store.values import (
    ITEM_BITS,
    NUMBERS,
    TOOL_ROLE,
    Conversation,
    Counts,
    Filter,
    Hits,
    StoredEntry,
)
from ....memory.shared_store import RecentSession
from . import connection
from ._search_index import PostgresSearchIndex, TeamTables
from .push import TeamPush
from .rows import (
    CONVERSATIONS,
    IS_SOUND,
    LIVE_HOURS,
    OthersFile,
    OthersHandoff,
    UnmergedFile,
    conversation_of,
    entry_of,
    labels,
    select_items,
    time_in,
    where,
)
from .schema import TeamDatabase

if TYPE_CHECKING:
    from ....history.store.values import Visible

ALIVE_SECONDS = 1.0  # after which a connection that was kept is taken to be gone
_READ_ITEMS = 1000  # of a conversation, at a time


class TeamStore(TeamDatabase):
    """The sessions that the member with this URL sees.

    They are the member's own on all machines, and the sessions shared with the team. SqliteStore
    describes the methods' results; conversations have no status here."""

    def __init__(self, url: str, visible: Visible = None, *, seconds: int = 0) -> None:
        """Connect to the store. Raises TeamError if it cannot be opened or is not a team's.

        A user waits for the server for `seconds`; each answer may then take WAIT_SECONDS."""
        super().__init__(
            url, seconds=seconds, statement_seconds=connection.WAIT_SECONDS if seconds else 0
        )
        from psycopg import IsolationLevel

        self.visible = visible
        self._tables = TeamTables()
        self.connection.isolation_level = IsolationLevel.REPEATABLE_READ  # of a read transaction
        self.connection.read_only = True

    @property
    def is_newer(self) -> bool:
        """Check if a newer version changed the schema, so the store is only read."""
        return self.schema.is_newer

    def answers(self) -> bool:
        with (
            suppress(connection.TeamError),
            connection.explained(self.url, self.connection, ALIVE_SECONDS),
        ):
            self.connection.execute("SELECT 1")
            return True
        return False

    def conversations(self, wanted: Filter) -> list[Conversation]:
        condition, values = where(wanted, self.visible)
        sql = (
            f"{CONVERSATIONS} WHERE {condition} ORDER BY c.last_at DESC NULLS LAST, 1 DESC LIMIT %s"
        )
        return [conversation_of(row) for row in self._rows(sql, [*values, wanted.limit])]

    def conversation_ids(self, wanted: Filter) -> Sequence[int]:
        condition, values = where(wanted, self.visible)
        sql = (
            f"SELECT c.session << {ITEM_BITS} | c.first_number FROM conversation AS c "
            f"JOIN session AS s ON s.id = c.session AND {IS_SOUND} WHERE {condition} "
            "ORDER BY c.first_at NULLS FIRST, 1 LIMIT %s"
        )
        return array("q", (id for (id,) in self._rows(sql, [*values, wanted.limit])))

    def conversation(self, conversation_id: int) -> Conversation | None:
        condition, values = where(Filter(), self.visible)
        sql = f"{CONVERSATIONS} WHERE {condition} AND c.session = %s AND c.first_number = %s"
        rows = self._rows(sql, [*values, conversation_id >> ITEM_BITS, conversation_id & NUMBERS])
        return conversation_of(rows[0]) if rows else None

    def entries(self, conversation_id: int) -> Iterator[StoredEntry]:
        session, first = conversation_id >> ITEM_BITS, conversation_id & NUMBERS
        sql = (
            f"SELECT last_number FROM conversation AS c WHERE session = %s AND first_number = "
            f"%s AND {IS_SOUND}"
        )
        for (last,) in self._rows(sql, [session, first]):
            for begin in range(first, last + 1, _READ_ITEMS):
                end = min(begin + _READ_ITEMS - 1, last)
                page_sql = (
                    f"{select_items()} WHERE i.session = %s AND i.number BETWEEN %s AND %s "
                    f"ORDER BY i.number"
                )
                yield from [entry_of(row) for row in self._rows(page_sql, [session, begin, end])]

    def search(self, query: str, wanted: Filter) -> Hits:
        with self.asking():
            return search(
                PostgresSearchIndex(self.connection, self._tables, self.visible), query, wanted
            )

    def recent(self, machine: str, wanted: Filter) -> list[RecentSession]:
        """Return sessions, except sessions of the member's `machine`, the latest first."""
        condition, values = where(wanted, self.visible, "s")
        return _of_others(self, machine, condition, [*values, wanted.limit])

    def counts(self) -> Counts:
        condition, values = where(Filter(), self.visible)
        [(sessions,)] = self._rows(f"SELECT count(*) FROM session AS s WHERE {condition}", values)
        sql = (
            f"SELECT count(*) FILTER (WHERE i.role != '{TOOL_ROLE}'), count(*) FILTER (WHERE "
            f"i.role = '{TOOL_ROLE}'), "
            f"coalesce(sum(octet_length(i.text)), 0)::bigint "
            f"FROM item AS i JOIN session AS s ON s.id = i.session WHERE {condition}"
        )
        [(entries, tools, text_bytes)] = self._rows(sql, values)
        sql = (
            f"SELECT count(*) FROM conversation AS c JOIN session AS s ON s.id = c.session "
            f"WHERE {condition}"
        )
        [(conversations,)] = self._rows(sql, values)
        [(size,)] = self._rows("SELECT pg_database_size(current_database())", [])
        return Counts(sessions, 0, 0, entries, tools, {"": conversations}, text_bytes, size)

    def _rows(self, sql: str, values: list[Any]) -> list[tuple[Any, ...]]:
        with self.asking():
            return self.connection.cursor(binary=True).execute(sql, values).fetchall()


SILENCE_SECONDS = 30  # that a server which did not answer is not asked again


class TeamPool:
    """Connections to teams for the page and an agent's tools, so no request waits for a new one.

    A server that did not answer is skipped for a while."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # held while a connection is made: others wait for the result
        self._free: list[TeamStore] = []
        # a URL, until when it is skipped, and why
        self._silence: tuple[str, float, str] = ("", 0.0, "")

    @contextmanager
    def store(self, url: str, visible: Visible = None) -> Iterator[TeamStore]:
        """Lend the store of the team at `url` for the block; it shows only `visible` rows.

        Raises TeamError."""
        store = self._had(url)
        store.visible = visible
        try:
            yield store
        except connection.UnreachableTeamError as error:
            self._note(url, error)
            store.close()
            raise
        except BaseException:
            store.close()
            raise
        with self._lock:
            if not self._free:  # one is enough while a user types: a server has few connections
                self._free.append(store)
                return
        store.close()

    def close(self) -> None:
        with self._lock:
            stores, self._free = self._free, []
        for store in stores:
            store.close()

    def _had(self, url: str) -> TeamStore:
        with self._lock:
            silent, until, why = self._silence
            if url == silent and (seconds := round(until - time.monotonic())) > 0:
                raise connection.UnreachableTeamError(
                    f"{why}; the next attempt is in {counted(seconds, 'second')}"
                )
            while self._free:
                store = self._free.pop()
                if store.url == url and store.answers():
                    return store
                store.close()
            try:
                return TeamStore(url, seconds=connection.PATIENCE_SECONDS)
            except connection.UnreachableTeamError as error:
                self._note(url, error)
                raise

    def _note(self, url: str, error: connection.UnreachableTeamError) -> None:
        self._silence = (url, time.monotonic() + SILENCE_SECONDS, str(error))


LATELY_HOURS = 48  # by the server's clock, since a session was pushed to
MOST_SESSIONS = 200
LAST_ITEMS = 60
TEXT_CHARACTERS = 2000
_PROJECTS = f"s.project = ANY(%s) AND s.pushed_at > {connection.NOW} - {LATELY_HOURS * 3_600_000}"


def recent_sessions(team: TeamPush, projects: Iterable[str]) -> list[RecentSession]:
    """Return the sessions that others pushed lately, the latest first. Raises TeamError."""
    return _of_others(team, team.machine, _PROJECTS, [list(projects), MOST_SESSIONS])


def _of_others(
    team: TeamDatabase, machine: str, condition: str, values: list[Any]
) -> list[RecentSession]:
    """Return sessions of other machines with their last items, the latest first.

    The last of the `values` is how many at most."""
    sql = (
        "SELECT s.id, s.owner || '@' || s.machine, s.project, s.session_id, s.title, s.branch, "
        f"s.runtime, s.open_calls, greatest(0, {connection.NOW} - coalesce(greatest("
        f"{time_in('m.pushed_at')}, {time_in('s.pushed_at')}), 0))::float8 / 1000 "
        "FROM session AS s LEFT JOIN machine AS m ON (m.owner, m.name) = (s.owner, s.machine) "
        f"WHERE NOT (s.owner = current_user AND s.machine = %s) AND {condition} "
        "ORDER BY s.pushed_at DESC LIMIT %s"
    )
    of_sessions = f"i.session = ANY(%s) AND i.number >= s.next_number::bigint - {LAST_ITEMS}"
    last = f"{select_items(TEXT_CHARACTERS)} WHERE {of_sessions} ORDER BY i.session, i.number"
    with team.asking():
        cursor = team.connection.cursor(binary=True)
        sessions = cursor.execute(sql, [machine, *values]).fetchall()
        last_items: dict[int, list[StoredEntry]] = {}
        for row in cursor.execute(last, ([id for id, *_ in sessions],)):
            entry = entry_of(row)
            last_items.setdefault(entry.id >> ITEM_BITS, []).append(entry)
    return [
        RecentSession._make(
            (
                *labels(session[:-2]),
                tuple(open_calls),
                unseen,
                tuple(last_items.get(session[0], ())),
            )
        )
        for session in sessions
        for open_calls, unseen in [session[-2:]]
    ]


class TeamMachine(NamedTuple):
    """A machine of the team.

    It has `who` as in ann@laptop, the time of its last push (milliseconds since the epoch, None:
    never), its version of session-memory, and how many of its sessions the asking member may read.
    """

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


MOST_FILES = 1000  # of all others
MOST_HUNKS = 200  # of a file
MOST_HANDOFFS = 100
HANDOFF_DAYS = 7  # so long it is offered
_MOST_CHARACTERS = 20_000
# in projects
_BY_OTHERS = "s.project = ANY(%s) AND NOT (s.owner = current_user AND s.machine = %s)"
_WHOSE = """
    s.owner || '@' || s.machine, s.project, s.session_id, s.runtime, coalesce(nullif(s.title, ''), (
        SELECT left(i.text, 200) FROM item AS i WHERE i.session = s.id AND i.role = 'user' ORDER BY i.number LIMIT 1
    ), '')
"""
_OBJECT = re.compile("([0-9a-f]{40}|[0-9a-f]{64})?")


def shared_edits(team: TeamPush, sessions: Iterable[int]) -> dict[int, set[str]]:
    """Return, by session, the files of which the team has these sessions' edits.

    Raises TeamError."""
    sql = "SELECT DISTINCT session, text FROM item WHERE session = ANY(%s) AND kind = 'edit'"
    edits_by_session: dict[int, set[str]] = {}
    with team.asking():
        for session, path in team.connection.execute(sql, (list(sessions),)):
            edits_by_session.setdefault(session, set()).add(path)
    return edits_by_session


def push_changed_files(team: TeamPush, files: Mapping[int, Iterable[UnmergedFile]]) -> None:
    """Replace the changed files of this machine's sessions, given by their numbers in the team.

    Raises TeamError."""
    rows = {
        (id, *file._replace(hunks=json.dumps(file.hunks[:MOST_HUNKS])))  # type: ignore[arg-type]
        for id, of in files.items()
        for file in of
    }
    own_rows = (
        "WHERE session IN (SELECT id FROM session WHERE owner = current_user AND machine = %s)"
    )
    with team.asking(), team.connection.transaction():
        known = team.connection.execute(
            f"SELECT * FROM changed_file {own_rows}", (team.machine,)
        ).fetchall()
        if rows != set(known):
            team.connection.execute(f"DELETE FROM changed_file {own_rows}", (team.machine,))
            insert = "INSERT INTO changed_file VALUES (%s, %s, %s, %s, %s, %s, %s)"
            team.connection.cursor().executemany(insert, sorted(rows))


def others_files(team: TeamPush, projects: Iterable[str]) -> list[OthersFile]:
    """Return the files that others changed lately in these projects, the latest first.

    Raises TeamError."""
    sql = (
        f"SELECT s.id, {_WHOSE}, s.branch, "
        "f.path, f.head, f.base, f.blob, f.hunks, f.at FROM changed_file AS f JOIN session AS s "
        "ON s.id = f.session "
        f"WHERE {_BY_OTHERS} "
        f"AND f.at > {connection.NOW} - {LIVE_HOURS * 3_600_000} "
        f"AND length(f.path) + length(f.hunks) < {_MOST_CHARACTERS} ORDER BY f.at DESC LIMIT "
        f"{MOST_FILES}"
    )
    with team.asking():
        return list(_sound(team.connection.execute(sql, (list(projects), team.machine))))


def push_handoff(team: TeamPush, session: int, branch: str, page: str) -> None:
    """Hand a session of this machine over, by its number in the team. Raises TeamError."""
    sql = (
        f"INSERT INTO handoff VALUES (%s, %s, %s, {connection.NOW}) ON CONFLICT "
        f"(session) DO UPDATE "
        "SET (branch, page, at) = (excluded.branch, excluded.page, excluded.at)"
    )
    with team.asking():
        team.connection.execute(sql, (session, branch, page))


def others_handoffs(team: TeamPush, projects: Iterable[str]) -> list[OthersHandoff]:
    """Return the recent handoffs of others in these projects, the latest first.

    Raises TeamError."""
    sql = (
        f"SELECT {_WHOSE}, h.branch, h.at, left(h.page, {_MOST_CHARACTERS}) FROM handoff AS h "
        "JOIN session AS s ON s.id = h.session "
        f"WHERE {_BY_OTHERS} "
        f"AND h.at BETWEEN {connection.NOW} - {HANDOFF_DAYS * 86_400_000} AND {connection.NOW} + "
        f"86400000 "
        f"ORDER BY h.at DESC LIMIT {MOST_HANDOFFS}"
    )
    with team.asking():
        rows = team.connection.execute(sql, (list(projects), team.machine)).fetchall()
    return [OthersHandoff._make((*labels(row[:-1]), plain(row[-1]))) for row in rows]


def _sound(rows: Iterable[tuple[Any, ...]]) -> Iterator[OthersFile]:
    """Yield the content of the rows, except for invalid rows.

    Only a member's own program can have written these."""
    for *session, path, head, base, blob, hunks, at in rows:
        try:
            read = tuple([(int(a), int(b), int(c), int(d)) for a, b, c, d in json.loads(hunks)])
        except (ValueError, TypeError, RecursionError):
            continue
        is_inside = not path.startswith("/") and ".." not in path.split("/") and "\0" not in path
        if is_inside and head and all(map(_OBJECT.fullmatch, (head, base, blob))):
            file = UnmergedFile(path, head, base, blob, read[:MOST_HUNKS], at)
            yield OthersFile._make((*labels(session), file))
