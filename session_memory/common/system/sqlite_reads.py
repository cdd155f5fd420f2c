"""Opens a SQLite file in a way that tells a read refused by the disk from damage.

SQLite calls both malformed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import apsw

from . import sqlite
from .files import irregular

READ_ERROR = (
    "nothing was changed. Try again; if this continues, the disk is failing, so copy the "
    "directory to another disk"
)
_NAME = "session-memory-checking"


class _CheckedFile(apsw.VFSFile):
    def __init__(
        self, name: str | apsw.URIFilename | None, flags: list[int], refused: list[str]
    ) -> None:
        super().__init__("", name, flags)
        self._refused = refused

    def xRead(self, amount: int, offset: int) -> bytes:
        """Read, and note what the disk refuses."""
        try:
            return super().xRead(amount, offset)
        except apsw.IOError as error:
            self._refused.append(f"the disk could not read {amount:,} bytes at {offset:,}: {error}")
            raise


class _CheckedFiles(apsw.VFS):
    def __init__(self, refused: list[str]) -> None:
        super().__init__(_NAME, "")
        self._refused = refused

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:
        """Open any file for SQLite."""
        return _CheckedFile(name, flags, self._refused)


def is_damaged(path: str, migrations: Sequence[sqlite.Migration]) -> bool:
    """Return whether a check of the whole file, over a new connection, finds damage.

    Raises DatabaseError, also if only the disk cannot read the file."""
    if irregular(path):
        return True
    try:
        with sqlite.explained(path), checked_connection(path) as (connection, refused):
            try:
                sqlite.applied_migrations(connection, path, [migrations[0].__name__])
                return sqlite.fetch(connection, "PRAGMA integrity_check(1)") != [("ok",)]
            finally:
                if refused:
                    raise sqlite.DatabaseError(f"{path}: {refused[0]}", READ_ERROR)
    except sqlite.CorruptDatabaseError:
        return True


@contextmanager
def checked_connection(path: str) -> Iterator[tuple[sqlite.Connection, list[str]]]:
    """Yield a new connection to the database at `path`, and a list of reads that the disk refused.

    The list gets a line for each. Raises OSError and the errors of apsw."""
    refused: list[str] = []
    files = _CheckedFiles(refused)
    connection = None
    try:
        connection = sqlite.open_file(path, vfs=_NAME)
        connection.set_busy_timeout(sqlite.BUSY_MILLISECONDS)
        yield connection, refused
    finally:
        if connection is not None:
            connection.close()
        files.unregister()
