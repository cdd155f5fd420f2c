"""The search: one pass of a generated regex finds where rules may apply; there the rules are matched.

Imports `re`, so it is loaded only where it is needed (see __init__.py).
"""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import lru_cache
from itertools import accumulate

from . import NAME_WITHIN, digit_runs, names
from ._rules import ENDINGS, HEADS, NAMES, RULES, SCANNER, SIGNS, TAILS, WORDS
from .assignments import MARK, AssignedValue, assigned_value, whole_value, word_of, words_of
from .judge import ABOUT, JUDGES, entropy, is_assigned_secret

# A sign and what may stand between it and the value.
OPENING = re.compile(r"""(?:[:=,]|[>|](?:[ \t]{0,8}(?:\n|\\n)[ \t]{0,16})?)(?:[ \t"'`*>=|?]|\\(?=[\\"'`])){0,12}""")
# The name before a sign, and what may stand between them: all backwards.
NAME = re.compile(r"""[ \t"'`\\*|?>:-]{0,12}(?:\](?=["'\\])["'\\]{1,8})?([A-Za-z0-9_ .-]{1,60})(\\?)""")
ALSO_WITHIN = 500  # behind a literal; a rule's `also` is so near where it may begin before its literal
SEPARATOR = "\0"  # joins texts: no rule looks for it, so the scanner finds the same in the joined texts as in each

LONG_VALUE = 200  # in a longer one no other value of the kind is looked for, lest time grows faster than the text

Found = tuple[int, int, int]  # start, end, number of the rule


class CompiledPatterns(dict[str, "re.Pattern[str]"]):
    """Regexes by their source, compiled when first used: most never are."""

    def __missing__(self, source: str) -> re.Pattern[str]:
        self[source] = re.compile(source)
        return self[source]


COMPILED = CompiledPatterns()
WORD_GROUPS = frozenset(COMPILED[SCANNER].groupindex.values())  # set where a word of assignments.py is before a sign


def find(text: str, start: int = 0) -> list[tuple[str, int, int]]:
    """(kind, start, end) of every secret in `text`, in order, without overlaps. The scanner begins at `start`."""
    found: list[Found] = []
    search = None
    hit = COMPILED[SCANNER].search(text, start)
    while hit is not None:
        search = search or Search(text)
        at = hit.start()
        if text[at] in SIGNS:
            found += search.named(at)
            if hit.lastindex is None or hit.lastindex in WORD_GROUPS:
                found += search.assigned(at)
        if hit.lastindex is None or text[at] not in SIGNS:
            found += search.anchored(at)
        hit = COMPILED[SCANNER].search(text, at + 1)  # not behind the hit, which another one may overlap
    for at, number in digit_runs(text):
        search = search or Search(text)
        found += search.matched(at, number)
    return merged(found) if found else []


def suspects(texts: list[str]) -> dict[int, int]:
    """The indexes of the `texts` in which a rule may apply, found in one pass over all of them; with each the place up
    to which the scanner finds nothing."""
    joined = SEPARATOR.join(texts)
    ends = list(accumulate(len(text) + len(SEPARATOR) for text in texts))
    scanner = COMPILED[SCANNER]
    found: dict[int, int] = {}
    end = 0
    while hit := scanner.search(joined, end):
        index = bisect_right(ends, hit.start())
        end = ends[index]
        found[index] = hit.start() - end + len(texts[index]) + len(SEPARATOR)
    for at, _ in digit_runs(joined):
        index = bisect_right(ends, at)
        found.setdefault(index, len(texts[index]))
    return found


def merged(found: list[Found]) -> list[tuple[str, int, int]]:
    """Joins finds that overlap, under the rule that comes first in rules.yaml."""
    result: list[Found] = []
    for start, end, number in sorted(found):
        if result and start < result[-1][1]:
            first, last, other = result[-1]
            result[-1] = (first, max(last, end), min(other, number))
        else:
            result.append((start, end, number))
    return [(RULES[number][1], start, end) for start, end, number in result]


@lru_cache(maxsize=4096)
def rules_of(reversed_name: str) -> tuple[int, ...]:
    """The numbers of the rules for the words of a name, which is written backwards; in the order of rules.yaml."""
    numbers: set[int] = set()
    words = words_of(reversed_name[::-1])
    is_about = bool(words) and words[-1] in ABOUT
    for name in names(reversed_name[::-1]):
        numbers.update(NAMES.get(name, ()))
        for ending, rules in ENDINGS.items():
            if name.endswith(ending):
                numbers.update(rules)
    return tuple(sorted(number for number in numbers if not (is_about and RULES[number][5] == "random")))


class Search:
    """The search in one text; remembers which literals the text holds, where the last find of each rule ends, and up to
    where those were tried that may begin before their literal."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.known = {"": True}
        self.ends: dict[int, int] = {}
        self.tried: dict[int, int] = {}
        self.assigned_end = 0

    def holds(self, literal: str) -> bool:
        """Whether the text holds `literal`; searches for each only once."""
        if literal not in self.known:
            self.known[literal] = literal in self.text
        return self.known[literal]

    def anchored(self, at: int) -> list[Found]:
        """The finds of the rules with a literal at `at`."""
        text = self.text
        found: list[Found] = []
        rows = HEADS.get(text[at : at + 2], ()) + HEADS.get(text[at], ()) + TAILS.get(text[max(0, at - 1) : at + 1], ())
        for literal, offset, number, fold in rows:
            start = at - offset
            if start < 0:
                continue
            if text[start : start + len(literal)].lower() == literal if fold else text.startswith(literal, start):
                found += self.matched(start, number)
        return found

    def matched(self, start: int, number: int) -> list[Found]:
        """The find of a rule whose literal is at `start`, unless that is within its last find."""
        _, _, source, before, also, _, _, _, _ = RULES[number]
        first = max(0, start - before)
        if start < self.ends.get(number, 0) or not self.holds(also):
            return []
        if not before or also in self.text[first : start + ALSO_WITHIN]:
            match = COMPILED[source].match
            if before:
                first = max(first, self.tried.get(number, 0))
                self.tried[number] = start + 1
            for at in range(first, start + 1):
                if (hit := match(self.text, at)) is not None:
                    return self.judged(hit, number)
        return []

    def assigned(self, at: int) -> list[Found]:
        """The find of the value that the sign at `at` gives to a name like API_KEY."""
        value = assigned_value(self.text, at) if at >= self.assigned_end else None
        if value is None:
            return []
        is_secret = is_assigned_secret(self.text, value)
        if is_secret or value.end - value.start > LONG_VALUE:
            self.assigned_end = value.end
        if not is_secret:
            return []
        return [(value.start, value.end, WORDS[value.word])]

    def named(self, at: int) -> list[Found]:
        """The finds, in the value after the sign at `at`, of the rules for the name before it."""
        name = NAME.match(self.text[max(0, at - NAME_WITHIN) : at][::-1])
        if name is None:
            return []
        is_escape = name[2] and name[1][-1] in "nrt"
        numbers = rules_of(name[1][:-1] if is_escape else name[1])
        opening = OPENING.match(self.text, at) if numbers else None
        if opening is None:
            return []
        for number in numbers:
            hit = COMPILED[RULES[number][2]].match(self.text, opening.end())
            if hit is not None and (found := self.judged(hit, number)):
                return found
        return []

    def judged(self, hit: re.Match[str], number: int) -> list[Found]:
        """The secret in a match, unless the other conditions of the rule fail."""
        groups = hit.re.groupindex
        _, _, _, _, _, judge, least, reject, is_whole = RULES[number]
        start, end = hit.span("secret") if "secret" in groups else hit.span()
        quote = self.text[start - 1 : start] if self.text[start - 1 : start] in ('"', "'", "`") else ""
        if is_whole:
            start, end, quote = whole_value(self.text, end)
            if end - start > LONG_VALUE:
                self.ends[number] = end
        secret = self.text[start:end]
        if not secret or secret.startswith(MARK) or (least and entropy(secret) < least):
            return []
        if reject and COMPILED[reject].search(secret):
            return []
        if judge == "flag":
            word, qualifier = word_of(hit["name"])
            if not word:  # its case parts it elsewhere, as in --passWord
                word, qualifier = word_of(hit["name"].lower())
            if not is_assigned_secret(self.text, AssignedValue(word, qualifier, "flag", quote, start, end)):
                return []
        elif judge and not JUDGES[judge](hit["body"] if "body" in groups else secret, bool(quote)):
            return []
        self.ends[number] = end
        return [(start, end, number)]
