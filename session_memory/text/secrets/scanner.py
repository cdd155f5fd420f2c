"""The regex that stops wherever a rule may apply, made of the literals that the rules look for. For build.py alone.

What `re` does fast decides its form. Every branch begins with one character, a stop: only so does `re` look for the
next of these quickly. Behind it, `re` rules out alternatives by the next character at nearly no cost, where they begin
with a character or a class. To enter one takes several times as long, and so does each lookbehind.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable

from . import BEHIND_WORDS
from .assignments import MOST_BETWEEN

# An assignment: a sign, what may open the value, and ten characters of it, with a digit among the first 65.
# No line of dashes, URL or time of day. After a comma, the value must be quoted; and no rule is for a name before `==`
# that ends at the second `=`, as there are so many in rulers.
OTHERS = "[A-Za-z_.+/~%=:|-]"
VALUE = (
    rf"[0-9A-Za-z_.+/~%-][0-9A-Za-z_.+/~%=:|-]{{9}}(?<!(?:---|//[\s\S]|[0-9]{{2}}:)[\s\S]{{7}})"
    rf"(?:(?<!{OTHERS}{{10}})|{OTHERS}{{0,54}}[0-9])"
)
OPENING = r"[ \t\"'`*>=|\\]"
OPENING_BELOW = r"[ \t\n\"'`*>=|\\]"
SIGNS = {
    ":": f"(?:{VALUE}|{OPENING}(?:{VALUE}|{OPENING}{{1,11}}{VALUE}))",
    "=": f"(?<!==)(?:{VALUE}|{OPENING}(?:{VALUE}|{OPENING}{{1,11}}{VALUE}))",
    **dict.fromkeys(">|", f"(?:{VALUE}|{OPENING_BELOW}{OPENING_BELOW}{{0,23}}{VALUE})"),
    ",": rf"[ \t?]{{0,3}}\\{{0,7}}[\"'`]{VALUE}",
}
# What the words of assignments.py end in; the signs that they stand before; and a character that may be between them.
WORD_ENDINGS = ("pass", "word", "sswd", "wort", "rase", "cret", "oken", "key")
ASSIGNS = ":=>"
AFTER_WORD = f"[{re.escape(BEHIND_WORDS)}]"
# A literal that ends in one of these, with a run of characters behind it, is looked for where it ends.
TAILS = "_-.~"
SHORTEST_WITH_TAIL = 3
RUN = "[0-9A-Za-z_+/=-]{10}"
# How often a character stands in a thousand of ordinary transcript text. Any other: about twice.
FREQUENCY = {
    **{" ": 123, "e": 68, "t": 50, "s": 46, "o": 40, "n": 37, "i": 36, "a": 36, "r": 35, "c": 25, "l": 23},
    **{"d": 23, "m": 20, "p": 17, "u": 16, "g": 15, "/": 14, ".": 14, "h": 14, "-": 13, "0": 11, "f": 11},
    **{"1": 10, "2": 10, "b": 8, ":": 8, "4": 8, "y": 7, "k": 7, "5": 7, "v": 7, "3": 6, "w": 6, '"': 6},
    **{"x": 6, "=": 6, "(": 6, "C": 6, "9": 5, "8": 5, "T": 5, "6": 5, "7": 5, "A": 5, ",": 5, "S": 5},
    **{"I": 4, "j": 4, "E": 4, "M": 4, "P": 4, "R": 4},
}
FEW = 2  # lookbehinds, before which no other one is worth its time

Word = tuple[str, bool, str]  # a literal, whether its case is ignored, a regex of what must follow it
Around = tuple[tuple[str, ...], str]  # around a stop: a regex for each character before it, one for all behind it


def stops(words: set[Word]) -> dict[Word, int]:
    """Where in each word the scanner stops: at characters that are together as rare as possible."""
    found = {word: len(word[0]) - 1 for word in words if has_tail(word)}
    others = words - set(found)
    at = rarest({(literal, fold) for literal, fold, _ in others})
    return {**found, **{(literal, fold, ahead): at[literal, fold] for literal, fold, ahead in others}}


def has_tail(word: Word) -> bool:
    literal, fold, ahead = word
    return ahead == RUN and not fold and literal[-1] in TAILS and len(literal) >= SHORTEST_WITH_TAIL


def rarest(words: set[tuple[str, bool]]) -> dict[tuple[str, bool], int]:
    """Where in each word one of the characters stands that are chosen for all. Those of SIGNS and TAILS are anyhow."""
    folds = {c: {fold for word, fold in words if c in word} for word, _ in words for c in word}
    free = {*SIGNS, *TAILS}

    def price(chosen: set[str]) -> float:
        return sum(max(cost(c, fold) for fold in folds[c]) for c in chosen - free)

    def cover(chosen: set[str]) -> set[str]:
        while left := [word for word in words if not set(word[0]) & chosen]:
            offers = Counter((c, fold) for word, fold in left for c in set(word) - {" "})
            chosen = {*chosen, min(offers, key=lambda offer: (cost(*offer) / offers[offer], offer))[0]}
        return chosen

    chosen = cover(free)
    for character in sorted(chosen - free):
        chosen = min(chosen, cover(chosen - {character}), key=price)
    at: dict[tuple[str, bool], int] = {}
    for word, fold in words:
        at[word, fold] = word.index(min((cost(c, fold), c) for c in set(word) & chosen)[1])
    return at


def cost(character: str, fold: bool = False) -> float:
    """How often the scanner stops at a character, of a thousand characters; with its other case, if `fold`."""
    both = {character.lower(), character.upper()} if fold else {character}
    return sum(FREQUENCY.get(c, 2) for c in both)


def scanner(at: dict[Word, int]) -> str:
    """The regex for every character where a rule may apply; `at` is what `stops` returns. At a sign its group is set: a
    named one behind a word of assignments.py, another before a value, none where a literal stands there, too."""
    around: dict[str, set[Around]] = {}
    for (literal, fold, ahead), offset in at.items():
        escape: Callable[[str], str] = in_any_case if fold else re.escape
        before = tuple(map(escape, literal[:offset]))
        after = escape(literal[offset + 1 :]) + ahead
        for stop in cases(literal[offset], fold):
            around.setdefault(stop, set()).add((before, after))
    branches = []
    for stop in sorted({*around, *SIGNS, *TAILS}, key=lambda c: (-cost(c), c)):
        alternatives = behind(stop, around.get(stop, set()))
        if stop in ASSIGNS:
            alternatives.append(f"{behind_word(stop)}(?P<word_{ord(stop)}>)")
        if stop in SIGNS:
            alternatives.append(f"{SIGNS[stop]}()")
        branches.append(re.escape(stop) + any_of(alternatives))
    text = f"(?a){'|'.join(branches)}"
    re.compile(text)
    return text


def behind(stop: str, around: set[Around]) -> list[str]:
    """The alternatives behind a stop. Each begins with what its literals have there, as far as that is one character,
    and then looks back at what they have before the stop."""
    same: dict[str, set[Around]] = {}
    for before, after in around:
        first, rest = parted(after)
        same.setdefault(first, set()).add((before, rest))
    end = re.escape(stop)
    return [first + any_of(conditions(same[first], end + first)) for first in sorted(same)]


def conditions(around: set[Around], end: str) -> list[str]:
    """The alternatives behind `end`, which is a stop and perhaps the character behind it."""
    found = sorted(rest for before, rest in around if not before)
    if "" in found:
        return [""]
    same: dict[tuple[int, str], list[tuple[str, ...]]] = {}
    for before, rest in sorted(around):
        if before:
            same.setdefault((len(before), rest), []).append(before)
    looks = [f"(?<={joined(befores, end)}){rest}" for (_, rest), befores in same.items()]
    if sum(map(len, same.values())) > FEW:
        last = last_two([before for befores in same.values() for before in befores])
        rests = {rest for _, rest in same}
        common = f"(?={rests.pop()})" if len(rests) == 1 and rests != {""} else ""
        looks = [f"(?<={last}{end}){common}{any_of(looks)}"]
    return found + looks


def joined(befores: list[tuple[str, ...]], end: str) -> str:
    return "|".join("".join(before) + end for before in befores)


def last_two(befores: list[tuple[str, ...]]) -> str:
    """A regex for the last two characters of any of these, or for the last one, where one has no more."""
    if min(map(len, befores)) == 1:
        return in_class(before[-1] for before in befores)
    firsts: dict[str, list[str]] = {}
    for first in sorted({before[-2] for before in befores}):
        lasts = in_class(before[-1] for before in befores if before[-2] == first)
        firsts.setdefault(lasts, []).append(first)
    return any_of([in_class(some) + lasts for lasts, some in firsts.items()])


def any_of(alternatives: list[str]) -> str:
    return alternatives[0] if len(alternatives) == 1 else f"(?:{'|'.join(alternatives)})"


def parted(after: str) -> tuple[str, str]:
    """The first character or class of a regex and the rest; '' and all of it where it begins with anything else."""
    found = re.match(r"(\\.|\[(?:\\.|[^\]\\])+\]|[^(\[\\])(?:\{(\d+)\}|(?![?{*+]))", after)
    if found is None:
        return "", after
    times = f"{found[1]}{{{int(found[2]) - 1}}}" if found[2] else ""
    return found[1], times + after[found.end() :]


def behind_word(sign: str) -> str:
    """A regex for the place behind a sign that a word of assignments.py stands before. It looks first at the last two
    characters before the sign, each of which ends a word or may be behind one."""
    *_, first, last = (in_any_case_of(same) for same in zip(*(ending[-3:] for ending in WORD_ENDINGS)))
    after_word = in_class([last, AFTER_WORD])
    return f"(?<=(?:{first}{last}|{after_word}{AFTER_WORD}){sign})(?:{_behind_word(sign, 0)})"


def _behind_word(sign: str, count: int) -> str:
    """The same with at least `count` characters between them. It looks further back only behind what may be between
    them, and first for the word's last letters, each by itself, since that fails soonest."""
    between = AFTER_WORD * count + sign
    letters = "".join(in_any_case_of(same) for same in zip(*(ending[-3:] for ending in WORD_ENDINGS)))
    longest = max(map(len, WORD_ENDINGS))
    word = "|".join(r"[\s\S]" * (longest - len(ending)) + in_any_case(ending) for ending in WORD_ENDINGS)
    there = f"(?<={letters}{between})(?<=(?:{word}){between})"
    if count == MOST_BETWEEN:
        return there
    blanks = rf"(?<=[ \t]{{2}}{sign})|" if count == 1 else ""
    return f"{there}|(?<={AFTER_WORD}{between})(?:{blanks}{_behind_word(sign, count + 1)})"


def cases(text: str, fold: bool) -> set[str]:
    """`text`, and with `fold` also in its other cases, each character by itself."""
    found = {""}
    for character in text:
        both = {character.lower(), character.upper()} if fold else {character}
        found = {begin + one for begin in found for one in both}
    return found


def in_any_case(text: str) -> str:
    """A regex for `text` in any case, without the flag, which would slow down the whole scanner."""
    return "".join(f"[{c.lower()}{c.upper()}]" if c.lower() != c.upper() else re.escape(c) for c in text)


def in_any_case_of(letters: Iterable[str]) -> str:
    """A class of `letters` in any case."""
    return in_class({c for letter in letters for c in letter.lower() + letter.upper()})


def in_class(characters: Iterable[str]) -> str:
    """A class of regexes that are each one character or a class."""
    return f"[{''.join(sorted({one[1:-1] if one[0] == '[' else one for one in characters}))}]"
