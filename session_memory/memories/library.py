"""The memories of one group: the pages, which are the truth, and the index, which follows them.

What a person changes on a page stays as it is; what they delete is forgotten. All changes are made under one lock.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ..store.sqlite.memory_index import IndexedMemory, MemoryFilter
from ..system.files import lock
from ..text.sanitize import for_storage
from . import forgotten, pages, prompt_index
from .item import EPISODE, Item, Origin, restored, struck, time_text, with_origin
from .pages import EditedMeanwhileError, Page
from .similarity import contradicts, says_the_same, wording
from .strategy import StrategyError

if TYPE_CHECKING:
    from ..store.sqlite.memory_index import MemoryIndex

LOCK_WAIT_SECONDS = 30.0
ATTEMPTS = 5
WITHOUT_A_MODEL = "extractive"  # what it tells of a conversation gives way to what any other strategy tells of it
_UNSETTLED = "unsettled"  # no stamp: the page is read again the next time


class Library:
    """The memories in `directory`, of the group `home`, and their index. Methods raise DatabaseError, LockedError and
    OSError."""

    def __init__(self, directory: str, index: MemoryIndex, home: str = "") -> None:
        self.directory = directory
        self.home = home
        self._index = index

    def keep(self, items: Iterable[tuple[Item, tuple[str, ...]]]) -> list[str]:
        """Takes in new items, each with the ids of those that it supersedes; the ids under which they are found now.
        Nothing changes where it has them already; what was forgotten is left out."""
        wanted = list(items)
        return self._changed(lambda: self._keep(wanted))

    def forget(self, ids: Iterable[str]) -> None:
        """Removes items from pages and index for good; what they had superseded holds again."""
        wanted = set(ids)
        self._changed(lambda: self._forget(wanted))

    def refresh(self) -> None:
        """Brings the index up to date with the pages."""
        if not os.path.isdir(self.directory) and not self._index.pages(self.home):
            return  # nothing was ever kept: no reason to make a directory
        with self._locked():
            self._refresh()

    def current(self, kind: str, *, is_untrusted: bool) -> list[IndexedMemory]:
        """What holds of a kind, as the index has it."""
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

    def _keep(self, wanted: list[tuple[Item, tuple[str, ...]]]) -> list[str]:
        desk = _Desk(self.directory, self._index, self.home)
        tombstones = forgotten.read(self.directory)
        ids = []
        for item, replaces in wanted:
            if any(one.covers(item) for one in tombstones):
                continue
            ids.append(desk.take(item, replaces))
        desk.write()
        return list(dict.fromkeys(ids))

    def _forget(self, ids: set[str]) -> list[str]:
        found = [page for path in pages.find(self.directory) for page in [pages.read(self.directory, path)]]
        every = [item for page in found for item in page.items]
        # Of an episode nothing else holds again: it would tell of the same.
        ids = ids | {item.id for item in every if item.kind == EPISODE and item.superseded in ids}
        items = [item for item in every if item.id in ids]
        forgotten.add(self.directory, items)  # first: if we die now, what is still on the pages does not come again
        for page in found:
            parts = page.parts[:1]
            for part, item in zip(page.parts[1:], page.items):
                if item.id not in ids:
                    parts.append(restored(part) if item.superseded in ids else part)
            if parts != page.parts:
                pages.write(self.directory, page._replace(parts=parts))
        self._index.remove(self.home, ids)
        return sorted(ids)

    def _refresh(self) -> None:
        """Reads the pages that changed, and forgets what a person took off them."""
        known = self._index.pages(self.home)
        there = pages.find(self.directory)
        changed = [path for path, (stamp, _) in there.items() if known.get(path) != stamp]
        gone = [path for path in known if path not in there]
        if not changed and not gone and not self._index.ids(self.home, only_missing=True):
            return
        read = {path: pages.read(self.directory, path) for path in changed}
        self._take_in({*changed, *gone}, read, is_empty=not there)

    def _take_in(self, changed: set[str], read: dict[str, Page], *, is_empty: bool) -> None:
        """Notes in the index what changed pages hold. What is on no page any more is forgotten once nobody seems to be
        writing there; but where no page is left at all, they were moved away or are still to come."""
        memories = self._index.memories(MemoryFilter((self.home,), with_superseded=True))
        missing = {one.id: one for one in self._index.missing(self.home)}
        before = {one.id: one for one in memories if one.path in changed and one.is_marked} | missing
        here = {item.id for page in read.values() for item in page.items}
        here.update(one.id for one in memories if one.path not in changed)
        lost = [one for id, one in before.items() if id not in here]
        waiting = [] if is_empty else [one for one in lost if not self._is_settled(one.path, read)]
        settled = [one for one in lost if one not in waiting]
        if settled and not is_empty:
            forgotten.add(self.directory, map(item_of, settled))
        stamped: dict[str, tuple[str, list[IndexedMemory]]] = {path: ("", []) for path in changed}
        for path, page in read.items():
            found = [_indexed(self.home, path, item) for item in _without_secrets(page.items)]
            stamped[path] = (page.stamp if page.is_settled else _UNSETTLED, found)
        self._index.replace(self.home, stamped, [one.id for one in waiting])
        self._index.remove(self.home, [one.id for one in settled if one.path not in changed])
        trusted = self._index.memories(MemoryFilter((self.home,), is_untrusted=False))
        prompt_index.write(self.directory, trusted)

    def _is_settled(self, path: str, read: dict[str, Page]) -> bool:
        """Whether a page, or the folder that it is gone from, was left alone for a while."""
        return read[path].is_settled if path in read else pages.is_settled(f"{self.directory}/{os.path.dirname(path)}")

    @contextmanager
    def _locked(self) -> Iterator[None]:
        held = lock(f"{self.directory}/.lock", LOCK_WAIT_SECONDS)
        try:
            yield
        finally:
            os.close(held)


class _Desk:
    """The pages that a change concerns, while it is being made."""

    def __init__(self, directory: str, index: MemoryIndex, home: str) -> None:
        self._directory = directory
        self._home = home
        self._pages: dict[str, Page] = {}
        self._touched: set[str] = set()
        every = index.memories(MemoryFilter((home,), with_superseded=True))
        self._paths = {one.id: one.path for one in every}
        self._known = {one.id: one for one in map(item_of, every)}
        self._wordings = {id: wording(item.whole_text) for id, item in self._known.items() if not item.superseded}

    def take(self, item: Item, replaces: tuple[str, ...]) -> str:
        """Adds an item, or the fact that it was said again to the one that says the same; the id of that."""
        same, others = self._alike(item)
        if same is not None:
            self._say_again(same, item)
        else:
            poorer, richer = self._told_otherwise(item)
            others += poorer
            newer = richer or next((one for one in others if (one.at or 0) > (item.at or 0)), None)
            item = item._replace(superseded=newer.id) if newer else item
            page = self._page(pages.path_for(item))
            pages.add(page, item)
            self._touch(page.path)
            self._know(item, page.path)
            for other in others if newer is None else ():
                self._strike(other.id, item)
        kept = same or item
        for id in replaces:
            if id in self._known and self._known[id].kind != EPISODE:
                self._strike(id, kept)
        return kept.id

    def write(self) -> None:
        """Writes what was changed."""
        for path in sorted(self._touched):
            pages.write(self._directory, self._pages[path])

    def _alike(self, item: Item) -> tuple[Item | None, list[Item]]:
        """The item that says the same, and those that say otherwise of the same thing."""
        if item.id in self._known:
            return self._known[item.id], []
        if item.kind == EPISODE:
            return None, []
        said = wording(item.whole_text)
        near = [
            (self._known[id], other)
            for id, other in self._wordings.items()
            if self._known[id].kind == item.kind
            and self._known[id].is_untrusted == item.is_untrusted
            and self._known[id].subject.casefold() == item.subject.casefold()
        ]
        same = next((known for known, other in near if says_the_same(said, other)), None)
        return same, [known for known, other in near if known.is_marked and contradicts(said, other)]

    def _told_otherwise(self, item: Item) -> tuple[list[Item], Item | None]:
        """The episodes that tell of the same part of a conversation without having understood it, and one that tells
        of it by a model where `item` does without."""
        if item.kind != EPISODE:
            return [], None
        own = item.origins[0]
        told = [
            (one, origin.strategy == WITHOUT_A_MODEL)
            for one in self._known.values()
            if one.kind == EPISODE and not one.superseded and one.is_untrusted == item.is_untrusted
            for origin in one.origins
            if (origin.session, time_text(origin.at)) == (own.session, time_text(own.at))
        ]
        if own.strategy == WITHOUT_A_MODEL:
            return [], next((one for one, is_poorer in told if not is_poorer), None)
        return [one for one, is_poorer in told if is_poorer], None

    def _say_again(self, known: Item, item: Item) -> None:
        if not known.is_marked or set(item.origins) <= set(known.origins):
            return
        page = self._page(self._paths[known.id])
        at = pages.place_of(page, known.id)
        if at is not None:
            page.parts[at] = with_origin(page.parts[at], item.origins[0])
            self._touch(page.path)
            self._know(known._replace(origins=(*known.origins, *item.origins)), page.path)

    def _strike(self, id: str, by: Item) -> None:
        """Marks an item as superseded: one that a strategy made, that holds, and that deserves as much trust."""
        known = self._known.get(id)
        if known is None or id == by.id or not known.is_marked or known.superseded:
            return
        if known.is_untrusted != by.is_untrusted or by.superseded:
            return
        page = self._page(self._paths[id])
        at = pages.place_of(page, id)
        if at is not None:
            page.parts[at] = struck(page.parts[at], by)
            self._touch(page.path)
            self._know(known._replace(superseded=by.id), page.path)

    def _page(self, path: str) -> Page:
        if path not in self._pages:
            self._pages[path] = pages.read(self._directory, path)
        return self._pages[path]

    def _touch(self, path: str) -> None:
        self._touched.add(path)

    def _know(self, item: Item, path: str) -> None:
        self._known[item.id] = item
        self._paths[item.id] = path
        if item.superseded:
            self._wordings.pop(item.id, None)
        else:
            self._wordings[item.id] = wording(item.whole_text)


def item_of(memory: IndexedMemory) -> Item:
    """A memory of the index as an item."""
    origins = tuple([Origin(*origin) for origin in memory.origins])
    return Item(
        memory.id, memory.kind, memory.title, memory.text, memory.subject, memory.quote, origins, memory.superseded,
        memory.is_untrusted, memory.is_marked,
    )  # fmt: skip


def _without_secrets(items: list[Item]) -> list[Item]:
    """Items as they may be indexed, whatever a person wrote on their page."""
    texts = for_storage([text for item in items for text in (item.title, item.text, item.subject, item.quote)])
    return [
        item._replace(title=texts[at], text=texts[at + 1], subject=texts[at + 2], quote=texts[at + 3])
        for at, item in zip(range(0, len(texts), 4), items)
    ]


def _indexed(home: str, path: str, item: Item) -> IndexedMemory:
    origins = tuple([(one.at, one.session, one.conversation, one.strategy) for one in item.origins])
    return IndexedMemory(
        home, path, item.id, item.kind, item.title, item.text, item.subject, item.quote, origins, item.at,
        item.superseded, item.is_untrusted, item.is_marked,
    )  # fmt: skip
