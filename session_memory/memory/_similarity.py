"""Compare texts: whether they say the same or contradict each other. Pure."""

import re
import unicodedata
from typing import NamedTuple

from ..common.text.letters import compatible
from ..common.text.marks import folded
from ..history.search.index import spaced

LEAST_SHARED = 0.8  # of the words of both texts: near duplicates
LEAST_COMMON = 3  # words that two texts share before one can contradict the other

_LETTERS = r"(?:[^\W_]|[\ue000-\uf8ff])+"  # and vowel signs, as the search index has them
_WORD = re.compile(rf"{_LETTERS}(?:['’._/:+-]{_LETTERS})*%?")
_ACCENT = "\u0301"  # a mark that many leave out
_VALUE = re.compile(r"\d[\d.,:]*[a-z%]{0,3}")
_NEGATIONS = frozenset(["no", "not", "never", "none", "cannot", "without", "neither", "nor"])
_EMPTY = frozenset(
    (
        "a",
        "an",
        "and",
        "are",
        "at",
        "be",
        "been",
        "by",
        "can",
        "could",
        "did",
        "do",
        "does",
        "for",
        "from",
        "has",
        "have",
        "in",
        "is",
        "it",
        "its",
        "of",
        "on",
        "should",
        "that",
        "the",
        "this",
        "to",
        "was",
        "were",
        "will",
        "would",
    )
)


class Wording(NamedTuple):
    """The words of a text and, separately, those that change its meaning: numbers and negations."""

    words: frozenset[str]
    values: frozenset[str]


def wording(text: str) -> Wording:
    """Return the wording of `text`, without articles, auxiliaries and similar words."""
    words_found = set(normalised(text).split())
    values = {word for word in words_found if _VALUE.fullmatch(word)}
    refusals = {word for word in words_found if word in _NEGATIONS or word.endswith(("n't", "n’t"))}
    words = {_root(word) for word in words_found - values - refusals - _EMPTY}
    return Wording(frozenset(words), frozenset(values | ({"not"} if refusals else set())))


def normalised(text: str) -> str:
    """Return the words of `text`: equal for texts that differ in case, punctuation or white
    space."""
    form = unicodedata.normalize("NFKC", spaced(compatible(text))).casefold()
    return " ".join(_WORD.findall(folded(form).replace(_ACCENT, "")))


def says_the_same(first: Wording, other: Wording) -> bool:
    """Return whether two texts are near duplicates with the same numbers and negations."""
    return first.values == other.values and _share_most(first, other)


def contradicts(first: Wording, other: Wording) -> bool:
    """Return whether two texts have nearly the same words, but other numbers or negations."""
    common = len(first.words & other.words)
    return first.values != other.values and common >= LEAST_COMMON and _share_most(first, other)


def _root(word: str) -> str:
    """Return a word without a trailing plural or verb s."""
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def _share_most(first: Wording, other: Wording) -> bool:
    every = first.words | other.words
    return len(first.words & other.words) >= LEAST_SHARED * len(every) if every else True
