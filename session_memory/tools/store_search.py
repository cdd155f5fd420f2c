"""Search in the store and the memories of a home: messages and errors."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from ..errors import SessionMemoryError
from .backend import EVERYWHERE, RefusedError, SearchResult, SearchResults

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from ..patterns.habits import ErrorMatch
    from ..store.location import StoreLocation
    from ..store.refresh import Note
    from ..store.sqlite.engine import SqliteStore
    from ..store.sqlite.memory_index import IndexedMemory
    from ..store.values import Hit
    from ..system.sqlite import Patience
    from .backend import Search, SearchLimits

    # As `memories.library.search_memories`; the server passes it in, since tools and memories are rooms of the same
    # layer.
    MemorySearch = Callable[
        [StoreLocation, str, int, Note, Patience, Callable[[IndexedMemory], bool] | None], list[IndexedMemory]
    ]

ONLY_ARCHIVES = (
    "Only archives were searched, of conversations that ended or were compacted: the store of all that was said is not "
    "there yet, or cannot be used."
)
NO_STORE = "nothing can be told of errors: the store of all that was said is not there yet, or cannot be used"
_EVERY = 10**9
MOST_MEMORIES = 3  # listed before the messages


def store_search(
    path: str | None, environ: Mapping[str, str], archive_search: Search, memory_search: MemorySearch | None,
    own_session: Callable[[], str],
) -> Search:  # fmt: skip
    """Return a search in the store of the home `path` (by default the current one), limited to what that home may see.
    If there is no usable store, it calls `archive_search`, and the first result says so. `own_session` returns the id
    of the asking session, which may see its own excluded content, or ''."""
    is_told = False

    def search(query: str, limit: int, limits: SearchLimits) -> list[SearchResult]:
        nonlocal is_told
        try:
            location = location_with_store(path, environ)
            if location:
                return _search(location, query, limit, limits, memory_search, own_session())
        except (ImportError, SessionMemoryError):  # apsw is not installed; the database is locked or corrupt
            pass
        found = SearchResults(archive_search(query, limit, limits), "" if is_told else ONLY_ARCHIVES)
        is_told = True
        return found

    return search


def error_search(
    path: str | None, environ: Mapping[str, str], own_session: Callable[[], str]
) -> Callable[[str], list[ErrorMatch]]:
    """Return a function that finds earlier occurrences of an error in the same store, as `session-memory errors` does,
    the best match first. It raises RefusedError without a store, SessionMemoryError."""

    def search(text: str) -> list[ErrorMatch]:
        from ..patterns.habits import matching_errors
        from ..store.sqlite.tool_uses import conversation_steps
        from ..store.values import Filter

        try:
            location = location_with_store(path, environ)
            if location is None:
                raise RefusedError(NO_STORE, "go on without it")
            with _question(location, own_session()) as (store, *_):
                wanted = Filter(homes=location.homes, limit=_EVERY)
                return matching_errors(text, conversation_steps(store, wanted, with_errors=True))
        except ImportError:  # apsw is not installed
            raise RefusedError(NO_STORE, "go on without it") from None

    return search


def location_with_store(path: str | None, environ: Mapping[str, str]) -> StoreLocation | None:
    """Return the location of the store; None if it does not exist yet: creating it takes too long for a query. Raises
    SessionMemoryError."""
    from ..store.location import find_location

    location = find_location(path, environ)
    if not os.path.exists(location.database):
        return None
    _add_packages(environ)
    return location


@contextmanager
def _question(location: StoreLocation, own_session: str) -> Iterator[tuple[SqliteStore, Patience, str]]:
    """Yield the store with new content ingested within the query's patience, and a text about the missing rest, '' for
    none. Raises SessionMemoryError, ImportError."""
    from ..store.refresh import PATIENCE_SECONDS, open_store, refresh
    from ..store.sqlite.exclusions import VisibilityOverrides
    from ..system.sqlite import Patience

    patience = Patience(PATIENCE_SECONDS)
    store = open_store(location, note, patience, VisibilityOverrides((own_session,) if own_session else ()))
    try:
        yield store, patience, refresh(store, location, note)
    finally:
        store.close()


def _add_packages(environ: Mapping[str, str]) -> None:
    """Make packages importable that a plugin has installed since the server started."""
    from importlib import invalidate_caches
    from importlib.util import find_spec

    from ..settings.plugin_packages import add_all_packages

    if find_spec("apsw") is None:
        add_all_packages({**os.environ, **environ})
        invalidate_caches()


def _search(
    location: StoreLocation, query: str, limit: int, limits: SearchLimits, memory_search: MemorySearch | None,
    own_session: str,
) -> list[SearchResult]:  # fmt: skip
    from ..store.values import Filter

    since, until, project = limits
    wanted = Filter(homes=location.homes, project=project, since=since, until=until, limit=limit)
    with _question(location, own_session) as (store, patience, missing):
        hits = store.search(query, wanted)
    said = [said_in(hit) for hit in hits]
    memories = []
    if memory_search:
        fits = None if limits == EVERYWHERE else partial(is_within, limits)
        memories = memory_search(location, query, min(limit, MOST_MEMORIES), note, patience, fits)
    notices = [notice for notice in (missing and f"{missing}.", hits.notice) if notice]
    return SearchResults([*map(remembered, memories), *said][:limit], " ".join(notices))


def note(text: str) -> None:
    """Log to stderr, a tool server's log, what the result does not say."""
    print(f"session-memory: {text}", file=sys.stderr, flush=True)


def is_within(limits: SearchLimits, memory: IndexedMemory) -> bool:
    """Return whether a memory is within the limits, by its time and the directories of its sources."""
    return limits.fits(memory.at, *[origin[5] for origin in memory.origins if len(origin) > 5])


def said_in(hit: Hit) -> SearchResult:
    """Convert a hit to the tools' form."""
    entry, conversation = hit.entry, hit.conversation
    seconds = None if entry.timestamp is None else entry.timestamp / 1000
    name = f"{conversation.home}: {conversation.title}" if conversation.home else conversation.title
    where = f"conversation {conversation.id}"
    return SearchResult(conversation.session_id, name, entry.tool or entry.role, seconds, hit.snippet, where)


def remembered(memory: IndexedMemory) -> SearchResult:
    """Convert a memory to the tools' form."""
    seconds = None if memory.at is None else memory.at / 1000
    doubts = f"({'; '.join(memory.doubts)})" if memory.doubts else ""
    said = memory.text or (memory.quote and f'"{memory.quote}"')
    text = "\n".join([part for part in (said, doubts) if part])
    _, session, conversation, *_ = memory.origins[-1] if memory.origins else (None, "", "")
    known = ", ".join([f"memory {memory.id}", *([memory.path] if memory.path else [])])
    where = f"conversation {conversation}, {known}" if conversation else known
    return SearchResult(str(session), memory.title, "memory", seconds, text, where)
