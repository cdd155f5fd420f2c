"""Writes the index that the prompt hook reads (activity/prompt_memories.py): the terms of each memory, and a text."""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ..activity.prompt_memories import (
    BUCKETS,
    FILE,
    MAGIC,
    NUMBER_BYTES,
    TEXTS_AT,
    bucket_of,
    made_of,
    terms,
)
from ..store.search.query import STOP_WORDS
from ..system.files import open_regular, read_at, write_atomically
from ..text.format import one_line, shorten
from ..text.sanitize import all_for_prompt
from .format import EPISODE, short_hash

if TYPE_CHECKING:
    from ..store.sqlite.exclusions import Stamp
    from ..store.sqlite.memory_index import IndexedMemory

TEXT_CHARACTERS = 240
FEWEST = 50  # memories that weights are computed for; among fewer every term would count as common
_NOT_ABOUT = frozenset(term for word in STOP_WORDS for term in terms(word))


def write(directory: str, memories: Sequence[IndexedMemory], settings: Mapping[str, Stamp]) -> None:
    """Writes the index of `memories`, which the rules in the files `settings`, given with their stamps, leave to be
    told. Raises OSError."""
    write_atomically(f"{directory}/{FILE}", content(memories, settings))


def is_current(directory: str, ids: Sequence[str], settings: Mapping[str, Stamp]) -> bool:
    """Whether the index that is there is of the memories with these ids, and of these settings. Raises OSError."""
    try:
        descriptor = open_regular(f"{directory}/{FILE}")
    except FileNotFoundError:
        return not ids
    try:
        if read_at(descriptor, 0, len(MAGIC)) != MAGIC:
            return False
        return made_of(descriptor) == {"settings": dict(settings), "shown": _checksum(ids)}
    except ValueError:
        return False
    finally:
        os.close(descriptor)


def content(memories: Sequence[IndexedMemory], settings: Mapping[str, Stamp]) -> bytes:
    """The index as bytes: the buckets come last, so that where a memory's text stands is known when they are made."""
    about = [sorted(_about(memory)) for memory in memories]
    frequency = Counter(term for found in about for term in found)
    weights = {
        term: round(100 * math.log(1 + max(len(memories), FEWEST) / number)) for term, number in frequency.items()
    }
    head = json.dumps({"settings": dict(settings), "shown": _checksum([memory.id for memory in memories])}).encode()
    texts = bytearray(len(head).to_bytes(NUMBER_BYTES, "big") + head)
    buckets: list[dict[str, list[tuple[int, int]]]] = [{} for _ in range(BUCKETS)]
    for found, text in zip(about, all_for_prompt([_text(memory) for memory in memories])):
        text = shorten(text, TEXT_CHARACTERS)
        at = TEXTS_AT + len(texts)
        record = json.dumps([sum(weights[term] for term in found), text]).encode()
        texts += len(record).to_bytes(NUMBER_BYTES, "big") + record
        for term in found:
            buckets[bucket_of(term)].setdefault(term, []).append((at, weights[term]))
    encoded = [json.dumps(bucket).encode() if bucket else b"" for bucket in buckets]
    start = TEXTS_AT + len(texts)
    table = bytearray()
    for one in [*encoded, b""]:
        table += start.to_bytes(NUMBER_BYTES, "big")
        start += len(one)
    return MAGIC + bytes(table) + bytes(texts) + b"".join(encoded)


def _checksum(ids: Sequence[str]) -> str:
    """What tells the memories with these ids from others."""
    return short_hash(" ".join(sorted(ids)))


def _about(memory: IndexedMemory) -> set[str]:
    """The terms of a memory; of an episode those of its title alone, as its text is about many things."""
    text = f"{memory.title} {memory.subject}" + ("" if memory.kind == EPISODE else f" {memory.text}")
    return set(terms(text)) - _NOT_ABOUT


def _text(memory: IndexedMemory) -> str:
    about = f" ({memory.subject})" if memory.subject and memory.subject.lower() not in memory.title.lower() else ""
    return one_line(f"{memory.kind}{about}: {memory.title} {memory.text}")
