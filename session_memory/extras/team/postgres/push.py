"""Pushes to a team: batches of sessions with their new items, each batch one transaction.

A session's row says how far it was pushed and changes in the same transaction: an interrupted push
leaves no trace, and nothing is sent twice."""

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

from ....history.store.sqlite.search_index import local_terms
from ....history.store.values import NUMBERS
from ._session_push import (
    PreparedBatch,
    PreparedSession,
    PushedSession,
    SessionPush,
    SharedSession,
    packed,
    prepared,
    storable,
    unpacked,
)
from .connection import NOW, TeamError, cut, place_of
from .schema import TeamDatabase

_SESSION = SharedSession._fields
# Rows are copied into tables of the connection and from there into the store, because a table with
# policies does not allow COPY, and arrays in a parameter take ten times as long.
_STAGE = """
    CREATE TEMP TABLE IF NOT EXISTS staged_item (
        session bigint, number integer, role text, at bigint, cwd text, message integer, byte_offset bigint, tool text,
        kind text, outcome text, error text, result_size bigint, result_lines bigint, text text
    );
    CREATE TEMP TABLE IF NOT EXISTS staged_posting (segment bigint, term text COLLATE "C", items bytea);
"""
_COLUMNS = {  # and their types
    "staged_item": (
        "int8",
        "int4",
        "text",
        "int8",
        "text",
        "int4",
        "int8",
        "text",
        "text",
        "text",
        "text",
        "int8",
        "int8",
        "text",
    ),
    "staged_posting": ("int8", "text", "bytea"),
}
_CHANGEABLE = [column for column in _SESSION if column != "share"]
_COUNTS = ("item_count", "text_count", "term_count")
_GIVEN = "jsonb_populate_recordset(NULL::session, %s)"
# with more, a segment takes no further sessions; docs/use/team.md explains why
SEGMENT_ITEMS = 10_000


class TeamPush(TeamDatabase):
    """A machine's connection for pushing. Methods raise TeamError.

    After UnreachableTeamError or FullTeamError, retry later with the team's state at that time.
    `seconds` is the timeout of each step; 0 means upkeep's."""

    def __init__(self, url: str, machine: str, *, seconds: int = 0) -> None:
        super().__init__(url, seconds=seconds)
        self.machine = machine
        self._terms = local_terms()
        right = f"GRANT TEMPORARY ON DATABASE {self.database} TO {self.member}"
        try:
            if self.schema.is_newer:
                message = f"a newer session-memory made the store of the team at {place_of(url)}"
                raise TeamError(
                    f"{message}, so this version reads it but pushes nothing",
                    "update: python3 install.py",
                )
            with self.asking(forbidden=f"the database administrator must run {right}"):
                self.connection.execute(_STAGE)
        except BaseException:
            self.close()
            raise

    def cut(self) -> None:
        """End the connection as if the server had, even while another thread uses it."""
        cut(self.connection)

    def note_machine(self, program: str, *, pushed: bool) -> None:
        """Record this machine and its version of session-memory.

        If `pushed`, also record that all its content was pushed now."""
        sql = (
            "INSERT INTO machine (name, joined_at, pushed_at, program) "
            f"VALUES (%(name)s, {NOW}, CASE WHEN %(pushed)s THEN {NOW} END, %(program)s) "
            "ON CONFLICT (owner, name) DO UPDATE SET program = excluded.program, "
            "pushed_at = coalesce(excluded.pushed_at, machine.pushed_at)"
        )
        with self.asking():
            self.connection.execute(
                sql, {"name": self.machine, "pushed": pushed, "program": program}
            )

    def pushed(self) -> dict[tuple[str, str], PushedSession]:
        """Return the team's state of this machine's sessions, by their keys."""
        sql = (
            f"SELECT id, segment, {', '.join(_SESSION)}, next_number, mark, open_calls "
            "FROM session WHERE owner = current_user AND machine = %s"
        )
        with self.asking():
            rows = self.connection.cursor(binary=True).execute(sql, (self.machine,)).fetchall()
        pushed_sessions = {}
        for id, segment, *values in rows:
            *session, next_number, mark, open_calls = values
            shared_session = SharedSession._make(session)
            pushed_sessions[shared_session.key] = PushedSession(
                id, segment, shared_session, next_number, mark, tuple(open_calls)
            )
        return pushed_sessions

    def prepare(self, batch: Sequence[SessionPush]) -> PreparedBatch:
        """Return a batch for `push`, without asking the server.

        Another thread may be pushing meanwhile."""
        return prepared(batch, self._terms.of)

    def push(self, batch: PreparedBatch) -> bool:
        """Write all of a batch and return True.

        Write nothing and return False if another process is pushing one of its sessions."""
        from psycopg import Rollback

        with self.asking(), self.connection.transaction() as transaction:
            open_segments = self._open_segments(batch.sessions)
            ids = self._locked(batch.sessions, open_segments)
            if 0 in ids:
                raise Rollback(transaction)
            self._write_items(batch.sessions, ids)
            self._write_postings(batch, ids, open_segments)
            self._write_conversations(batch.sessions, ids)
            self._write_sessions(batch.sessions, ids)
            return True
        return False

    def withdraw(self, sessions: Iterable[PushedSession]) -> None:
        """Delete the copies of sessions, segment by segment.

        For too many at once, the server would take too long."""
        by_segment: defaultdict[int, list[int]] = defaultdict(list)
        for pushed_session in sessions:
            by_segment[pushed_session.segment].append(pushed_session.id)
        for segment, ids in sorted(by_segment.items()):
            with self.asking(), self.connection.transaction():
                self.connection.execute("SELECT FROM segment WHERE id = %s FOR UPDATE", (segment,))
                for table in ("item", "conversation", "changed_file", "handoff"):
                    self.connection.execute(f"DELETE FROM {table} WHERE session = ANY(%s)", (ids,))
                self.connection.execute("DELETE FROM session WHERE id = ANY(%s)", (ids,))
                self._withdraw_postings(segment, ids)

    def _withdraw_postings(self, segment: int, sessions: list[int]) -> None:
        """Remove the items of deleted sessions from a segment's postings; delete it if empty."""
        cursor = self.connection.cursor(binary=True)
        left = frozenset(
            [
                id
                for (id,) in cursor.execute("SELECT id FROM session WHERE segment = %s", (segment,))
            ]
        )
        if not left:
            cursor.execute("DELETE FROM posting WHERE segment = %s", (segment,))
            cursor.execute("DELETE FROM segment WHERE id = %s", (segment,))
            return
        having = (
            "SELECT FROM unnest(%s::integer[]) AS gone WHERE position(int4send(gone) IN items) > 0"
        )
        sql = f"DELETE FROM posting WHERE segment = %s AND EXISTS ({having}) RETURNING term, items"
        kept = [
            (term, unpacked(items, left))
            for term, items in cursor.execute(sql, (segment, sessions))
        ]
        self._insert_postings([(segment, term, packed(items)) for term, items in kept if items], [])

    def withdraw_all(self) -> int:
        """Delete everything that this machine has pushed, and its membership.

        Return the number of sessions."""
        known = self.pushed().values()
        self.withdraw(known)
        with self.asking():
            self.connection.execute(
                "DELETE FROM machine WHERE owner = current_user AND name = %s", (self.machine,)
            )
        return len(known)

    def _locked(
        self, sessions: Sequence[PreparedSession], open_segments: dict[str, int]
    ) -> list[int]:
        """Lock the sessions and return their numbers, 0 for one that was pushed since `before`.

        Another process has pushed it."""
        new = [session.push.session for session in sessions if session.push.before is None]
        added = {}
        if new:
            columns = ", ".join(("machine", "segment", *_SESSION))
            sql = (
                f"INSERT INTO session ({columns}) SELECT {columns} FROM {_GIVEN} "
                "ON CONFLICT (owner, machine, home, file_path) DO NOTHING RETURNING "
                "home, file_path, id"
            )
            rows = [
                {
                    **session._asdict(),
                    "machine": self.machine,
                    "segment": open_segments[session.share],
                }
                for session in new
            ]
            added = {
                (home, path): id for home, path, id in self.connection.execute(sql, (_given(rows),))
            }
        known = sorted([session.push.before.id for session in sessions if session.push.before])
        sql = "SELECT id, next_number, mark FROM session WHERE id = ANY(%s) ORDER BY id FOR UPDATE"
        states = (
            {id: (number, mark) for id, number, mark in self.connection.execute(sql, (known,))}
            if known
            else {}
        )
        ids = []
        for shared_session, before in [
            (session.push.session, session.push.before) for session in sessions
        ]:
            is_as_before = before is None or states.get(before.id) == (
                before.next_number,
                before.mark,
            )
            ids.append(
                (before.id if before else added.get(shared_session.key, 0)) if is_as_before else 0
            )
        return ids

    def _open_segments(self, sessions: Sequence[PreparedSession]) -> dict[str, int]:
        """Return the segments for new sessions, by the people with whom these are shared.

        They and the known ones are locked before anything else: processes of one machine wait for
        each other only here."""
        sql = (
            "SELECT id, share, item_count FROM segment WHERE id = ANY(%s) OR id IN "
            "(SELECT max(id) FROM segment WHERE owner = current_user AND machine = "
            "%s GROUP BY share) "
            "ORDER BY id FOR UPDATE"
        )
        known = list({session.push.before.segment for session in sessions if session.push.before})
        segments = self.connection.execute(sql, (known, self.machine)).fetchall()
        newest = {share: id for id, share, count in segments}
        full = {id for id, _, count in segments if count >= SEGMENT_ITEMS}
        for share in sorted(
            {session.push.session.share for session in sessions if session.push.before is None}
        ):
            if newest.get(share, 0) in full or share not in newest:
                sql = "INSERT INTO segment (machine, share) VALUES (%s, %s) RETURNING id"
                [(newest[share],)] = self.connection.execute(sql, (self.machine, share))
        return newest

    def _copy(self, table: str, rows: Iterable[tuple[Any, ...]]) -> None:
        cursor = self.connection.cursor()
        cursor.execute(f"TRUNCATE {table}")
        with cursor.copy(f"COPY {table} FROM STDIN (FORMAT BINARY)") as copy:
            copy.set_types(_COLUMNS[table])
            for row in rows:
                copy.write_row(row)

    def _write_items(self, sessions: Sequence[PreparedSession], ids: Sequence[int]) -> None:
        self._copy(
            "staged_item",
            [(id, *row) for id, session in zip(ids, sessions) for row in session.rows],
        )
        cursor = self.connection.cursor()
        cursor.execute("INSERT INTO item SELECT * FROM staged_item")
        ended = [
            (
                item.outcome,
                storable(item.error),
                item.result_size,
                item.result_lines,
                id,
                item.id & NUMBERS,
            )
            for id, session in zip(ids, sessions)
            for item in session.push.ended
        ]
        if ended:
            cursor.executemany(
                "UPDATE item SET outcome = %s, error = %s, result_size = %s, result_lines = %s "
                "WHERE session = %s AND number = %s",
                ended,
            )

    def _write_postings(
        self, batch: PreparedBatch, ids: Sequence[int], open_segments: dict[str, int]
    ) -> None:
        """Write the rows for segments of known sessions, then the rows for segments of new ones.

        They may be the same segments. An empty segment has no rows to extend, which takes half the
        time."""
        for kind in (int, str):
            added = {
                open_segments[segment] if isinstance(segment, str) else segment: of
                for segment, of in batch.segments.items()
                if isinstance(segment, kind)
            }
            if added:
                sql = (
                    "UPDATE segment SET item_count = item_count + added.count FROM "
                    "unnest(%s::bigint[], %s::bigint[]) "
                    "AS added (id, count) WHERE segment.id = added.id "
                    "RETURNING segment.id, segment.item_count > added.count"
                )
                counts = [of.item_count for of in added.values()]
                grown = [
                    segment
                    for segment, had in self.connection.execute(sql, (list(added), counts))
                    if had
                ]
                rows = chain.from_iterable(
                    [of.copied(segment, ids) for segment, of in added.items()]
                )
                self._insert_postings(rows, grown)

    def _insert_postings(self, rows: Iterable[tuple[int, str, bytes]], grown: list[int]) -> None:
        """Write rows of `posting`.

        Only segments that have `grown` may have some of them already."""
        self._copy("staged_posting", rows)
        insert = (
            "INSERT INTO posting (segment, term, items) SELECT * FROM staged_posting WHERE segment"
        )
        cursor = self.connection.cursor()
        cursor.execute(f"{insert} != ALL(%s)", (grown,))
        if grown:
            appended = (
                "ON CONFLICT (term, segment) DO UPDATE SET items = posting.items || excluded.items"
            )
            cursor.execute(f"{insert} = ANY(%s) {appended}", (grown,))

    def _write_conversations(self, sessions: Sequence[PreparedSession], ids: Sequence[int]) -> None:
        """Write the conversations with one statement.

        For each statement, the policy reads all sessions of the member."""
        spans = [(id, *span) for id, session in zip(ids, sessions) for span in session.push.spans]
        if spans:
            self.connection.execute(
                "INSERT INTO conversation SELECT * FROM unnest(%s::bigint[], %s::integer[], "
                "%s::integer[], "
                "%s::bigint[], %s::bigint[], %s::integer[], %s::bigint[]) "
                "ON CONFLICT (session, first_number) DO UPDATE SET last_number = "
                "excluded.last_number, "
                "first_at = excluded.first_at, last_at = excluded.last_at, message_count = "
                "excluded.message_count, "
                "text_bytes = excluded.text_bytes",
                [list(column) for column in zip(*spans)],
            )

    def _write_sessions(self, sessions: Sequence[PreparedSession], ids: Sequence[int]) -> None:
        set_to = [
            f"{column} = given.{column}"
            for column in (*_CHANGEABLE, "next_number", "mark", "open_calls")
        ]
        raised = [f"{column} = session.{column} + given.{column}" for column in _COUNTS]
        rows = [
            {
                **session.push.session._asdict(),
                "id": id,
                "next_number": session.push.next_number,
                "mark": session.mark,
                "open_calls": session.open_calls,
                **{column: getattr(session, column) for column in _COUNTS},
            }
            for id, session in zip(ids, sessions)
        ]
        self.connection.execute(
            f"UPDATE session SET {', '.join(set_to + raised)}, pushes = session.pushes + 1, "
            f"pushed_at = {NOW} "
            # or it reads all sessions
            f"FROM {_GIVEN} AS given WHERE session.id = given.id AND session.id = ANY(%s)",
            (_given(rows), list(ids)),
        )


def _given(rows: Sequence[dict[str, Any]]) -> str:
    """Return rows of `session` for `_GIVEN`, in one statement and one round trip."""
    return json.dumps(
        [
            {
                name: storable(value) if isinstance(value, str) else value
                for name, value in row.items()
            }
            for row in rows
        ]
    )
