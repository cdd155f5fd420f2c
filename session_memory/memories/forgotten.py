"""Tombstones of forgotten memories, so that no strategy recreates them. They store hashes of the words, not the
words."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from typing import NamedTuple

from ..system.files import read_whole, write_atomically
from ..system.json import decode
from .format import EPISODE, PageMemory, short_hash
from .similarity import LEAST_SHARED, wording

FILE = ".forgotten.jsonl"


class Tombstone(NamedTuple):
    """A forgotten memory: its id, its kind, the hashes of its words and, for an episode, of its conversations."""

    id: str
    kind: str
    words: frozenset[str]
    conversations: frozenset[str] = frozenset()

    def covers(self, memory: PageMemory) -> bool:
        """Return whether `memory` is the forgotten one, in the same or nearly the same words."""
        if memory.id == self.id:
            return True
        if memory.kind != self.kind:
            return False
        if memory.kind == EPISODE:
            return not self.conversations.isdisjoint(_conversations(memory))
        words = _words(memory)
        every = words | self.words
        return bool(every) and len(words & self.words) >= LEAST_SHARED * len(every)


def tombstone(memory: PageMemory) -> Tombstone:
    """Return the tombstone of a memory."""
    return Tombstone(memory.id, memory.kind, _words(memory), _conversations(memory))


def read(directory: str) -> list[Tombstone]:
    """Read the tombstones of a memories directory; [] without a file. Raises OSError."""
    try:
        content = read_whole(f"{directory}/{FILE}").decode("utf-8", "replace")
    except FileNotFoundError:
        return []
    return [found for line in content.splitlines() if (found := _parsed(line)) is not None]


def add(directory: str, memories: Iterable[PageMemory]) -> None:
    """Append tombstones. The caller holds the directory's lock. Raises OSError."""
    known = {one.id: one for one in read(directory)}
    known.update({memory.id: tombstone(memory) for memory in memories})
    _write(directory, known.values())


def remove(directory: str, ids: Collection[str]) -> None:
    """Remove tombstones. The caller holds the directory's lock. Raises OSError."""
    known = read(directory)
    kept = [one for one in known if one.id not in ids]
    if len(kept) < len(known):
        _write(directory, kept)


def _write(directory: str, tombstones: Iterable[Tombstone]) -> None:
    lines = [
        json.dumps(
            {
                "id": one.id,
                "kind": one.kind,
                "words": sorted(one.words),
                "conversations": sorted(one.conversations),
            }
        )
        for one in tombstones
    ]
    write_atomically(f"{directory}/{FILE}", ("\n".join(lines) + "\n").encode())


def _parsed(line: str) -> Tombstone | None:
    try:
        value = decode(line)
        found = Tombstone(value["id"], value["kind"], frozenset(value["words"]), frozenset(value["conversations"]))
    except (ValueError, KeyError, TypeError):
        return None  # a person may have edited the file
    is_sound = all(isinstance(part, str) for part in (found.id, found.kind, *found.words, *found.conversations))
    return found if is_sound else None


def _words(memory: PageMemory) -> frozenset[str]:
    said = wording(memory.whole_text)
    return frozenset([short_hash(word) for word in said.words | said.values])


def _conversations(memory: PageMemory) -> frozenset[str]:
    if memory.kind != EPISODE:
        return frozenset()
    return frozenset([short_hash(f"{origin.session} {origin.at and origin.at // 1000}") for origin in memory.origins])
