"""Forgotten memories: tombstones, so that no strategy recreates them, and an undo log, kept for a day. Both are JSON
lines in a file among the pages; tombstones store hashes of the words, not the words."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar

from ..store.sqlite.memory_index import IndexedMemory
from ..system.files import read_whole, write_atomically
from ..system.json import decode
from .format import EPISODE, short_hash
from .similarity import LEAST_SHARED, wording

TOMBSTONES = ".forgotten.jsonl"
UNDO_LOG = ".undo.jsonl"
UNDO_SECONDS = 24 * 3600

T = TypeVar("T")


class Tombstone(NamedTuple):
    """A forgotten memory: its id, its kind, the hashes of its words and, for an episode, of its conversations."""

    id: str
    kind: str
    words: frozenset[str]
    conversations: frozenset[str] = frozenset()

    def covers(self, memory: IndexedMemory) -> bool:
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


def tombstone(memory: IndexedMemory) -> Tombstone:
    """Return the tombstone of a memory."""
    return Tombstone(memory.id, memory.kind, _words(memory), _conversations(memory))


class Forgotten(NamedTuple):
    """A forgotten memory: its id, the time in seconds since the epoch (the same for all forgotten at once), its page,
    its part of the page, and the ids of the memories that it had superseded."""

    id: str
    time: float
    path: str
    part: str
    superseded: tuple[str, ...]


def read(directory: str) -> list[Tombstone]:
    """Read the tombstones of a memories directory; [] without a file. Raises OSError."""
    return _lines(f"{directory}/{TOMBSTONES}", _tombstone)[0]


def add(directory: str, memories: Iterable[IndexedMemory]) -> None:
    """Append tombstones. The caller holds the directory's lock. Raises OSError."""
    known = {one.id: one for one in read(directory)}
    known.update({memory.id: tombstone(memory) for memory in memories})
    _write(f"{directory}/{TOMBSTONES}", known.values())


def remove(directory: str, ids: Collection[str]) -> None:
    """Remove tombstones. The caller holds the directory's lock. Raises OSError."""
    known = read(directory)
    kept = [one for one in known if one.id not in ids]
    if len(kept) < len(known):
        _write(f"{directory}/{TOMBSTONES}", kept)


def read_undo(directory: str) -> list[Forgotten]:
    """Read the undo log, latest last, and delete entries older than a day. Raises OSError."""
    found, count = _lines(f"{directory}/{UNDO_LOG}", _forgotten)
    fresh = [one for one in found if time.time() - one.time < UNDO_SECONDS]
    if len(fresh) < count:
        write_undo(directory, fresh)
    return fresh


def write_undo(directory: str, forgotten: Collection[Forgotten]) -> None:
    """Replace the undo log; delete it if nothing is left. Raises OSError."""
    if forgotten:
        _write(f"{directory}/{UNDO_LOG}", forgotten)
    else:
        with suppress(FileNotFoundError):
            os.unlink(f"{directory}/{UNDO_LOG}")


def undoable(forgotten: Collection[Forgotten], ids: Collection[str]) -> list[Forgotten]:
    """Return the entries whose ids begin with one of `ids`; without ids, the entries of the last deletion."""
    if ids:
        return [one for one in forgotten if one.id.startswith(tuple(ids))]
    last = max([one.time for one in forgotten], default=0.0)
    return [one for one in forgotten if one.time == last]


def _lines(path: str, parsed: Callable[[Any], T]) -> tuple[list[T], int]:
    """Return the values in a file's lines, without those that a person broke, and how many lines there are."""
    try:
        lines = read_whole(path).decode("utf-8", "replace").splitlines()
    except FileNotFoundError:
        return [], 0
    found = []
    for line in lines:
        with suppress(ValueError, KeyError, TypeError):
            found.append(parsed(decode(line)))
    return found, len(lines)


def _write(path: str, values: Iterable[Tombstone | Forgotten]) -> None:
    lines = [json.dumps(one._asdict(), default=sorted) for one in values]
    write_atomically(path, ("\n".join(lines) + "\n").encode())


def _tombstone(value: Any) -> Tombstone:
    found = Tombstone(value["id"], value["kind"], frozenset(value["words"]), frozenset(value["conversations"]))
    if not all(isinstance(part, str) for part in (found.id, found.kind, *found.words, *found.conversations)):
        raise ValueError("not a tombstone")
    return found


def _forgotten(value: Any) -> Forgotten:
    path = str(value["path"])
    if os.path.isabs(path) or ".." in path.split("/"):
        raise ValueError("not a page")
    superseded = tuple(map(str, value["superseded"]))
    return Forgotten(str(value["id"]), float(value["time"]), path, str(value["part"]), superseded)


def _words(memory: IndexedMemory) -> frozenset[str]:
    said = wording(memory.whole_text)
    return frozenset([short_hash(word) for word in said.words | said.values])


def _conversations(memory: IndexedMemory) -> frozenset[str]:
    if memory.kind != EPISODE:
        return frozenset()
    return frozenset([short_hash(f"{origin.session} {origin.at and origin.at // 1000}") for origin in memory.origins])
