"""Cues of a memory: words that are enough, in a short prompt or with a git or package command, to
show that it is about the memory.

A cue is a list of terms that must all be there. There are four kinds: a word of the title that is
rare in the project (with a prompt only in the title's subject, or in what "we use"); the occasion,
after "before", "when" or "for"; what the title forbids, after "never" or "don't"; and, in a decision,
preference or rejection, a word for what git or a package manager does.

The project's own prompts and commands show how rare a word is. With few of them, a list of words
that are common anywhere counts too."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from ..common.text.words import word_lists
from .format import REJECTED
from .memory_index import IndexedMemory
from .prompt_index_reader import AT_CALLS, CUE
from .prompt_memories import terms

DIRECTIVES = ("decision", "preference", REJECTED)
_KINDS = (*DIRECTIVES, "fact")
MOST_CUES = 16
_MOST_TERMS = 3  # of a cue
_RAREST_SHARE = 0.02  # of the project's texts have a rare word at most
_SHORTEST = 3  # letters of a rare word
_PRIOR_TEXTS = 50  # as which the lists of words count
_PRIOR, _PRIOR_OF_COMMON = 0.005, 0.05
_OCCASION = re.compile(
    r"\b(?:before|after|when(?:ever)?|while|once|if|on|upon|during|for|each|every|per)\s+", re.I
)
_FORBIDDEN = re.compile(r"\b(?:never|don['’]?t|(?:do|must|may|should|can) ?not|avoid)\s+", re.I)
_NO_VERB = re.compile(
    r"(?:the|an?|any|our|your|this|that|in|on|to|by|with|from|as|before|after)\b", re.I
)
_NOT = re.compile(r"\b(?:not|over|instead of|rather than)\s+", re.I)
_END = re.compile(
    r"[,;:()\"“”—–]|\.(?:\s|$)|\s-\s|\b(?:but|because|unless|until|so|then|only|never|always)\b",
    re.I,
)
_DOES = re.compile(
    r"(?:we|i|you|everybody|everyone)\s+(?:(?:always|never|only|all|now|\w+ly)\s+)?\w+\s+", re.I
)
_IS = re.compile(
    r"\b(?:is|are|was|were|has|have|must|should|shall|may|can|cannot|will|do|does|needs?|gets?|runs?|lives?|goe?s?|"
    r"comes?|uses?|keeps?|takes?|stays?|over|instead)\b",
    re.I,
)
_BESIDE = re.compile(r"\b(?:for|in|on|with|by|from|to|at|as|when|if|before|after)\b", re.I)
_ALTERNATIVE = re.compile(r"\s(?:or|and)\s|/", re.I)
# the command that a memory tells to run is not where it has to be recalled
_TO_RUN = re.compile(
    r"(?<!never )(?<!not )(?<!don't )\brun\s+(?:the\s+|our\s+|all\s+)?(\S+(?:\s+run)?(?:\s+[\w:-]+)?)",
    re.I,
)
_WORDS = word_lists()
_ENGLISH = _WORDS["words of english"]
_GENERIC = frozenset(term for word in _WORDS["verbs of anything"] for term in terms(word))
_ACTS = frozenset(term for word in _WORDS["acts"] for term in terms(word))


class WordUse:
    """The frequency of words in a number of a project's texts."""

    def __init__(self, texts: Iterable[str], common: frozenset[str]) -> None:
        sets = [set(terms(text)) for text in texts]
        self._frequency = Counter(term for words in sets for term in words)
        self._count = len(sets)
        self._common = common

    def is_rare(self, term: str, *, is_english: bool) -> bool:
        """Check if a term is a word of a script with spaces that few of the texts have.

        Words that are not English are common unless the texts show otherwise."""
        if len(term) < _SHORTEST or term.isdigit() or max(term) >= "\u2e80":
            return False
        prior = _PRIOR if is_english and term not in self._common else _PRIOR_OF_COMMON
        seen = self._frequency[term] + prior * _PRIOR_TEXTS
        return seen <= _RAREST_SHARE * (self._count + _PRIOR_TEXTS)


def cues_of(memory: IndexedMemory, usage: WordUse, silent: frozenset[str]) -> list[list[str]]:
    """Return the cues of a memory, which never use `silent` words; [] if its kind has no cues."""
    if memory.kind not in _KINDS:
        return []
    title = memory.title
    words = [term for term in terms(title) if term not in silent]
    is_english = not _ENGLISH.isdisjoint(title.lower().split())
    rare = {term for term in words if usage.is_rare(term, is_english=is_english)}
    cues = _rare_words(title, words, rare, silent)
    if memory.kind in DIRECTIVES:
        cues += [[term] for term in words if term in _ACTS]
    cues += _occasions(title, silent)
    for match in _NOT.finditer(title):
        clauses = _clauses(title[match.end() :], silent)
        cues += [cue if rare.issuperset(cue) else [AT_CALLS, *cue] for cue in clauses]
    unique = {tuple(sorted(cue)): cue for cue in cues}
    return list(unique.values())[:MOST_CUES]


def _rare_words(
    title: str, words: list[str], rare: set[str], silent: frozenset[str]
) -> list[list[str]]:
    """Return the cues of a title's rare words, except the words of a command to be run."""
    to_run = {term for match in _TO_RUN.finditer(title) for term in terms(match[1])}
    topic = _topic(title, silent)
    return [
        [term] if term in topic else [AT_CALLS, term]
        for term in words
        if term in rare and term not in to_run
    ]


def _occasions(title: str, silent: frozenset[str]) -> list[list[str]]:
    """Return the cues of a title's occasions, and of what it forbids."""
    cues = []
    for match in _OCCASION.finditer(title):
        cues += _clauses(_BESIDE.split(title[match.end() :], maxsplit=1)[0], silent)
    for match in _FORBIDDEN.finditer(title):
        if not _NO_VERB.match(title, match.end()):
            cues += _clauses(title[match.end() :], silent)
    return cues


def keys_of(cues: Iterable[list[str]]) -> set[str]:
    """Return the keys by which the index lists a memory with these cues: a term of each."""
    return {CUE + max(cue, key=len) for cue in cues}


def _topic(title: str, silent: frozenset[str]) -> set[str]:
    """Return the terms of what a title is about: its subject, or the object of what people do."""
    does = _DOES.match(title)
    text = title[does.end() :] if does else _IS.split(title, maxsplit=1)[0]
    text = _END.split(_BESIDE.split(text, maxsplit=1)[0], maxsplit=1)[0]
    return set([term for term in terms(text) if term not in silent][:_MOST_TERMS])


def _clauses(text: str, silent: frozenset[str]) -> list[list[str]]:
    """Return the terms of a clause that a text begins with, for each of its alternatives."""
    parts = _ALTERNATIVE.split(_END.split(text, maxsplit=1)[0])
    clauses = [
        list(dict.fromkeys([term for term in terms(part) if term not in silent]))[:_MOST_TERMS]
        for part in parts
    ]
    chosen = clauses[:1]
    if chosen and len(chosen[0]) == 1:
        chosen += [clause for clause in clauses[1:] if len(clause) == 1]
    return [clause for clause in chosen if clause and not _GENERIC.issuperset(clause)]
