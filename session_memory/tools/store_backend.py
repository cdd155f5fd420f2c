"""The part of a `Backend` that uses the store and the memories of a home, for any kind of session."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from shlex import quote
from typing import TYPE_CHECKING, NamedTuple

from ..errors import SessionMemoryError
from ..store.postgres.pool import TeamPool
from .backend import EVERYWHERE, RefusedError
from .store_search import error_search, location_with_store, note, store_search
from .team_search import is_joined, search_team, team_entries

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..memories.strategies.graphiti.strategy import GraphFact
    from ..patterns.habits import ErrorMatch
    from ..store.location import StoreLocation
    from ..store.refresh import Note
    from ..store.sqlite.memory_index import IndexedMemory
    from ..transcripts.entries import Entry
    from .backend import ListedSession, Search, SearchLimits, SearchResult
    from .store_search import MemorySearch

NO_MEMORIES = "memories cannot be changed: the store that they belong to is not there yet, or cannot be used"
NO_GRAPH = "there is no knowledge graph that could be asked"


class MemoryChanges(NamedTuple):
    """The functions that change memories: `remember(location, session, kind, text, quote, note)`, `forget(location, id,
    note)`. The server passes them in, since tools and memories are rooms of the same layer."""

    remember: Callable[[StoreLocation, str, str, str, str, Note], IndexedMemory]
    forget: Callable[[StoreLocation, str, Note], IndexedMemory]


class GraphSearch(NamedTuple):
    """The functions of the knowledge graph: `is_offered(path, environ)` tells whether the home `path` has one,
    `search(location, query, limit)` finds facts. Passed in like MemoryChanges."""

    is_offered: Callable[[str | None, Mapping[str, str]], bool]
    search: Callable[[StoreLocation, str, int], list[GraphFact]]


class StoreBackend(ABC):
    """Searches what the home `path` may see (by default the current one), and changes the memories of `own_path`, in
    which the agent works.

    It searches the store and, with `memory_search`, memories; without a store, the archives. A given `search` replaces
    all that. `teams` opens the team's store.
    """

    def __init__(
        self,
        path: str | None,
        own_path: str | None,
        environ: Mapping[str, str],
        search: Search | None,
        memory_search: MemorySearch | None,
        changes: MemoryChanges | None,
        graph: GraphSearch | None,
        teams: TeamPool | None = None,
    ) -> None:
        self._searched_path = path
        self._own_path = own_path
        self._environ = environ
        self._search = search or store_search(path, environ, self._search_archives, memory_search, self._own_session)
        self._errors = error_search(path, environ, self._own_session)
        self._changes = changes
        self._graph = graph
        self._teams = teams or TeamPool()

    def search(self, query: str, limit: int, limits: SearchLimits = EVERYWHERE) -> list[SearchResult]:
        """See Backend."""
        return self._search(query, limit, limits)

    def errors(self, text: str) -> list[ErrorMatch]:
        """See Backend."""
        return self._errors(text)

    @cached_property
    def has_graph(self) -> bool:
        """See Backend. Determined once, as an agent receives its tools once."""
        try:
            return self._graph is not None and self._graph.is_offered(self._searched_path, self._environ)
        except SessionMemoryError:  # invalid settings, which `doctor` reports
            return False

    def search_graph(self, query: str, limit: int) -> list[GraphFact]:
        """See Backend."""
        location = location_with_store(self._searched_path, self._environ)
        if location is None or self._graph is None:
            raise RefusedError(NO_GRAPH, "go on without it")
        return self._graph.search(location, query, limit)

    @cached_property
    def has_team(self) -> bool:
        """See Backend. Determined once, too."""
        try:
            return is_joined(self._searched_path, self._environ)
        except SessionMemoryError:
            return False

    def search_team(self, query: str, limit: int, limits: SearchLimits = EVERYWHERE) -> list[SearchResult]:
        """See Backend."""
        return search_team(self._teams, self._searched_path, self._environ, query, limit, limits)

    def team_entries(self, conversation: int, count: int) -> tuple[ListedSession, list[Entry]]:
        """See Backend."""
        return team_entries(self._teams, self._searched_path, self._environ, conversation, count)

    def remember(self, kind: str, text: str, quote: str) -> IndexedMemory:
        """See Backend."""
        session = self._own_session()
        if not session:
            raise RefusedError("nothing was remembered: it is not known which session this is", "tell the user")
        location, changes = self._memories()
        return changes.remember(location, session, kind, text, quote, note)

    def forget(self, id: str) -> tuple[IndexedMemory, str]:
        """See Backend."""
        location, changes = self._memories()
        gone = changes.forget(location, id, note)
        home = f" --home {quote(self._own_path)}" if self._own_path else ""
        return gone, f"session-memory memories forget {gone.id} --undo{home}"

    def _memories(self) -> tuple[StoreLocation, MemoryChanges]:
        location = location_with_store(self._own_path, self._environ)
        if location is None or self._changes is None:
            raise RefusedError(NO_MEMORIES, "tell the user if it stays so")
        return location, self._changes

    @abstractmethod
    def _own_session(self) -> str:
        """Return the id of the agent's current session; '' if unknown."""

    @abstractmethod
    def _search_archives(self, query: str, limit: int, limits: SearchLimits) -> list[SearchResult]:
        """Return the results of a search in the archives."""
