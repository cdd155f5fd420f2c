"""Decides if the store is corrupt (`fault_of`), and then replaces it (`quarantine_if_corrupt`).

No other module does either. A newer schema, a concurrent writer, a full disk, missing permission
and a read that the disk refuses are not corruption.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from typing import Any

from ....common.errors import SessionMemoryError
from ....common.system import sqlite
from ....common.system.files import (
    DATABASE_SUFFIXES,
    Closing,
    irregular,
    lock,
    names_in,
    write_atomically,
)
from ....common.text.format import counted
from ._schema import MIGRATIONS, REQUIRED, StoreFile, fault_of_file
from .search_index import index_size

REBUILT = "rebuilt from transcripts and, if these are gone, archives"
_SALVAGED = f"everything that could be read was kept; the missing rest is {REBUILT}"
# behind its path: the mark, and the store that is made
_UNDONE, _UNFINISHED = ".salvage", ".salvaging"
_REASONS = {
    sqlite.CorruptDatabaseError.WHY: "was corrupt",
    sqlite.OutdatedDatabaseError.WHY: "was made by an earlier version",
    sqlite.ForeignDatabaseError.WHY: "was not a file of session-memory",
}


class StoreDatabase(StoreFile):
    """The store's database at `path`, created if missing and replaced if corrupt.

    `quarantined` is the new path of a corrupt database, '' if it was sound. Raises DatabaseError,
    OSError."""

    def __init__(self, path: str, patience: sqlite.Patience | None = None) -> None:
        self.quarantined = _finish_salvage(path)
        try:
            super().__init__(path, patience)
        except sqlite.CorruptDatabaseError:
            self.quarantined = quarantine_if_corrupt(path) or self.quarantined
            super().__init__(path, patience)

    def explained(self) -> AbstractContextManager[None]:
        return sqlite.explained(self.path)

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        with self.explained():
            return sqlite.fetch(self.connection, sql, values)


def quarantine_if_corrupt(path: str) -> str:
    """Replace the store at `path` if a new connection and a full check confirm that it is corrupt.

    The new store has all rows that could be read. Return the new path of the corrupt store, or ''
    if it stays. Raises DatabaseError, also if only the disk cannot read the store."""
    with Closing(lock(f"{path}.lock", sqlite.LOCK_WAIT_SECONDS)):
        if not os.path.lexists(path):
            return ""
        why = _confirmed(path)
        return _replace(path, why) if why else ""


def _confirmed(path: str) -> str:
    """Return the `WHY` of the error that a new connection confirms; '' if it finds no fault."""
    try:
        with closing(StoreFile(path)) as database:
            if database.obstacle:
                return ""
    except sqlite.CorruptDatabaseError as error:
        if irregular(path):
            return error.WHY
    from ....common.system.sqlite_reads import (  # a search does without it
        READ_ERROR,
        checked_connection,
    )

    refused: list[str] = []
    try:
        with sqlite.explained(path), checked_connection(path) as (connection, refused):
            try:
                applied = sqlite.applied_migrations(connection, path, REQUIRED)
                is_migrated = applied >= {migration.__name__ for migration in MIGRATIONS}
                fault = _fault_of(
                    connection, path, MIGRATIONS if is_migrated else ()
                ) or _fault_inside(connection)
            finally:
                if refused:
                    raise sqlite.DatabaseError(f"{path}: {refused[0]}", READ_ERROR)
    except sqlite.CorruptDatabaseError as error:
        return error.WHY
    return sqlite.CorruptDatabaseError.WHY if fault else ""


def _replace(path: str, why: str) -> str:
    """Move the store away, and make a new one of its readable rows.

    If this process is killed meanwhile, the next one that opens the store finds the mark and
    completes this."""
    if why == sqlite.ForeignDatabaseError.WHY or irregular(path):
        return sqlite.quarantine(path, why)
    write_atomically(f"{path}{_UNDONE}", b"")
    moved = sqlite.quarantine(path, why)
    _put_salvaged(path, moved)
    return moved


def _finish_salvage(path: str) -> str:
    """Complete the replacement of a store by a killed process.

    Return the path of the corrupt store, '' if there is nothing to do. Raises DatabaseError,
    LockedError, OSError."""
    if not os.path.lexists(f"{path}{_UNDONE}"):
        return ""
    with Closing(lock(f"{path}.lock", sqlite.LOCK_WAIT_SECONDS)):
        foreign = f".{sqlite.ForeignDatabaseError.WHY}-"
        moved = [aside for aside in set_aside(path) if foreign not in aside]
        if not moved or os.path.lexists(path):
            _remove(f"{path}{_UNDONE}")
            return ""
        _put_salvaged(path, moved[-1])
        return moved[-1]


def _put_salvaged(path: str, moved: str) -> None:
    """Make a store of the readable rows of the store at `moved`, if any, and remove the mark."""
    from ._salvage import salvage, salvage_queue

    made = f"{path}{_UNFINISHED}"
    _remove(made)
    try:
        if f".{sqlite.OutdatedDatabaseError.WHY}-" in moved:
            salvage_queue(moved, path)
        salvaged = salvage(moved, made)
        with closing(StoreFile(made)) as database:
            is_usable = bool(salvaged.entries or salvaged.tool_uses) and not fault_of(database)
        if is_usable:
            os.replace(made, path)
    # the rows do not make a sound store, so it is made from transcripts and archives
    except Exception:
        pass
    # an interruption leaves the mark, and the next process that opens the store completes this
    _remove(made)
    _remove(f"{path}{_UNDONE}")


def set_aside(path: str) -> list[str]:
    """Return the paths of the stores that were moved away from `path`, the oldest first."""
    directory, name = os.path.split(path)
    whys = tuple(f"{name}.{why}-" for why in _REASONS)
    names = filter(
        lambda name: name.startswith(whys) and not name.endswith(DATABASE_SUFFIXES[:3]),
        names_in(directory),
    )
    return [
        f"{directory}/{name}" for name in sorted(names, key=lambda name: name.partition("-")[2])
    ]


def aside_lines(store: sqlite.Database) -> list[str]:
    """Return a line for each store that was moved away and still exists.

    It has the numbers of kept and lost rows. Raises DatabaseError."""
    salvaged = _salvages(store)
    lines = []
    for path in set_aside(store.path):
        why = next(reason for word, reason in _REASONS.items() if f".{word}-" in path)
        counts = salvaged.get(os.path.basename(path))
        what = "none of it could be read"
        if counts:
            kept = (
                f"{counted(counts[0], 'message')} and {counted(counts[1], 'tool use')} of it "
                f"were kept"
            )
            lost = (
                f"{counted(counts[2], 'item')} could not be read, and were taken from transcripts and "
                f"archives if these had"
            )
            what = f"{kept}, {lost} them" if counts[2] else f"{kept}: all that it had"
        lines.append(
            f"the store {why}, and the old file is now {path}; {what}. Delete that file if "
            f"nothing is missing"
        )
    return lines


def delete_set_aside(store: sqlite.Database) -> list[str]:
    """Delete the stores that were moved away and whose readable rows are all in `store`.

    Return the paths of the others that may have been ours. Raises DatabaseError, OSError."""
    salvaged = _salvages(store)
    left = []
    for path in set_aside(store.path):
        if os.path.basename(path) in salvaged:
            _remove(path)
        elif f".{sqlite.ForeignDatabaseError.WHY}-" not in path and not irregular(path):
            left.append(path)
    return left


def _salvages(store: sqlite.Database) -> dict[str, list[int]]:
    """Return the numbers of kept messages and tool uses, and of lost items, by corrupt store."""
    with sqlite.explained(store.path):
        rows = sqlite.fetch(
            store.connection, "SELECT moved, entries, tool_uses, lost FROM memory_salvages"
        )
    return {os.path.basename(moved): counts for moved, *counts in rows}


def _remove(path: str) -> None:
    for suffix in DATABASE_SUFFIXES:
        with suppress(FileNotFoundError):
            os.unlink(path + suffix)


def fault_of(store: sqlite.Database) -> str:
    """Return the fault of an open store, or '' if it is sound. All of the store is read."""
    try:
        return _fault_of(store.connection, store.path, () if store.is_newer else MIGRATIONS)
    except sqlite.CorruptDatabaseError as error:
        return str(error)


def _fault_of(
    connection: sqlite.Connection, path: str, migrations: Sequence[sqlite.Migration]
) -> str:
    """Return the first fault. Without `migrations`, only SQLite looks for one.

    Raises CorruptDatabaseError."""
    fault = fault_of_file(connection, path, migrations)
    if fault or not migrations:
        return fault
    with sqlite.explained(path):
        [(texts,)] = sqlite.fetch(connection, "SELECT count(*) FROM memory_transcript_entries")
        # For SQLite, an emptied index is whole.
        return "" if index_size(connection)[0] * 2 >= texts else "its search index lacks texts"


def _fault_inside(connection: sqlite.Connection) -> str:
    """Return a fault in the indexes or in a value, which a quick check does not find.

    Raises the errors of apsw."""
    [(fault,), *_] = sqlite.fetch(connection, "PRAGMA integrity_check(1)")
    if fault != "ok":
        return str(fault)
    sql = "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'"
    for (name,) in sqlite.fetch(connection, sql):
        # raises UnicodeDecodeError for text that is none
        for _ in connection.execute(f'SELECT * FROM "{name}"'):
            pass
    return ""


@contextmanager
def damage_recognised(store: sqlite.Database) -> Iterator[None]:
    """Raise CorruptDatabaseError if anything in the block fails because the store is corrupt.

    For example, a value may have the wrong type, or a column may be missing."""
    try:
        with sqlite.explained(store.path):
            yield
    except (SessionMemoryError, OSError):
        raise
    except Exception as error:
        if fault := fault_of(store):
            raise sqlite.CorruptDatabaseError(f"{store.path}: {fault}") from error
        raise


def quarantine_notice(moved: str) -> str:
    """Return the notice for a person about a corrupt store, or a foreign file instead of its log.

    `moved` is its new path."""
    if "-wal." in moved or "-shm." in moved or "-journal." in moved:
        return f"a file of the store was not an SQLite file and is now {moved}"
    why = next(reason for word, reason in _REASONS.items() if f".{word}-" in moved)
    is_foreign = f".{sqlite.ForeignDatabaseError.WHY}-" in moved
    remedy = f"the store was {REBUILT}" if is_foreign else _SALVAGED
    return f"the store {why}; the old file is now {moved}, and {remedy}"
