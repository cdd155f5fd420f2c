"""The memories of a group: the pages, which are the source of truth, and their index.

A person's edit on a page is kept; a memory that they delete there is forgotten. One lock covers all
changes."""

import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager

from ..common.errors import LockedError
from ..common.system.files import Closing, lock, user_dir
from ..common.system.sqlite import CorruptDatabaseError, DatabaseError, Patience
from ..common.text.sanitize import for_storage
from ..history.store.location import StoreLocation
from ..history.store.refresh import Note, not_taken_in
from . import forgotten, pages, prompt_index
from ._page_changes import KnownMemories, PageChanges
from ._similarity import wording
from .folders import folder_of
from .format import EPISODE, restored, struck
from .memory_index import IndexedMemory, MemoryFilter, MemoryIndex
from .pages import EditedMeanwhileError, Page
from .strategy import StrategyError

LOCK_WAIT_SECONDS = 30.0
ATTEMPTS = 5
KNOWN_SHARE = 0.5  # of a memory's words must occur in a text that it matches


class Library:
    """The memories in `directory`, of the group `home`, and their index.

    Methods raise DatabaseError, LockedError and OSError."""

    def __init__(self, directory: str, index: MemoryIndex, home: str = "") -> None:
        self.directory = directory
        self.home = home
        self._index = index
        # As last read or written here, so many calls of `keep` read each page and the index once.
        self._stamps: dict[str, str] = {}
        self._known: KnownMemories | None = None

    def keep(self, memories: Iterable[tuple[IndexedMemory, tuple[str, ...]]]) -> list[str]:
        """Add memories, each with the ids that it supersedes, and return their stored ids.

        An existing memory changes nothing; a forgotten one is left out. Many calls cost little:
        `refresh` once after the last one."""
        wanted = list(memories)
        return self._changed(lambda: self._keep(wanted))

    def forget(self, ids: Iterable[str], *, can_undo: bool = False) -> None:
        """Delete memories from pages and index; memories that they superseded are current again.

        With `can_undo` the deletion can be undone for a day; without it, earlier deletions can no
        longer be undone either."""
        wanted = set(ids)
        self._changed(lambda: self._forget(wanted, can_undo=can_undo))
        self.refresh()

    def take_back(self, ids: Collection[str] = ()) -> list[str]:
        """Restore memories forgotten within a day, and return their ids.

        These are the memories with these ids, else the last ones. They supersede the same memories
        again."""
        back = self._changed(lambda: self._take_back(ids))
        self.refresh()
        return back

    def refresh(self, wait_seconds: float = LOCK_WAIT_SECONDS) -> None:
        """Update the index and the prompts' index from the pages.

        Memories that a person removed from pages are forgotten. Memories move between private and
        open pages as the rules require. Wait at most `wait_seconds` for the lock."""
        if not self._is_there():
            return
        with self._locked(wait_seconds):
            forgotten.read_undo(self.directory)  # deletes expired undo entries
            self._read_changed()
            placed = self._index.placed(self.home)
            try:
                misplaced = [memory for memory in placed if memory.is_misplaced]
                if misplaced:
                    pages.move_misplaced(self.directory, misplaced)
                    self._read_changed()
                    placed = self._index.placed(self.home)
            finally:
                prompt_index.renew(
                    self.directory,
                    self._index,
                    self.home,
                    [memory for memory in placed if memory.is_told],
                )

    def known(self, text: str, limit: int, *, is_untrusted: bool) -> list[IndexedMemory]:
        """Return at most `limit` current memories of strategies whose words mostly occur in `text`.

        The best come first."""
        if not self._is_there():
            return []
        with self._locked():
            self._read_changed()
        said = wording(text)
        words = said.words | said.values
        known = self._all()
        hidden = {placed.id for placed in self._index.placed(self.home) if placed.is_hidden}
        scored = []
        for memory in known.current():
            memory_words = known.wording(memory).words
            share = len(memory_words & words) / len(memory_words) if memory_words else 0.0
            if share >= KNOWN_SHARE and memory.is_untrusted == is_untrusted and memory.is_marked:
                scored.append((share, memory))
        scored.sort(key=lambda pair: -pair[0])
        return [memory for _, memory in scored if memory.id not in hidden][:limit]

    def _is_there(self) -> bool:
        """Check if there have ever been memories; if not, the directory must not be created."""
        return os.path.isdir(self.directory) or bool(self._index.pages(self.home))

    def _all(self) -> KnownMemories:
        if self._known is None:
            every = MemoryFilter(home=self.home, with_superseded=True, with_excluded=True)
            self._known = KnownMemories(self._index.memories(every))
        return self._known

    def _changed(self, change: Callable[[], list[str]]) -> list[str]:
        with self._locked():
            for _ in range(ATTEMPTS):
                self._read_changed()
                try:
                    return change()
                except EditedMeanwhileError:
                    continue
        message = f"{self.directory}: its pages change all the time"
        raise StrategyError(
            message, "close the editor that has them open, or retry later", is_temporary=True
        )

    def _keep(self, wanted: list[tuple[IndexedMemory, tuple[str, ...]]]) -> list[str]:
        known, self._known = self._all(), None  # read again if this fails
        changes = PageChanges(self.directory, self._index, self.home, known)
        tombstones = forgotten.Tombstones(self.directory)
        ids = []
        for memory, replaces in wanted:
            if not tombstones.cover(memory):
                ids.append(changes.take(memory, replaces))
        written, changed = changes.write()
        changed = self._indexable(changed)
        self._index.put(self.home, {page.path: page.content_stamp for page in written}, changed)
        self._stamps |= {page.path: page.stamp for page in written}
        known.settle(changed)
        self._known = known
        return list(dict.fromkeys(ids))

    def _forget(self, ids: set[str], *, can_undo: bool) -> list[str]:
        all_pages = [pages.read(self.directory, path) for path in pages.find(self.directory)]
        every = [memory for page in all_pages for memory in page.memories]
        # An episode that a forgotten episode superseded covers the same conversation, so it goes
        # too.
        ids = ids | {
            memory.id for memory in every if memory.kind == EPISODE and memory.superseded in ids
        }
        memories = [memory for memory in every if memory.id in ids]
        before = (
            [*forgotten.read_undo(self.directory), *_to_undo(all_pages, ids)] if can_undo else []
        )
        forgotten.write_undo(self.directory, before)
        # first: after a crash here no strategy recreates the memories
        forgotten.add(self.directory, memories)
        for page in all_pages:
            parts = dict(enumerate(page.parts))
            for at, memory in page.items:
                if memory.id in ids:
                    del parts[at]
                elif memory.superseded in ids:
                    parts[at] = restored(parts[at])
            if [*parts.values()] != page.parts:
                pages.write(self.directory, page._replace(parts=[*parts.values()]))
        self._index.remove(self.home, ids)
        return sorted(ids)

    def _take_back(self, ids: Collection[str]) -> list[str]:
        known = forgotten.read_undo(self.directory)
        chosen = forgotten.undoable(known, ids)
        there = {path: pages.read(self.directory, path) for path in pages.find(self.directory)}
        here = {memory.id for page in there.values() for memory in page.memories}
        for entry in chosen:
            page = there.setdefault(entry.path, pages.read(self.directory, entry.path))
            if entry.id not in here:
                page.add(entry.part)
        for entry in chosen:
            by = next(memory for memory in there[entry.path].memories if memory.id == entry.id)
            for page in there.values():
                for at, memory in page.items:
                    if memory.id in entry.superseded:
                        page.parts[at] = struck(page.parts[at], by)
        for page in there.values():
            if page.parts != pages.read(self.directory, page.path).parts:
                pages.write(self.directory, page)
        forgotten.remove(self.directory, {entry.id for entry in chosen})
        forgotten.write_undo(self.directory, [entry for entry in known if entry not in chosen])
        return [entry.id for entry in chosen]

    def _read_changed(self) -> None:
        known = self._index.pages(self.home) | self._stamps
        there = pages.find(self.directory)
        stale = [path for path, (stamp, _) in there.items() if known.get(path) != stamp]
        read = {path: pages.read(self.directory, path) for path in stale}
        same = [page for page in read.values() if known.get(page.path) == page.content_stamp]
        changed = {path: page for path, page in read.items() if page not in same}
        gone = [path for path in known if path not in there]
        if changed or gone or (self._known is None and self._index.missing(self.home)):
            self._known = None
            for path in gone:
                self._stamps.pop(path, None)
            self._take_in({*changed, *gone}, changed, is_empty=_is_emptied(known, there))
        settled = {page.path: page.stamp for page in same if page.is_settled}
        if settled:
            self._index.put(self.home, settled, ())
        self._stamps |= {path: page.stamp for path, page in read.items()}

    def _take_in(self, changed: set[str], read: dict[str, Page], *, is_empty: bool) -> None:
        """Update the index from changed pages.

        A memory that is on no page is forgotten once its page is settled, unless no page is left:
        then the directory was moved or is not mounted."""
        of_pages = MemoryFilter(
            home=self.home, with_superseded=True, with_excluded=True, paths=tuple(changed)
        )
        known = {(memory.path, memory.id): memory for memory in self._index.memories(of_pages)}
        by_path = {path: page.memories for path, page in read.items()}
        lost = self._lost(known.values(), changed, by_path)
        waiting: list[IndexedMemory] = []
        if not is_empty:
            waiting = [memory for memory in lost if not self._is_settled(memory.path, read)]
        settled = [memory for memory in lost if memory not in waiting]
        if settled and not is_empty:
            forgotten.add(self.directory, settled)
        stamped: dict[str, tuple[str, list[IndexedMemory]]] = {path: ("", []) for path in changed}
        for path, page in read.items():
            stamp = page.stamp if page.is_settled else page.content_stamp
            stamped[path] = stamp, self._indexable(by_path[path], known)
        self._index.replace(self.home, stamped, [memory.id for memory in waiting])
        self._index.remove(
            self.home, [memory.id for memory in settled if memory.path not in changed]
        )

    def _lost(
        self,
        known: Iterable[IndexedMemory],
        changed: set[str],
        by_path: Mapping[str, Iterable[IndexedMemory]],
    ) -> list[IndexedMemory]:
        """Return the marked and missing memories that no page has any more."""
        before = {memory.id: memory for memory in known if memory.is_marked}
        before |= {memory.id: memory for memory in self._index.missing(self.home)}
        here = {memory.id for memories in by_path.values() for memory in memories}
        here.update(id for id, path in self._index.places(self.home) if path not in changed)
        return [memory for id, memory in before.items() if id not in here]

    def _is_settled(self, path: str, read: dict[str, Page]) -> bool:
        """Check if a page that was read, or the folder of a page that is gone, is settled."""
        page = read.get(path)
        return page.is_settled if page else pages.is_folder_settled(self.directory, path)

    def _indexable(
        self,
        memories: Iterable[IndexedMemory],
        known: Mapping[tuple[str, str], IndexedMemory] | None = None,
    ) -> list[IndexedMemory]:
        """Return memories read from pages in the index's form, redacted.

        `known` ones are redacted already. A person may have written secrets on a page."""
        home_memories = [memory._replace(home=self.home) for memory in memories]
        return [
            memory
            if known and known.get((memory.path, memory.id)) == memory
            else _without_secrets(memory)
            for memory in home_memories
        ]

    def _locked(self, wait_seconds: float = LOCK_WAIT_SECONDS) -> Closing:
        return Closing(lock(f"{self.directory}/.lock", wait_seconds))


def _is_emptied(known: Collection[str], there: Collection[str]) -> bool:
    """Check if no page is left, or only private ones where others were known."""
    had_open = not all(map(pages.is_private_path, known))
    return not there or (had_open and all(map(pages.is_private_path, there)))


@contextmanager
def open_index(
    location: StoreLocation,
    note: Note,
    patience: Patience | None = None,
    *,
    with_private: bool = False,
) -> Iterator[MemoryIndex]:
    """Yield the index of a store's memories, updated from their pages.

    With `patience` (for a query), if the update is impossible now, the old index is used and `note`
    is called with the reason. `with_private` includes memories whose text must not be shown. Raises
    SessionMemoryError, OSError."""
    index = MemoryIndex(location.database, location.rules, patience, location.visible)
    wait_seconds = max(0.0, patience.seconds) if patience else LOCK_WAIT_SECONDS
    try:
        for home_name in location.home_names:
            try:
                library_of(location, index, home_name).refresh(wait_seconds)
            except (DatabaseError, LockedError, OSError) as error:
                if patience is None or isinstance(error, CorruptDatabaseError):
                    raise
                note(not_taken_in(error))
        if with_private:
            index.close()
            index = MemoryIndex(
                location.database, location.rules, patience, location.visible, with_private=True
            )
        yield index
    finally:
        index.close()


def library_of(location: StoreLocation, index: MemoryIndex, home_name: str) -> Library:
    """Return the library of a group."""
    return Library(folder_of(location, home_name), index, home_name)


def search_memories(
    location: StoreLocation,
    query: str,
    limit: int,
    note: Note,
    patience: Patience | None,
    fits: Callable[[IndexedMemory], bool] | None = None,
) -> list[IndexedMemory]:
    """Return the memories that match a query best, best first.

    They are the current ones of trusted sessions that `fits` accepts. See `open_index`."""
    with open_index(location, note, patience) as index:
        memories = index.search(
            query, MemoryFilter(is_untrusted=False, limit=-1 if fits else limit)
        )
    memories = [memory for memory in memories if fits is None or fits(memory)][:limit]
    if not memories:
        return memories
    from .doubts import with_doubts  # starts processes and is slow to import

    return with_doubts(memories, user_dir(os.environ))


def latest_memories(location: StoreLocation, limit: int, patience: Patience) -> list[IndexedMemory]:
    """Return a store's current memories that may be shown, the latest of each kind first.

    There are no notes."""
    with open_index(location, lambda note: None, patience) as index:
        return index.memories(MemoryFilter(limit=limit))


def forget_memories(location: StoreLocation, memories: Iterable[IndexedMemory], note: Note) -> None:
    """Forget memories that a person named; they can undo that for a day.

    Raises SessionMemoryError, OSError."""
    by_home: dict[str, list[str]] = {}
    for memory in memories:
        by_home.setdefault(memory.home, []).append(memory.id)
    with open_index(location, note) as index:
        for home_name, ids in by_home.items():
            library_of(location, index, home_name).forget(ids, can_undo=True)


def forget_for_good(location: StoreLocation, by_home: dict[str, list[str]], note: Note) -> None:
    """Forget the memories with these ids, by home, and everything that could still be undone.

    Raises SessionMemoryError, OSError."""
    with open_index(location, note) as index:
        for home_name, ids in by_home.items():
            if ids:
                library_of(location, index, home_name).forget(ids)
            forgotten.write_undo(folder_of(location, home_name), ())


def take_back(location: StoreLocation, ids: Collection[str], note: Note) -> list[IndexedMemory]:
    """Restore memories forgotten within a day.

    These are the memories whose ids begin with one of `ids`, else the last ones. Raises
    SessionMemoryError, OSError."""
    with open_index(location, note) as index:
        back = [
            id
            for home_name in location.home_names
            for id in library_of(location, index, home_name).take_back(ids)
        ]
        return [memory for id in back for memory in index.beginning_with(id)]


def _to_undo(all_pages: Iterable[Page], ids: Collection[str]) -> list[forgotten.Forgotten]:
    """Return the undo entries of the memories about to be forgotten."""
    now = time.time()
    parts = [(page.path, page.parts[at], memory) for page in all_pages for at, memory in page.items]
    return [
        forgotten.Forgotten(
            memory.id,
            now,
            path,
            part,
            tuple([other.id for _, _, other in parts if other.superseded == memory.id]),
        )
        for path, part, memory in parts
        if memory.id in ids and not pages.is_private_path(path)
    ]


def _without_secrets(memory: IndexedMemory) -> IndexedMemory:
    return memory._replace(
        title=for_storage(memory.title),
        text=for_storage(memory.text),
        subject=for_storage(memory.subject),
        quote=for_storage(memory.quote),
    )
