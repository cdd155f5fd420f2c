"""A transaction over memory pages: reads them, applies each memory, writes the changed ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..store.sqlite.memory_index import MemoryFilter
from . import pages
from .format import EPISODE, Origin, PageMemory, struck, time_text, with_origin
from .similarity import contradicts, says_the_same, wording

if TYPE_CHECKING:
    from ..store.sqlite.memory_index import IndexedMemory, MemoryIndex
    from .pages import Page

WITHOUT_A_MODEL = "extractive"  # its episodes give way to those of any other strategy


class PageChanges:
    """A transaction: the pages read for it, and the pages to write."""

    def __init__(self, directory: str, index: MemoryIndex, home: str) -> None:
        self._directory = directory
        self._home = home
        self._index = index
        self._pages: dict[str, Page] = {}
        self._touched: set[str] = set()
        every = index.memories(MemoryFilter((home,), with_superseded=True, with_excluded=True))
        self._paths = {one.id: one.path for one in every}
        self._known = {one.id: one for one in map(page_memory, every)}
        self._wordings = {id: wording(memory.whole_text) for id, memory in self._known.items() if not memory.superseded}

    def take(self, memory: PageMemory, replaces: tuple[str, ...]) -> str:
        """Add a memory, or its origin to the memory that says the same. Return the id of the stored one."""
        same, others = self._alike(memory)
        if same is not None:
            self._add_origin(same, memory)
        else:
            poorer, richer = self._other_episodes(memory)
            others += poorer
            newer = richer or next((one for one in others if (one.at or 0) > (memory.at or 0)), None)
            memory = memory._replace(superseded=newer.id) if newer else memory
            page = self._page(self._path_for(memory))
            pages.add(page, memory)
            self._touch(page.path)
            self._note(memory, page.path)
            for other in others if newer is None else ():
                self._supersede(other.id, memory)
        kept = same or memory
        for id in replaces:
            if id in self._known and self._known[id].kind != EPISODE:
                self._supersede(id, kept)
        return kept.id

    def write(self) -> None:
        """Write the changed pages."""
        for path in sorted(self._touched):
            pages.write(self._directory, self._pages[path])

    def _alike(self, memory: PageMemory) -> tuple[PageMemory | None, list[PageMemory]]:
        """Return the memory that says the same, and the memories that contradict it."""
        if memory.id in self._known:
            return self._known[memory.id], []
        if memory.kind == EPISODE:
            return self._told_before(memory), []
        said = wording(memory.whole_text)
        near = [
            (self._known[id], other)
            for id, other in self._wordings.items()
            if self._known[id].kind == memory.kind
            and self._known[id].is_untrusted == memory.is_untrusted
            and self._known[id].subject.casefold() == memory.subject.casefold()
        ]
        same = next((known for known, other in near if says_the_same(said, other)), None)
        return same, [known for known, other in near if known.is_marked and contradicts(said, other)]

    def _told_before(self, memory: PageMemory) -> PageMemory | None:
        """Return the episode that the extractive strategy made of the same part of a conversation, possibly an earlier
        version in other words."""
        own = memory.origins[0]
        if own.strategy != WITHOUT_A_MODEL:
            return None
        every = (one for one in self._known.values() if one.kind == EPISODE and one.is_untrusted == memory.is_untrusted)
        return next((one for one in every if own.where in [origin.where for origin in one.origins]), None)

    def _other_episodes(self, memory: PageMemory) -> tuple[list[PageMemory], PageMemory | None]:
        """Return the extractive episodes of the same part of a conversation and, if `memory` is extractive, one that a
        model made."""
        if memory.kind != EPISODE:
            return [], None
        own = memory.origins[0]
        told = [
            (one, origin.strategy == WITHOUT_A_MODEL)
            for one in self._known.values()
            if one.kind == EPISODE and not one.superseded and one.is_untrusted == memory.is_untrusted
            for origin in one.origins
            if (origin.session, time_text(origin.at)) == (own.session, time_text(own.at))
        ]
        if own.strategy == WITHOUT_A_MODEL:
            return [], next((one for one, is_poorer in told if not is_poorer), None)
        return [one for one, is_poorer in told if is_poorer], None

    def _add_origin(self, known: PageMemory, memory: PageMemory) -> None:
        if not known.is_marked or {one.where for one in memory.origins} <= {one.where for one in known.origins}:
            return
        page = self._page(self._paths[known.id])
        at = pages.position_of(page, known.id)
        if at is not None:
            page.parts[at] = with_origin(page.parts[at], memory.origins[0])
            self._touch(page.path)
            self._note(known._replace(origins=(*known.origins, *memory.origins)), page.path)

    def _supersede(self, id: str, by: PageMemory) -> None:
        """Mark a memory as superseded if a strategy made it, it is current, and it is as trusted as `by`."""
        known = self._known.get(id)
        if known is None or id == by.id or not known.is_marked or known.superseded:
            return
        if known.is_untrusted != by.is_untrusted or by.superseded:
            return
        page = self._page(self._paths[id])
        at = pages.position_of(page, id)
        if at is not None:
            page.parts[at] = struck(page.parts[at], by)
            self._touch(page.path)
            self._note(known._replace(superseded=by.id), page.path)

    def _path_for(self, memory: PageMemory) -> str:
        """Return the page for a new memory: a private one if a rule was added after its conversation was read."""
        path = pages.path_for(memory)
        sessions = {origin.session for origin in memory.origins}
        return pages.moved_path(path) if self._index.excluded_sessions(self._home, sessions) else path

    def _page(self, path: str) -> Page:
        if path not in self._pages:
            self._pages[path] = pages.read(self._directory, path)
        return self._pages[path]

    def _touch(self, path: str) -> None:
        self._touched.add(path)

    def _note(self, memory: PageMemory, path: str) -> None:
        self._known[memory.id] = memory
        self._paths[memory.id] = path
        if memory.superseded:
            self._wordings.pop(memory.id, None)
        else:
            self._wordings[memory.id] = wording(memory.whole_text)


def page_memory(indexed: IndexedMemory) -> PageMemory:
    """Convert a memory of the index to one of a page."""
    origins = tuple([Origin(*origin) for origin in indexed.origins])
    return PageMemory(
        indexed.id, indexed.kind, indexed.title, indexed.text, indexed.subject, indexed.quote, origins,
        indexed.superseded, indexed.is_untrusted, indexed.is_marked,
    )  # fmt: skip
