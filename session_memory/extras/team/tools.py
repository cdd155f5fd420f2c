"""The tool `search_team`, and reading conversations that it found."""

from __future__ import annotations

from contextlib import contextmanager
from itertools import groupby
from typing import TYPE_CHECKING, Any

from ...app.tools.results import Told, search_results
from ...app.tools.values import ListedSession, RefusedError, SearchResult, SearchResults, limits_in
from ...common.errors import SessionMemoryError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ...app.tools.backend import Backend
    from ...app.tools.values import SearchLimits
    from ...history.store.values import Hit, StoredEntry
    from ...memory.memory_index import IndexedMemory
    from ...memory.shared_store import SharedStore
    from ...sessions.transcripts.entries import Entry

NOTHING_IN_TEAM = (
    "Nothing was found in the team's sessions. Try other words, or fewer. Messages from the last "
    "minutes may not be there yet."
)
MOST_MEMORIES = 3  # listed before the messages
_LOOKED_AT = 200  # best memories of a team fetched, before the limits are applied
_TEAM = "team-"  # before the number of a conversation, in an id from search_team


def is_offered(backend: Backend) -> bool:
    """Return whether the agent's home has joined a team."""
    from ...memory.shared_store import shared_url

    try:
        location = backend.location()
        return location is not None and bool(shared_url(location.home))
    except SessionMemoryError:
        return False


def search_team(backend: Backend, arguments: Mapping[str, Any]) -> str:
    """Search the team's sessions and memories as `search_sessions` does the home's."""
    limit = arguments.get("limit", 10)
    hits = _search(backend, arguments["query"], limit, limits_in(arguments))
    nothing = Told(NOTHING_IN_TEAM, note=NOTHING_IN_TEAM, results=[])
    return search_results(hits, limit) if hits else nothing


def _search(backend: Backend, query: str, limit: int, limits: SearchLimits) -> list[SearchResult]:
    """Return the results, memories first.

    `role` contains the speaker and place, `session_id` a `team_id`."""
    home = backend.searched_location().home
    with _opened(backend) as store:
        from ...app.tools.store_results import is_within
        from ...memory.memory_index import MemoryFilter
        from ...memory.shared_store import of_shared_project, shared_engine

        wanted = of_shared_project(limits.filter(limit, home), home)
        hits = store.search(query, wanted)
        every = shared_engine().memories(store).search(query, MemoryFilter(limit=_LOOKED_AT))
    memories = [memory for memory in every if is_within(memory, wanted)]
    memories = memories[: min(limit, MOST_MEMORIES)]
    return SearchResults([*map(_result, memories), *map(_result, hits)][:limit], hits.notice)


def read(backend: Backend, name: str, count: int) -> tuple[ListedSession, list[Entry]] | None:
    """Return the team's conversation with this id: its name, and its last `count` entries.

    The name has the form `ann@laptop: its title`; the entries are in order. Return None for any
    other id or name. Raises RefusedError."""
    conversation = team_conversation(name)
    if conversation is None:
        return None
    with _opened(backend) as store:
        known = store.conversation(conversation)
        items = list(store.entries(conversation)) if known else []
    if known is None:
        hint = "it may no longer be shared: search_team shows the conversations of the team"
        raise RefusedError(f"the team has no conversation {team_id(conversation)}", hint)
    modified = None if known.last_message_at is None else known.last_message_at / 1000
    session = ListedSession(
        team_id(conversation), f"{known.who}: {known.title}", known.session_id, modified
    )
    return session, [
        _entry_of(list(each)) for _, each in groupby(items, key=lambda item: item.message)
    ][-count:]


def hint_for(name: str) -> str:
    """Return where a session of this name may be, '' if the team cannot have it.

    Updates name a team's sessions in the form `ann@laptop`."""
    if "@" not in name:
        return ""
    return (
        "it may be on another machine: search_team finds its messages, with an id for read_session"
    )


@contextmanager
def _opened(backend: Backend) -> Iterator[SharedStore]:
    """Yield the team's store with the sessions that the agent may see.

    An agent that sees all homes of a store, as main's does, sees in the team only sessions
    that those homes have shared under their names."""
    from ...memory.shared_store import shared_url

    location = backend.location()
    url = shared_url(location.home) if location else ""
    if location is None or not url:
        raise RefusedError("this machine has not joined a team", "continue without it")
    visible = location.visible or tuple(
        {watched.home for watched in location.watched if watched.home}
    )
    with backend.pool.store(url, visible or None) as store:
        yield store


def team_id(conversation: object) -> str:
    """Return the id with which an agent reads a conversation of its team; '' if it may not."""
    return f"{_TEAM}{conversation}" if conversation else ""


def team_conversation(id: str) -> int | None:
    """Return the number of the conversation in a `team_id`; None for any other id or name."""
    number = id.strip().removeprefix(_TEAM)
    return (
        int(number)
        if id.strip().startswith(_TEAM) and number.isascii() and number.isdigit()
        else None
    )


def _result(hit: Hit | IndexedMemory) -> SearchResult:
    """Convert a hit or memory in a team's store, with its owner and place."""
    from ...app.tools.store_results import found_memory, found_message
    from ...history.store.values import Hit

    if isinstance(hit, Hit):
        message, conversation = found_message(hit), hit.conversation
        role = f"{message.role} of {conversation.who}, in {conversation.cwd}"
        return message._replace(role=role, session_id=team_id(conversation.id), conversation="")
    origin = hit.origins[-1]
    return found_memory(hit)._replace(
        role=f"memory of {hit.who}, in {origin.directory}",
        session_id=team_id(origin.conversation),
        conversation=f"memory {hit.id}",
    )


def _entry_of(items: list[StoredEntry]) -> Entry:
    """Convert the items of a message to an entry."""
    from ...history.store.values import TOOL_ROLE
    from ...sessions.transcripts.entries import Entry, ToolUse

    said = [item for item in items if item.role != TOOL_ROLE]
    text = "\n\n".join([item.text for item in said])
    tools = tuple(
        [ToolUse(item.tool, item.text, item.kind) for item in items if item.role == TOOL_ROLE]
    )
    at = items[0].timestamp
    return Entry(
        said[0].role if said else "assistant",
        text,
        tools=tools,
        timestamp=None if at is None else at / 1000,
        cwd=items[0].cwd,
    )
