"""Forgotten memories: tombstones and an undo log, kept for a day.

Tombstones keep strategies from recreating the memories. Both are JSON lines in a file among the
pages. Tombstones store hashes of the words with a key that is stored elsewhere, so no dictionary
recovers the words."""

import json
import os
import time
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from hashlib import blake2b
from typing import Any, NamedTuple, TypeVar

from ..common.system.files import read_whole, write_atomically
from ..common.system.json import decode
from ..sessions.settings.homes import private_beside
from ._similarity import LEAST_SHARED, wording
from .format import EPISODE, short_hash
from .memory_index import IndexedMemory

TOMBSTONES = ".forgotten.jsonl"
UNDO_LOG = ".undo.jsonl"
UNDO_SECONDS = 24 * 3600
KEY, KEY_BYTES = ".key", 32  # in the private folder beside the pages

T = TypeVar("T")


class Tombstone(NamedTuple):
    """A forgotten memory.

    It has its id, its kind, the keyed hashes of its words and, for an episode, the hashes of its
    conversations. Tombstones of 0.2.0 had no key: they get one when they are read."""

    id: str
    kind: str
    words: frozenset[str]
    conversations: frozenset[str] = frozenset()
    is_keyed: bool = True


class Tombstones:
    """The tombstones of a memories directory. Raises OSError."""

    def __init__(self, directory: str) -> None:
        self._all = read(directory)
        self._key = _key(directory) if self._all else b""

    def cover(self, memory: IndexedMemory) -> bool:
        """Return whether `memory` was forgotten, in the same or nearly the same words."""
        words = _words(memory, self._key) if self._all else frozenset()
        return any([_covers(tombstone, memory, words) for tombstone in self._all])


def _covers(tombstone: Tombstone, memory: IndexedMemory, words: frozenset[str]) -> bool:
    if memory.id == tombstone.id:
        return True
    if memory.kind != tombstone.kind:
        return False
    if memory.kind == EPISODE:
        return not tombstone.conversations.isdisjoint(_conversations(memory))
    every = words | tombstone.words
    return bool(every) and len(words & tombstone.words) >= LEAST_SHARED * len(every)


class Forgotten(NamedTuple):
    """A forgotten memory, for the undo log.

    It has its id, the time in seconds since 1970 (the same for all forgotten at once), its page,
    its part of the page, and the ids of the memories that it had superseded."""

    id: str
    time: float
    path: str
    part: str
    superseded: tuple[str, ...]


def read(directory: str) -> list[Tombstone]:
    """Read the tombstones of a memories directory; [] without a file. Raises OSError."""
    tombstones = _lines(f"{directory}/{TOMBSTONES}", _tombstone)[0]
    if all(tombstone.is_keyed for tombstone in tombstones):
        return tombstones
    key = _key(directory)
    return [
        tombstone
        if tombstone.is_keyed
        else tombstone._replace(words=_keyed(tombstone.words, key), is_keyed=True)
        for tombstone in tombstones
    ]


def add(directory: str, memories: Iterable[IndexedMemory]) -> None:
    """Append tombstones. The caller holds the directory's lock. Raises OSError."""
    known = {tombstone.id: tombstone for tombstone in read(directory)}
    key = _key(directory)
    for memory in memories:
        known[memory.id] = Tombstone(
            memory.id, memory.kind, _words(memory, key), _conversations(memory)
        )
    _write(f"{directory}/{TOMBSTONES}", known.values())


def remove(directory: str, ids: Collection[str]) -> None:
    """Remove tombstones. The caller holds the directory's lock. Raises OSError."""
    known = read(directory)
    kept = [tombstone for tombstone in known if tombstone.id not in ids]
    if len(kept) < len(known):
        _write(f"{directory}/{TOMBSTONES}", kept)


def read_undo(directory: str) -> list[Forgotten]:
    """Read the undo log, latest last, and delete entries older than a day. Raises OSError."""
    entries, count = _lines(f"{directory}/{UNDO_LOG}", _forgotten)
    fresh = [entry for entry in entries if time.time() - entry.time < UNDO_SECONDS]
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
    """Return the entries whose ids begin with one of `ids`; without ids, the entries of the last
    deletion."""
    if ids:
        return [entry for entry in forgotten if entry.id.startswith(tuple(ids))]
    last = max([entry.time for entry in forgotten], default=0.0)
    return [entry for entry in forgotten if entry.time == last]


def _lines(path: str, parsed: Callable[[Any], T]) -> tuple[list[T], int]:
    """Return the values in a file's lines, and the number of lines.

    Lines that a person broke are left out."""
    try:
        lines = read_whole(path).decode("utf-8", "replace").splitlines()
    except FileNotFoundError:
        return [], 0
    values = []
    for line in lines:
        with suppress(ValueError, KeyError, TypeError):
            values.append(parsed(decode(line)))
    return values, len(lines)


def _write(path: str, values: Iterable[Tombstone | Forgotten]) -> None:
    lines = [json.dumps(value._asdict(), default=sorted) for value in values]
    write_atomically(path, ("\n".join(lines) + "\n").encode())


def _tombstone(value: Any) -> Tombstone:
    words, conversations = frozenset(value["words"]), frozenset(value["conversations"])
    tombstone = Tombstone(
        value["id"], value["kind"], words, conversations, value.get("is_keyed") is True
    )
    if not all(
        isinstance(part, str)
        for part in (tombstone.id, tombstone.kind, *tombstone.words, *tombstone.conversations)
    ):
        raise ValueError("not a tombstone")
    return tombstone


def _forgotten(value: Any) -> Forgotten:
    path = str(value["path"])
    if os.path.isabs(path) or ".." in path.split("/"):
        raise ValueError("not a page")
    superseded = tuple(map(str, value["superseded"]))
    return Forgotten(str(value["id"]), float(value["time"]), path, str(value["part"]), superseded)


def _words(memory: IndexedMemory, key: bytes) -> frozenset[str]:
    said = wording(memory.whole_text)
    return _keyed([short_hash(word) for word in said.words | said.values], key)


def _keyed(hashes: Iterable[str], key: bytes) -> frozenset[str]:
    return frozenset(
        [blake2b(text.encode(), key=key, digest_size=6).hexdigest() for text in hashes]
    )


def _key(directory: str) -> bytes:
    """Return the key of a memories directory, creating it if needed.

    It is not among the pages, because a person may share these."""
    path = f"{private_beside(directory)}/{KEY}"
    with suppress(FileNotFoundError):
        return read_whole(path)
    key = os.urandom(KEY_BYTES)
    write_atomically(path, key)
    return key


def _conversations(memory: IndexedMemory) -> frozenset[str]:
    if memory.kind != EPISODE:
        return frozenset()
    return frozenset(
        [
            short_hash(f"{origin.session} {origin.at and origin.at // 1000}")
            for origin in memory.origins
        ]
    )
