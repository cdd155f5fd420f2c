"""Opens a SQLite file strictly read-only, for a full or read-only disk.

Nothing is written, created or locked.
"""

from __future__ import annotations

import os

import apsw

_NAME = "session-memory-reading"


class _UnlockedFile(apsw.VFSFile):
    """A file on which every lock is granted at once; the file system may not support locks."""

    def xLock(self, level: int) -> None:
        """Do nothing."""

    def xUnlock(self, level: int) -> None:
        """Do nothing."""

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
    """Return a connection to the database at `path`, including its write-ahead log.

    `path` has no symlinks. The index of the log is kept in memory. A concurrent writer may look
    like damage. Raises the errors of apsw."""
    _files = _UnlockedFiles()  # from here on kept by the connection
    has_log = os.path.exists(f"{path}-wal") and os.path.getsize(f"{path}-wal") > 0
    # SQLite would create a missing log, unless it is told that nothing ever changes.
    name = (
        path
        if has_log
        else "file:" + path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    )
    flags = (
        apsw.SQLITE_OPEN_READONLY
        | apsw.SQLITE_OPEN_NOFOLLOW
        | (0 if has_log else apsw.SQLITE_OPEN_URI)
    )
    connection = apsw.Connection(name + ("" if has_log else "?immutable=1"), flags=flags, vfs=_NAME)
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, True)
    connection.execute("PRAGMA locking_mode = exclusive; PRAGMA temp_store = memory")
    return connection
