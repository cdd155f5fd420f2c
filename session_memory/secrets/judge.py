"""Whether a string that stands where a secret would is one, or a name, a path, a version, a placeholder. Pure."""

from __future__ import annotations

import re
from math import log2, sqrt

# The commonest pairs of letters in English and in code: three quarters of the pairs in words, a fifth of random ones.
PAIRS = frozenset(
    "th he in er an re on at en nd ti es or te of ed is it al ar st to nt ng se ha as ou io le ve co me de hi ri ro ic"
    " ne ea ra ce li ch ll be ma si om ur ca el ta la ns di fo ho pe ec pr no ct us ac ot il tr ly nc et ut ss so rs un"
    " lo wa ge ie wh ee wi em ad ol rt po we na ul ni ts mo ow pa im mi ai sh ir su id os iv ia am fi ci vi pl ig tu ev"
    " ld ry mp fe bl ab gh ty op wo sa ay ex ke ui ey pi ap ag od ob bo sp".split()
)
COMMON = len(PAIRS) / 26**2
# How many standard deviations above chance make words. STRICT takes one key in a thousand for words, LENIENT hardly any:
# STRICT is for a value of which only its name speaks, LENIENT for one whose shape does too.
STRICT = 3.3
LENIENT = 4.5
ENOUGH = 120  # characters that are looked at

WORD = re.compile("[A-Z]*[a-z]+|[A-Z]+")
HEX = re.compile("[0-9a-fA-F-]+")
LOWER, UPPER, DIGIT, LETTER = map(re.compile, ("[a-z]", "[A-Z]", "[0-9]", "[A-Za-z]"))
SIGN = re.compile(r"[^\w.-]")
PLACEHOLDER = re.compile(
    r"(?i)example|placeholder|redacted|changeme|replace|dummy|sample|xxxx|^your|your[_-]|<|\.\.\.|\*\*\*"
    r"|12345678|abcdefgh|0000000"
)
# Code that stands where a password would: a.b, A_B, $variable, {template}, a URL, a path.
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
    """Whether common pairs of letters are more frequent in `text` than chance has them, by `deviations` and a half."""
    pairs = [word[i : i + 2].lower() for word in WORD.findall(text) for i in range(len(word) - 1)]
    by_chance = len(pairs) * COMMON
    return sum(pair in PAIRS for pair in pairs) > by_chance + deviations * sqrt(by_chance * (1 - COMMON)) + 0.5


def looks_random(text: str, deviations: float) -> bool:
    """Whether `text` has digits, and letters that form no words: a key rather than a name, a path or a version."""
    text = text[:ENOUGH]
    digits, letters = len(DIGIT.findall(text)), len(LETTER.findall(text))
    if not digits or not letters or PLACEHOLDER.search(text) or entropy(text) < 2.8:
        return False
    if HEX.fullmatch(text):
        return digits >= 3 and letters >= 2
    return not reads_like_words(text, deviations)


def looks_like_password(text: str, quoted: bool) -> bool:
    """Whether `text`, the value of something called a password, is one: no code, and not just a word."""
    text = text[:ENOUGH]
    if PLACEHOLDER.search(text) or CODE.fullmatch(text):
        return False
    kinds = sum(kind.search(text) is not None for kind in (LOWER, UPPER, DIGIT, SIGN))
    if DIGIT.search(text) or SIGN.search(text):
        return kinds >= 2
    if quoted and kinds == 2:
        return True
    return (quoted or kinds == 2) and len(text) >= 8 and not reads_like_words(text, STRICT)
