"""Memories relevant to a prompt, from their index (`prompt_index_reader`).

The session's state keeps the keys of the injected memories until the session is compacted or
left."""

from __future__ import annotations

from ..sessions.settings.compiled import PROMPT_CHARACTERS as USUAL_CHARACTERS
from ..sessions.settings.compiled import stamp
from ..sessions.transcripts.entries import REMEMBERED
from .prompt_index_reader import (
    COLUMNS,
    CUE,
    SHORTEST,
    SILENT_AT,
    composed,
    found_in,
    listed_in,
    value_at,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any

    from ..awareness.activity.session_state import SessionState
    from ..awareness.events.context import Context

PROMPT_CHARACTERS, PROMPT_TERMS = 500, 24  # the rest of a longer prompt is ignored
CANDIDATES = 12
MOST_INJECTED = 3
# How well a memory has to fit, found with `python -m bench.research.prompt_memories`: by the geometric mean
# of the weight of the shared terms among its own and among the prompt's. A term weighs WHOLE at
# most, and TELLING at least unless it is common in prompts about anything.
TELLING = 56
LEAST_WORTH, STRONG = 135, 0.28  # for at least two terms, one of which is telling
LEAST_COMMON_TERMS, STRONG_COMMON = 3, 0.38  # for terms of which none is telling
# A cue is enough in a prompt with at most so many terms for each of its own: fewer if none is telling.
CUED_TERMS, CUED_TERMS_COMMON = 4, 3
LONGEST_CUED = 12  # terms of a prompt in which cues are looked for

_ENDINGS = {
    "ments",
    "ings",
    "ment",
    "ions",
    "ing",
    "ion",
    "ers",
    "ors",
    "ed",
    "er",
    "or",
    "es",
    "ly",
    "s",
    "e",
}
_LAST_LETTERS = "degnrsty"  # of the endings
_LONGEST_ENDING = 5
_SHORTEST_STEM = 3


class PromptedSession:
    """The session of a prompt.

    It has its state, its start directory, the person's home directory and the file of its cursors;
    '' if unknown."""

    def __init__(
        self,
        state: SessionState | None = None,
        directory: str = "",
        user_dir: str = "",
        cursor_file: str = "",
    ) -> None:
        memories = state.memories if state else None
        self._injected = memories.keys if memories else []
        self._cursor_file = cursor_file
        self.directory = directory
        self._user_dir = user_dir
        self._place: tuple[str, str] | None = None

    def place(self) -> tuple[str, str]:
        """Return the session's repository, else its directory, and the current branch."""
        if self._place is None:
            from ..common.system.git import find_worktree, head_of

            worktree = find_worktree(self.directory, self._user_dir)
            self._place = (
                (worktree.common_dir, head_of(worktree.git_dir))
                if worktree
                else (self.directory, "")
            )
        return self._place

    def injected(self) -> set[str]:
        """Return the keys of the memories that were injected before, with prompts and calls."""
        keys = {*self._injected}
        if self._cursor_file:
            from ..awareness.activity.call_log import MEMORY, reported_with_calls
            from ..common.system.json import LAST_SECOND

            call_keys = [
                key
                for key in reported_with_calls(self._cursor_file, LAST_SECOND)
                if key.startswith(MEMORY)
            ]
            keys.update([key[len(MEMORY) :] for key in call_keys])
        return keys


class PromptMemories:
    """Memories to inject with a prompt: `text`, '' if there are none, and their `ids`."""

    def __init__(self, text: str = "", ids: Iterable[str] = ()) -> None:
        self.text = text
        self.ids = tuple(ids)


def at_prompt(context: Context, state: SessionState | None, room: int) -> tuple[str, Sequence[str]]:
    """Return the text of the memories relevant to a prompt, and their ids.

    The text has at most `room` characters. Raises as `found_in`."""
    home = context.home
    given = context.settings.memories.get("prompt_characters")
    most = given if isinstance(given, int) else USUAL_CHARACTERS
    session = PromptedSession(state, context.directory, home.user_dir, context.cursor_file)
    prompt = context.runtime.prompt(context.event)
    memories = relevant(home.memories_dir, prompt, min(most, room), session)
    return memories.text, memories.ids


def relevant(
    directory: str, prompt: str, max_characters: int, session: PromptedSession
) -> PromptMemories:
    """Return the memories in `directory` that fit `prompt` well, best first.

    Memories that were already injected are left out. The text has at most `max_characters` and is
    sanitized for a prompt. Raises as `found_in`."""
    if max_characters < len(REMEMBERED) + SHORTEST:
        return PromptMemories()
    beginning = prompt[:PROMPT_CHARACTERS]
    memories = found_in(
        directory, lambda descriptor, head: _found(descriptor, head, beginning, session)
    )
    return PromptMemories(
        *composed([(key, text) for _, key, text, *_ in memories[:MOST_INJECTED]], max_characters)
    )


def terms(text: str) -> Iterator[str]:
    """Yield the index's words of `text`: stems in lower case, or pairs of characters.

    Pairs are for scripts without spaces."""
    for part in text.lower().split():
        for word in (part,) if part.isalnum() else _split(part):
            if word.isascii():
                if len(word) > 1:
                    yield _stem(word) if word.isalpha() else word
            elif max(word) >= "\u2e80":
                yield from (word[at : at + 2] for at in range(max(1, len(word) - 1)))
            elif len(word) > 1:
                yield word


def _split(text: str) -> list[str]:
    if text.isascii():
        return "".join([c if c.isalnum() else " " for c in text]).split()
    from ..common.text.format import words_of  # imported late: most prompts need none

    return words_of(text)


def _stem(word: str) -> str:
    """Return the stem of an English word: `archives`, `archived` and `archiving` are `archiv`."""
    for _ in range(2):  # an ending may follow another: orderings
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


def _found(descriptor: int, head: bytes, prompt: str, session: PromptedSession) -> list[list[Any]]:
    """Return the memories that fit well and may be injected, best first."""
    weights: dict[str, int] = {}
    places: list[tuple[int, list[int]]] = []
    once: set[int] = set()
    enough: set[int] = set()  # with at least two shared terms: only these are read
    for term in _first_terms(prompt, head[SILENT_AT:]):
        weight, *listed = listed_in(descriptor, head, term)
        weights[term] = weight
        if listed:
            places.append((weight, listed))
            having = set(map(abs, listed))
            enough |= once & having
            once |= having
    fitting = _fitting(descriptor, places, enough, sum(weights.values()), session)
    known = {memory[1] for memory in fitting}
    cued = _cued(descriptor, head, weights, session) if len(weights) <= LONGEST_CUED else []
    return fitting + [memory for memory in cued if memory[1] not in known]


def _fitting(
    descriptor: int,
    places: list[tuple[int, list[int]]],
    enough: set[int],
    total: int,
    session: PromptedSession,
) -> list[list[Any]]:
    """Return the memories that share at least two terms with the prompt and fit well, best
    first."""
    if not enough:
        return []
    worth, shared = _shared(places, enough)
    best = sorted(enough, key=lambda at: (-worth[at], at))[:CANDIDATES]
    injected = session.injected()
    fitting = []
    for at, least in [(at, least) for at in best if (least := _least(shared[at], worth[at]))]:
        memory = value_at(descriptor, at)
        fit: float = worth[at] / (memory[0] * total) ** 0.5
        if memory[1] not in injected and fit >= least:
            hurdle, projects = memory[3:5]
            if projects and session.directory and session.place()[0] not in projects:
                fit /= hurdle
            if fit >= least and not _is_outdated(memory, session):
                fitting.append((fit, memory))
    return [memory for _, memory in sorted(fitting, key=lambda pair: -pair[0])]


def _cued(
    descriptor: int, head: bytes, weights: dict[str, int], session: PromptedSession
) -> list[list[Any]]:
    """Return the memories of the session's project with a cue among the prompt's terms, best
    first."""
    places = [at for term in weights for at in listed_in(descriptor, head, CUE + term)[1:]]
    if not places:
        return []
    injected = session.injected()
    cued = []
    for at in sorted(dict.fromkeys(places), key=places.count)[-CANDIDATES:]:
        memory = value_at(descriptor, at)
        share = max([_share(cue, weights) for cue in memory[COLUMNS - 1]])
        if share and memory[1] not in injected:
            projects = memory[4]
            is_here = not projects or not session.directory or session.place()[0] in projects
            if is_here and not _is_outdated(memory, session):
                cued.append((share, memory))
    return [memory for _, memory in sorted(cued, key=lambda pair: -pair[0])]


def _share(cue: list[str], weights: dict[str, int]) -> float:
    """Return a cue's share of a prompt's terms; 0 if it is not there or too little."""
    if any([term not in weights for term in cue]):
        return 0.0
    is_telling = max([weights[term] for term in cue]) >= TELLING
    most = len(cue) * (CUED_TERMS if is_telling else CUED_TERMS_COMMON)
    return len(cue) / len(weights) if len(weights) <= most else 0.0


def _first_terms(prompt: str, silent: bytes) -> Iterable[str]:
    """Return the first terms of a prompt that are not stop words."""
    first_terms: dict[str, None] = {}
    for term in terms(prompt):
        if term not in first_terms and f" {term} ".encode("utf-8", "replace") not in silent:
            first_terms[term] = None
            if len(first_terms) == PROMPT_TERMS:
                break
    return first_terms


def _shared(
    places: list[tuple[int, list[int]]], enough: set[int]
) -> tuple[dict[int, float], dict[int, list[int]]]:
    """Return the weights of the terms that memories at `enough` share with the prompt.

    These are the sum, and each weight."""
    worth = dict.fromkeys(enough, 0.0)
    shared: dict[int, list[int]] = {at: [] for at in enough}
    for weight, listed in places:
        for at in enough.intersection(map(abs, listed)):
            worth[at] += weight if at in listed else weight / 2
            shared[at].append(weight)
    return worth, shared


def _least(weights: list[int], worth: float) -> float:
    """Return how well a memory must fit to be injected; 0 if it cannot be.

    `weights` are those of the terms that it shares with the prompt."""
    if max(weights) >= TELLING:
        return STRONG if worth >= LEAST_WORTH else 0.0
    return STRONG_COMMON if len(weights) >= LEAST_COMMON_TERMS else 0.0


def _is_outdated(memory: list[Any], session: PromptedSession) -> bool:
    files, settled, branch = memory[5:8]
    stamps = [stamp(path) for path in files]
    return any(
        [file_stamp is None or file_stamp[0] > settled * 1e9 for file_stamp in stamps]
    ) or bool(branch and branch != session.place()[1])
