"""The memories of a group: its pages, which are the source of truth, and the index, which follows them.

What a person changes on a page is kept; what they delete is forgotten. All changes are made under one lock.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ..errors import LockedError
from ..store.refresh import not_taken_in
from ..store.sqlite.memory_index import IndexedMemory, MemoryFilter, MemoryIndex
from ..system.files import lock
from ..system.sqlite import CorruptDatabaseError, DatabaseError
from ..text.sanitize import for_storage
from . import forgotten, pages, private_pages, prompt_index
from .folders import folder_of, groups_of
from .format import EPISODE, Origin, PageMemory, restored, struck, time_text, with_origin
from .pages import EditedMeanwhileError, Page
from .similarity import contradicts, says_the_same, wording
from .strategy import StrategyError

if TYPE_CHECKING:
    from ..store.location import StoreLocation
    from ..store.refresh import Note
    from ..system.sqlite import Patience

LOCK_WAIT_SECONDS = 30.0
ATTEMPTS = 5
WITHOUT_A_MODEL = "extractive"  # its episodes give way to those of any other strategy
_UNSETTLED = "unsettled"  # in place of a stamp: the page is read again the next time


class Library:
    """The memories in `directory`, of the group `home`, and their index. Methods raise DatabaseError, LockedError and
    OSError."""

    def __init__(self, directory: str, index: MemoryIndex, home: str = "") -> None:
        self.directory = directory
        self.home = home
        self._index = index

    def keep(self, memories: Iterable[tuple[PageMemory, tuple[str, ...]]]) -> list[str]:
        """Adds memories, each with the ids of those that it supersedes; returns the ids under which they are found.
        One that is there already changes nothing; one that was forgotten is left out."""
        wanted = list(memories)
        return self._changed(lambda: self._keep(wanted))

    def forget(self, ids: Iterable[str]) -> None:
        """Removes memories from pages and index for good; those that they superseded hold again."""
        wanted = set(ids)
        self._changed(lambda: self._forget(wanted))

    def refresh(self, wait_seconds: float = LOCK_WAIT_SECONDS) -> None:
        """Brings the index up to date with the pages. Waits for whoever is at work on them for so long."""
        if not os.path.isdir(self.directory) and not self._index.pages(self.home):
            return  # nothing was ever kept: no reason to make a directory
        with self._locked(wait_seconds):
            self._refresh()

    def current(self, kind: str, *, is_untrusted: bool) -> list[IndexedMemory]:
        """The memories of a kind that hold, as the index has them."""
        return self._index.memories(MemoryFilter((self.home,), (kind,), is_untrusted))

    def _changed(self, change: Callable[[], list[str]]) -> list[str]:
        with self._locked():
            for _ in range(ATTEMPTS):
                self._refresh()
                try:
                    ids = change()
                except EditedMeanwhileError:
                    continue
                self._refresh()
                return ids
        message = f"{self.directory}: its pages are being edited all the time"
        raise StrategyError(message, "close the editor, or wait until it is done", is_temporary=True)

    def _keep(self, wanted: list[tuple[PageMemory, tuple[str, ...]]]) -> list[str]:
        changes = _PageChanges(self.directory, self._index, self.home)
        tombstones = forgotten.read(self.directory)
        ids = []
        for memory, replaces in wanted:
            if any(one.covers(memory) for one in tombstones):
                continue
            ids.append(changes.take(memory, replaces))
        changes.write()
        return list(dict.fromkeys(ids))

    def _forget(self, ids: set[str]) -> list[str]:
        found = [page for path in pages.find(self.directory) for page in [pages.read(self.directory, path)]]
        every = [memory for page in found for memory in page.memories]
        # An episode that a forgotten one superseded tells of the same conversation, and goes too.
        ids = ids | {memory.id for memory in every if memory.kind == EPISODE and memory.superseded in ids}
        memories = [memory for memory in every if memory.id in ids]
        forgotten.add(self.directory, memories)  # first: after a crash here the memories are not made again
        for page in found:
            parts = page.parts[:1]
            for part, memory in zip(page.parts[1:], page.memories):
                if memory.id not in ids:
                    parts.append(restored(part) if memory.superseded in ids else part)
            if parts != page.parts:
                pages.write(self.directory, page._replace(parts=parts))
        self._index.remove(self.home, ids)
        return sorted(ids)

    def _refresh(self) -> None:
        """Reads the pages that changed, forgets the memories that a person removed from them, and moves those that
        rules exclude to private pages, or back."""
        self._read_changed()
        placed = self._index.placed(self.home)
        try:
            misplaced = [one for one in placed if one.is_misplaced]
            if misplaced:
                private_pages.settle(self.directory, misplaced)
                self._read_changed()
                placed = self._index.placed(self.home)
        finally:
            self._renew_prompt_index([one.id for one in placed if one.is_told])

    def _renew_prompt_index(self, told: list[str]) -> None:
        settings = self._index.settings()
        if not prompt_index.is_current(self.directory, told, settings):
            memories = self._index.memories(MemoryFilter((self.home,), is_untrusted=False))
            prompt_index.write(self.directory, memories, settings)

    def _read_changed(self) -> None:
        known = self._index.pages(self.home)
        there = pages.find(self.directory)
        changed = [path for path, (stamp, _) in there.items() if known.get(path) != stamp]
        gone = [path for path in known if path not in there]
        if changed or gone or self._index.ids(self.home, only_missing=True):
            read = {path: pages.read(self.directory, path) for path in changed}
            had_open = not all(map(pages.is_private_path, known))
            is_empty = not there or (had_open and all(map(pages.is_private_path, there)))
            self._take_in({*changed, *gone}, read, is_empty=is_empty)

    def _take_in(self, changed: set[str], read: dict[str, Page], *, is_empty: bool) -> None:
        """Updates the index for changed pages. A memory that is on no page any more is forgotten once its page is
        settled; but where no page is left at all, the directory was moved or is still to come back."""
        known = self._index.memories(MemoryFilter((self.home,), with_superseded=True, with_excluded=True))
        missing = {one.id: one for one in self._index.missing(self.home)}
        before = {one.id: one for one in known if one.path in changed and one.is_marked} | missing
        here = {memory.id for page in read.values() for memory in page.memories}
        here.update(one.id for one in known if one.path not in changed)
        lost = [one for id, one in before.items() if id not in here]
        waiting = [] if is_empty else [one for one in lost if not self._is_settled(one.path, read)]
        settled = [one for one in lost if one not in waiting]
        if settled and not is_empty:
            forgotten.add(self.directory, map(page_memory, settled))
        stamped: dict[str, tuple[str, list[IndexedMemory]]] = {path: ("", []) for path in changed}
        for path, page in read.items():
            found = [_indexed(self.home, path, memory) for memory in _without_secrets(page.memories)]
            stamped[path] = (page.stamp if page.is_settled else _UNSETTLED, found)
        self._index.replace(self.home, stamped, [one.id for one in waiting])
        self._index.remove(self.home, [one.id for one in settled if one.path not in changed])

    def _is_settled(self, path: str, read: dict[str, Page]) -> bool:
        """Whether a page, or the folder that it is gone from, was not written to lately."""
        return read[path].is_settled if path in read else pages.is_settled(pages.folder_of(self.directory, path))

    @contextmanager
    def _locked(self, wait_seconds: float = LOCK_WAIT_SECONDS) -> Iterator[None]:
        held = lock(f"{self.directory}/.lock", wait_seconds)
        try:
            yield
        finally:
            os.close(held)


@contextmanager
def open_index(
    location: StoreLocation, note: Note, patience: Patience | None = None, *, with_private: bool = False
) -> Iterator[MemoryIndex]:
    """The index of the memories that belong to a store, brought up to date with their pages. With `patience`, for a
    question, it is as it was where that cannot be done now, and `note` is called with the reason. `with_private`: a
    person asks for those of which only the text may not be told. Raises SessionMemoryError, OSError."""
    index = MemoryIndex(location.database, location.rules, patience)
    wait_seconds = max(0.0, patience.seconds) if patience else LOCK_WAIT_SECONDS
    try:
        for group in groups_of(location):
            try:
                library_of(location, index, group).refresh(wait_seconds)
            except (DatabaseError, LockedError, OSError) as error:
                if patience is None or isinstance(error, CorruptDatabaseError):
                    raise
                note(not_taken_in(error))
        if with_private:
            index.close()
            index = MemoryIndex(location.database, location.rules, patience, with_private=True)
        yield index
    finally:
        index.close()


def library_of(location: StoreLocation, index: MemoryIndex, group: str) -> Library:
    """The memories of a group."""
    return Library(folder_of(location, group), index, group)


def search_memories(
    location: StoreLocation, query: str, limit: int, note: Note, patience: Patience | None
) -> list[IndexedMemory]:
    """The memories that fit a query best, best first: those that hold, of trusted sessions. See `open_index`."""
    with open_index(location, note, patience) as index:
        return index.search(query, MemoryFilter(location.homes, is_untrusted=False, limit=limit))


class _PageChanges:
    """A change in the making: the pages that were read for it, and those to be written."""

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
        """Adds a memory, or its origin to the one that says the same; returns the id of that."""
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
        """Writes what was changed."""
        for path in sorted(self._touched):
            pages.write(self._directory, self._pages[path])

    def _alike(self, memory: PageMemory) -> tuple[PageMemory | None, list[PageMemory]]:
        """The memory that says the same, and those that contradict it."""
        if memory.id in self._known:
            return self._known[memory.id], []
        if memory.kind == EPISODE:
            return None, []
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

    def _other_episodes(self, memory: PageMemory) -> tuple[list[PageMemory], PageMemory | None]:
        """The episodes of the same part of a conversation that were made without a model, and one that was made with a
        model, where `memory` was made without."""
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
        """Marks a memory as superseded, if a strategy made it, it holds, and it is as trusted as `by`."""
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
        """The page that a new memory belongs on: a private one if a rule has come since its conversation was read."""
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
    """A memory of the index as one of a page."""
    origins = tuple([Origin(*origin) for origin in indexed.origins])
    return PageMemory(
        indexed.id, indexed.kind, indexed.title, indexed.text, indexed.subject, indexed.quote, origins,
        indexed.superseded, indexed.is_untrusted, indexed.is_marked,
    )  # fmt: skip


def _without_secrets(memories: list[PageMemory]) -> list[PageMemory]:
    """Memories as they may be indexed: a person may have written secrets on a page."""
    texts = for_storage(
        [text for memory in memories for text in (memory.title, memory.text, memory.subject, memory.quote)]
    )
    return [
        memory._replace(title=texts[at], text=texts[at + 1], subject=texts[at + 2], quote=texts[at + 3])
        for at, memory in zip(range(0, len(texts), 4), memories)
    ]


def _indexed(home: str, path: str, memory: PageMemory) -> IndexedMemory:
    return IndexedMemory(
        home, path, memory.id, memory.kind, memory.title, memory.text, memory.subject, memory.quote, memory.origins,
        memory.at, memory.superseded, memory.is_untrusted, memory.is_marked,
    )  # fmt: skip
