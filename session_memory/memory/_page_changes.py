"""A transaction over memory pages: reads them, applies each memory, writes the changed ones."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from . import pages
from ._similarity import Wording, contradicts, says_the_same, wording
from .format import EPISODE, render, source_of, struck, time_text, with_origin
from .memory_index import IndexedMemory, MemoryIndex
from .pages import Page

T = TypeVar("T")

WITHOUT_A_MODEL = "extractive"  # its episodes are replaced by those of any other strategy


class KnownMemories:
    """All memories of a group, including superseded and excluded ones.

    They are indexed by id; episodes also by session, all others by subject. The latest come first,
    those of the current transaction at the end."""

    def __init__(self, memories: Sequence[IndexedMemory]) -> None:
        self.by_id: dict[str, IndexedMemory] = {}
        self._current: dict[tuple[str, str, bool], dict[str, IndexedMemory]] = {}
        self._episodes: dict[str, dict[str, IndexedMemory]] = {}
        self._wordings: dict[str, Wording] = {}
        # as the index has them
        self._ranks = {memory.id: -number for number, memory in enumerate(memories)}
        for memory in memories:
            self.add(memory)

    def add(self, memory: IndexedMemory) -> None:
        """Add a memory, or replace the one with its id, which has the same text."""
        self.by_id[memory.id] = memory
        if memory.kind == EPISODE:
            for origin in memory.origins:
                self._episodes.setdefault(origin.session, {})[memory.id] = memory
        elif memory.superseded:
            self._current.setdefault(_about(memory), {}).pop(memory.id, None)
        else:
            self._current.setdefault(_about(memory), {})[memory.id] = memory

    def settle(self, changed: Sequence[IndexedMemory]) -> None:
        """Add the memories of a finished transaction to their places, as read from their pages."""
        for memory in changed:
            self._ranks.setdefault(memory.id, len(self._ranks))
            self.add(memory)
        for about in {_about(memory) for memory in changed if memory.kind != EPISODE}:
            self._sort(self._current, about)
        for session in {
            origin.session
            for memory in changed
            if memory.kind == EPISODE
            for origin in memory.origins
        }:
            self._sort(self._episodes, session)

    def _sort(self, by_key: dict[T, dict[str, IndexedMemory]], key: T) -> None:
        latest = sorted(
            by_key[key].values(),
            key=lambda memory: (memory.at is not None, -(memory.at or 0), -self._ranks[memory.id]),
        )
        by_key[key] = {memory.id: memory for memory in latest}

    def near(self, memory: IndexedMemory) -> Iterable[IndexedMemory]:
        """Return current memories similar to `memory`: same kind, subject and trust; no
        episodes."""
        return self._current.get(_about(memory), {}).values()

    def episodes(self, memory: IndexedMemory) -> Iterator[IndexedMemory]:
        """Yield the episodes of the session of an episode, as trusted as that."""
        for episode in self._episodes.get(memory.origins[0].session, {}).values():
            if episode.is_untrusted == memory.is_untrusted:
                yield episode

    def current(self) -> Iterator[IndexedMemory]:
        """Yield the current memories except episodes."""
        for memories in self._current.values():
            yield from memories.values()

    def wording(self, memory: IndexedMemory) -> Wording:
        """Return the wording of a known memory."""
        if memory.id not in self._wordings:
            self._wordings[memory.id] = wording(memory.whole_text)
        return self._wordings[memory.id]


def _about(memory: IndexedMemory) -> tuple[str, str, bool]:
    return memory.kind, memory.subject.casefold(), memory.is_untrusted


class PageChanges:
    """A transaction: the pages read for it, and the pages to write."""

    def __init__(self, directory: str, index: MemoryIndex, home: str, known: KnownMemories) -> None:
        self._directory = directory
        self._home = home
        self._index = index
        self._known = known
        self._pages: dict[str, Page] = {}
        self._changed: dict[str, dict[str, str]] = {}  # parts of pages, by path and id

    def take(self, memory: IndexedMemory, replaces: tuple[str, ...]) -> str:
        """Add a memory, or its origin to the memory that says the same; return the stored one's
        id."""
        same, others = self._alike(memory)
        if same is not None:
            self._add_origin(same, memory)
        else:
            poorer, richer = self._other_episodes(memory)
            others += poorer
            newer = richer or next(
                (other for other in others if (other.at or 0) > (memory.at or 0)), None
            )
            path, sessions = pages.path_for(memory), {origin.session for origin in memory.origins}
            # by a rule added after it was read
            if self._index.excluded_sessions(self._home, sessions):
                path = pages.moved_path(path)
            memory = memory._replace(path=path, superseded=newer.id if newer else "")
            page = self._page(memory.path)
            part = render(memory).replace("\n", page.line_end)
            page.add(part)
            self._note(memory, part)
            for other in others if newer is None else ():
                self._supersede(other.id, memory)
        kept = same or memory
        for id in replaces:
            known = self._known.by_id.get(id)
            if known is not None and known.kind != EPISODE:
                self._supersede(id, kept)
        return kept.id

    def write(self) -> tuple[list[Page], list[IndexedMemory]]:
        """Write the changed pages; return their new stamps and the changed memories read from
        them."""
        written = [self._pages[path] for path in sorted(self._changed)]
        written = [page._replace(stamp=pages.write(self._directory, page)) for page in written]
        changed = [
            Page(page.path, ["", *self._changed[page.path].values()], "", True) for page in written
        ]
        return written, [memory for page in changed for memory in page.memories]

    def _alike(self, memory: IndexedMemory) -> tuple[IndexedMemory | None, list[IndexedMemory]]:
        """Return the memory that says the same, and the memories that contradict it."""
        if memory.id in self._known.by_id:
            return self._known.by_id[memory.id], []
        if memory.kind == EPISODE:
            if memory.origins[0].strategy != WITHOUT_A_MODEL:
                return None, []
            # an earlier version may have described it in other words
            source = source_of(memory.origins[0])
            return next(
                (
                    episode
                    for episode in self._known.episodes(memory)
                    if source in map(source_of, episode.origins)
                ),
                None,
            ), []
        said = wording(memory.whole_text)
        near = [(other, self._known.wording(other)) for other in self._known.near(memory)]
        same = next((known for known, other in near if says_the_same(said, other)), None)
        return same, [
            known for known, other in near if known.is_marked and contradicts(said, other)
        ]

    def _other_episodes(
        self, memory: IndexedMemory
    ) -> tuple[list[IndexedMemory], IndexedMemory | None]:
        """Return the extractive episodes of the same part of a conversation.

        If `memory` is extractive, also return an episode of that part that a model made."""
        if memory.kind != EPISODE:
            return [], None
        origin_of_memory = memory.origins[0]
        covering = [
            (episode, origin.strategy == WITHOUT_A_MODEL)
            for episode in self._known.episodes(memory)
            if not episode.superseded
            for origin in episode.origins
            if (origin.session, time_text(origin.at))
            == (origin_of_memory.session, time_text(origin_of_memory.at))
        ]
        if origin_of_memory.strategy == WITHOUT_A_MODEL:
            return [], next((episode for episode, is_poorer in covering if not is_poorer), None)
        return [episode for episode, is_poorer in covering if is_poorer], None

    def _add_origin(self, known: IndexedMemory, memory: IndexedMemory) -> None:
        if known.is_marked and not {*map(source_of, memory.origins)} <= {
            *map(source_of, known.origins)
        }:
            changed = known._replace(origins=(*known.origins, *memory.origins))
            self._change(changed, lambda part: with_origin(part, memory.origins[0]))

    def _supersede(self, id: str, by: IndexedMemory) -> None:
        """Mark a memory as superseded by another one.

        It must be current, made by a strategy, and as trusted as `by`."""
        known = self._known.by_id.get(id)
        if known is None or id == by.id or not known.is_marked or known.superseded:
            return
        if known.is_untrusted == by.is_untrusted and not by.superseded:
            self._change(known._replace(superseded=by.id), lambda part: struck(part, by))

    def _change(self, memory: IndexedMemory, change: Callable[[str], str]) -> None:
        """Change the part of a page with a known memory, which becomes `memory`."""
        page = self._page(memory.path)
        at = pages.position_of(page, memory.id)
        if at is not None:
            page.parts[at] = change(page.parts[at])
            self._note(memory, page.parts[at])

    def _page(self, path: str) -> Page:
        if path not in self._pages:
            self._pages[path] = pages.read(self._directory, path)
        return self._pages[path]

    def _note(self, memory: IndexedMemory, part: str) -> None:
        self._changed.setdefault(memory.path, {})[memory.id] = part
        self._known.add(memory)
