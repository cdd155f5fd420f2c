"""What is not to be remembered again: of each forgotten memory the hashes of its words, from which none can be read."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import NamedTuple

from ..system.files import read_whole, write_atomically
from .item import EPISODE, Item, short_hash
from .similarity import LIKE, wording

FILE = ".forgotten.jsonl"


class Tombstone(NamedTuple):
    """A forgotten memory: its id, its kind, the hashes of its words; of an episode those of what it was made of."""

    id: str
    kind: str
    words: frozenset[str]
    conversations: frozenset[str] = frozenset()

    def covers(self, item: Item) -> bool:
        """Whether `item` is what was forgotten, in the same words, or nearly the same."""
        if item.id == self.id:
            return True
        if item.kind != self.kind:
            return False
        if item.kind == EPISODE:
            return not self.conversations.isdisjoint(_conversations(item))
        words = _words(item)
        every = words | self.words
        return bool(every) and len(words & self.words) >= LIKE * len(every)


def tombstone(item: Item) -> Tombstone:
    """What is kept of an item that is forgotten."""
    return Tombstone(item.id, item.kind, _words(item), _conversations(item))


def read(directory: str) -> list[Tombstone]:
    """The tombstones of a directory of memories. Raises OSError, but for there being none."""
    try:
        content = read_whole(f"{directory}/{FILE}").decode("utf-8", "replace")
    except FileNotFoundError:
        return []
    return [found for line in content.splitlines() if (found := _parsed(line)) is not None]


def add(directory: str, items: Iterable[Item]) -> None:
    """Adds tombstones; to be called under the lock of the directory. Raises OSError."""
    known = {one.id: one for one in read(directory)}
    known.update({item.id: tombstone(item) for item in items})
    lines = [
        json.dumps(
            {
                "id": one.id,
                "kind": one.kind,
                "words": sorted(one.words),
                "conversations": sorted(one.conversations),
            }
        )
        for one in known.values()
    ]
    write_atomically(f"{directory}/{FILE}", ("\n".join(lines) + "\n").encode())


def _parsed(line: str) -> Tombstone | None:
    try:
        value = json.loads(line)
        return Tombstone(value["id"], value["kind"], frozenset(value["words"]), frozenset(value["conversations"]))
    except (ValueError, KeyError, TypeError):
        return None  # a line that a person broke forgets nothing, and breaks nothing else


def _words(item: Item) -> frozenset[str]:
    said = wording(item.whole_text)
    return frozenset([short_hash(word) for word in said.words | said.values])


def _conversations(item: Item) -> frozenset[str]:
    if item.kind != EPISODE:
        return frozenset()
    return frozenset([short_hash(f"{origin.session} {origin.at and origin.at // 1000}") for origin in item.origins])
