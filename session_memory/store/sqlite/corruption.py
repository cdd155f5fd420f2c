"""Decides if the store is corrupt (`fault_of`), and replaces it then (`quarantine_if_corrupt`): nothing else does.

A newer schema, a concurrent writer, a full disk or missing permission is not corruption: the store is then only read.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager

from ...errors import SessionMemoryError
from ...system import sqlite
from ...system.files import Closing, lock
from .schema import MIGRATIONS, fault_of_file
from .search_index import index_size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

REBUILT = "rebuilt from transcripts and, if these are gone, archives"
_REASONS = {
    sqlite.CorruptDatabaseError.WHY: "was corrupt",
    sqlite.OutdatedDatabaseError.WHY: "was made by an earlier version",
    sqlite.ForeignDatabaseError.WHY: "was not ours",
}


class StoreDatabase(sqlite.Database):
    """The store's database at `path`, made if it is missing, replaced if it is corrupt: `quarantined` is where the
    corrupt one is now, '' if there was none. Raises DatabaseError, OSError."""

    def __init__(self, path: str, patience: sqlite.Patience | None = None) -> None:
        self.quarantined = ""
        try:
            super().__init__(path, MIGRATIONS, patience)
        except sqlite.CorruptDatabaseError:
            self.quarantined = quarantine_if_corrupt(path)
            super().__init__(path, MIGRATIONS, patience)

    def explained(self) -> AbstractContextManager[None]:
        return sqlite.explained(self.path)

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        with self.explained():
            return sqlite.fetch(self.connection, sql, values)


def quarantine_if_corrupt(path: str, *, is_certain: bool = False) -> str:
    """Move the store at `path` away if it is corrupt. With `is_certain`, it has failed again after a check that found
    nothing: the damage is in a page that the check does not read. Return its new path, '' if it stays."""
    with Closing(lock(f"{path}.lock", sqlite.LOCK_WAIT_SECONDS)):
        if not os.path.lexists(path):
            return ""
        try:
            with closing(sqlite.Database(path, MIGRATIONS)) as database:
                if database.obstacle or not (is_certain or fault_of(database)):
                    return ""
                why = sqlite.CorruptDatabaseError.WHY
        except sqlite.CorruptDatabaseError as error:
            why = error.WHY
        return sqlite.quarantine(path, why)


def fault_of(store: sqlite.Database) -> str:
    """Return what is corrupt in an open store, '' if nothing is. Reads all of it."""
    try:
        fault = fault_of_file(store.connection, store.path, () if store.is_newer else MIGRATIONS)
        if fault or store.is_newer:
            return fault
        with sqlite.explained(store.path):
            [(texts,)] = sqlite.fetch(store.connection, "SELECT count(*) FROM memory_transcript_entries")
            # For SQLite, an emptied index is whole.
            return "" if index_size(store.connection)[0] * 2 >= texts else "its search index lacks texts"
    except sqlite.CorruptDatabaseError as error:
        return str(error)


@contextmanager
def damage_recognised(store: sqlite.Database) -> Iterator[None]:
    """Raise CorruptDatabaseError for any failure within the block if the store is corrupt, for example because it has a
    value of the wrong type or lacks a column."""
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
    """Return the notice for a person about a corrupt store, or what was in the place of its log: it is `moved` now."""
    if "-wal." in moved or "-shm." in moved or "-journal." in moved:
        return f"a file of the store was not a file of SQLite: it is {moved} now"
    why = next(reason for word, reason in _REASONS.items() if f".{word}-" in moved)
    return f"the store {why}: it is {moved} now, and {REBUILT}"
