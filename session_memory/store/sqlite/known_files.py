"""Reads what the database knows of transcripts, without the whole engine, to find out if anything is new."""

from __future__ import annotations

from ...settings.sections import StoreSettings
from ...system.sqlite import open_file
from ..ingest.sources import FOREIGN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from apsw import Connection

    from ...system.files import Stamp

BUSY_MILLISECONDS = 1000
RETRY_MILLISECONDS = 24 * 3_600_000  # before a failed file is retried, unless it changes
_IDLE = """
    SELECT file_path, inode, file_size, last_modified FROM memory_file_states
    WHERE home = ? AND root = ? AND status = 'idle' AND source != 'archive'
"""
_UNREAD = """
    SELECT file_path, inode, file_size, last_modified, noted_at FROM memory_unread_files
    WHERE home = ? AND root = ?
"""
_FAULTS = "SELECT 1 FROM memory_unread_files WHERE home = ? AND problem != ? LIMIT 1"
_UNFINISHED = "SELECT count(*) FROM memory_file_states WHERE home = ? AND status = 'ingesting'"
_ENDED = "SELECT 1 FROM memory_conversations WHERE status = 'active' AND coalesce(last_message_at, 0) < ? LIMIT 1"


def connected(database: str) -> Connection:
    """Return a connection to an existing database. Raises the errors of apsw."""
    connection = open_file(database)
    connection.set_busy_timeout(BUSY_MILLISECONDS)
    return connection


def gap_minutes(connection: Connection) -> int:
    """Return the silence after which conversations were cut: the database keeps it as its `user_version`."""
    rows: list[tuple[int]] = connection.execute("PRAGMA user_version").fetchall()  # type: ignore[assignment]
    return rows[0][0] or StoreSettings().gap_minutes


def has_ended(connection: Connection, before: int) -> bool:
    """Check if an active conversation has no message since `before` (milliseconds since the epoch)."""
    return bool(connection.execute(_ENDED, (before,)).fetchall())


def is_unfinished(connection: Connection, home: str) -> bool:
    """Check if a file of a group was not read to its end."""
    return connection.execute(_UNFINISHED, (home,)).fetchall() != [(0,)]


def has_faults(connection: Connection, home: str) -> bool:
    """Check if a transcript of a group failed to ingest."""
    return bool(connection.execute(_FAULTS, (home, FOREIGN)).fetchall())


def known_files(connection: Connection, home: str, root: str) -> dict[str, Stamp]:
    """Return the stamps of a group's files that are there, below a root, by key."""
    rows: Any = connection.execute(_IDLE, (home, root))
    return {key: (inode, size, modified) for key, inode, size, modified in rows}


def unread_files(connection: Connection, home: str, root: str) -> dict[str, tuple[Stamp, int]]:
    """Return the failed files of a group below a root, by key: their stamps, and when the failure was noted."""
    rows: Any = connection.execute(_UNREAD, (home, root))
    return {key: ((inode, size, modified), noted_at) for key, inode, size, modified, noted_at in rows}
