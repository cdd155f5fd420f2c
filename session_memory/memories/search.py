"""The memories that whoever asks may see: brought up to date with their pages, listed and searched."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ..store.sqlite.memory_index import MemoryFilter, MemoryIndex
from .folders import folder_of, groups_of
from .library import Library

if TYPE_CHECKING:
    from ..store.place import StorePlace
    from ..store.sqlite.memory_index import IndexedMemory


@contextmanager
def open_index(place: StorePlace) -> Iterator[MemoryIndex]:
    """The index of the memories that belong to a store, up to date with what a person changed. Raises
    SessionMemoryError, OSError."""
    index = MemoryIndex(place.database)
    try:
        for group in groups_of(place):
            library_of(place, index, group).refresh()
        yield index
    finally:
        index.close()


def library_of(place: StorePlace, index: MemoryIndex, group: str) -> Library:
    """The memories of a group."""
    return Library(folder_of(place, group), index, group)


def search_memories(place: StorePlace, query: str, limit: int) -> list[IndexedMemory]:
    """The memories that fit a query best, best first: those that hold, of trusted sessions. Raises SessionMemoryError,
    OSError."""
    with open_index(place) as index:
        return index.search(query, MemoryFilter(place.homes, is_untrusted=False, limit=limit))
