"""A transaction over memory pages: reads them, applies each memory, writes the changed ones."""

from __future__ import annotations

from collections.abc import Callable

from ..store.sqlite.memory_index import IndexedMemory, MemoryFilter, MemoryIndex
from . import pages
from .format import EPISODE, render, source_of, struck, time_text, with_origin
from .pages import Page
from .similarity import contradicts, says_the_same, wording

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
        self._known = {one.id: one for one in every}
        self._wordings = {one.id: wording(one.whole_text) for one in every if not one.superseded}

    def take(self, memory: IndexedMemory, replaces: tuple[str, ...]) -> str:
        """Add a memory, or its origin to the memory that says the same. Return the id of the stored one."""
        same, others = self._alike(memory)
        if same is not None:
            self._add_origin(same, memory)
        else:
            poorer, richer = self._other_episodes(memory)
            others += poorer
            newer = richer or next((one for one in others if (one.at or 0) > (memory.at or 0)), None)
            memory = memory._replace(path=self._path_for(memory), superseded=newer.id if newer else "")
            self._page(memory.path).parts.append(render(memory))
            self._note(memory)
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

    def _alike(self, memory: IndexedMemory) -> tuple[IndexedMemory | None, list[IndexedMemory]]:
        """Return the memory that says the same, and the memories that contradict it."""
        if memory.id in self._known:
            return self._known[memory.id], []
        if memory.kind == EPISODE:
            return self._made_before(memory), []
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

    def _made_before(self, memory: IndexedMemory) -> IndexedMemory | None:
        """Return the episode that the extractive strategy made of the same part of a conversation, possibly an earlier
        version in other words."""
        if memory.origins[0].strategy != WITHOUT_A_MODEL:
            return None
        own = source_of(memory.origins[0])
        every = (one for one in self._known.values() if one.kind == EPISODE and one.is_untrusted == memory.is_untrusted)
        return next((one for one in every if own in map(source_of, one.origins)), None)

    def _other_episodes(self, memory: IndexedMemory) -> tuple[list[IndexedMemory], IndexedMemory | None]:
        """Return the extractive episodes of the same part of a conversation and, if `memory` is extractive, one that a
        model made."""
        if memory.kind != EPISODE:
            return [], None
        own = memory.origins[0]
        covering = [
            (one, origin.strategy == WITHOUT_A_MODEL)
            for one in self._known.values()
            if one.kind == EPISODE and not one.superseded and one.is_untrusted == memory.is_untrusted
            for origin in one.origins
            if (origin.session, time_text(origin.at)) == (own.session, time_text(own.at))
        ]
        if own.strategy == WITHOUT_A_MODEL:
            return [], next((one for one, is_poorer in covering if not is_poorer), None)
        return [one for one, is_poorer in covering if is_poorer], None

    def _add_origin(self, known: IndexedMemory, memory: IndexedMemory) -> None:
        if known.is_marked and not {*map(source_of, memory.origins)} <= {*map(source_of, known.origins)}:
            changed = known._replace(origins=(*known.origins, *memory.origins))
            self._change(changed, lambda part: with_origin(part, memory.origins[0]))

    def _supersede(self, id: str, by: IndexedMemory) -> None:
        """Mark a memory as superseded if a strategy made it, it is current, and it is as trusted as `by`."""
        known = self._known.get(id)
        if known is None or id == by.id or not known.is_marked or known.superseded:
            return
        if known.is_untrusted == by.is_untrusted and not by.superseded:
            self._change(known._replace(superseded=by.id), lambda part: struck(part, by))

    def _change(self, memory: IndexedMemory, change: Callable[[str], str]) -> None:
        """Change the part of a page with a known memory, which is then `memory`."""
        page = self._page(memory.path)
        at = pages.position_of(page, memory.id)
        if at is not None:
            page.parts[at] = change(page.parts[at])
            self._note(memory)

    def _path_for(self, memory: IndexedMemory) -> str:
        """Return the page for a new memory: a private one if a rule was added after its conversation was read."""
        path = pages.path_for(memory)
        sessions = {origin.session for origin in memory.origins}
        return pages.moved_path(path) if self._index.excluded_sessions(self._home, sessions) else path

    def _page(self, path: str) -> Page:
        if path not in self._pages:
            self._pages[path] = pages.read(self._directory, path)
        return self._pages[path]

    def _note(self, memory: IndexedMemory) -> None:
        self._touched.add(memory.path)
        self._known[memory.id] = memory
        if memory.superseded:
            self._wordings.pop(memory.id, None)
        else:
            self._wordings[memory.id] = wording(memory.whole_text)
