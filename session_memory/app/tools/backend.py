"""The backend of the tools: the sessions of one agent, its store and its memories."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from contextlib import contextmanager
from functools import cached_property, partial
from shlex import quote as quote_argument
from typing import TYPE_CHECKING

from ...common.errors import SessionMemoryError
from ...common.extensions import load_present
from ...common.system.terminal import print_note
from ...extension_points import TOOL_AUDIENCES
from ...memory.shared_store import SharedPool
from .values import EVERYWHERE, ListedSession, RefusedError, SearchResults

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ...common.system.sqlite import Patience
    from ...history.patterns.errors import ErrorBlock
    from ...history.store.location import StoreLocation
    from ...history.store.sqlite.engine import SqliteStore
    from ...memory.memory_index import IndexedMemory
    from ...memory.shared_store import ConnectionPool
    from ...sessions.transcripts.entries import Entry
    from .values import SearchLimits, SearchResult

MOST_MEMORIES = 3  # listed before the messages
MOST_OF_LOG = 2  # entries, after the messages
NO_STORE = (
    "nothing can be looked up: the store of all conversations does not exist yet or is unusable"
)
NO_MEMORIES = "memories cannot be changed: their store does not exist yet or is unusable"
_EVERY = 10**9


class Backend(ABC):
    """The sessions of one agent, its store and its memories.

    The sessions are fixed at construction. No argument of a tool names a group or a path, and
    methods receive only sessions from the backend's own list. Methods raise SessionMemoryError with
    a message for the model, or OSError for unreadable files. Several threads call them.

    Searches cover the stores and memories visible to the home `path` (by default the current one).
    Changes go to the memories of `own_path`, where the agent works. `pool` opens shared stores
    (default: its own pool). Memories and store are imported late, because the MCP server starts
    with every session of an agent, on any Python."""

    def __init__(
        self,
        path: str | None,
        own_path: str | None,
        environ: Mapping[str, str],
        pool: ConnectionPool | None,
    ) -> None:
        self.path = path
        self._own_path = own_path
        self.environ = environ
        self._given_pool = pool

    @abstractmethod
    def sessions(self) -> list[ListedSession]:
        """Return the sessions, the latest first."""

    @abstractmethod
    def entries(self, session: ListedSession, count: int) -> tuple[list[Entry], int]:
        """Return the last `count` entries of a session, and the number of unreadable records.

        The entries are in file order."""

    def session_behind(self, word: str) -> ListedSession | None:
        """Return the session of a conversation's number or a memory's id.

        Return None if it is not among the agent's sessions."""
        id = self._id_behind(word)
        return next(
            (session for session in self.sessions() if id and session.session_id == id), None
        )

    def _id_behind(self, word: str) -> str:
        try:
            with self._question() as (location, store, patience, _):
                from ...memory.session_ids import session_behind

                return session_behind(store, location, print_note, patience, word)
        except SessionMemoryError:  # the database does not exist, or is locked or corrupt
            return ""

    @abstractmethod
    def clear(self, name: str) -> str:
        """Save the session under a name, so the next message starts a new one.

        Return the message for the model."""

    @abstractmethod
    def resume(self, session: ListedSession, save_as: str | None) -> str:
        """Make the next message continue an earlier session. Return the message for the model."""

    def search(
        self, query: str, limit: int, limits: SearchLimits = EVERYWHERE
    ) -> list[SearchResult]:
        """Return at most `limit` matching memories and messages of earlier conversations.

        Memories come first, the log last; in each kind the best come first. `limits` restrict the time and
        project."""
        with self._question() as (location, store, patience, missing):
            from ...history.search.query import asks_for_last_work
            from ...memory.format import EPISODE
            from ...memory.last_work import last_work
            from ...memory.library import search_memories
            from .store_results import found_memory, found_message, is_within, worked_on

            wanted = limits.filter(limit, location.home)
            last = (
                last_work(store, wanted, self._own_session()) if asks_for_last_work(query) else []
            )
            if last:
                return SearchResults(
                    [worked_on(*conversation_and_line) for conversation_and_line in last], missing
                )
            hits = store.search(query, wanted)
        fits = None if limits == EVERYWHERE else partial(is_within, wanted=wanted)
        memories = search_memories(
            location, query, min(limit, MOST_MEMORIES), print_note, patience, fits
        )
        noted = [memory for memory in memories if memory.kind != EPISODE]
        log = [memory for memory in memories if memory.kind == EPISODE]
        shown_log = log[:MOST_OF_LOG]
        room = max(0, limit - len(noted) - len(shown_log))
        said = [*map(found_memory, noted), *map(found_message, hits[:room])]
        hits_shown = [*said, *map(found_memory, shown_log)][:limit]
        return SearchResults(hits_shown, f"{missing} {hits.notice}".strip())

    def errors(self, text: str, limit: int) -> list[ErrorBlock]:
        """Return earlier occurrences of the same error as a line of `text`, the best match first.

        Equal errors share a block. The first `limit` blocks include the solutions."""
        with self._question() as (location, store, *_):
            from ...history.patterns.errors import error_blocks
            from ...history.store.values import Filter

            return error_blocks(store, location, text, Filter(limit=limit))

    def why(self, what: str) -> str:
        """Explain a line or commit of the current directory's repository, for the model."""
        with self._question(with_sub_agents=True) as (_, store, *_):
            from ...common.system.git_process import GitUnavailableError
            from ...history.patterns.why import Reasons
            from ...history.patterns.why_text import find_reasons, told_to_agent
            from ...history.store.sqlite.written_lines import known_key
            from ...sessions.settings.homes import user_dir

            try:
                repository, reasons, _ = find_reasons(
                    lambda repository: Reasons(store, repository, known_key(store.path)),
                    what,
                    os.getcwd(),
                    user_dir(self.environ),
                    is_confined=True,
                )
            except GitUnavailableError as error:
                raise SessionMemoryError(f"git cannot tell: {error}") from error
        return told_to_agent(reasons) + (f"\n{repository.lacks}" if repository.lacks else "")

    @contextmanager
    def _question(
        self, *, with_sub_agents: bool = False
    ) -> Iterator[tuple[StoreLocation, SqliteStore, Patience, str]]:
        """Yield the store after a short ingestion, and a note about content not yet ingested.

        The ingestion takes at most a query's patience. The note is '' if everything was ingested.
        The agent sees excluded content of its own session."""
        location = self.searched_location()
        from ...common.system.sqlite import Patience
        from ...history.store.refresh import PATIENCE_SECONDS, open_store, read_sub_agents, refresh
        from ...history.store.sqlite.exclusions import VisibilityOverrides

        own_session, patience = self._own_session(), Patience(PATIENCE_SECONDS)
        store = open_store(
            location,
            print_note,
            patience,
            VisibilityOverrides((own_session,) if own_session else ()),
        )
        try:
            missing = refresh(store, location, print_note)
            if with_sub_agents:
                read_sub_agents(store)
            yield location, store, patience, missing and f"{missing}."
        finally:
            store.close()

    def location(self) -> StoreLocation | None:
        """Return the location of the store; None if it does not exist yet or apsw is missing.

        Raises SessionMemoryError."""
        return _location_with_store(self.path, self.environ)

    def searched_location(self) -> StoreLocation:
        """Return the location of the store. Raises RefusedError if it does not exist yet."""
        location = self.location()
        if location is None:
            raise RefusedError(
                NO_STORE,
                "archives of conversations are Markdown files that you can search yourself",
            )
        return location

    @property
    def own_audiences(self) -> tuple[str, ...]:
        """The audiences of tools that the agent belongs to because of its backend."""
        return ("everyone", "home")

    @cached_property
    def audiences(self) -> frozenset[str]:
        """All audiences of tools that the agent belongs to.

        They are determined once, because an agent gets its tools once."""
        offered = [
            audience
            for audience, place in TOOL_AUDIENCES.items()
            for is_offered in load_present([place])
            if is_offered(self)
        ]
        return frozenset((*self.own_audiences, *offered))

    @cached_property
    def pool(self) -> ConnectionPool:
        """The connections to shared stores."""
        return self._given_pool or SharedPool()

    def remember(self, kind: str, text: str, quote: str) -> IndexedMemory:
        """Store a memory that a quotation from the agent's session proves, and return it."""
        session = self._own_session() or self._likely_session()
        if not session:
            raise RefusedError(
                "nothing was remembered: this session could not be identified", "tell the user"
            )
        from ...memory.writer import remember  # needs apsw

        return remember(self._own_location(), session, kind, text, quote, print_note)

    def forget(self, id: str) -> tuple[IndexedMemory, str]:
        """Forget one of the agent's own memories.

        Return it, and the command with which a person restores it."""
        location = self._own_location()
        from ...memory.writer import forget

        gone = forget(location, id, print_note)
        home = f" --home {quote_argument(self._own_path)}" if self._own_path else ""
        return gone, f"session-memory memories forget {gone.id} --undo{home}"

    def _own_location(self) -> StoreLocation:
        location = _location_with_store(self._own_path, self.environ)
        if location is None:
            raise RefusedError(NO_MEMORIES, "tell the user if this continues")
        return location

    @abstractmethod
    def _own_session(self) -> str:
        """Return the id of the agent's current session; '' if unknown."""

    def _likely_session(self) -> str:
        """Return the agent's likely session, or '', for a runtime that does not state it.

        A quotation must still be found in it."""
        return ""


def _location_with_store(path: str | None, environ: Mapping[str, str]) -> StoreLocation | None:
    """Return the location of the store; None if it does not exist yet or apsw is missing.

    A query does not create a store, because that takes too long. apsw may also be among the
    packages that a plugin has installed since the server started. Raises SessionMemoryError."""
    from importlib.util import find_spec

    from ...history.store.location import find_location

    location = find_location(path, environ)
    if not os.path.exists(location.database):
        return None
    if find_spec("apsw") is None:
        from importlib import invalidate_caches

        from ...sessions.settings.program import add_all_packages

        add_all_packages({**os.environ, **environ})
        invalidate_caches()
    return location if find_spec("apsw") else None
