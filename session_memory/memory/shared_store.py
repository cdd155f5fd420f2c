"""The store that several people or machines share: sessions and memories, read like your own.

Its engine is a row of `extension_points.ENGINES`, loaded when needed."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, NamedTuple, Protocol, cast

from ..common.extensions import load, load_present
from ..common.system.sqlite import DatabaseError
from ..extension_points import ENGINES

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from contextlib import AbstractContextManager

    from ..history.store.location import StoreLocation
    from ..history.store.values import Conversation, Filter, Hits, StoredEntry, Visible
    from ..sessions.settings.homes import Home
    from .memory_index import IndexedMemory, MemoryFilter

_ENGINE = ENGINES.get("shared", "")


class SharedStoreError(DatabaseError):
    """The shared store cannot be used, or not now."""


class RecentSession(NamedTuple):
    """A session of another member or machine.

    It has its number in the store, `who` as in ann@laptop, its project, id, title and branch, its
    runtime, and the numbers of the tool uses whose result had not come. Its machine last pushed
    `unseen_seconds` ago, by the server's clock. `items` are its last ones, in order."""

    id: int
    who: str
    project: str
    session_id: str
    title: str
    branch: str
    runtime: str
    open_calls: tuple[int, ...]
    unseen_seconds: float
    items: tuple[StoredEntry, ...]


class SharedStore(Protocol):
    """A shared store, with the methods of `SqliteStore` that read, and `recent`."""

    def conversation(self, id: int, /) -> Conversation | None: ...

    def entries(self, conversation_id: int) -> Iterator[StoredEntry]: ...

    def search(self, query: str, wanted: Filter) -> Hits: ...

    def recent(self, machine: str, wanted: Filter) -> list[RecentSession]:
        """Return sessions, except the member's own on `machine`, the latest first.

        Raises SharedStoreError."""

    def close(self) -> None: ...


class SharedMemories(Protocol):
    """The memories of a shared store, with the methods of `MemoryIndex` that read."""

    def memories(self, wanted: MemoryFilter) -> list[IndexedMemory]: ...

    def search(self, query: str, wanted: MemoryFilter) -> list[IndexedMemory]: ...

    def beginning_with(self, id: str, /) -> list[IndexedMemory]: ...


class ConnectionPool(Protocol):
    """Connections that are kept for the next request."""

    def store(self, url: str, visible: Visible = None) -> AbstractContextManager[SharedStore]: ...

    def close(self) -> None: ...


class SharedEngine(Protocol):
    """The engine of a shared store, a module."""

    def joined_url(self, home: Home) -> str:
        """Return the address of the store that a home has joined. Raises NoTeamError."""

    def project(self, home: Home, directory: str) -> str:
        """Return the project of a directory by its shared name; '' if unknown."""

    def open_store(self, url: str, visible: Visible) -> SharedStore:
        """Open a store for a waiting user; it shows only `visible` rows. Raises SharedStoreError."""

    def pool(self) -> ConnectionPool:
        """Return a new pool of connections."""

    def memories(self, store: SharedStore) -> SharedMemories:
        """Return the memories of a store."""

    def withdraw(self, location: StoreLocation, memories: Mapping[str, Collection[str]]) -> None:
        """Delete memories of this machine, by home, from the store. Raises SharedStoreError."""


def shared_engine() -> SharedEngine:
    """Return the engine. Raises AbsentFeatureError."""
    return cast("SharedEngine", load(_ENGINE))


def shared_url(home: Home) -> str:
    """Return the address of the shared store that a home has joined, or ''.

    It is also '' if this copy has no engine for one. Raises ConfigError."""
    url = home.settings().shared_url
    return url if url and load_present([_ENGINE]) else ""


def of_shared_project(wanted: Filter, home: Home) -> Filter:
    """Return a filter whose directories have the name that all machines use for the project."""
    if not wanted.directories:
        return wanted
    directory = wanted.directories[0]
    name = shared_engine().project(home, directory) or directory
    return wanted._replace(directories=(name,), folders=())


class SharedPool:
    """A pool of connections that loads the engine with the first request."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pool: ConnectionPool | None = None

    def store(self, url: str, visible: Visible = None) -> AbstractContextManager[SharedStore]:
        """Lend the store at `url`; it shows only `visible` rows.

        Raises AbsentFeatureError, SharedStoreError."""
        with self._lock:
            pool = self._pool = self._pool or shared_engine().pool()
        return pool.store(url, visible)

    def close(self) -> None:
        """Close all connections."""
        if self._pool:
            self._pool.close()
