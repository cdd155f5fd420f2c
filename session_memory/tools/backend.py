"""The backend of the tools: the sessions of one agent, its store and its memories."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from shlex import quote as quote_argument
from typing import TYPE_CHECKING

from ..errors import SessionMemoryError
from ..store.postgres.engine import TeamPool
from .store_search import errors_in_store, location_with_store, note, search_store, session_in_store, why_in_store
from .team_search import is_joined, search_team, team_entries
from .values import EVERYWHERE, RefusedError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..memories.strategies.graphiti.strategy import GraphFact
    from ..patterns.habits import ErrorMatch
    from ..store.location import StoreLocation
    from ..store.sqlite.memory_index import IndexedMemory
    from ..transcripts.entries import Entry
    from .values import Administration, ListedSession, Search, SearchLimits, SearchResult

GRAPH_SECONDS = 20.0  # an agent waits for the answer, at most a minute in a sandbox
NO_STORE = "nothing can be looked up: the store of all conversations does not exist yet, or cannot be used"
NO_MEMORIES = "memories cannot be changed: their store does not exist yet, or cannot be used"


class Backend(ABC):
    """The sessions of one agent. They are fixed at construction: no argument of a tool names a group or a path, and the
    sessions that methods receive come from its own list. Methods raise SessionMemoryError with a message for the model,
    OSError for unreadable files. Several threads call them.

    It searches what the home `path` may see (by default the current one): store and memories. It changes the memories
    of `own_path`, in which the agent works. A given `search` replaces all that. `teams` opens the team's store.
    Memories and store are imported when they are needed: the MCP server starts with every session of an agent, on any
    Python.
    """

    def __init__(
        self, path: str | None, own_path: str | None, environ: Mapping[str, str], search: Search | None,
        teams: TeamPool | None,
    ) -> None:  # fmt: skip
        self._searched_path = path
        self._own_path = own_path
        self._environ = environ
        self._given_search = search
        self._teams = teams or TeamPool()
        # The host's services for the agent's group; None without a host.
        self.administration: Administration | None = None

    @abstractmethod
    def sessions(self) -> list[ListedSession]:
        """Return the sessions, the latest first."""

    @abstractmethod
    def entries(self, session: ListedSession, count: int) -> tuple[list[Entry], int]:
        """Return the last `count` entries of a session in file order, and the number of unreadable records."""

    def session_behind(self, word: str) -> ListedSession | None:
        """Return the session of the conversation with this number, or that a memory with this id was made from; None if
        it is not among the agent's sessions."""
        id = self._id_behind(word)
        return next((one for one in self.sessions() if id and one.session_id == id), None)

    def _id_behind(self, word: str) -> str:
        try:
            location = location_with_store(self._searched_path, self._environ)
            return session_in_store(location, word, self._own_session()) if location else ""
        except SessionMemoryError:  # the database is locked or corrupt
            return ""

    @abstractmethod
    def clear(self, name: str) -> str:
        """Save the session under a name, so that the next message begins a new one. Return the message for the
        model."""

    @abstractmethod
    def resume(self, session: ListedSession, save_as: str | None) -> str:
        """Continue an earlier session with the next message. Return the message for the model."""

    def search(self, query: str, limit: int, limits: SearchLimits = EVERYWHERE) -> list[SearchResult]:
        """Return at most `limit` memories and messages of earlier conversations within `limits` that match the query:
        memories first, each the best first."""
        if self._given_search:
            return self._given_search(query, limit, limits)
        return search_store(self._searched_location(), query, limit, limits, self._own_session())

    def errors(self, text: str) -> list[ErrorMatch]:
        """Return earlier occurrences of the same error as a line of `text`, the best match first."""
        return errors_in_store(self._searched_location(), text, self._own_session())

    def why(self, what: str) -> str:
        """Return why a line or commit of the repository at hand is so, for the model."""
        if self.administration is not None:
            raise RefusedError("a group has no repository", "go on without it")
        return why_in_store(self._searched_location(), what, self._own_session(), self._environ)

    def _searched_location(self) -> StoreLocation:
        location = location_with_store(self._searched_path, self._environ)
        if location is None:
            raise RefusedError(NO_STORE, "archives of conversations are Markdown files, which you can search yourself")
        return location

    @cached_property
    def has_graph(self) -> bool:
        """True if `search_graph` has a knowledge graph to search. Determined once, as an agent gets its tools once."""
        from ..memories.strategies.graphiti import missing_packages
        from ..settings.sections import memory_settings
        from ..store.location import find_location

        if missing_packages():
            return False
        try:
            location = find_location(self._searched_path, self._environ)
            return "graphiti" in memory_settings(location.home.settings().memories).strategies
        except SessionMemoryError:  # invalid settings, which `doctor` reports
            return False

    def search_graph(self, query: str, limit: int) -> list[GraphFact]:
        """Return at most `limit` facts of the knowledge graph that match the query, the best first; so many per group
        if there are several."""
        location = self._searched_location()
        from ..memories.strategies.graphiti.graphs import search_graph

        return search_graph(location, query, limit, timeout_seconds=GRAPH_SECONDS)

    @cached_property
    def has_team(self) -> bool:
        """True if `search_team` has a team to search. Determined once, too."""
        try:
            return is_joined(self._searched_path, self._environ)
        except SessionMemoryError:
            return False

    def search_team(self, query: str, limit: int, limits: SearchLimits = EVERYWHERE) -> list[SearchResult]:
        """Search the team's sessions and memories as `search` does the home's. `role` contains the speaker and place,
        `session_id` a `team_id`."""
        return search_team(self._teams, self._searched_path, self._environ, query, limit, limits)

    def team_entries(self, conversation: int, count: int) -> tuple[ListedSession, list[Entry]]:
        """Return a conversation of the team, named after its owner, and its last `count` entries in order."""
        return team_entries(self._teams, self._searched_path, self._environ, conversation, count)

    def remember(self, kind: str, text: str, quote: str) -> IndexedMemory:
        """Store a memory that a quotation from the agent's session proves; return the stored one."""
        session = self._own_session() or self._likely_session()
        if not session:
            raise RefusedError("nothing was remembered: it is not known which session this is", "tell the user")
        from ..memories.writer import remember  # needs apsw

        return remember(self._own_location(), session, kind, text, quote, note)

    def forget(self, id: str) -> tuple[IndexedMemory, str]:
        """Forget a memory of the agent's own; return it, and the command with which a person undoes that."""
        location = self._own_location()
        from ..memories.writer import forget

        gone = forget(location, id, note)
        home = f" --home {quote_argument(self._own_path)}" if self._own_path else ""
        return gone, f"session-memory memories forget {gone.id} --undo{home}"

    def _own_location(self) -> StoreLocation:
        location = location_with_store(self._own_path, self._environ)
        if location is None:
            raise RefusedError(NO_MEMORIES, "tell the user if it stays so")
        return location

    @abstractmethod
    def _own_session(self) -> str:
        """Return the id of the agent's current session; '' if unknown."""

    def _likely_session(self) -> str:
        """Return the session that the agent's is most likely, if its runtime does not tell; '' for none. What it quotes
        still has to be there."""
        return ""
