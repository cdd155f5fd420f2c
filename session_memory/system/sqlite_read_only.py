"""A SQLite file read as it lies there: nothing is written, made or locked, as where a disk is full or read-only."""

from __future__ import annotations

import os

import apsw

_NAME = "session-memory-reading"


class _UnlockedFile(apsw.VFSFile):
    """A file whose locks are had at once: the file system may not even keep one."""

    def xLock(self, level: int) -> None:
        """Does nothing."""

    def xUnlock(self, level: int) -> None:
        """Does nothing."""

    def xCheckReservedLock(self) -> bool:
        """Nobody has one."""
        return False


class _UnlockedFiles(apsw.VFS):
    def __init__(self) -> None:
        super().__init__(_NAME, "")

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:
        """Any file that SQLite opens."""
        return _UnlockedFile("", name, flags)


def open_as_it_is(path: str) -> apsw.Connection:
    """A connection to the database at `path`, which has no link in it, with what its write-ahead log holds. The index
    of that log is kept in memory, not in a file. What another process writes meanwhile may look like damage. Raises
    what apsw raises."""
    _files = _UnlockedFiles()  # from here on kept by the connection
    has_log = os.path.exists(f"{path}-wal") and os.path.getsize(f"{path}-wal") > 0
    # Without a log SQLite would make one, unless it is told that nothing ever changes.
    name = path if has_log else "file:" + path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_NOFOLLOW | (0 if has_log else apsw.SQLITE_OPEN_URI)
    connection = apsw.Connection(name + ("" if has_log else "?immutable=1"), flags=flags, vfs=_NAME)
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, True)
    connection.execute("PRAGMA locking_mode = exclusive; PRAGMA temp_store = memory")
    return connection
