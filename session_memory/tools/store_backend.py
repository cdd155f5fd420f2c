"""What a `Backend` does with the store and the memories of a home, whichever sessions it is for."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, NamedTuple

from .backend import EVERYWHERE, RefusedError
from .store_search import error_search, location_with_store, note, store_search

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..patterns.habits import ErrorMatch
    from ..store.location import StoreLocation
    from ..store.refresh import Note
    from ..store.sqlite.memory_index import IndexedMemory
    from .backend import Search, SearchLimits, SearchResult
    from .store_search import MemorySearch

NO_MEMORIES = "memories cannot be changed: the store that they belong to is not there yet, or cannot be used"


class MemoryChanges(NamedTuple):
    """What changes memories: `remember(location, session, kind, text, quote, note)`, `forget(location, id, note)`.
    Whoever serves the tools passes it, since tools lie beside memories."""

    remember: Callable[[StoreLocation, str, str, str, str, Note], IndexedMemory]
    forget: Callable[[StoreLocation, str, Note], IndexedMemory]


class StoreBackend(ABC):
    """Searches what may be seen from the home `path`, else from the one at hand, and changes the memories of
    `own_path`, in which the agent works.

    It searches in the store and with `memory_search`, or, where there is no store, in the archives. A `search` is used
    in place of all that.
    """

    def __init__(
        self,
        path: str | None,
        own_path: str | None,
        environ: Mapping[str, str],
        search: Search | None,
        memory_search: MemorySearch | None,
        changes: MemoryChanges | None,
    ) -> None:
        self._own_path = own_path
        self._environ = environ
        self._search = search or store_search(path, environ, self._search_archives, memory_search, self._own_session)
        self._errors = error_search(path, environ, self._own_session)
        self._changes = changes

    def search(self, query: str, limit: int, limits: SearchLimits = EVERYWHERE) -> list[SearchResult]:
        """See Backend."""
        return self._search(query, limit, limits)

    def errors(self, text: str) -> list[ErrorMatch]:
        """See Backend."""
        return self._errors(text)

    def remember(self, kind: str, text: str, quote: str) -> IndexedMemory:
        """See Backend."""
        session = self._own_session()
        if not session:
            raise RefusedError("nothing was remembered: it is not known which session this is", "tell the user")
        location, changes = self._memories()
        return changes.remember(location, session, kind, text, quote, note)

    def forget(self, id: str) -> IndexedMemory:
        """See Backend."""
        location, changes = self._memories()
        return changes.forget(location, id, note)

    def _memories(self) -> tuple[StoreLocation, MemoryChanges]:
        location = location_with_store(self._own_path, self._environ)
        if location is None or self._changes is None:
            raise RefusedError(NO_MEMORIES, "tell the user if it stays so")
        return location, self._changes

    @abstractmethod
    def _own_session(self) -> str:
        """The id of the session that the agent is in, '' where it is not known."""

    @abstractmethod
    def _search_archives(self, query: str, limit: int, limits: SearchLimits) -> list[SearchResult]:
        """What a search in the archives finds."""
