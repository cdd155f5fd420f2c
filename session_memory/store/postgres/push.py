"""Pushing to a team: batches of sessions with what is new of them, each batch one transaction.

How far a session was pushed stands in its row, which changes in the same transaction: what was cut off is as if it had
not been sent, and what was sent is not sent again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ..sqlite.search_index import terms_of
from ..values import TOOL_ROLE
from .connection import TeamError, connect, explained, place_of
from .rows import NUMBERS
from .schema import check_member
from .search_index import clipped, packed
from .session_push import PushedSession, SharedSession, mark_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from ..search.terms import Terms
    from .connection import TeamConnection
    from .session_push import SessionPush

_SESSION = SharedSession._fields
_NOW = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"  # the server's clock, the same for all machines
# Rows are copied into tables of the connection and go on from there: a table with policies takes no COPY, and as arrays
# in a parameter they take ten times as long.
_STAGE = """
    CREATE TEMP TABLE IF NOT EXISTS staged_item (
        session bigint, number integer, role text, at bigint, cwd text, message integer, byte_offset bigint, tool text,
        kind text, outcome text, error text, result_size bigint, result_lines bigint, text text
    );
    CREATE TEMP TABLE IF NOT EXISTS staged_posting (term text COLLATE "C", session bigint, numbers bytea);
"""
_ITEM_TYPES = (
    "int8", "int4", "text", "int8", "text", "int4", "int8", "text", "text", "text", "text", "int8", "int8", "text",
)  # fmt: skip
_TABLES = ("item", "posting", "conversation")  # that belong to a session


class PushCounts(NamedTuple):
    """What a push did: sessions that were written, items that were new, sessions that another process of the same
    machine was at."""

    sessions: int
    items: int
    skipped: int


class TeamPush:
    """A machine's connection to push by. Methods raise TeamError; UnreachableTeamError and FullTeamError mean that it
    is to be tried again later, with what the team then says that it has."""

    def __init__(self, url: str, machine: str) -> None:
        self.url = url
        self.machine = machine
        self.connection: TeamConnection = connect(url)
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

    def close(self) -> None:
        """Closes the connection."""
        self.connection.close()

    def note_machine(self, program: str, *, pushed: bool) -> None:
        """Notes that this machine belongs to the team, with which version of session-memory, and, if `pushed`, that all
        that it has was pushed just now."""
        sql = (
            "INSERT INTO machine (name, joined_at, pushed_at, program) "
            f"VALUES (%(name)s, {_NOW}, CASE WHEN %(pushed)s THEN {_NOW} END, %(program)s) "
            "ON CONFLICT (owner, name) DO UPDATE SET program = excluded.program, "
            "pushed_at = coalesce(excluded.pushed_at, machine.pushed_at)"
        )
        with explained(self.url):
            self.connection.execute(sql, {"name": self.machine, "pushed": pushed, "program": program})

    def pushed(self) -> dict[tuple[str, str], PushedSession]:
        """What the team has of this machine's sessions, by their keys."""
        sql = (
            f"SELECT id, {', '.join(_SESSION)}, next_number, mark, open_calls, item_count "
            "FROM session WHERE owner = current_user AND machine = %s"
        )
        with explained(self.url):
            rows = self.connection.cursor(binary=True).execute(sql, (self.machine,)).fetchall()
        found = {}
        for id, *values in rows:
            *session, next_number, mark, open_calls, item_count = values
            one = SharedSession._make(session)
            found[one.key] = PushedSession(id, one, next_number, mark, tuple(open_calls), item_count)
        return found

    def push(self, batch: Sequence[SessionPush]) -> PushCounts:
        """Writes all of a batch or, if anything fails, nothing of it."""
        with explained(self.url), self.connection.transaction():
            ids = self._locked(batch)
            rows = [(id, one) for id, one in zip(ids, batch) if id]
            self._write_items(rows)
            terms = self._write_postings(rows)
            self._write_conversations(rows)
            self._write_sessions(rows, terms)
        return PushCounts(len(rows), sum([len(one.items) for _, one in rows]), len(batch) - len(rows))

    def withdraw(self, sessions: Iterable[int]) -> None:
        """Deletes the copies of sessions, by their numbers in the team."""
        ids = list(sessions)
        with explained(self.url), self.connection.transaction():
            for table in _TABLES:
                self.connection.execute(f"DELETE FROM {table} WHERE session = ANY(%s)", (ids,))
            self.connection.execute("DELETE FROM session WHERE id = ANY(%s)", (ids,))

    def withdraw_all(self) -> int:
        """Deletes all that this machine has pushed, and that it belongs to the team; returns how many sessions."""
        known = [one.id for one in self.pushed().values()]
        self.withdraw(known)
        with explained(self.url):
            self.connection.execute("DELETE FROM machine WHERE owner = current_user AND name = %s", (self.machine,))
        return len(known)

    def _locked(self, batch: Sequence[SessionPush]) -> list[int]:
        """The numbers of the sessions, new ones in the order of the batch; 0 where the team has another state of a
        session than `before`, since another process of this machine has pushed meanwhile."""
        columns = ", ".join(("machine", *_SESSION))
        marks = ", ".join(["%s"] * (len(_SESSION) + 1))
        added = self._each(
            f"INSERT INTO session ({columns}) VALUES ({marks}) "
            "ON CONFLICT (owner, machine, home, file_path) DO NOTHING RETURNING id",
            [(self.machine, *one.session) for one in batch if one.before is None],
        )
        known = sorted([one.before.id for one in batch if one.before])
        sql = "SELECT id, next_number, mark FROM session WHERE id = ANY(%s) ORDER BY id FOR UPDATE"
        states = {id: (number, mark) for id, number, mark in self.connection.execute(sql, (known,))} if known else {}
        new = iter(added)
        found = []
        for one in batch:
            if one.before is None:
                found.append(next(new))
            else:
                is_same = states.get(one.before.id) == (one.before.next_number, one.before.mark)
                found.append(one.before.id if is_same else 0)
        return found

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

    def _write_items(self, rows: list[tuple[int, SessionPush]]) -> None:
        cursor = self.connection.cursor()
        cursor.execute("TRUNCATE staged_item")
        with cursor.copy("COPY staged_item FROM STDIN (FORMAT BINARY)") as copy:
            copy.set_types(_ITEM_TYPES)
            for id, one in rows:
                for item in one.items:
                    elsewhere = None if item.cwd == one.session.cwd else _storable(item.cwd)
                    is_tool = item.role == TOOL_ROLE
                    copy.write_row((
                        id, item.id & NUMBERS, item.role, item.timestamp, elsewhere, item.message, item.offset,
                        _storable(item.tool) if is_tool else None, item.kind if is_tool else None, item.outcome or None,
                        _storable(item.error) if item.outcome else None, item.result_size, item.result_lines,
                        _storable(item.text),
                    ))  # fmt: skip
        cursor.execute("INSERT INTO item SELECT * FROM staged_item ORDER BY session, number")
        ended = [
            (item.outcome, _storable(item.error), item.result_size, item.result_lines, id, item.id & NUMBERS)
            for id, one in rows
            for item in one.ended
        ]
        if ended:
            cursor.executemany(
                "UPDATE item SET outcome = %s, error = %s, result_size = %s, result_lines = %s "
                "WHERE session = %s AND number = %s",
                ended,
            )

    def _write_postings(self, rows: list[tuple[int, SessionPush]]) -> list[tuple[int, int]]:
        """Writes which items have a term; returns for each session how many texts are new and how many terms these
        have."""
        counts = []
        terms_in = self._terms.of
        cursor = self.connection.cursor()
        cursor.execute("TRUNCATE staged_posting")
        with cursor.copy("COPY staged_posting FROM STDIN (FORMAT BINARY)") as copy:
            copy.set_types(("text", "int8", "bytea"))
            for id, one in rows:
                texts = total = 0
                postings: dict[str, list[int]] = {}
                for item in one.items:
                    number = item.id & NUMBERS
                    if not item.text or number in one.copies:
                        continue
                    terms = terms_in(item.text)
                    texts, total = texts + 1, total + len(terms)
                    for term in {clipped(term) for term in terms}:
                        if term in postings:
                            postings[term].append(number)
                        else:
                            postings[term] = [number]
                counts.append((texts, total))
                for term, numbers in postings.items():
                    copy.write_row((term, id, numbers[0].to_bytes(4, "big") if len(numbers) == 1 else packed(numbers)))
        # A session that is new has no row that could be in the way, and is written in two thirds of the time.
        insert = "INSERT INTO posting SELECT * FROM staged_posting WHERE session = ANY(%s)"
        appended = " ON CONFLICT (term, session) DO UPDATE SET numbers = posting.numbers || excluded.numbers"
        for sql, ids in (
            (insert, [id for id, one in rows if one.before is None]),
            (insert + appended, [id for id, one in rows if one.before]),
        ):
            if ids:
                cursor.execute(sql, (ids,))
        return counts

    def _write_conversations(self, rows: list[tuple[int, SessionPush]]) -> None:
        spans = [(id, *span) for id, one in rows for span in one.spans]
        if spans:
            self.connection.cursor().executemany(
                "INSERT INTO conversation VALUES (%s, %s, %s, %s, %s, %s, %s) "
                "ON CONFLICT (session, first_number) DO UPDATE SET last_number = excluded.last_number, "
                "first_at = excluded.first_at, last_at = excluded.last_at, message_count = excluded.message_count, "
                "text_bytes = excluded.text_bytes",
                spans,
            )

    def _write_sessions(self, rows: list[tuple[int, SessionPush]], counts: list[tuple[int, int]]) -> None:
        columns = ", ".join([f"{column} = %s" for column in _SESSION])
        self.connection.cursor().executemany(
            f"UPDATE session SET {columns}, next_number = %s, mark = %s, open_calls = %s, "
            "item_count = item_count + %s, text_count = text_count + %s, term_count = term_count + %s, "
            f"pushes = pushes + 1, pushed_at = {_NOW} WHERE id = %s",
            [
                (
                    *map(_storable, one.session),
                    one.next_number,
                    _mark(one),
                    _open_calls(one),
                    len(one.items),
                    *count,
                    id,
                )
                for (id, one), count in zip(rows, counts)
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
