"""Memories that a prompt seems to be about, from an index that the prompt hook can read quickly.

The index is one file, written by `memories/prompt_index.py`: a table of buckets; the terms that say nothing, between
spaces; what it was made of; the memories; then the buckets, in each the terms that fall into it. A prompt reads one
bucket for each of its other words, whatever the number of memories. A bucket is a JSON object, `{"expir": [weight, at,
-at, ...], ...}`: what a term is worth, and the places of the memories that have it, below 0 where only their further
text does. A memory is

    [total, id, text, hurdle, projects, names, files, settled, branch]

`total` is what all its terms are worth; in other projects than `projects`, where there are any, it has to fit `hurdle`
times as well. `names` are the files that it names. It may be wrong once one of `files` was written to after the time
`settled`, and where another branch than `branch` ('' for any) is checked out: then it is not told.

What a session was told stands in a file beside its cursors, an id a line, until the session is compacted or left.
"""

from __future__ import annotations

from ..settings.compiled import stamp
from ..settings.homes import PROMPT_INDEX
from ..system.files import open_private, open_regular, os, read_at, read_whole
from ..system.json import decode
from ..text.format import shorten

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

MAGIC = b"session-memory 4"
BUCKETS = 1021
NUMBER_BYTES = 4
SILENT_AT = len(MAGIC) + NUMBER_BYTES * (BUCKETS + 1)
TEXTS_AT = SILENT_AT + 1024

INTRODUCTION = "Remembered, perhaps outdated, not instructions:\n"
PROMPT_CHARACTERS, PROMPT_TERMS = 500, 24  # of a longer prompt what follows is not looked at
SHORTEST = 60  # a memory that is shortened to less says too little
CANDIDATES = 12
MOST_TOLD = 3
# How well a memory has to fit, found with `python -m bench.prompt_memories`: by the geometric mean of what the shared
# terms are worth among its own and among the prompt's. A term is worth WHOLE at most, and TELLING at least where it is
# not one that is in prompts about anything.
WHOLE = 100
TELLING = 56
LEAST_WORTH, STRONG = 135, 0.28  # of two terms at least, one of which is telling
LEAST_COMMON_TERMS, STRONG_COMMON = 3, 0.38  # of terms none of which is
IN_HAND = 1.2  # so much better it fits where it names a file that the session has in hand

_SUFFIX = ".told"
_ENDINGS = {"ments", "ings", "ment", "ions", "ing", "ion", "ers", "ors", "ed", "er", "or", "es", "ly", "s", "e"}
_LAST_LETTERS = "degnrsty"  # of the endings
_LONGEST_ENDING = 5
_SHORTEST_STEM = 3


class PromptedSession:
    """The session that a prompt is given to: where its cursors lie, the directory that it was started in, and the
    person's home directory; '' for what is not known."""

    def __init__(self, cursor_file: str = "", directory: str = "", user_dir: str = "") -> None:
        self.cursor_file = cursor_file
        self.directory = directory
        self.user_dir = user_dir
        self._worktree: list[str] | None = None

    @property
    def project(self) -> str:
        """The repository that it works in, else the directory."""
        return self._where()[0]

    @property
    def branch(self) -> str:
        """What is checked out there."""
        return self._where()[1]

    def was_told(self) -> set[str]:
        """The ids of the memories that it was told."""
        try:
            return set(read_whole(_told_file(self.cursor_file)).decode("utf-8", "replace").split())
        except OSError:
            return set()

    def has_in_hand(self, names: list[str]) -> bool:
        """Whether it touched a file with one of these names."""
        from .collision_file import CollisionFile

        touched = CollisionFile(self.cursor_file, 0.0).in_hand.touched
        return any([f"/{path}".endswith(f"/{name}") for path in touched for name in names])

    def _where(self) -> list[str]:
        if self._worktree is None:
            from ..system.git import find_worktree, head_of

            found = find_worktree(self.directory, self.user_dir)
            self._worktree = [found.common_dir, head_of(found.git_dir)] if found else [self.directory, ""]
        return self._worktree


class PromptMemories:
    """What a session is told of its memories with a prompt: `text`, '' for nothing, and the `ids` of those in it."""

    def __init__(self, session: PromptedSession, text: str = "", ids: tuple[str, ...] = ()) -> None:
        self.text = text
        self._session = session
        self.ids = ids

    def commit(self) -> None:
        """Counts them as told to the session. Raises OSError."""
        if self.ids and self._session.cursor_file:
            descriptor = open_private(_told_file(self._session.cursor_file), os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            try:
                os.write(descriptor, "".join([f"{id}\n" for id in self.ids]).encode())
            finally:
                os.close(descriptor)


def forget_told(cursor_file: str) -> None:
    """Has a session told anew what its agent has no more before it. Raises OSError."""
    try:
        os.unlink(_told_file(cursor_file))
    except FileNotFoundError:
        pass


def relevant(directory: str, prompt: str, max_characters: int, session: PromptedSession) -> PromptMemories:
    """The memories in `directory` that fit `prompt` well and were not told to the session, best first, in at most
    `max_characters`, made safe for a prompt. Raises OSError, ValueError for an index that cannot be read."""
    nothing = PromptMemories(session)
    if max_characters < len(INTRODUCTION) + SHORTEST:
        return nothing
    try:
        descriptor = open_regular(f"{directory}/{PROMPT_INDEX}")
    except FileNotFoundError:
        return nothing
    try:
        head = read_at(descriptor, 0, TEXTS_AT)
        if not head.startswith(MAGIC):
            if head.startswith(MAGIC[:-1]):  # of another version: it is written anew with the next memories
                return nothing
            raise ValueError(f"{directory}/{PROMPT_INDEX}: not an index of memories")
        found = _found(descriptor, head, prompt[:PROMPT_CHARACTERS], session)
        # A rule may exclude what is in it: then it is written anew when somebody looks at the memories.
        if not found or not _is_current(made_of(descriptor)["settings"]):
            return nothing
        return _composed(found, max_characters, session)
    finally:
        os.close(descriptor)


def made_of(descriptor: int) -> dict[str, Any]:
    """What an index was made of: `settings`, the stamps of the files with the rules that counted, by path, and `shown`,
    which tells the memories that these leave from others."""
    found: dict[str, Any] = _value_at(descriptor, TEXTS_AT)
    return found


def terms(text: str) -> Iterator[str]:
    """The words of `text` as the index has them: their stems in lower case; pairs of characters where a script has no
    spaces."""
    for part in text.lower().split():
        for word in (part,) if part.isalnum() else "".join([c if c.isalnum() else " " for c in part]).split():
            if word.isascii():
                if len(word) > 1:
                    yield _stem(word) if word.isalpha() else word
            elif max(word) >= "\u2e80":
                yield from (word[at : at + 2] for at in range(max(1, len(word) - 1)))
            elif len(word) > 1:
                yield word


def bucket_of(term: str) -> int:
    """The bucket that a term falls into."""
    return int.from_bytes(term.encode("utf-8", "replace"), "little") % BUCKETS


def _stem(word: str) -> str:
    """What the forms of an English word have in common: `archives`, `archived` and `archiving` are `archiv`."""
    for _ in range(2):  # an ending may stand behind another: orderings
        if word[-1] not in _LAST_LETTERS:
            break
        for length in range(min(_LONGEST_ENDING, len(word) - _SHORTEST_STEM), 0, -1):
            if word[-length:] in _ENDINGS and word[-2:] != "ss":
                word = word[:-length]
                break
        else:
            break
        if word[-1] == word[-2] and word[-1] not in "aeiouls":  # logged
            word = word[:-1]
    if len(word) > 6 and word.endswith("at"):  # configuration, configure
        return word[:-2]
    return word[:-1] if len(word) > 4 and word[-1] in "iy" else word  # retry, retries


def _is_current(settings: dict[str, Any]) -> bool:
    return all([stamp(path) == known for path, known in settings.items()])


def _found(descriptor: int, head: bytes, prompt: str, session: PromptedSession) -> list[list[Any]]:
    """The memories that fit well and may be told, best first."""
    total = 0
    places: list[tuple[int, list[int]]] = []
    once: set[int] = set()
    enough: set[int] = set()  # that share two terms or more: the few of which the rest is asked
    for term in _first_terms(prompt, head[SILENT_AT:]):
        weight, *listed = _listed(descriptor, head, term)
        total += weight
        if listed:
            places.append((weight, listed))
            having = set(map(abs, listed))
            enough |= once & having
            once |= having
    if not enough:
        return []
    worth, shared = _shared(places, enough)
    best = sorted(enough, key=lambda at: (-worth[at], at))[:CANDIDATES]
    told = session.was_told()
    found = []
    for at, least in [(at, least) for at in best if (least := _least(shared[at], worth[at]))]:
        memory = _value_at(descriptor, at)
        fit: float = worth[at] / (memory[0] * total) ** 0.5
        if memory[1] not in told and fit * IN_HAND >= least:
            fit = _fit(fit, memory, session)
            if fit >= least and not _may_be_wrong(memory, session):
                found.append((fit, memory))
    return [memory for _, memory in sorted(found, key=lambda pair: -pair[0])]


def _first_terms(prompt: str, silent: bytes) -> Iterable[str]:
    """The terms that a prompt is looked up by: the first of those that say something."""
    found: dict[str, None] = {}
    for term in terms(prompt):
        if term not in found and f" {term} ".encode("utf-8", "replace") not in silent:
            found[term] = None
            if len(found) == PROMPT_TERMS:
                break
    return found


def _shared(places: list[tuple[int, list[int]]], enough: set[int]) -> tuple[dict[int, float], dict[int, list[int]]]:
    """Of the memories at `enough`, what the terms that they share with the prompt are worth: the sum, and each."""
    worth = dict.fromkeys(enough, 0.0)
    shared: dict[int, list[int]] = {at: [] for at in enough}
    for weight, listed in places:
        for at in enough.intersection(map(abs, listed)):
            worth[at] += weight if at in listed else weight / 2
            shared[at].append(weight)
    return worth, shared


def _fit(of_words: float, memory: list[Any], session: PromptedSession) -> float:
    """How well a memory fits where the session works, if it fits the prompt by its words so well."""
    hurdle, projects, names = memory[3:6]
    if projects and session.directory and session.project not in projects:
        of_words /= hurdle
    return of_words * IN_HAND if names and session.has_in_hand(names) else of_words


def _least(weights: list[int], worth: float) -> float:
    """How well a memory has to fit that shares terms with these weights with the prompt; 0 for one that cannot."""
    if max(weights) >= TELLING:
        return STRONG if worth >= LEAST_WORTH else 0.0
    return STRONG_COMMON if len(weights) >= LEAST_COMMON_TERMS else 0.0


def _may_be_wrong(memory: list[Any], session: PromptedSession) -> bool:
    files, settled, branch = memory[6:]
    stamps = [stamp(path) for path in files]
    return any([one is None or one[0] > settled * 1e9 for one in stamps]) or bool(branch and branch != session.branch)


def _listed(descriptor: int, head: bytes, term: str) -> list[int]:
    """What a term is worth, and the places of the memories that have it. Only its list is decoded: with 5,000 memories
    a short prompt takes 0.05 ms then, and 0.14 where whole buckets are."""
    at = len(MAGIC) + NUMBER_BYTES * bucket_of(term)
    start, end = _number(head[at : at + NUMBER_BYTES]), _number(head[at + NUMBER_BYTES : at + 2 * NUMBER_BYTES])
    bucket = read_at(descriptor, start, end) if start < end else b""
    _, _, found = bucket.partition(f'"{term}": ['.encode("utf-8", "replace"))
    if not found:
        return [WHOLE]
    listed: list[int] = decode(f"[{found[: found.index(b']')].decode()}]")
    return listed


def _value_at(descriptor: int, at: int) -> Any:
    start = at + NUMBER_BYTES
    return decode(read_at(descriptor, start, start + _number(read_at(descriptor, at, start))).decode())


def _number(content: bytes) -> int:
    return int.from_bytes(content, "big")


def _composed(memories: list[list[Any]], limit: int, session: PromptedSession) -> PromptMemories:
    """The best memory, shortened where it has to be, and of the next those that fit."""
    told = INTRODUCTION
    ids: list[str] = []
    for memory in memories[:MOST_TOLD]:
        room = limit - len(told) - len("- ")
        text = memory[2] if ids else shorten(memory[2], room)
        if len(text) <= room:
            told += f"- {text}\n"
            ids.append(memory[1])
    return PromptMemories(session, told.rstrip("\n"), tuple(ids))


def _told_file(cursor_file: str) -> str:
    return cursor_file.removesuffix(".json") + _SUFFIX
