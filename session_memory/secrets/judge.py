"""Whether a string that stands where a secret would is one, or a name, a path, a version, a placeholder. Pure."""

from __future__ import annotations

import re
from math import log2, sqrt

# The commonest pairs of letters in English and in code: about three quarters of the pairs in words, one in five of random letters.
PAIRS = frozenset(
    "th he in er an re on at en nd ti es or te of ed is it al ar st to nt ng se ha as ou io le ve co me de hi ri ro ic ne"
    " ea ra ce li ch ll be ma si om ur ca el ta la ns di fo ho pe ec pr no ct us ac ot il tr ly nc et ut ss so rs un lo wa"
    " ge ie wh ee wi em ad ol rt po we na ul ni ts mo ow pa im mi ai sh ir su id os iv ia am fi ci vi pl ig tu ev ld ry mp"
    " fe bl ab gh ty op wo sa ay ex ke ui ui ey pi ap ag od ob bo sp".split()
)
COMMON = len(PAIRS) / 26**2
# How unlikely a key is taken for words: one in a thousand where only a name speaks for it, next to never where its shape does.
STRICT = 3.3
LENIENT = 4.5
LETTERS = re.compile("[A-Z]*[a-z]+|[A-Z]+")
HEX = re.compile("[0-9a-fA-F-]+")
PLACEHOLDER = re.compile(
    r"(?i)example|placeholder|redacted|changeme|replace|dummy|sample|xxxx|^your|your[_-]|<|\.\.\.|12345678|abcdefgh|0000000|\*\*\*"
)
CODE = re.compile(r"[A-Za-z_$][\w$]*(?:(?:\.|->|::)[A-Za-z_$][\w$]*)+[!?]?|[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+|[$%{<@].*|https?://.*|/.*|.*[$#{]\{.*")


def entropy(text: str) -> float:
    """Shannon entropy in bits a character."""
    size = len(text)
    return -sum(n / size * log2(n / size) for n in map(text.count, set(text)))


def reads_like_words(text: str, deviations: float) -> bool:
    """Whether the common pairs of letters in `text` are that many standard deviations above what chance gives a key."""
    pairs = [word[i : i + 2].lower() for word in LETTERS.findall(text) for i in range(len(word) - 1)]
    by_chance = len(pairs) * COMMON
    return sum(pair in PAIRS for pair in pairs) > by_chance + deviations * sqrt(by_chance * (1 - COMMON)) + 0.5


def looks_random(text: str, deviations: float = STRICT) -> bool:
    """Whether `text` has digits and letters that form no words: a key rather than a name, a path or a version."""
    digits = sum(c.isdigit() for c in text)
    letters = sum(c.isalpha() for c in text)
    if not digits or not letters or PLACEHOLDER.search(text) or entropy(text) < 2.8:
        return False
    if HEX.fullmatch(text):
        return digits >= 3 and letters >= 2
    return not reads_like_words(text, deviations)


def looks_like_password(text: str, quoted: bool) -> bool:
    """Whether `text`, the value of something called a password, is one: letters beside digits or signs, and no code."""
    if PLACEHOLDER.search(text) or CODE.fullmatch(text):
        return False
    digits = any(c.isdigit() for c in text)
    signs = any(not c.isalnum() and c not in "_-." for c in text)
    lower, upper = any(c.islower() for c in text), any(c.isupper() for c in text)
    if digits or signs:
        return lower + upper + digits + signs >= 2
    if quoted and lower and upper:
        return True
    return (quoted or lower and upper) and len(text) >= 8 and not reads_like_words(text, STRICT)
