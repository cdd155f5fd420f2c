"""SQLite files: created for this user alone, migrated by named functions, set aside where they are corrupt."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from ..errors import SessionMemoryError
from ..text.timestamps import iso_time
from .files import lock, open_private, open_regular

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from apsw import Connection

    Migration = Callable[[Connection], None]

UPDATE = "update session-memory: python3 install.py"
BUSY_MILLISECONDS = 30_000
LOCK_WAIT_SECONDS = 10.0
PAGE_CACHE_KIBIBYTES = 16 * 1024
LEAST_FREE_PAGES = 32  # fewer free pages are no reason for a VACUUM
CORRUPT, OUTDATED = "corrupt", "outdated"  # why a file was set aside, as its new name says
FREE_SHARE = 4  # nor is less than a quarter of all pages


class DatabaseError(SessionMemoryError):
    """The database cannot be used as it is: locked for long, full disk, no permission."""


class CorruptDatabaseError(DatabaseError):
    """The file is no database, or a damaged one."""


class OutdatedDatabaseError(CorruptDatabaseError):
    """The database has tables from before the first migration, so that it cannot be migrated."""


class NewerDatabaseError(DatabaseError):
    """A newer version of the program has migrated the database: it can be read, but not written."""


class Database:
    """An open file, made by `migrations` where it is missing. `is_newer`: it can only be read.

    A file that is corrupt or outdated is set aside, and a new one made: `set_aside` is where it went ('' if none did).
    Before that `salvage` is called with its path, to keep what can be read of it.
    """

    def __init__(
        self, path: str, migrations: Sequence[Migration], salvage: Callable[[str], None] | None = None
    ) -> None:
        self.path = path
        self._salvage = salvage
        self.set_aside = ""
        try:
            self.connection, self.is_newer = _opened(path, migrations)
        except CorruptDatabaseError:
            held = lock(f"{path}.lock", LOCK_WAIT_SECONDS)
            try:
                self.connection, self.is_newer = self._opened_anew(path, migrations)
            finally:
                os.close(held)

    def _opened_anew(self, path: str, migrations: Sequence[Migration]) -> tuple[Connection, bool]:
        """To be called under the lock. Tries again first: another process may have set the file aside by now."""
        try:
            return _opened(path, migrations)
        except CorruptDatabaseError as error:
            if self._salvage:
                self._salvage(path)
            self.set_aside = set_aside(path, OUTDATED if isinstance(error, OutdatedDatabaseError) else CORRUPT)
            return _opened(path, migrations)

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """A transaction for writing, rolled back if the block raises. Raises DatabaseError."""
        if self.is_newer:
            raise NewerDatabaseError(f"{self.path}: made by a newer version, so it is only read", UPDATE)
        with explained(self.path), writing(self.connection):
            yield self.connection

    def close(self) -> None:
        """Closes the file."""
        self.connection.close()


def connect(path: str, synchronous: str = "normal") -> Connection:
    """A connection to the database at `path`, created with mode 0600 where it is missing.

    Commits reach the disk before they return where `synchronous` is full. Raises OSError, also where a link or anything
    else stands there, and what apsw raises.
    """
    import apsw

    os.close(open_private(path, os.O_RDWR))
    os.close(open_regular(path))
    connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_NOFOLLOW)
    try:
        connection.set_busy_timeout(BUSY_MILLISECONDS)
        _choose_wal(connection)
        connection.execute(f"PRAGMA synchronous = {synchronous}; PRAGMA temp_store = memory")
        connection.execute(f"PRAGMA cache_size = -{PAGE_CACHE_KIBIBYTES}")
    except BaseException:
        connection.close()
        raise
    return connection


@contextmanager
def writing(connection: Connection) -> Iterator[None]:
    """A transaction that holds the write lock from its beginning, so that nobody changes what it has read."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # some failures, such as a full disk, have ended it already
            connection.execute("ROLLBACK")
        raise


def migrate(connection: Connection, migrations: Sequence[Migration]) -> None:
    """Applies the migrations that the database has no record of, in order, each in one transaction with its record."""
    applied = _applied(connection)
    missing = [migration for migration in migrations if migration.__name__ not in applied]
    for migration in missing:
        with writing(connection):
            connection.execute(
                "CREATE TABLE IF NOT EXISTS migrations (name TEXT PRIMARY KEY, applied_at TEXT NOT NULL)"
            )
            if migration.__name__ not in _applied(connection):
                migration(connection)
                applied_at = iso_time(time.time())
                connection.execute("INSERT INTO migrations VALUES (?, ?)", (migration.__name__, applied_at))
    if missing:
        give_back(connection)


def give_back(connection: Connection) -> None:
    """Makes the file smaller if much of it is unused. Where the disk is full or another process is writing, nothing is
    done: SQLite uses free pages again."""
    import apsw

    free = connection.pragma("freelist_count")
    if free < LEAST_FREE_PAGES or free * FREE_SHARE <= connection.pragma("page_count"):
        return
    connection.set_busy_timeout(0)
    try:
        connection.execute("PRAGMA temp_store = file; VACUUM; PRAGMA wal_checkpoint(truncate)")
    except apsw.Error:
        pass
    finally:
        connection.set_busy_timeout(BUSY_MILLISECONDS)
        connection.execute("PRAGMA temp_store = memory")


@contextmanager
def explained(path: str) -> Iterator[None]:
    """Turns what apsw raises within the block into a DatabaseError that says what is wrong and what to do."""
    import apsw

    try:
        yield
    except (apsw.CorruptError, apsw.NotADBError) as error:
        raise CorruptDatabaseError(f"{path}: {error}", "the next run sets it aside and builds a new one") from error
    except apsw.BusyError as error:
        raise DatabaseError(f"{path}: another process has kept it locked", "try again when that is done") from error
    except apsw.FullError as error:
        raise DatabaseError(f"{path}: the disk is full", "nothing was lost: make room and run it again") from error
    except (apsw.CantOpenError, apsw.ReadOnlyError, apsw.IOError, apsw.PermissionsError) as error:
        raise DatabaseError(f"{path}: {error}") from error


def fetch(connection: Connection, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
    """All rows of a statement."""
    return connection.execute(sql, values).fetchall()


def set_aside(path: str, why: str = CORRUPT) -> str:
    """Moves a database that cannot be used out of the way, with its write-ahead log, to `<path>.<why>-<time>`. Returns
    the new path. Raises OSError."""
    aside = f"{path}.{why}-{time.strftime('%Y%m%d-%H%M%S')}"
    number = 2
    while os.path.lexists(aside):
        aside, number = f"{aside.partition('~')[0]}~{number}", number + 1
    for suffix in ("-wal", "-shm", ""):
        if os.path.lexists(path + suffix):
            os.replace(path + suffix, aside + suffix)
    return aside


def _opened(path: str, migrations: Sequence[Migration]) -> tuple[Connection, bool]:
    """The connection, and whether the database is newer: then it has migrations that we do not, and is not migrated."""
    with explained(path):
        connection = connect(path)
        try:
            applied = _applied(connection)
            if applied and migrations[0].__name__ not in applied:
                raise OutdatedDatabaseError(f"{path}: made by an earlier version")
            if applied - {migration.__name__ for migration in migrations}:
                return connection, True
            migrate(connection, migrations)
        except BaseException:
            connection.close()
            raise
        return connection, False


def _applied(connection: Connection) -> set[str]:
    if not fetch(connection, "SELECT 1 FROM sqlite_schema WHERE name = 'migrations'"):
        return set()
    return {name for (name,) in fetch(connection, "SELECT name FROM migrations")}


def _choose_wal(connection: Connection) -> None:
    """Switches the database to WAL. SQLite does not wait for its busy timeout where several do this at once: we do."""
    import apsw

    deadline = time.monotonic() + BUSY_MILLISECONDS / 1000
    while True:
        try:
            connection.pragma("journal_mode", "wal")
        except apsw.BusyError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)
        else:
            return
