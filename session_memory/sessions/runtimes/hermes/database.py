"""Reads the database of Hermes while Hermes writes to it."""

from __future__ import annotations

from zlib import crc32

from .._database import DatabaseOfSessions, Error
from .rows import AMOUNTS, HermesSession, HermesUsage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    Row = dict[str, Any]

__all__ = ["Error", "HermesDatabase"]

_NEEDED = {
    "sessions": ("id", "source", "parent_session_id", "started_at", "title"),
    "messages": ("id", "session_id", "role", "content", "tool_calls", "tool_call_id", "timestamp"),
}
_FURTHER = {  # columns that some versions lack
    "sessions": ("model", "model_config", "end_reason", "cwd"),
    "messages": (
        "tool_name",
        "effect_disposition",
        "reasoning",
        "reasoning_content",
        "observed",
        "active",
        "compacted",
        "api_content",
    ),
}

_USAGE = "session_model_usage"  # some versions lack it

LAST = 2**63 - 1  # the highest number of a row


class ChangedSession:
    """A session, and when its last message was written, in milliseconds since 1970."""

    def __init__(self, session_id: str, seconds: float) -> None:
        self.id = session_id
        self.updated = int(seconds * 1000)


class HermesDatabase(DatabaseOfSessions):
    """A connection to the database."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self._known_columns: dict[str, list[str]] = {}

    def _columns(self, table: str) -> list[str]:
        """Return the names of a table's columns; none if there is no such table."""
        if table not in self._known_columns:
            statement = "SELECT name FROM pragma_table_info(?)"
            self._known_columns[table] = self.strings(statement, table)
        return self._known_columns[table]

    @property
    def has_sessions(self) -> bool:
        return bool(self._columns("messages"))

    @property
    def is_known(self) -> bool:
        """Return whether the tables of sessions are those that this program reads."""
        return all({*needed} <= {*self._columns(table)} for table, needed in _NEEDED.items())

    def sessions_since(self, updated: int) -> list[ChangedSession]:
        """Return the sessions with messages since `updated`, the latest first.

        `updated` is in milliseconds since 1970. Only indexes are read: a session's row has a long
        prompt of the system."""
        statement = (
            "SELECT id, (SELECT max(timestamp) FROM messages WHERE session_id = sessions.id) "
            "FROM sessions"
        )
        changed = [
            ChangedSession(session_id, last)
            for session_id, last in self.connection.execute(statement)
            if isinstance(session_id, str) and isinstance(last, float) and 0 < last < 1e11
        ]
        changed = [session for session in changed if session.updated >= updated]
        return sorted(changed, key=lambda session: session.updated, reverse=True)

    def session_ids(self) -> list[str]:
        return self.strings("SELECT id FROM sessions")

    def session(self, session_id: str) -> HermesSession | None:
        row = self._row("sessions", session_id)
        return HermesSession(row) if row else None

    def ancestors(self, session: HermesSession) -> list[HermesSession]:
        """Return the sessions from which this one comes, the nearest first."""
        above_it: list[HermesSession] = []
        seen = {session.id}
        while session.parent and session.parent not in seen:
            seen.add(session.parent)
            above = self.session(session.parent)
            if above is None:
                break
            above_it.append(above)
            session = above
        return above_it

    def numbers(self, session_id: str, first: int, last: int = LAST) -> list[int]:
        """Return the numbers of a session's rows between two, which are included, in order.

        Rows that a person undid are left out; a compaction leaves the earlier rows valid."""
        is_valid = "AND (active = 1 OR compacted = 1)" if self._has_states else ""
        return self._numbers(session_id, first, last, is_valid)

    def all_numbers(self, session_id: str, first: int, last: int = LAST) -> list[int]:
        """Return `numbers`, with rows that a person undid."""
        return self._numbers(session_id, first, last, "")

    def _numbers(self, session_id: str, first: int, last: int, condition: str) -> list[int]:
        statement = (
            f"SELECT id FROM messages WHERE session_id = ? AND id BETWEEN ? AND ? {condition}"
        )
        rows = self.connection.execute(statement, (session_id, first, last))
        return sorted([number for (number,) in rows])

    def compacted(self, session_id: str) -> int:
        """Return the number of the last row before a compaction in place; 0 if there was none."""
        if not self._has_states:
            return 0
        statement = (
            "SELECT max(id) FROM messages WHERE session_id = ? AND active = 0 AND compacted = 1"
        )
        (number,) = self.connection.execute(statement, (session_id,)).fetchone()
        return number or 0

    @property
    def _has_states(self) -> bool:
        return {"active", "compacted"} <= {*self._columns("messages")}

    def kept_rows(self, session_id: str) -> Iterator[Row]:
        """Yield the row of a session, then its messages, in order, with all their columns."""
        yield from self.rows_of("SELECT * FROM sessions WHERE id = ?", session_id)
        for number in self.numbers(session_id, 0):
            yield from self.rows_of("SELECT * FROM messages WHERE id = ?", number)

    def stamp(self, changed: ChangedSession) -> list[int]:
        """Return numbers that differ once a session's messages or its title have changed.

        The third one is the time of its last message, in nanoseconds since 1970."""
        numbers, session = self.numbers(changed.id, 0), self.session(changed.id)
        title = crc32(session.title.encode("utf-8", "replace")) if session else 0
        last = numbers[-1] if numbers else 0
        return [last, len(numbers), changed.updated * 1_000_000, title]

    def message(self, number: int) -> Row:
        return self._row("messages", number)

    def usages(self, session_id: str) -> list[HermesUsage]:
        """Return the tokens of a session so far, by model and purpose."""
        if not {"session_id", "model", "last_seen", *AMOUNTS} <= {*self._columns(_USAGE)}:
            return []
        rows = self.rows_of(f"SELECT * FROM {_USAGE} WHERE session_id = ?", session_id)
        return [HermesUsage(session_id, row) for row in rows]

    def _row(self, table: str, row_id: object) -> Row:
        """Return the row with an id; empty if there is none."""
        known = self._columns(table)
        names = [name for name in (*_NEEDED[table], *_FURTHER[table]) if name in known]
        return next(
            self.rows_of(f"SELECT {', '.join(names)} FROM {table} WHERE id = ?", row_id), {}
        )
