"""What the database knows of transcripts, as far as is asked where nothing is new: read without the whole engine."""

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
RETRY_MILLISECONDS = 24 * 3_600_000  # so long what could not be taken in is left alone, unless it changes
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
    """A connection to a database that is there. Raises what apsw raises."""
    connection = open_file(database)
    connection.set_busy_timeout(BUSY_MILLISECONDS)
    return connection


def gap_minutes(connection: Connection) -> int:
    """The silence after which conversations were cut: the database keeps it as its `user_version`."""
    rows: list[tuple[int]] = connection.execute("PRAGMA user_version").fetchall()  # type: ignore[assignment]
    return rows[0][0] or StoreSettings().gap_minutes


def has_ended(connection: Connection, before: int) -> bool:
    """Whether there is an active conversation without a message since `before`, in milliseconds since the epoch."""
    return bool(connection.execute(_ENDED, (before,)).fetchall())


def is_unfinished(connection: Connection, home: str) -> bool:
    """Whether a file of a group was not read to its end."""
    return connection.execute(_UNFINISHED, (home,)).fetchall() != [(0,)]


def has_faults(connection: Connection, home: str) -> bool:
    """Whether a transcript of a group could not be taken in."""
    return bool(connection.execute(_FAULTS, (home, FOREIGN)).fetchall())


def known_files(connection: Connection, home: str, root: str) -> dict[str, Stamp]:
    """The stamps of a group's files that are there, below a root, by key."""
    rows: Any = connection.execute(_IDLE, (home, root))
    return {key: (inode, size, modified) for key, inode, size, modified in rows}


def unread_files(connection: Connection, home: str, root: str) -> dict[str, tuple[Stamp, int]]:
    """The stamps of a group's files, below a root, that could not be taken in, and when that was noted, by key."""
    rows: Any = connection.execute(_UNREAD, (home, root))
    return {key: ((inode, size, modified), noted_at) for key, inode, size, modified, noted_at in rows}
