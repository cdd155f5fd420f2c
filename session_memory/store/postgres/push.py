"""Pushing to a team: batches of sessions with what is new of them, each batch one transaction.

How far a session was pushed stands in its row, which changes in the same transaction: what was cut off is as if it had
not been sent, and what was sent is not sent again.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from ..sqlite.search_index import terms_of
from ..values import ITEM_BITS, TOOL_ROLE
from .connection import ANSWER_SECONDS, NOW, TeamError, connect, explained, place_of
from .postings import NewPostings, packed, unpacked
from .rows import NUMBERS
from .schema import check_member
from .session_push import PushedSession, SharedSession, mark_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from ..search.terms import Terms
    from .connection import TeamConnection
    from .session_push import SessionPush

    _Row = tuple[int, int, SessionPush]  # the numbers of a session and its segment, and what is new of it

_SESSION = SharedSession._fields
# Rows are copied into tables of the connection and go on from there: a table with policies takes no COPY, and as arrays
# in a parameter they take ten times as long.
_STAGE = """
    CREATE TEMP TABLE IF NOT EXISTS staged_item (
        session bigint, number integer, role text, at bigint, cwd text, message integer, byte_offset bigint, tool text,
        kind text, outcome text, error text, result_size bigint, result_lines bigint, text text
    );
    CREATE TEMP TABLE IF NOT EXISTS staged_posting (term text COLLATE "C", segment bigint, items bytea);
"""
_ITEM_TYPES = (
    "int8", "int4", "text", "int8", "text", "int4", "int8", "text", "text", "text", "text", "int8", "int8", "text",
)  # fmt: skip
_CHANGEABLE = [column for column in _SESSION if column != "share"]
SEGMENT_ITEMS = 10_000  # from which on a segment takes no further sessions; docs/team.md says why


class PushCounts(NamedTuple):
    """What a push did: sessions that were written, items that were new, sessions that another process of the same
    machine was at."""

    sessions: int
    items: int
    skipped: int


class TeamPush:
    """A machine's connection to push by. Methods raise TeamError; UnreachableTeamError and FullTeamError mean that it
    is to be tried again later, with what the team then says that it has. `seconds` is how long somebody waits for each
    step, 0 for as long as upkeep does."""

    def __init__(self, url: str, machine: str, *, seconds: int = 0) -> None:
        self.url = url
        self.machine = machine
        self.connection: TeamConnection = connect(url, seconds=seconds)
        try:
            with explained(url):
                state = check_member(self.connection, place_of(url))
                if state.is_newer:
                    message = f"a newer session-memory made the store of the team at {place_of(url)}"
                    raise TeamError(f"{message}: it is read, and nothing is pushed", "update: python3 install.py")
                self.connection.execute(_STAGE)
                [(self.member,)] = self.connection.execute("SELECT current_user::text")
        except BaseException:
            self.connection.close()
            raise
        self._terms = _local_terms()
        self._asking = partial(explained, url, self.connection, seconds or ANSWER_SECONDS)

    def close(self) -> None:
        """Closes the connection."""
        self.connection.close()

    def note_machine(self, program: str, *, pushed: bool) -> None:
        """Notes that this machine belongs to the team, with which version of session-memory, and, if `pushed`, that all
        that it has was pushed just now."""
        sql = (
            "INSERT INTO machine (name, joined_at, pushed_at, program) "
            f"VALUES (%(name)s, {NOW}, CASE WHEN %(pushed)s THEN {NOW} END, %(program)s) "
            "ON CONFLICT (owner, name) DO UPDATE SET program = excluded.program, "
            "pushed_at = coalesce(excluded.pushed_at, machine.pushed_at)"
        )
        with self._asking():
            self.connection.execute(sql, {"name": self.machine, "pushed": pushed, "program": program})

    def pushed(self) -> dict[tuple[str, str], PushedSession]:
        """What the team has of this machine's sessions, by their keys."""
        sql = (
            f"SELECT id, segment, {', '.join(_SESSION)}, next_number, mark, open_calls, item_count "
            "FROM session WHERE owner = current_user AND machine = %s"
        )
        with self._asking():
            rows = self.connection.cursor(binary=True).execute(sql, (self.machine,)).fetchall()
        found = {}
        for id, segment, *values in rows:
            *session, next_number, mark, open_calls, item_count = values
            one = SharedSession._make(session)
            found[one.key] = PushedSession(id, segment, one, next_number, mark, tuple(open_calls), item_count)
        return found

    def push(self, batch: Sequence[SessionPush]) -> PushCounts:
        """Writes all of a batch or, if anything fails, nothing of it."""
        with self._asking(), self.connection.transaction():
            rows = self._locked(batch)
            self._copy_items(rows)
            with self.connection.pipeline():  # terms are made while the server writes the items
                self._write_items(rows)
                postings, terms = self._new_postings(rows)
            self._insert_postings(postings, self._grown_segments(rows))
            self._write_conversations(rows)
            self._write_sessions(rows, terms)
        return PushCounts(len(rows), sum([len(one.items) for _, _, one in rows]), len(batch) - len(rows))

    def withdraw(self, sessions: Iterable[int]) -> None:
        """Deletes the copies of sessions, by their numbers in the team."""
        ids = list(sessions)
        with self._asking(), self.connection.transaction():
            sql = "SELECT DISTINCT segment FROM session WHERE id = ANY(%s)"
            segments = [segment for (segment,) in self.connection.execute(sql, (ids,))]
            sql = "SELECT id FROM segment WHERE id = ANY(%s) ORDER BY id FOR UPDATE"
            self.connection.execute(sql, (segments,))
            for table, column in (("item", "session"), ("conversation", "session"), ("session", "id")):
                self.connection.execute(f"DELETE FROM {table} WHERE {column} = ANY(%s)", (ids,))
            for segment in segments:
                self._withdraw_postings(segment, ids)

    def _withdraw_postings(self, segment: int, sessions: list[int]) -> None:
        """Takes what is of sessions that were deleted from the postings of a segment; an empty segment goes too."""
        cursor = self.connection.cursor(binary=True)
        left = frozenset([id for (id,) in cursor.execute("SELECT id FROM session WHERE segment = %s", (segment,))])
        if not left:
            cursor.execute("DELETE FROM posting WHERE segment = %s", (segment,))
            cursor.execute("DELETE FROM segment WHERE id = %s", (segment,))
            return
        having = "SELECT FROM unnest(%s::integer[]) AS gone WHERE position(int4send(gone) IN items) > 0"
        sql = f"DELETE FROM posting WHERE segment = %s AND EXISTS ({having}) RETURNING term, items"
        kept = [(term, unpacked(items, left)) for term, items in cursor.execute(sql, (segment, sessions))]
        self._insert_postings([(term, segment, packed(items)) for term, items in kept if items])

    def withdraw_all(self) -> int:
        """Deletes all that this machine has pushed, and that it belongs to the team; returns how many sessions."""
        known = [one.id for one in self.pushed().values()]
        self.withdraw(known)
        with self._asking():
            self.connection.execute("DELETE FROM machine WHERE owner = current_user AND name = %s", (self.machine,))
        return len(known)

    def _locked(self, batch: Sequence[SessionPush]) -> list[_Row]:
        """The numbers of the sessions and of their segments. Left out are those of which the team has another state
        than `before`, since another process of this machine has pushed meanwhile."""
        open_segments = self._open_segments(batch)
        new = [one for one in batch if one.before is None]
        columns = ", ".join(("machine", "segment", *_SESSION))
        marks = ", ".join(["%s"] * (len(_SESSION) + 2))
        added = self._each(
            f"INSERT INTO session ({columns}) VALUES ({marks}) "
            "ON CONFLICT (owner, machine, home, file_path) DO NOTHING RETURNING id",
            [(self.machine, open_segments[one.session.share], *map(_storable, one.session)) for one in new],
        )
        known = sorted([one.before.id for one in batch if one.before])
        sql = "SELECT id, next_number, mark FROM session WHERE id = ANY(%s) ORDER BY id FOR UPDATE"
        states = {id: (number, mark) for id, number, mark in self.connection.execute(sql, (known,))} if known else {}
        rows = [(id, open_segments[one.session.share], one) for id, one in zip(added, new) if id]
        for one in batch:
            if one.before and states.get(one.before.id) == (one.before.next_number, one.before.mark):
                rows.append((one.before.id, one.before.segment, one))
        return rows

    def _open_segments(self, batch: Sequence[SessionPush]) -> dict[str, int]:
        """The segments that new sessions go to, by with whom these are shared. They are locked, and so are those of the
        known ones, before anything else is: processes of one machine wait for each other here and nowhere else."""
        sql = (
            "SELECT id, share, item_count FROM segment WHERE id = ANY(%s) OR id IN "
            "(SELECT max(id) FROM segment WHERE owner = current_user AND machine = %s GROUP BY share) "
            "ORDER BY id FOR UPDATE"
        )
        known = list({one.before.segment for one in batch if one.before})
        found = self.connection.execute(sql, (known, self.machine)).fetchall()
        newest = {share: id for id, share, count in found}
        full = {id for id, _, count in found if count >= SEGMENT_ITEMS}
        for share in sorted({one.session.share for one in batch if one.before is None}):
            if newest.get(share, 0) in full or share not in newest:
                sql = "INSERT INTO segment (machine, share) VALUES (%s, %s) RETURNING id"
                [(newest[share],)] = self.connection.execute(sql, (self.machine, share))
        return newest

    def _each(self, sql: str, values: Sequence[Any]) -> list[int]:
        """The number that a statement returns for each of `values`; 0 where it returns none."""
        if not values:
            return []
        cursor = self.connection.cursor()
        cursor.executemany(sql, values, returning=True)
        found = []
        while True:
            row = cursor.fetchone()
            found.append(row[0] if row else 0)
            if not cursor.nextset():
                return found

    def _copy_items(self, rows: list[_Row]) -> None:
        cursor = self.connection.cursor()
        cursor.execute("TRUNCATE staged_item")
        with cursor.copy("COPY staged_item FROM STDIN (FORMAT BINARY)") as copy:
            copy.set_types(_ITEM_TYPES)
            for id, _, one in rows:
                for item in one.items:
                    elsewhere = None if item.cwd == one.session.cwd else _storable(item.cwd)
                    is_tool = item.role == TOOL_ROLE
                    copy.write_row((
                        id, item.id & NUMBERS, item.role, item.timestamp, elsewhere, item.message, item.offset,
                        _storable(item.tool) if is_tool else None, item.kind if is_tool else None, item.outcome or None,
                        _storable(item.error) if item.outcome else None, item.result_size, item.result_lines,
                        _storable(item.text),
                    ))  # fmt: skip

    def _write_items(self, rows: list[_Row]) -> None:
        cursor = self.connection.cursor()
        cursor.execute("INSERT INTO item SELECT * FROM staged_item")
        ended = [
            (item.outcome, _storable(item.error), item.result_size, item.result_lines, id, item.id & NUMBERS)
            for id, _, one in rows
            for item in one.ended
        ]
        if ended:
            cursor.executemany(
                "UPDATE item SET outcome = %s, error = %s, result_size = %s, result_lines = %s "
                "WHERE session = %s AND number = %s",
                ended,
            )

    def _new_postings(self, rows: list[_Row]) -> tuple[list[tuple[str, int, bytes]], list[tuple[int, int]]]:
        """The rows that say which items have a term; and for each session how many texts are new and how many terms
        these have."""
        postings = NewPostings(self._terms.of)
        counts = []
        for id, segment, one in rows:
            first = id << ITEM_BITS
            found = [item for item in one.items if item.text and item.id & NUMBERS not in one.copies]
            counts.append(postings.add(segment, [(first | item.id & NUMBERS, item.text) for item in found]))
        return postings.rows(), counts

    def _grown_segments(self, rows: list[_Row]) -> list[int]:
        """Counts the items that are new in each segment; returns which segments had some before."""
        added: dict[int, int] = {}
        for _, segment, one in rows:
            added[segment] = added.get(segment, 0) + len(one.items)
        sql = "UPDATE segment SET item_count = item_count + %s WHERE id = %s RETURNING item_count"
        counts = self._each(sql, [(count, segment) for segment, count in added.items()])
        return [segment for (segment, count), after in zip(added.items(), counts) if after > count]

    def _insert_postings(self, rows: Iterable[tuple[str, int, bytes]], grown: Sequence[int] = ()) -> None:
        """Writes rows of `posting`, of which there may be some already only in the segments that have `grown`: what
        cannot be there is written in half of the time."""
        cursor = self.connection.cursor()
        cursor.execute("TRUNCATE staged_posting")
        with cursor.copy("COPY staged_posting FROM STDIN (FORMAT BINARY)") as copy:
            copy.set_types(("text", "int8", "bytea"))
            for row in rows:
                copy.write_row(row)
        insert = "INSERT INTO posting SELECT * FROM staged_posting WHERE segment"
        cursor.execute(f"{insert} != ALL(%s)", (list(grown),))
        if grown:
            appended = "ON CONFLICT (term, segment) DO UPDATE SET items = posting.items || excluded.items"
            cursor.execute(f"{insert} = ANY(%s) {appended}", (list(grown),))

    def _write_conversations(self, rows: list[_Row]) -> None:
        spans = [(id, *span) for id, _, one in rows for span in one.spans]
        if spans:
            self.connection.cursor().executemany(
                "INSERT INTO conversation VALUES (%s, %s, %s, %s, %s, %s, %s) "
                "ON CONFLICT (session, first_number) DO UPDATE SET last_number = excluded.last_number, "
                "first_at = excluded.first_at, last_at = excluded.last_at, message_count = excluded.message_count, "
                "text_bytes = excluded.text_bytes",
                spans,
            )

    def _write_sessions(self, rows: list[_Row], counts: list[tuple[int, int]]) -> None:
        columns = ", ".join([f"{column} = %s" for column in _CHANGEABLE])
        self.connection.cursor().executemany(
            f"UPDATE session SET {columns}, next_number = %s, mark = %s, open_calls = %s, "
            "item_count = item_count + %s, text_count = text_count + %s, term_count = term_count + %s, "
            f"pushes = pushes + 1, pushed_at = {NOW} WHERE id = %s",
            [
                (
                    *[_storable(getattr(one.session, column)) for column in _CHANGEABLE],
                    one.next_number,
                    _mark(one),
                    _open_calls(one),
                    len(one.items),
                    *count,
                    id,
                )
                for (id, _, one), count in zip(rows, counts)
            ],
        )


def _local_terms() -> Terms:
    import apsw

    return terms_of(apsw.Connection(":memory:"))


def _mark(one: SessionPush) -> int:
    return mark_of(one.items, one.before.mark if one.before else 0)


def _open_calls(one: SessionPush) -> list[int]:
    """The numbers of the tool uses whose result has still not come."""
    ended = {item.id & NUMBERS for item in one.ended}
    before = [number for number in (one.before.open_calls if one.before else ()) if number not in ended]
    return before + [item.id & NUMBERS for item in one.items if item.role == TOOL_ROLE and not item.outcome]


def _storable(value: Any) -> Any:
    """A value as PostgreSQL takes it: its texts hold no NUL."""
    return value.replace("\0", "\ufffd") if isinstance(value, str) else value
