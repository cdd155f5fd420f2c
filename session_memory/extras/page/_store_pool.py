"""The open stores that answer requests: each request borrows one."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from ...common.errors import SessionMemoryError
from ...common.system.sqlite import CorruptDatabaseError, Patience
from ...history.store.location import StoreLocation
from ...history.store.refresh import open_store
from ...history.store.sqlite.corruption import damage_recognised
from ...history.store.sqlite.engine import SqliteStore
from ...history.store.sqlite.exclusions import VisibilityOverrides

PATIENCE_SECONDS = 2.0
CACHE_KIBIBYTES = 4096  # of each: they stay open, and the system caches files as well
_MOST_KEPT = 4


class StoreMissingError(SessionMemoryError):
    """The store does not exist yet."""


class StorePool:
    """Stores of one location. A store whose file was replaced is reopened."""

    def __init__(self, location: StoreLocation) -> None:
        self.location = location
        self._lock = threading.Lock()
        self._free: list[tuple[int, SqliteStore]] = []

    @contextmanager
    def store(self) -> Iterator[SqliteStore]:
        """Yield a store for one thread. Raises StoreMissingError, DatabaseError."""
        inode = self._inode()
        store = self._kept(inode) or self._opened()
        try:
            with damage_recognised(store):
                yield store
        except CorruptDatabaseError:
            store.close()
            raise
        except BaseException:
            self._give_back(inode, store)
            raise
        self._give_back(inode, store)

    def close(self) -> None:
        with self._lock:
            stores, self._free = self._free, []
        for _, store in stores:
            store.close()

    def _opened(self) -> SqliteStore:
        overrides = VisibilityOverrides(self.location.own_sessions, False)
        store = open_store(self.location, None, Patience(PATIENCE_SECONDS), overrides)
        store.limit_cache(CACHE_KIBIBYTES)
        return store

    def _inode(self) -> int:
        try:
            return os.stat(self.location.database).st_ino
        except OSError:
            raise StoreMissingError(
                "there is no store yet",
                "it is made as soon as there is a transcript",
            ) from None

    def _kept(self, inode: int) -> SqliteStore | None:
        with self._lock:
            old = [store for known, store in self._free if known != inode]
            self._free = [pair for pair in self._free if pair[0] == inode]
            kept = self._free.pop()[1] if self._free else None
        for store in old:
            store.close()
        return kept

    def _give_back(self, inode: int, store: SqliteStore) -> None:
        with self._lock:
            if len(self._free) < _MOST_KEPT:
                self._free.append((inode, store))
                return
        store.close()
