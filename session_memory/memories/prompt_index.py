"""Write the index that the prompt hook reads (activity/prompt_memories.py): the terms of each memory, and a text."""

from __future__ import annotations

import json
import math
import os
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ..activity.prompt_memories import (
    BUCKETS,
    MAGIC,
    NUMBER_BYTES,
    SILENT_AT,
    TEXTS_AT,
    WHOLE,
    bucket_of,
    made_of,
    terms,
)
from ..settings.homes import PROMPT_INDEX
from ..store.search.query import STOP_WORDS
from ..store.sqlite.exclusions import Stamp
from ..store.sqlite.memory_index import IndexedMemory
from ..system.branches import Branches
from ..system.files import open_regular, read_at, read_whole, write_atomically
from ..system.git import find_worktree
from ..text.format import one_line, shorten
from ..text.sanitize import all_for_prompt
from .doubts import files_named, settled_after, unmerged_branch
from .format import EPISODE, short_hash

TEXT_CHARACTERS = 240
FEWEST = 50  # memories needed for term weights; among fewer, every term would count as common
MOST_PLACES = 100  # a term in more memories is not listed: it does not tell them apart
GIT_SECONDS = 2.0  # after this, branches not checked yet count as not merged
# Factor by kind for a memory of another project: it must match a prompt this much better.
_HURDLES = {"preference": 1.25, "person": 1.25}
_HURDLE = 1.5
_OF_EPISODE = 1.4  # total weight of its title's terms, which describe it less well
_COMMON = 0.5  # factor for a word that occurs in prompts about anything
_COMMON_WORDS = read_whole(os.path.join(os.path.dirname(os.path.abspath(__file__)), "common_words.txt")).decode()
_NOT_ABOUT = frozenset(term for word in STOP_WORDS for term in terms(word))
_SILENT = f" {' '.join(sorted(_NOT_ABOUT))} ".encode().ljust(TEXTS_AT - SILENT_AT)
_IN_MOST = frozenset(term for word in _COMMON_WORDS.split() for term in terms(word)) - _NOT_ABOUT


def write(directory: str, memories: Sequence[IndexedMemory], settings: Mapping[str, Stamp]) -> None:
    """Write the index of `memories`. The caller has applied the rules; `settings` holds the rule files with their
    stamps. Raises OSError."""
    write_atomically(f"{directory}/{PROMPT_INDEX}", content(memories, settings, os.path.expanduser("~")))


def is_current(directory: str, ids: Sequence[str], settings: Mapping[str, Stamp]) -> bool:
    """Return whether the index on disk covers exactly these memory ids and these settings. Raises OSError."""
    try:
        descriptor = open_regular(f"{directory}/{PROMPT_INDEX}")
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


def content(memories: Sequence[IndexedMemory], settings: Mapping[str, Stamp], user_dir: str = "") -> bytes:
    """Return the index as bytes. Buckets come last, after the offsets of the memories are known. A repository at
    `user_dir` or above it is not a project."""
    about = [_about(memory) for memory in memories]
    weights = _weights(about)
    head = json.dumps({"settings": dict(settings), "shown": _checksum([memory.id for memory in memories])})
    stored = bytearray(_sized(head))
    listed: dict[str, list[int]] = {term: [weight] for term, weight in weights.items()}
    texts = all_for_prompt([_text(memory) for memory in memories])
    watched = _Watched(user_dir)
    for memory, (title, rest), text in zip(memories, about, texts):
        at = TEXTS_AT + len(stored)
        total = sum([weights[term] for term in title]) + sum([weights[term] for term in rest]) / 2
        if not total:
            continue
        total *= _OF_EPISODE if memory.kind == EPISODE else 1
        stored += _sized(json.dumps([total, memory.id, shorten(text, TEXT_CHARACTERS), *watched.of(memory)]))
        for term in sorted(title | rest):
            listed[term].append(at if term in title else -at)
    buckets: list[dict[str, list[int]]] = [{} for _ in range(BUCKETS)]
    for term, (weight, *places) in listed.items():
        buckets[bucket_of(term)][term] = [weight, *(places if len(places) <= MOST_PLACES else ())]
    encoded = [
        json.dumps(bucket, ensure_ascii=False).encode("utf-8", "replace") if bucket else b"" for bucket in buckets
    ]
    start = TEXTS_AT + len(stored)
    table = bytearray()
    for one in [*encoded, b""]:
        table += start.to_bytes(NUMBER_BYTES, "big")
        start += len(one)
    return MAGIC + bytes(table) + _SILENT + bytes(stored) + b"".join(encoded)


class _Watched:
    """State of the machine that memories depend on, looked up for each memory that has a condition."""

    def __init__(self, user_dir: str) -> None:
        self._user_dir = user_dir
        self._branches = Branches(user_dir)
        self._deadline = time.monotonic() + GIT_SECONDS
        self._projects: dict[str, str] = {}

    def of(self, memory: IndexedMemory) -> list[Any]:
        """Return a memory's columns in the index, from the hurdle on."""
        directories = dict.fromkeys([directory for *_, directory in memory.origins if directory])
        projects = list(dict.fromkeys([self._project(directory) for directory in directories]))
        names, files = files_named(memory) if memory.kind != EPISODE else ([], [])
        branch = unmerged_branch(memory, self._branches, self._deadline)
        return [_HURDLES.get(memory.kind, _HURDLE), projects, names, files, settled_after(memory), branch]

    def _project(self, directory: str) -> str:
        if directory not in self._projects:
            found = find_worktree(directory, self._user_dir)
            self._projects[directory] = found.common_dir if found else directory
        return self._projects[directory]


def _weights(about: Sequence[tuple[set[str], set[str]]]) -> dict[str, int]:
    """Return the weight of each term: rarer terms weigh more, terms that occur only in prose nothing."""
    frequency = Counter(term for title, rest in about for term in title | rest)
    most = math.log(1 + max(len(about), FEWEST))
    weights = {}
    for term in frequency.keys() | _IN_MOST:
        rarity = math.log(1 + max(len(about), FEWEST) / (frequency[term] or 1)) / most
        weights[term] = round(WHOLE * rarity * (_COMMON if term in _IN_MOST else 1))
    return weights


def _sized(text: str) -> bytes:
    encoded = text.encode()
    return len(encoded).to_bytes(NUMBER_BYTES, "big") + encoded


def _checksum(ids: Sequence[str]) -> str:
    """Return a checksum of the memory ids."""
    return short_hash(" ".join(sorted(ids)))


def _about(memory: IndexedMemory) -> tuple[set[str], set[str]]:
    """Return the terms of a memory's title, and those only in its text. For an episode the text does not count: it
    covers many topics."""
    title = set(terms(memory.title)) - _NOT_ABOUT
    text = set() if memory.kind == EPISODE else set(terms(f"{memory.subject} {memory.text}"))
    return title, text - title - _NOT_ABOUT


def _text(memory: IndexedMemory) -> str:
    about = f" ({memory.subject})" if memory.subject and memory.subject.lower() not in memory.title.lower() else ""
    return one_line(f"{memory.kind}{about}: {memory.title} {memory.text}")
