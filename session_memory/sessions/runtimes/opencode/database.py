"""Reads OpenCode's database while OpenCode writes to it.

Every statement uses an index or row ids, so the database's size does not matter. The only exception
is the list of all sessions, which reads a table and which no prompt asks for twice."""

from __future__ import annotations

from ....common.system.json import as_string
from .._database import DatabaseOfSessions, Error
from .rows import MessageRow, SessionRow, decoded, milliseconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

__all__ = ["DatabaseReader", "Error"]

_SESSION = (
    "SELECT id, parent_id, project_id, directory, title, time_created, time_updated, "
    "revert FROM session"
)
_LAST_ASSISTANT = """
    SELECT id FROM message WHERE session_id = ? AND data LIKE '%"role":"assistant"%'
    ORDER BY time_created DESC, id DESC LIMIT 1
"""
# The oldest session with a message of that time is the message's origin; all others copied it. The
# `+` keeps SQLite from searching for each time in each session.
_ORIGINALS = """
    SELECT message.time_created, message.data LIKE '%"role":"assistant"%', message.id
    FROM session CROSS JOIN message ON message.session_id = session.id
    WHERE session.project_id = ?1 AND session.time_created < ?2 AND message.time_created >= ?3
        AND message.time_created < ?2 AND +message.time_created IN
            (SELECT time_created FROM message WHERE session_id = ?4 AND time_created >= ?3 AND time_created < ?2)
    ORDER BY session.time_created DESC, message.id DESC
"""


class DatabaseReader(DatabaseOfSessions):
    """A connection to OpenCode's database."""

    def rows(self, table: str, column: str, value: str) -> Iterator[dict[str, Any]]:
        """Yield the rows of a table with this value, in any version of OpenCode.

        They are ordered by time, if they have one, and then by id."""
        order = " ORDER BY time_created, id" if table == "message" else " ORDER BY id"
        yield from self.rows_of(f"SELECT * FROM {table} WHERE {column} = ?{order}", value)

    def session_stamps(self) -> list[tuple[str, list[int]]]:
        """Return the ids of all sessions, each with numbers that change with every new message."""
        rows = self.connection.execute(
            "SELECT id, time_updated, (SELECT count(*) FROM message WHERE session_id = session.id),"
            " (SELECT max(time_updated) FROM message WHERE session_id = session.id) FROM session"
        )
        return [
            (
                id,
                [
                    count,
                    milliseconds(changed),
                    max(milliseconds(updated), milliseconds(changed)) * 1_000_000,
                ],
            )
            for id, updated, count, changed in rows
            if isinstance(id, str)
        ]

    def parts_after(self, session_id: str, at: int) -> list[tuple[str, dict[str, Any], int]]:
        """Return the parts of a session's last model message that were added after a time.

        Each has its id, its data, and its time in milliseconds."""
        last = self.connection.execute(_LAST_ASSISTANT, (session_id,)).fetchone()
        parts = self.rows("part", "message_id", as_string(last[0])) if last else iter(())
        return [
            (as_string(part["id"]), decoded(part["data"]), milliseconds(part["time_created"]))
            for part in parts
            if milliseconds(part["time_created"]) >= at
        ]

    def last_row(self) -> list[Any]:
        """Return the row and the id of the message that was added last."""
        message = self.connection.execute(
            "SELECT rowid, id FROM message ORDER BY rowid DESC LIMIT 1"
        ).fetchone()
        return [message[0], as_string(message[1])] if message else [0, ""]

    def message_at(self, row: int) -> str:
        """Return the id of the message in a row; '' if there is none."""
        message = self.connection.execute(
            "SELECT id FROM message WHERE rowid = ?", (row,)
        ).fetchone()
        return as_string(message[0]) if message else ""

    def sessions_behind(self, row: int) -> list[str]:
        """Return the ids of the sessions with messages after a row."""
        return self.strings("SELECT session_id FROM message WHERE rowid > ?", row)

    def sessions_since(self, updated: int) -> list[SessionRow]:
        """Return the sessions that changed since `updated`, the latest first.

        `updated` is in milliseconds since 1970."""
        rows = self.connection.execute(
            f"{_SESSION} WHERE time_updated >= ? ORDER BY time_updated DESC", (updated,)
        )
        return [SessionRow(row) for row in rows]

    def session(self, session_id: str) -> SessionRow | None:
        """Return a session; None if it was deleted."""
        row = self.connection.execute(f"{_SESSION} WHERE id = ?", (session_id,)).fetchone()
        return SessionRow(row) if row else None

    def parents(self, session: SessionRow) -> SessionRow:
        """Return the topmost parent of a sub-agent's session; the session itself if it has none."""
        seen = {session.id}
        while session.parent and session.parent not in seen:
            seen.add(session.parent)
            above = self.session(session.parent)
            if above is None:
                break
            session = above
        return session

    def count_behind(self, session_id: str, created: int) -> int:
        """Return how many messages of a session were created at the time `created` or later.

        `created` is in milliseconds since 1970."""
        statement = "SELECT count(*) FROM message WHERE session_id = ? AND time_created >= ?"
        return int(self.connection.execute(statement, (session_id, created)).fetchone()[0])

    def message_ids(self, session_id: str) -> list[str]:
        return self.strings("SELECT id FROM message WHERE session_id = ?", session_id)

    def messages(self, session: SessionRow, created: int) -> Iterator[MessageRow]:
        """Yield the messages of a session that were created at or after a time, in order."""
        last = self.connection.execute(_LAST_ASSISTANT, (session.id,)).fetchone()
        rows = self.connection.execute(
            "SELECT id, time_created, data FROM message WHERE session_id = ? AND time_created >= ?"
            " ORDER BY time_created, id",
            (session.id, created),
        )
        for row in rows:
            if isinstance(row[0], str):
                yield MessageRow(row, session, as_string(last[0]) if last else "")

    def unread(self) -> dict[str, Any]:
        """Return the unread sessions, by name.

        These are sessions that OpenCode has only in tables of a later version."""
        every = self.strings("SELECT name FROM sqlite_master WHERE type = 'table'")
        sessions: set[str] = set()
        for table, column, known in (
            ("session_message", "session_id", "message"),
            ("session_v2", "id", "session"),
        ):
            if table in every:
                sessions.update(
                    self.strings(
                        f"SELECT {column} FROM {table} WHERE {column} NOT IN (SELECT {column} "
                        f"FROM {known})"
                    )
                )
        are = "session is" if len(sessions) == 1 else "sessions are"
        why = (
            f"{len(sessions)} {are} in tables of a newer OpenCode that this version cannot read: "
            f"update session-memory"
        )
        return {self._path.rpartition("/")[2]: [[], why]} if sessions else {}

    def created(self, message_id: str) -> int | None:
        """Return when a message was created; None if it is gone."""
        row = self.connection.execute(
            "SELECT time_created FROM message WHERE id = ?", (message_id,)
        ).fetchone()
        return milliseconds(row[0]) if row else None

    def parts(self, message_id: str) -> list[tuple[str, str]]:
        statement = "SELECT id, data FROM part WHERE message_id = ? ORDER BY id"
        rows = self.connection.execute(statement, (message_id,))
        return [(part_id, data) for part_id, data in rows if isinstance(part_id, str)]

    def part_ids(self, message_id: str) -> list[str]:
        return self.strings("SELECT id FROM part WHERE message_id = ? ORDER BY id", message_id)

    def originals(self, session: SessionRow, created: int) -> dict[tuple[int, str], str]:
        """Return the ids of the originals that a fork's messages copy, by time and role.

        Only messages created at or after `created` count; deleted originals are left out."""
        rows = self.connection.execute(
            _ORIGINALS, (session.project, session.created, created, session.id)
        )
        return {
            (at, "assistant" if is_answer else "user"): message_id
            for at, is_answer, message_id in rows
        }
