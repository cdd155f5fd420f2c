"""Telling a secret from a name, path, version or placeholder in the same position. Pure."""

from __future__ import annotations

import re
from math import log2, sqrt

# The most common pairs of letters in English and code: three quarters of the pairs in words, a fifth by chance.
PAIRS = frozenset(
    re.findall(
        "..",
        "thheineranreonatenndtiesorteofedisitalarsttontngsehaasouiolevecomedehiriroicneearacelichllbemasiom"
        "urcaeltalansdifohopeecprnoctusacotiltrlyncetutsssorsunlowageiewheewiemadolrtpowenaulnitsmoowpaimmi"
        "aishirsuidosiviaamficivipligtuevldrympfeblabghtyopwosaayexkeuieypiapagodobbosp",
    )
)
COMMON = len(PAIRS) / 26**2
# How many standard deviations above chance make words. STRICT, for values that only a name marks as a key, takes one
# key in a thousand for words; LENIENT, for values that also have the shape of a key, takes hardly any.
STRICT = 4.2
LENIENT = 6.5
WORDY = 2.0
ENOUGH = 120  # characters that are examined

WORD = re.compile("[A-Z]*[a-z]+|[A-Z]+")
HEX = re.compile("[0-9a-fA-F-]+")
LOWER, UPPER, DIGIT, LETTER = map(re.compile, ("[a-z]", "[A-Z]", "[0-9]", "[A-Za-z]"))
SIGN = re.compile(r"[^\w.-]")
PLACEHOLDER = re.compile(
    r"(?i)example|placeholder|redacted|changeme|replace|dummy|sample|xxxx|^your|your[_-]|<|\.\.\.|\*\*\*"
    r"|12345678|abcdefgh|0000000"
)
# Code in the position of a password: a.b, A_B, $variable, {template}, a URL, a path.
CODE = re.compile(
    r"[A-Za-z_$][\w$]*(?:(?:\.|->|::)[A-Za-z_$][\w$]*)+[!?]?|[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+"
    r"|[$%{<@].*|https?://.*|/.*|.*[$#{]\{.*"
)


def entropy(text: str) -> float:
    """Shannon entropy of the first characters of `text`, in bits a character."""
    text = text[:ENOUGH]
    size = len(text)
    return -sum(n / size * log2(n / size) for n in map(text.count, set(text)))


def reads_like_words(text: str, deviations: float) -> bool:
    """Whether `text` has more common pairs of letters than chance, by so many standard deviations."""
    pairs = [word[i : i + 2].lower() for word in WORD.findall(text) for i in range(len(word) - 1)]
    by_chance = len(pairs) * COMMON
    deviation = sqrt(by_chance * (1 - COMMON))
    return sum(pair in PAIRS for pair in pairs) > by_chance + deviations * deviation - 0.5


def looks_random(text: str, deviations: float) -> bool:
    """Whether `text` has digits and letters that form no words, as keys have."""
    text = text[:ENOUGH]
    digits, letters = len(DIGIT.findall(text)), len(LETTER.findall(text))
    if not digits or not letters or PLACEHOLDER.search(text) or entropy(text) < 2.8:
        return False
    if HEX.fullmatch(text):
        return digits >= 3 and letters >= 2
    return not reads_like_words(text, deviations)


def looks_like_password(text: str, quoted: bool) -> bool:
    """Whether `text`, the value of something called a password, is one: neither code nor a mere word."""
    text = text[:ENOUGH]
    if PLACEHOLDER.search(text) or CODE.fullmatch(text):
        return False
    kinds = sum(kind.search(text) is not None for kind in (LOWER, UPPER, DIGIT, SIGN))
    if DIGIT.search(text) or SIGN.search(text):
        return kinds >= 2
    if kinds == 2:
        return quoted or not reads_like_words(text, STRICT)
    return quoted and len(text) >= 8 and not reads_like_words(text, WORDY)
