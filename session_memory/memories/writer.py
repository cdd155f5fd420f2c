"""Write the results of strategies as memories, and look up existing memories for strategies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ..store.sqlite.memory_index import MemoryIndex
from ..text.sanitize import for_storage
from .folders import folder_of, is_untrusted
from .format import KINDS, Origin, new_memory
from .library import Library
from .page_changes import page_memory
from .similarity import wording
from .strategy import KnownMemory, StrategyContext

if TYPE_CHECKING:
    from ..store.location import StoreLocation
    from ..store.rules import StoreRules
    from ..store.values import Conversation, StoredEntry
    from .strategy import MemoryResult, Strategy

KNOWN_SHARE = 0.5  # of a memory's words must occur in a text that it matches


class MemoryWriter:
    """The queue's sink. `directory` returns the memories directory of a group, `is_untrusted` whether a conversation's
    memories are kept apart; `rules` tell which conversations are excluded."""

    def __init__(
        self,
        database: str,
        directory: Callable[[str], str],
        is_untrusted: Callable[[Conversation], bool] = lambda conversation: False,
        rules: StoreRules | None = None,
    ) -> None:
        self._database = database
        self._directory = directory
        self._is_untrusted = is_untrusted
        self._rules = rules

    def __call__(
        self, conversation: Conversation, entries: Sequence[StoredEntry], strategy: str, result: MemoryResult
    ) -> list[str]:
        """Write the memories of a result and return their ids. Idempotent. Raises SessionMemoryError, OSError."""
        index = MemoryIndex(self._database, self._rules)
        try:
            library = Library(self._directory(conversation.home), index, conversation.home)
            return keep(library, conversation, strategy, result, is_untrusted=self._is_untrusted(conversation))
        finally:
            index.close()

    def known(self, conversation: Conversation, text: str, limit: int) -> list[KnownMemory]:
        """Return the memories that match `text`: see `StrategyContext`."""
        index = MemoryIndex(self._database, self._rules)
        try:
            library = Library(self._directory(conversation.home), index, conversation.home)
            library.refresh()
            return known(library, text, limit, is_untrusted=self._is_untrusted(conversation))
        finally:
            index.close()

    def attach(self, strategies: Sequence[Strategy], directory: str) -> None:
        """Call `attach` on the strategies that have it; `directory` is for their own files."""
        for strategy in strategies:
            attach = getattr(strategy, "attach", None)
            if attach is not None:
                attach(StrategyContext(directory, self.known, self._is_untrusted))


def memory_writer(location: StoreLocation) -> MemoryWriter:
    """Return the writer for memories made of a store's conversations."""
    return MemoryWriter(
        location.database,
        lambda group: folder_of(location, group),
        lambda conversation: is_untrusted(location, conversation),
        location.rules,
    )


def keep(
    library: Library, conversation: Conversation, strategy: str, result: MemoryResult, *, is_untrusted: bool
) -> list[str]:
    """Write the memories of a result and return their ids. Raises as the methods of Library do."""
    (directory,) = for_storage([conversation.cwd])
    origin = Origin(
        conversation.last_message_at, conversation.session_id, conversation.id, strategy, directory=directory
    )
    memories = []
    for one in result.memories:
        own = origin if one.at is None else origin._replace(at=one.at, message=one.message)
        made = new_memory(one.kind, one.title, one.text, one.subject, one.quote, own, is_untrusted=is_untrusted)
        memories.append((made, one.replaces))
    return library.keep([(memory, replaces) for memory, replaces in memories if memory.title])


def known(library: Library, text: str, limit: int, *, is_untrusted: bool) -> list[KnownMemory]:
    """Return at most `limit` current memories most of whose words occur in `text`, best first."""
    said = wording(text)
    words = said.words | said.values
    scored = []
    for kind in KINDS:
        for indexed in library.current(kind, is_untrusted=is_untrusted):
            memory = page_memory(indexed)
            own = wording(memory.whole_text).words
            share = len(own & words) / len(own) if own else 0.0
            if share >= KNOWN_SHARE and memory.is_marked:
                scored.append((share, memory))
    scored.sort(key=lambda pair: -pair[0])
    return [KnownMemory(memory.id, memory.kind, memory.subject, memory.whole_text) for _, memory in scored[:limit]]
