"""Reads an agent's database while OpenClaw writes to it."""

from __future__ import annotations

from ....common.system.json import as_object, as_string, decode
from .._database import DatabaseOfSessions, Error
from .rows import WindowRow

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    Row = dict[str, Any]

__all__ = ["AgentDatabase", "Error"]

_EVENTS, _WINDOWS, _NODES = "transcript_events", "session_windows", "session_nodes"
_REWRITES = "transcript_rewrite_watermarks"


class AgentDatabase(DatabaseOfSessions):
    """A connection to an agent's database."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self._tables: list[str] = []

    @property
    def tables(self) -> list[str]:
        if not self._tables:
            self._tables = self.strings("SELECT name FROM sqlite_master WHERE type = 'table'")
        return self._tables

    @property
    def has_sessions(self) -> bool:
        return _EVENTS in self.tables

    @property
    def is_known(self) -> bool:
        """Return whether the tables of sessions are those that this program reads."""
        return {_EVENTS, _WINDOWS, _NODES} <= {*self.tables}

    def sessions_since(self, updated: int) -> list[WindowRow]:
        """Return the sessions that changed since `updated`, the latest first.

        `updated` is in milliseconds since 1970. The table has a short row for each session."""
        statement = (
            f"SELECT * FROM {_WINDOWS} WHERE max(updated_at, ifnull(transcript_updated_at, 0)) >= ?"
        )
        windows = list(self.rows_of(statement, updated))
        sessions = [WindowRow(window, self._node(window.get("session_key"))) for window in windows]
        return sorted(sessions, key=lambda session: session.updated, reverse=True)

    def session_ids(self) -> list[str]:
        return self.strings(f"SELECT session_id FROM {_WINDOWS}")

    def parents(self, session: WindowRow) -> WindowRow | None:
        """Return the session that started a sub-agent, directly or by others; None if it is gone.

        Return the session itself if it is not a sub-agent's."""
        seen = set()
        while session.is_of_subagent:
            seen.add(session.key)
            node = self._node(session.spawned_by)
            if not node or session.spawned_by in seen:
                return None
            window = {
                "session_id": node.get("current_session_id"),
                "session_key": session.spawned_by,
            }
            session = WindowRow(window, node)
        return session

    def first(self, session_id: str) -> Row:
        """Return the first record of a session; empty if there is none."""
        for _, record in self.records(session_id, 0, 1):
            return record
        return {}

    def next_row(self, session_id: str) -> int:
        """Return the number after a session's last row."""
        statement = f"SELECT max(seq) FROM {_EVENTS} WHERE session_id = ?"
        (last,) = self.connection.execute(statement, (session_id,)).fetchone()
        return last + 1 if isinstance(last, int) else 0

    def generation(self, session_id: str) -> str:
        """Return a mark that changes when OpenClaw replaces rows of a session; '' if unknown."""
        if _REWRITES not in self.tables:
            return ""
        statement = f"SELECT generation FROM {_REWRITES} WHERE session_id = ?"
        return next(iter(self.strings(statement, session_id)), "")

    def records(self, session_id: str, begin: int, count: int = -1) -> Iterator[tuple[int, Row]]:
        """Yield the rows of a session from `begin` on: the number, and the record.

        The record is empty if it cannot be read."""
        statement = (
            f"SELECT seq, event_json FROM {_EVENTS} WHERE session_id = ? AND seq >= ? "
            f"ORDER BY seq LIMIT ?"
        )
        for seq, text in self.connection.execute(statement, (session_id, begin, count)):
            yield seq, _decoded(text)

    def _node(self, key: object) -> Row:
        statement = f"SELECT * FROM {_NODES} WHERE session_key = ?"
        return next(self.rows_of(statement, as_string(key)), {})


def _decoded(text: object) -> Row:
    """Return the object in a column; empty if there is none."""
    try:
        return as_object(decode(text) if isinstance(text, str) else None)
    except ValueError:
        return {}
