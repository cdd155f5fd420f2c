"""Search in the store of the team that a home has joined: for what was said and is remembered on all machines."""

from __future__ import annotations

import os
from contextlib import closing
from typing import TYPE_CHECKING

from ..settings.sections import team_settings
from .backend import RefusedError, SearchResults
from .store_search import MOST_MEMORIES, is_within, location_with_store, remembered, said_in

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..store.location import StoreLocation
    from .backend import SearchLimits, SearchResult

_LOOKED_AT = 200  # memories that fit best, of which those within the limits are told


def is_joined(path: str | None, environ: Mapping[str, str]) -> bool:
    """Whether the home `path`, else the one at hand, has joined a team. Raises SessionMemoryError."""
    location = location_with_store(path, environ)
    return location is not None and bool(_url(location))


def search_team(
    path: str | None, environ: Mapping[str, str], query: str, limit: int, limits: SearchLimits
) -> list[SearchResult]:
    """At most `limit` memories and messages, memories first, each with who and where. Raises SessionMemoryError."""
    from ..store.postgres.engine import TeamStore
    from ..store.postgres.memories import TeamMemories
    from ..store.sqlite.memory_index import MemoryFilter
    from ..store.values import Filter

    location = location_with_store(path, environ)
    if location is None or not _url(location):
        raise RefusedError("no team was joined on this machine", "go on without it")
    since, until, project = limits
    with closing(TeamStore(_url(location))) as store:
        wanted = Filter(homes=location.homes, project=project, since=since, until=until, limit=limit)
        hits = store.search(query, wanted)
        every = TeamMemories(store).search(query, MemoryFilter(location.homes, limit=_LOOKED_AT))
    memories = [one for one in every if is_within(limits, one)][: min(limit, MOST_MEMORIES)]
    known = [remembered(one)._replace(role=f"memory of {one.who}, in {one.origins[-1][-1]}") for one in memories]
    said = [(said_in(hit), hit.conversation) for hit in hits]
    told = [one._replace(role=f"{one.role} of {where.who}, in {where.cwd}") for one, where in said]
    return SearchResults([*known, *told][:limit], hits.notice)


def _url(location: StoreLocation) -> str:
    home = location.home
    return team_settings(home.settings().team, home.user_dir or os.path.expanduser("~")).url
