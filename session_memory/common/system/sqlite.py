"""SQLite files: created for this user alone, migrated by named functions, moved away if corrupt."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import Lock
from typing import TYPE_CHECKING, Any

from ..errors import SessionMemoryError, described, no_room
from ..text.timestamps import iso_time
from .files import DATABASE_SUFFIXES, NotAFileError, irregular, is_file, open_private

if TYPE_CHECKING:
    from apsw import Connection as Connection
else:
    Connection = object  # a type for those who do not import apsw, which may be missing

Migration = Callable[[Connection], None]
UPDATE = "update session-memory: python3 install.py"
BUSY_MILLISECONDS = 30_000
LOCK_WAIT_SECONDS = 10.0
PAGE_CACHE_KIBIBYTES = 16 * 1024
VACUUM_KIBIBYTES = 2048
LEAST_FREE_PAGES = 32  # fewer free pages are no reason for a VACUUM
FREE_SHARE = 4  # nor is less than a quarter of all pages
# with less free space a device is full: SQLite needs 32 KiB beside a database to open it
FULL_BYTES = 64 * 1024
_MAKE_ROOM = "nothing was lost: free some space and run it again"
_CHECKED_NEXT = (
    "the next run checks it and, if it is damaged, makes a new one from everything that can be read"
)
_MAKE_WRITABLE = (
    "nothing was lost: make the file, its folder and its disk writable, and run any command again"
)
_MOVE_IT = (
    "move the file itself there, or remove the link; SESSION_MEMORY_DIR names another "
    "directory for the store"
)
_PAUSE_SECONDS = 0.01
_opening = Lock()


class DatabaseError(SessionMemoryError):
    """The database cannot be used now: locked for long, full disk, no permission."""


class LockedDatabaseError(DatabaseError):
    """Another process writes to the database for longer than is waited."""


class CorruptDatabaseError(DatabaseError):
    """The file is not a database, or is damaged. `WHY` becomes the suffix of its name."""

    WHY = "corrupt"


class OutdatedDatabaseError(CorruptDatabaseError):
    """The database cannot be migrated: an earlier version made its tables."""

    WHY = "outdated"


class ForeignDatabaseError(CorruptDatabaseError):
    """The database has tables, but no record of our migrations."""

    WHY = "foreign"


class NewerDatabaseError(DatabaseError):
    """A newer version of the program has migrated the database: it can be read, but not written."""


class Patience:
    """The total time that a caller waits for other processes."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def wait(self, _: int = 0) -> bool:
        """Wait for a moment; return False if no time is left. This is a busy handler for SQLite."""
        if self.seconds <= 0:
            return False
        began = time.monotonic()
        time.sleep(_PAUSE_SECONDS)
        self.seconds -= time.monotonic() - began
        return True


class Database:
    """An open database, created with `migrations` if missing.

    `patience` limits the wait for other processes. `is_new` means that the file was just created.
    `obstacle` is the reason why the file is read-only (no space or permission, a newer version);
    None if it is writable. Raises CorruptDatabaseError for a corrupt, outdated or foreign file."""

    SYNCHRONOUS = "normal"  # full: a commit reaches the disk before it returns
    IF_CORRUPT = _CHECKED_NEXT
    REQUIRED: Sequence[str] = ()  # migrations without which it is outdated; () for the first

    def __init__(
        self, path: str, migrations: Sequence[Migration], patience: Patience | None = None
    ) -> None:
        self.path = path
        self._migrations = migrations
        self._patience = patience
        self.is_new = False
        self.obstacle: DatabaseError | None = None
        try:
            self.connection = self._opened()
        except (CorruptDatabaseError, LockedDatabaseError):
            raise
        except DatabaseError as error:
            self.connection = self._opened_as_it_is(error)

    @property
    def is_newer(self) -> bool:
        return isinstance(self.obstacle, NewerDatabaseError)

    def _opened(self) -> Connection:
        """Return a connection to the migrated database. Raises DatabaseError."""
        with _described(self.path, self.IF_CORRUPT):
            connection = _connect(self.path, self.SYNCHRONOUS, self._patience)
            try:
                applied = self._applied(connection)
                if applied - _names(self._migrations):
                    self.obstacle = NewerDatabaseError(
                        f"{self.path}: made by a newer version, so this version only reads it",
                        UPDATE,
                    )
                else:
                    self.is_new = not applied
                    _migrate(connection, self._migrations)
            except BaseException:
                connection.close()
                raise
            return connection

    def _opened_as_it_is(self, error: DatabaseError) -> Connection:
        """Return a read-only connection, for the reason in `error`.

        Raises `error` if there is nothing to read."""
        from ._sqlite_read_only import open_as_it_is

        if not is_file(self.path):
            raise error
        with explained(self.path, self.IF_CORRUPT):
            connection = open_as_it_is(_without_links(self.path))
        try:
            with explained(self.path, self.IF_CORRUPT):
                if _names(self._migrations) <= self._applied(connection):
                    self.obstacle = error
                    return connection
            reason = f"{error}".removeprefix(f"{self.path}: ")
            error = DatabaseError(
                f"{self.path}: this version must update it first, and it cannot be written: {reason}",
                error.hint or _MAKE_WRITABLE,
            )
        except CorruptDatabaseError:
            pass
        connection.close()
        raise error

    def _applied(self, connection: Connection) -> set[str]:
        """Return the names of the applied migrations.

        Raises CorruptDatabaseError for a file to which these migrations do not apply."""
        required = self.REQUIRED or [self._migrations[0].__name__]
        return applied_migrations(connection, self.path, required)

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """Run the block in a write transaction, rolled back if it raises. Raises DatabaseError."""
        if self.obstacle:
            raise self.obstacle
        with explained(self.path, self.IF_CORRUPT), writing(self.connection):
            yield self.connection

    def close(self) -> None:
        self.connection.close()


class SharedDatabase(Database):
    """A database in which other code, or another program, has tables and migrations too.

    Nothing can rebuild it, so a commit reaches the disk before it returns."""

    SYNCHRONOUS = "full"
    IF_CORRUPT = "restore it from a backup, or move it away to start a new one"

    def _applied(self, connection: Connection) -> set[str]:
        return _recorded(connection) & _names(self._migrations)


def _connect(
    path: str, synchronous: str = "normal", patience: Patience | None = None
) -> Connection:
    """Return a connection to the database at `path`, created with mode 0600 if missing.

    With `synchronous` full, a commit reaches the disk before it returns. Raises OSError, also for a
    symlink or any other type of file, and the errors of apsw."""
    connection = open_file(path, create=True)
    try:
        if patience:
            connection.set_busy_handler(patience.wait)
        else:
            connection.set_busy_timeout(BUSY_MILLISECONDS)
        _choose_wal(connection, patience or Patience(BUSY_MILLISECONDS / 1000))
        connection.execute(f"PRAGMA synchronous = {synchronous}; PRAGMA temp_store = memory")
        connection.execute(f"PRAGMA cache_size = -{PAGE_CACHE_KIBIBYTES}")
    except BaseException:
        connection.close()
        raise
    return connection


def open_file(
    path: str, *, create: bool = False, read_only: bool = False, vfs: str | None = None
) -> Connection:
    """Open the database at `path`; with `create`, make it for this user alone if it is missing.

    Only this function opens a database, and only SQLite opens an existing file. When a process
    closes any descriptor of a file, it loses all its locks on that file
    (sqlite.org/howtocorrupt.html, 2.2); another program's SELECT then deletes the log of a
    connection that is still in use. Raises OSError, NotAFileError, and the errors of apsw."""
    import apsw

    _check_regular(path)
    access = apsw.SQLITE_OPEN_READONLY if read_only else apsw.SQLITE_OPEN_READWRITE
    # No other thread may lock the file between its creation and the closing of its descriptor.
    with _opening:
        if create and not os.path.lexists(path):
            with suppress(FileExistsError):
                os.close(open_private(path, os.O_RDWR | os.O_EXCL))
        return apsw.Connection(
            _without_links(path), flags=access | apsw.SQLITE_OPEN_NOFOLLOW, vfs=vfs
        )


def attach(connection: Connection, path: str, name: str) -> None:
    """Attach the existing database at `path` to a connection from `open_file`.

    Raises as `open_file` does."""
    _check_regular(path)
    connection.execute(f"ATTACH ? AS {name}", (_without_links(path),))


def _check_regular(path: str) -> None:
    if stray := irregular(path):
        raise NotAFileError(f"not a regular file: {stray}")


@contextmanager
def writing(connection: Connection) -> Iterator[None]:
    """Run a transaction with the write lock from its beginning.

    No other process can change rows that it has read."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # some failures, such as a full disk, have ended it already
            connection.execute("ROLLBACK")
        raise


def _migrate(connection: Connection, migrations: Sequence[Migration]) -> None:
    """Apply the migrations without a record in the database, in order.

    Each runs in one transaction with its record."""
    applied = _recorded(connection)
    missing = [migration for migration in migrations if migration.__name__ not in applied]
    for migration in missing:
        with writing(connection):
            connection.execute(
                "CREATE TABLE IF NOT EXISTS migrations (name TEXT PRIMARY KEY, applied_at TEXT "
                "NOT NULL)"
            )
            if migration.__name__ not in _recorded(connection):
                migration(connection)
                applied_at = iso_time(time.time())
                connection.execute(
                    "INSERT INTO migrations VALUES (?, ?)", (migration.__name__, applied_at)
                )
    if missing:
        give_back(connection)


def give_back(connection: Connection) -> None:
    """Shrink the file if much is unused, unless the disk is full or another process writes."""
    free = connection.pragma("freelist_count")
    if free >= LEAST_FREE_PAGES and free * FREE_SHARE > connection.pragma("page_count"):
        compact(connection)


def compact(connection: Connection) -> None:
    """Write the file anew in order, unless the disk is full or another process writes."""
    import apsw

    cache = connection.pragma("cache_size")
    connection.set_busy_timeout(0)
    try:
        # the new file gets a cache of this size too
        connection.execute(f"PRAGMA temp_store = file; PRAGMA cache_size = -{VACUUM_KIBIBYTES}")
        connection.execute("VACUUM; PRAGMA wal_checkpoint(truncate)")
    except apsw.Error:
        pass
    finally:
        connection.set_busy_timeout(BUSY_MILLISECONDS)
        connection.execute(f"PRAGMA temp_store = memory; PRAGMA cache_size = {cache}")


@contextmanager
def explained(path: str, if_corrupt: str = _CHECKED_NEXT) -> Iterator[None]:
    """Turn apsw's errors within the block into a DatabaseError with the problem and its remedy.

    The remedy for a corrupt file is `if_corrupt`."""
    import apsw

    try:
        yield
    # only text that is UTF-8 was stored
    except (apsw.CorruptError, apsw.NotADBError, UnicodeDecodeError) as error:
        raise CorruptDatabaseError(f"{path}: {error}", if_corrupt) from error
    except apsw.BusyError as error:
        hint = "try again when that is done"
        raise LockedDatabaseError(
            f"another process is writing to {path} and keeps it locked", hint
        ) from error
    except (
        NotAFileError,
        apsw.CantOpenError,
        apsw.FullError,
        apsw.IOError,
        apsw.PermissionsError,
        apsw.ReadOnlyError,
    ) as error:
        stray = irregular(path)
        if stray and os.path.islink(stray):
            raise DatabaseError(f"{stray}: a symlink, which is not followed", _MOVE_IT) from error
        if stray:
            raise CorruptDatabaseError(f"{stray}: not a regular file") from error
        if isinstance(error, apsw.FullError) or _is_full(path):
            raise DatabaseError(no_room(path), _MAKE_ROOM) from error
        raise DatabaseError(f"{path}: {error}") from error


@contextmanager
def _described(path: str, if_corrupt: str) -> Iterator[None]:
    """Turn errors as `explained` does, including the system's errors about the file."""
    try:
        with explained(path, if_corrupt):
            yield
    except OSError as error:
        raise DatabaseError(described(error)) from error


def _is_full(path: str) -> bool:
    try:
        device = os.statvfs(os.path.dirname(path))
    except (AttributeError, OSError):  # Windows has none
        return False
    return device.f_bavail * device.f_frsize < FULL_BYTES


def fetch(connection: Connection, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
    """Return all rows of a query."""
    # A cached statement would keep the ids that were bound to it.
    return connection.execute(sql, values, can_cache="carray" not in sql).fetchall()


def quarantine(path: str, why: str = CorruptDatabaseError.WHY) -> str:
    """Move a corrupt database and its write-ahead log to `<path>.<why>-<time>`; return the new
    path.

    If something other than a file has the log's name, only that is moved, because the database may
    be healthy. Raises OSError."""
    ending = f".{why}-{time.strftime('%Y%m%d-%H%M%S')}"
    number = 2
    while any(os.path.lexists(path + suffix + ending) for suffix in DATABASE_SUFFIXES):
        ending, number = f"{ending.partition('~')[0]}~{number}", number + 1
    stray = irregular(path)
    if stray not in ("", path):
        os.replace(stray, stray + ending)
        return stray + ending
    for suffix in DATABASE_SUFFIXES:
        if os.path.lexists(path + suffix):
            os.replace(path + suffix, path + ending + suffix)
    return path + ending


def applied_migrations(connection: Connection, path: str, required: Sequence[str]) -> set[str]:
    """Return the names of the applied migrations.

    Raises CorruptDatabaseError if the record is not ours, and OutdatedDatabaseError if it lacks one
    of the `required` migrations."""
    import apsw

    try:
        names = _recorded(connection)
    except apsw.SQLError as error:
        raise CorruptDatabaseError(f"{path}: {error}") from error
    if not names and fetch(
        connection, "SELECT 1 FROM sqlite_schema WHERE name != 'migrations' LIMIT 1"
    ):
        raise ForeignDatabaseError(f"{path}: it has no record of its migrations")
    if not all(isinstance(name, str) and name.isidentifier() for name in names):
        raise CorruptDatabaseError(f"{path}: its record of migrations is garbled")
    if names and not names.issuperset(required):
        raise OutdatedDatabaseError(f"{path}: made by an earlier version")
    return names


def _recorded(connection: Connection) -> set[str]:
    if not fetch(connection, "SELECT 1 FROM sqlite_schema WHERE name = 'migrations'"):
        return set()
    return {name for (name,) in fetch(connection, "SELECT name FROM migrations")}


def _names(migrations: Sequence[Migration]) -> set[str]:
    return {migration.__name__ for migration in migrations}


def _without_links(path: str) -> str:
    """Return `path` with symlinks in its directory resolved; SQLite's NOFOLLOW rejects them."""
    return f"{os.path.realpath(os.path.dirname(path))}/{os.path.basename(path)}"


def _choose_wal(connection: Connection, patience: Patience) -> None:
    """Switch the database to WAL.

    SQLite does not wait if several processes do this at once, so it is retried."""
    import apsw

    while True:
        try:
            connection.pragma("journal_mode", "wal")
        except apsw.BusyError:
            if not patience.wait():
                raise
        else:
            return
