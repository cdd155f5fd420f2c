"""Writes the index of memories that hooks read.

For a prompt it has the terms of each memory and a text (memory/prompt_memories.py). For a tool call
it has the files, directories and git commands in the memory, and its quotation
(memory/call_memories.py)."""

import json
import math
import os
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

from ..common.system.files import read_whole, user_dir, write_atomically
from ..common.system.git import Worktree, find_worktree
from ..common.text.format import one_line, shorten
from ..common.text.sanitize import for_prompt
from ..history.git.branches import Branches
from ..history.search.query import STOP_WORDS
from ..history.store.sqlite.exclusions import Stamp
from ._cues import DIRECTIVES, WordUse, cues_of, keys_of
from .call_memories import COMMAND, ROOTED, key_of
from .doubts import files_named, settled_after, unmerged_branch
from .format import (
    BY_AGENT,
    BY_PERSON,
    EPISODE,
    REJECTED,
    is_by_agent,
    short_hash,
    shown_kind,
    time_text,
)
from .memory_index import IndexedMemory, MemoryFilter, MemoryIndex, PlacedMemory
from .prompt_index_reader import (
    BUCKETS,
    MAGIC,
    NUMBER_BYTES,
    PROMPT_INDEX,
    SILENT_AT,
    TEXTS_AT,
    WHOLE,
    bucket_of,
)
from .prompt_memories import terms

TEXT_CHARACTERS = 240
FEWEST = 50  # memories needed for term weights; among fewer, every term would count as common
MOST_PLACES = 100  # a term in more memories is not listed, because it does not distinguish them
GIT_SECONDS = 2.0  # after this, branches not checked yet count as not merged
# Factor by kind for a memory of another project: it must match a prompt this much better.
_HURDLES = {"preference": 1.25, "person": 1.25}
_HURDLE = 1.5
# An agent's own note is not a person's word, so it is only for its own project
_NO_OTHER_PROJECT = 1e6
_OF_EPISODE = 1.4  # total weight of its title's terms, which describe it less well
_COMMON = 0.5  # factor for a word that occurs in prompts about anything
_COMMON_WORDS = read_whole(
    os.path.join(os.path.dirname(os.path.abspath(__file__)), "common_words.txt")
).decode()
_NOT_ABOUT = frozenset(term for word in STOP_WORDS for term in terms(word))
_SILENT = f" {' '.join(sorted(_NOT_ABOUT))} ".encode().ljust(TEXTS_AT - SILENT_AT)
_IN_MOST = frozenset(term for word in _COMMON_WORDS.split() for term in terms(word)) - _NOT_ABOUT

# A tool call gets memories of these kinds; a call that edits a file gets only DIRECTIVES.
_NOUNS = {
    "decision": "decision",
    "preference": "preference",
    REJECTED: "rejection",
    "fact": "fact",
}
_BY_RULES = (
    "extractive"  # up to 0.3, by rules that were too often wrong (bench/research/extraction)
)
_GIT = re.compile(r"\bgit ([a-z][a-z-]+)")
_HAS_ENDING = re.compile(r"\.[a-z]\w*$")
_UNSAFE = re.compile(r'["\\\x00-\x1f]')  # JSON escapes these


def renew(directory: str, index: MemoryIndex, home: str, visible: Sequence[PlacedMemory]) -> None:
    """Update the index on disk with the `visible` memories, which the rules allow.

    Raises DatabaseError, OSError."""
    path, settings = f"{directory}/{PROMPT_INDEX}", index.settings()
    try:
        known = read_whole(path)
    except FileNotFoundError:
        if not visible:
            return
        known = b""
    if _head(visible, settings) != _sources(known):
        memories = index.memories(MemoryFilter(home=home, is_untrusted=False))
        home_dir = user_dir(os.environ)
        write_atomically(path, content(memories, settings, home_dir, index.texts_below))


def content(
    memories: Sequence[IndexedMemory],
    settings: Mapping[str, Stamp],
    user_dir: str = "",
    texts_below: Callable[[str], Iterable[str]] = lambda directory: (),
) -> bytes:
    """Return the index as bytes.

    Buckets come last, once the offsets of the memories are known. A repository at `user_dir` or
    above it is not a project. `texts_below` has prompts and commands of a directory's sessions."""
    watched = _Watched(user_dir, texts_below)
    about = [_about(memory, watched) for memory in memories]
    stored = bytearray(_sized(_head(memories, settings)))
    listed = {term: [weight] for term, weight in _weights(about).items()}
    for memory, of in zip(memories, about):
        at = TEXTS_AT + len(stored)
        total = (
            sum([listed[term][0] for term in of.title])
            + sum([listed[term][0] for term in of.rest]) / 2
        )
        if not total:
            continue
        total *= _OF_EPISODE if memory.kind == EPISODE else 1
        columns = [
            total,
            _key(memory),
            shorten(for_prompt(_text(memory)), TEXT_CHARACTERS),
            *watched.of(memory),
        ]
        if of.places or of.cues:
            columns += [
                of.places,
                for_prompt(_said(memory)),
                sorted({origin.session for origin in memory.origins}),
                of.cues,
            ]
        stored += _sized(columns)
        for term in sorted(of.terms):
            listed[term].append(-at if term in of.rest else at)
    return _with_buckets(bytes(stored), listed)


def _with_buckets(stored: bytes, listed: Mapping[str, Sequence[int]]) -> bytes:
    """Return the file with the `stored` values, and the weight and places of each term."""
    buckets: list[dict[str, Sequence[int]]] = [{} for _ in range(BUCKETS)]
    for term, (weight, *places) in listed.items():
        buckets[bucket_of(term)][term] = [weight, *(places if len(places) <= MOST_PLACES else ())]
    encoded = [
        json.dumps(bucket, ensure_ascii=False).encode("utf-8", "replace") if bucket else b""
        for bucket in buckets
    ]
    ends = accumulate(map(len, encoded), initial=TEXTS_AT + len(stored))
    table = b"".join([end.to_bytes(NUMBER_BYTES, "big") for end in ends])
    return MAGIC + table + _SILENT + stored + b"".join(encoded)


def _key(memory: IndexedMemory | PlacedMemory) -> str:
    """Return the id of a memory with its version.

    An edited memory has another version, and may be injected again."""
    return f"{memory.id}-{memory.version:08x}"


def _head(
    visible: Sequence[IndexedMemory] | Sequence[PlacedMemory], settings: Mapping[str, Stamp]
) -> dict[str, Any]:
    """Return the sources of an index: the files with the rules, and a checksum of the memories."""
    return {"settings": dict(settings), "shown": short_hash(" ".join(sorted(map(_key, visible))))}


def _sources(known: bytes) -> dict[str, Any]:
    """Return the sources of an index; {} if it cannot be read."""
    start = TEXTS_AT + NUMBER_BYTES
    try:
        size = int.from_bytes(known[TEXTS_AT:start], "big")
        return dict(json.loads(known[start : start + size])) if known.startswith(MAGIC) else {}
    except (ValueError, TypeError):
        return {}


class _About(NamedTuple):
    """The terms of a memory's title, those only in its text, its places and its cues."""

    title: set[str]
    rest: set[str]
    places: list[str]
    cues: list[list[str]]

    @property
    def terms(self) -> set[str]:
        """All by which the index lists it."""
        return {*self.title, *self.rest, *map(key_of, self.places), *keys_of(self.cues)}


class _Watched:
    """State of the machine that memories depend on, looked up for each memory that has a
    condition."""

    def __init__(self, user_dir: str, texts_below: Callable[[str], Iterable[str]]) -> None:
        self._user_dir = user_dir
        self._texts_below = texts_below
        self._usages: dict[str, WordUse] = {}
        self._branches = Branches(user_dir)
        self._deadline = time.monotonic() + GIT_SECONDS
        self._worktrees: dict[str, Worktree | None] = {}

    def places(self, memory: IndexedMemory) -> list[str]:
        """Return the places that a memory names, by which tool calls find it (see call_memories).

        It must be a decision, a preference or a rejection that more than rules made."""
        directory = _directory(memory)
        if memory.kind not in DIRECTIVES or not directory or _is_by_rules(memory):
            return []
        root = self._root(directory)
        places = [_place(name, directory, root) for name in files_named(memory)[0]]
        places += [f"{COMMAND}git {word}" for word in _GIT.findall(memory.whole_text)]
        return list(
            dict.fromkeys([place for place in places if place and not _UNSAFE.search(place)])
        )

    def usage(self, memory: IndexedMemory) -> WordUse:
        """Return how often words occur in the memory's project."""
        root = self._root(_directory(memory))
        if root not in self._usages:
            self._usages[root] = WordUse(self._texts_below(root) if root else (), _IN_MOST)
        return self._usages[root]

    def of(self, memory: IndexedMemory) -> list[Any]:
        """Return a memory's columns in the index, from the hurdle on."""
        directories = dict.fromkeys([directory for *_, directory in memory.origins if directory])
        projects = list(dict.fromkeys([self._project(directory) for directory in directories]))
        files = files_named(memory)[1] if memory.kind != EPISODE else []
        branch = unmerged_branch(memory, self._branches, self._deadline)
        hurdle = _NO_OTHER_PROJECT if is_by_agent(memory) else _HURDLES.get(memory.kind, _HURDLE)
        return [hurdle, projects, files, settled_after(memory), branch]

    def _worktree(self, directory: str) -> Worktree | None:
        if directory not in self._worktrees:
            self._worktrees[directory] = (
                find_worktree(directory, self._user_dir) if directory else None
            )
        return self._worktrees[directory]

    def _root(self, directory: str) -> str:
        worktree = self._worktree(directory)
        return worktree.root if worktree and worktree.root else directory

    def _project(self, directory: str) -> str:
        worktree = self._worktree(directory)
        return worktree.common_dir if worktree else directory


def _weights(about: Sequence[_About]) -> dict[str, int]:
    """Return the weight of each term: rarer terms weigh more, terms found only in prose nothing."""
    frequency, count = (
        Counter(term for memory in about for term in memory.terms),
        max(len(about), FEWEST),
    )
    weights = {}
    for term in frequency.keys() | _IN_MOST:
        rarity = math.log(1 + count / (frequency[term] or 1)) / math.log(1 + count)
        weights[term] = round(WHOLE * rarity * (_COMMON if term in _IN_MOST else 1))
    return weights


def _sized(value: object) -> bytes:
    encoded = json.dumps(value).encode()
    return len(encoded).to_bytes(NUMBER_BYTES, "big") + encoded


def _about(memory: IndexedMemory, watched: _Watched) -> _About:
    """Return a memory's topic; an episode's text does not count, because it covers many topics."""
    title = set(terms(memory.title)) - _NOT_ABOUT
    text = set() if memory.kind == EPISODE else set(terms(f"{memory.subject} {memory.text}"))
    cues = [] if _is_by_rules(memory) else cues_of(memory, watched.usage(memory), _NOT_ABOUT)
    return _About(title, text - title - _NOT_ABOUT, watched.places(memory), cues)


def _directory(memory: IndexedMemory) -> str:
    """Return the directory of the latest session that a memory comes from; '' if unknown."""
    latest = max(memory.origins, key=lambda origin: origin.at or 0, default=None)
    return latest.directory if latest else ""


def _is_by_rules(memory: IndexedMemory) -> bool:
    """Check if only rules made a memory, or a person without a session."""
    return all(origin.strategy == _BY_RULES for origin in memory.origins)


def _text(memory: IndexedMemory) -> str:
    about = (
        f" ({memory.subject})"
        if memory.subject and memory.subject.lower() not in memory.title.lower()
        else ""
    )
    noted = ", noted by an agent" if is_by_agent(memory) else ""
    return one_line(f"{shown_kind(memory.kind)}{about}{noted}: {memory.title} {memory.text}")


def _said(memory: IndexedMemory) -> str:
    """Return who made a memory's statement, when, and in which words."""
    origin = max(memory.origins, key=lambda origin: origin.at or 0)
    what = f"{_NOUNS[memory.kind]} of {time_text(origin.at)[:10]}"
    if origin.strategy == BY_PERSON:
        what = f"the user's {what}"
    elif origin.strategy == BY_AGENT:
        what = f"an agent's {what}"
    else:
        what = f"a {what}, kept by {origin.strategy}"
    return f'{what}: "{one_line(memory.quote or memory.title)}"'


def _place(name: str, directory: str, root: str) -> str:
    """Return the place of a name: from the root if it exists, else by the end of its path.

    The second applies only if the name may be a file's."""
    for above in dict.fromkeys((directory, root)):
        path = os.path.normpath(os.path.join(above, name))
        inside = path.removeprefix(root.rstrip("/") + "/")
        if inside != path and os.path.isfile(path):
            return ROOTED + inside
        if inside != path and "/" in name and os.path.isdir(path):
            return f"{ROOTED}{inside}/"
    is_path = _HAS_ENDING.search(name) and not name.startswith(("/", ".."))
    return f"/{name.removeprefix('./')}" if is_path else ""
