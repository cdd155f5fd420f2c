"""Search in the store of the team that a home has joined: messages and memories of all machines."""

from __future__ import annotations

import os
from itertools import groupby
from typing import TYPE_CHECKING

from ..settings.sections import team_settings
from ..store.values import TOOL_ROLE
from ..transcripts.entries import Entry, ToolUse
from .store_search import MOST_MEMORIES, is_within, location_with_store, remembered, said_in
from .values import ListedSession, RefusedError, SearchResults, team_id

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..store.location import StoreLocation
    from ..store.postgres.engine import TeamPool
    from ..store.sqlite.memory_index import IndexedMemory
    from ..store.values import Hit, StoredEntry
    from .values import SearchLimits, SearchResult

_LOOKED_AT = 200  # best memories fetched, before the limits are applied


def is_joined(path: str | None, environ: Mapping[str, str]) -> bool:
    """Return whether the home `path` (by default the current one) has joined a team. Raises SessionMemoryError."""
    location = location_with_store(path, environ)
    return location is not None and bool(_url(location))


def search_team(
    teams: TeamPool, path: str | None, environ: Mapping[str, str], query: str, limit: int, limits: SearchLimits
) -> list[SearchResult]:
    """Return at most `limit` memories and messages, memories first, each with its owner and place. Raises
    SessionMemoryError."""
    from ..store.postgres.memories import TeamMemories
    from ..store.sqlite.memory_index import MemoryFilter
    from ..store.values import Filter

    location = _location(path, environ)
    since, until, project = limits
    homes = _homes(location)
    with teams.store(_url(location)) as store:
        wanted = Filter(homes=homes, project=project, since=since, until=until, limit=limit)
        hits = store.search(query, wanted)
        every = TeamMemories(store).search(query, MemoryFilter(homes, limit=_LOOKED_AT))
    memories = [one for one in every if is_within(limits, one)][: min(limit, MOST_MEMORIES)]
    known = [_remembered(one) for one in memories]
    return SearchResults([*known, *map(_said, hits)][:limit], hits.notice)


def team_entries(
    teams: TeamPool, path: str | None, environ: Mapping[str, str], conversation: int, count: int
) -> tuple[ListedSession, list[Entry]]:
    """Return a conversation of the team under the name `ann@laptop: its title`, and its last `count` entries in order.
    Raises SessionMemoryError."""
    location = _location(path, environ)
    with teams.store(_url(location)) as store:
        found = store.conversation(conversation, _homes(location))
        items = list(store.entries(conversation)) if found else []
    if found is None:
        hint = "it may not be shared any more: search_team says which there are"
        raise RefusedError(f"the team has no conversation {team_id(conversation)}", hint)
    modified = None if found.last_message_at is None else found.last_message_at / 1000
    session = ListedSession(team_id(conversation), f"{found.who}: {found.title}", found.session_id, modified)
    messages = [_entry(list(some)) for _, some in groupby(items, key=lambda item: item.message)]
    return session, messages[-count:]


def _entry(items: list[StoredEntry]) -> Entry:
    """Convert the items of a message to an entry."""
    said = [item for item in items if item.role != TOOL_ROLE]
    text = "\n\n".join([item.text for item in said])
    tools = tuple([ToolUse(item.tool, item.text, item.kind) for item in items if item.role == TOOL_ROLE])
    at = items[0].timestamp
    return Entry(
        said[0].role if said else "assistant", text, tools=tools, timestamp=None if at is None else at / 1000,
        cwd=items[0].cwd,
    )  # fmt: skip


def _remembered(memory: IndexedMemory) -> SearchResult:
    *_, directory = memory.origins[-1]
    where = f"memory of {memory.who}, in {directory}"
    told = remembered(memory)
    return told._replace(role=where, session_id=team_id(memory.origins[-1][2]), conversation=f"memory {memory.id}")


def _said(hit: Hit) -> SearchResult:
    told, conversation = said_in(hit), hit.conversation
    role = f"{told.role} of {conversation.who}, in {conversation.cwd}"
    return told._replace(role=role, session_id=team_id(conversation.id), conversation="")


def _location(path: str | None, environ: Mapping[str, str]) -> StoreLocation:
    location = location_with_store(path, environ)
    if location is None or not _url(location):
        raise RefusedError("no team was joined on this machine", "go on without it")
    return location


def _homes(location: StoreLocation) -> tuple[str, ...] | None:
    """Return the groups whose sessions may be seen, None for all. The agent of main sees all groups of its host, but in
    the team only what those groups have shared under their names."""
    return location.homes or tuple({one.home for one in location.watched if one.home}) or None


def _url(location: StoreLocation) -> str:
    home = location.home
    return team_settings(home.settings().team, home.user_dir or os.path.expanduser("~")).url
