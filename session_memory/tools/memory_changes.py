"""The memories that an agent changes: whoever serves the tools says how, since tools lie beside memories."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NamedTuple

from .backend import RefusedError
from .store_search import location_with_store

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..store.location import StoreLocation
    from ..store.refresh import Note
    from ..store.sqlite.memory_index import IndexedMemory

NO_MEMORIES = "memories cannot be changed: the store that they belong to is not there yet, or cannot be used"


class MemoryChanges(NamedTuple):
    """What changes memories: `remember(location, session, kind, text, quote, note)`, `forget(location, id, note)`."""

    remember: Callable[[StoreLocation, str, str, str, str, Note], IndexedMemory]
    forget: Callable[[StoreLocation, str, Note], IndexedMemory]


class OwnMemories:
    """The memories of the home `path`, which the agent in `own_session` changes. Methods raise SessionMemoryError."""

    def __init__(
        self, path: str | None, environ: Mapping[str, str], own_session: Callable[[], str],
        changes: MemoryChanges | None,
    ) -> None:  # fmt: skip
        self._path = path
        self._environ = environ
        self._own_session = own_session
        self._changes = changes

    def remember(self, kind: str, text: str, quote: str) -> IndexedMemory:
        """See Backend."""
        session = self._own_session()
        if not session:
            raise RefusedError("nothing was remembered: it is not known which session this is", "tell the user")
        location, changes = self._place()
        return changes.remember(location, session, kind, text, quote, _note)

    def forget(self, id: str) -> IndexedMemory:
        """See Backend."""
        location, changes = self._place()
        return changes.forget(location, id, _note)

    def _place(self) -> tuple[StoreLocation, MemoryChanges]:
        location = location_with_store(self._path, self._environ)
        if location is None or self._changes is None:
            raise RefusedError(NO_MEMORIES, "tell the user if it stays so")
        return location, self._changes


def _note(text: str) -> None:
    print(f"session-memory: {text}", file=sys.stderr, flush=True)
