"""When two memories say the same, and when one says otherwise of the same thing. Pure."""

from __future__ import annotations

import re
import unicodedata
from typing import NamedTuple

from ..store.search.terms import indexable

LIKE = 0.8  # the share of words that two texts have in common, of all that either has
LEAST_COMMON = 3  # words, for one text to contradict another

_WORD = re.compile(r"[^\W_]+(?:['’._/:+-][^\W_]+)*%?")
_VALUE = re.compile(r"\d[\d.,:]*[a-z%]{0,3}")
_NEGATIONS = frozenset(["no", "not", "never", "none", "cannot", "without", "neither", "nor"])
_EMPTY = frozenset((
    "a", "an", "and", "are", "at", "be", "been", "by", "can", "could", "did", "do", "does", "for", "from", "has",
    "have", "in", "is", "it", "its", "of", "on", "should", "that", "the", "this", "to", "was", "were", "will",
    "would",
))  # fmt: skip


class Wording(NamedTuple):
    """What a text says: its words, and by themselves what changes its meaning: numbers, and whether it says no."""

    words: frozenset[str]
    values: frozenset[str]


def wording(text: str) -> Wording:
    """What `text` says, without the words that say nothing."""
    found = set(normalised(text).split())
    values = {word for word in found if _VALUE.fullmatch(word)}
    refusals = {word for word in found if word in _NEGATIONS or word.endswith(("n't", "n’t"))}
    words = {_root(word) for word in found - values - refusals - _EMPTY}
    return Wording(frozenset(words), frozenset(values | ({"not"} if refusals else set())))


def normalised(text: str) -> str:
    """The words of `text` and nothing else: alike for texts that differ in case, punctuation or white space."""
    folded = unicodedata.normalize("NFKC", indexable(text)).casefold()
    return " ".join(_WORD.findall(folded))


def says_the_same(one: Wording, other: Wording) -> bool:
    """Whether two texts are near duplicates."""
    return one.values == other.values and _are_like(one, other)


def contradicts(one: Wording, other: Wording) -> bool:
    """Whether two texts have nearly the same words, but other numbers, or one says no where the other does not."""
    common = len(one.words & other.words)
    return one.values != other.values and common >= LEAST_COMMON and _are_like(one, other)


def _root(word: str) -> str:
    """A word without the s of a plural or of a verb."""
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def _are_like(one: Wording, other: Wording) -> bool:
    every = one.words | other.words
    return len(one.words & other.words) >= LIKE * len(every) if every else True
