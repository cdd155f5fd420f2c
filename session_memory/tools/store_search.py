"""Searching for a desk: in the store and the memories where there is a store, in the archives where there is none."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from ..errors import SessionMemoryError
from .backend import Hit

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..store.place import StorePlace
    from ..store.values import Hit as StoreHit
    from .backend import Search

MEMORIES = 3  # of the memories at most, before what was said


def searching(path: str | None, environ: Mapping[str, str], otherwise: Search) -> Search:
    """A search in the store of the home `path`, else of the one at hand, as far as who asks from there may see;
    `otherwise` serves where that cannot be."""

    def search(query: str, limit: int) -> list[Hit]:
        from ..store.location import find_place

        try:
            place = find_place(path, environ)
            if os.path.exists(place.database):  # the first import is too long a work for a question
                return _search(place, query, limit)
        except (ImportError, SessionMemoryError):  # without apsw; a locked or corrupt database; nobody's store
            pass
        return otherwise(query, limit)

    return search


def _search(place: StorePlace, query: str, limit: int) -> list[Hit]:
    from ..memories.search import search_memories
    from ..store.refresh import open_store, refresh
    from ..store.values import Filter

    store = open_store(place)
    try:
        refresh(store, place, _note)
        hits = [_hit(hit) for hit in store.search(query, Filter(homes=place.homes, limit=limit))]
    finally:
        store.close()
    memories = [
        Hit("", memory.title, "memory", memory.at and memory.at / 1000, memory.text, memory.path)
        for memory in search_memories(place, query, min(limit, MEMORIES))
    ]
    return [*memories, *hits][:limit]


def _note(text: str) -> None:
    """Says on stderr what is not told by the answer: the log of a tool server."""
    print(f"session-memory: {text}", file=sys.stderr, flush=True)


def _hit(hit: StoreHit) -> Hit:
    said, talk = hit.entry, hit.conversation
    seconds = None if said.timestamp is None else said.timestamp / 1000
    name = f"{talk.home}: {talk.title}" if talk.home else talk.title
    return Hit(talk.session_id, name, said.tool or said.role, seconds, hit.snippet, f"conversation {talk.id}")
