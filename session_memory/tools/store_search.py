"""Search in the store and the memories of a home: messages and errors."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from ..text.format import one_line
from .values import EVERYWHERE, SearchResult, SearchResults

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ..patterns.habits import ErrorMatch
    from ..store.location import StoreLocation
    from ..store.sqlite.engine import SqliteStore
    from ..store.sqlite.memory_index import IndexedMemory
    from ..store.values import Conversation, Hit
    from ..system.sqlite import Patience
    from .values import SearchLimits

_EVERY = 10**9
MOST_MEMORIES = 3  # listed before the messages


def location_with_store(path: str | None, environ: Mapping[str, str]) -> StoreLocation | None:
    """Return the location of the store; None if apsw is not installed, or if it does not exist yet: creating it takes
    too long for a query. Raises SessionMemoryError."""
    from ..store.location import find_location

    location = find_location(path, environ)
    return location if os.path.exists(location.database) and _has_packages(environ) else None


@contextmanager
def _question(location: StoreLocation, own_session: str) -> Iterator[tuple[SqliteStore, Patience, str]]:
    """Yield the store with new content ingested within the query's patience, and a text about the missing rest, '' for
    none. Raises SessionMemoryError."""
    from ..store.refresh import PATIENCE_SECONDS, open_store, refresh
    from ..store.sqlite.exclusions import VisibilityOverrides
    from ..system.sqlite import Patience

    patience = Patience(PATIENCE_SECONDS)
    store = open_store(location, note, patience, VisibilityOverrides((own_session,) if own_session else ()))
    try:
        yield store, patience, refresh(store, location, note)
    finally:
        store.close()


def _has_packages(environ: Mapping[str, str]) -> bool:
    """Check for apsw; make packages importable that a plugin has installed since the server started."""
    from importlib import invalidate_caches
    from importlib.util import find_spec

    from ..settings.program import add_all_packages

    if find_spec("apsw") is None:
        add_all_packages({**os.environ, **environ})
        invalidate_caches()
    return find_spec("apsw") is not None


def search_store(
    location: StoreLocation, query: str, limit: int, limits: SearchLimits, own_session: str
) -> list[SearchResult]:
    """Return memories and messages of a store: see `Backend.search`. `own_session` is the id of the asking session,
    which may see its own excluded content, or ''. Raises SessionMemoryError."""
    from ..memories.last_work import last_work
    from ..memories.library import search_memories  # needs apsw, which the Python of a plugin's server may not have
    from ..store.search.query import asks_for_last_work
    from ..store.values import Filter

    since, until, project = limits
    wanted = Filter(homes=location.homes, project=project, since=since, until=until, limit=limit)
    with _question(location, own_session) as (store, patience, missing):
        last = last_work(store, wanted, own_session) if asks_for_last_work(query) else []
        if last:
            return SearchResults([_worked_on(*one) for one in last], f"{missing}." if missing else "")
        hits = store.search(query, wanted)
    fits = None if limits == EVERYWHERE else partial(is_within, limits)
    memories = search_memories(location, query, min(limit, MOST_MEMORIES), note, patience, fits)
    notices = [notice for notice in (missing and f"{missing}.", hits.notice) if notice]
    return SearchResults([*map(remembered, memories), *map(said_in, hits)][:limit], " ".join(notices))


def errors_in_store(location: StoreLocation, text: str, own_session: str) -> list[ErrorMatch]:
    """Return earlier occurrences of an error in a store, as `session-memory errors` does, the best match first. Raises
    SessionMemoryError."""
    from ..patterns.failures import ErrorQuery
    from ..patterns.habits import matching_errors
    from ..store.sqlite.tool_uses import conversation_steps
    from ..store.values import Filter

    with _question(location, own_session) as (store, *_):
        wanted = Filter(homes=location.homes, limit=_EVERY)
        query = ErrorQuery(text)
        return matching_errors(query, conversation_steps(store, wanted, failing=query.similarity))


def session_in_store(location: StoreLocation, word: str, own_session: str) -> str:
    """Return the id of the session behind the id of a conversation or memory; '' if there is none. Raises
    SessionMemoryError."""
    from ..memories.session_ids import session_behind

    with _question(location, own_session) as (store, patience, _):
        return session_behind(store, location, note, patience, word)


def why_in_store(location: StoreLocation, what: str, own_session: str, environ: Mapping[str, str]) -> str:
    """Return why a line or commit of the current directory's repository is so, as `session-memory why` does. Raises
    SessionMemoryError."""
    from ..errors import SessionMemoryError
    from ..patterns.why import Reasons
    from ..patterns.why_text import find_reasons, told_to_agent
    from ..settings.homes import user_dir
    from ..store.sqlite.written_lines import known_key
    from ..system.branches import GitUnavailableError

    with _question(location, own_session) as (store, *_):
        try:
            _, reasons, _ = find_reasons(
                lambda repository: Reasons(store, repository, known_key(store.path), location.homes),
                what, os.getcwd(), user_dir(environ), is_confined=True,
            )  # fmt: skip
        except GitUnavailableError as error:
            raise SessionMemoryError(f"git cannot tell: {error}") from error
    return told_to_agent(reasons)


def note(text: str) -> None:
    """Log to stderr, a tool server's log, what the result does not say."""
    print(f"session-memory: {text}", file=sys.stderr, flush=True)


def is_within(limits: SearchLimits, memory: IndexedMemory) -> bool:
    """Return whether a memory is within the limits, by its time and the directories of its sources."""
    return limits.fits(memory.at, *[origin.directory for origin in memory.origins])


def said_in(hit: Hit) -> SearchResult:
    """Convert a hit to the tools' form."""
    entry, conversation = hit.entry, hit.conversation
    seconds = None if entry.timestamp is None else entry.timestamp / 1000
    name = f"{conversation.home}: {conversation.title}" if conversation.home else conversation.title
    where = ", ".join(filter(None, (f"conversation {conversation.id}", one_line(conversation.origin))))
    return SearchResult(conversation.session_id, name, entry.tool or entry.role, seconds, hit.snippet, where)


def _worked_on(conversation: Conversation, line: str) -> SearchResult:
    seconds = None if conversation.last_message_at is None else conversation.last_message_at / 1000
    where = f"conversation {conversation.id}"
    return SearchResult(conversation.session_id, conversation.title, "session", seconds, line, where)


def remembered(memory: IndexedMemory) -> SearchResult:
    """Convert a memory to the tools' form."""
    from ..memories.format import is_by_agent

    seconds = None if memory.at is None else memory.at / 1000
    notes = [*(["noted by an agent, not by the user"] if is_by_agent(memory) else []), *memory.doubts]
    doubts = f"({'; '.join(notes)})" if notes else ""
    said = memory.text or (memory.quote and f'"{memory.quote}"')
    text = "\n".join([part for part in (said, doubts) if part])
    _, session, conversation, *_ = memory.origins[-1] if memory.origins else (None, "", "")
    known = ", ".join([f"memory {memory.id}", *([memory.path] if memory.path else [])])
    where = f"conversation {conversation}, {known}" if conversation else known
    return SearchResult(str(session), memory.title, "memory", seconds, text, where)
