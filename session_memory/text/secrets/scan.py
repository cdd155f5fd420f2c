"""The search itself: one pass of a generated regex finds where rules may apply, and there they are matched.

Loaded where a first look found something or the text is long: it imports `re`.
"""

from __future__ import annotations

import re
from functools import lru_cache

from . import names
from ._rules import ANCHORS, ENDINGS, NAMES, RULES, SCANNER, SIGNS, TAIL_LENGTHS, TAILS
from .judge import LENIENT, STRICT, entropy, looks_like_password, looks_random

# A sign and what may stand between it and the value.
OPENING = re.compile(r"""(?:[:=,]|[>|](?:[ \t]{0,8}(?:\n|\\n)[ \t]{0,16})?)(?:[ \t"'`*>=|?]|\\(?=[\\"'`])){0,12}""")
# The name before a sign, and what may stand between them: all backwards.
NAME = re.compile(r"""[ \t"'`\\*|?>:-]{0,12}(?:\](?=["'\\])["'\\]{1,8})?([A-Za-z0-9_ .-]{1,60})(\\?)""")
NAME_WITHIN = 64
MARK = "[redacted"
SEPARATOR = "\0"  # no rule looks for it: what the scanner finds in a text it finds there too where texts are joined

Found = tuple[int, int, int]  # start, end, number of the rule


class CompiledPatterns(dict[str, "re.Pattern[str]"]):
    """Regex -> that regex compiled, when it is first needed: most never are."""

    def __missing__(self, source: str) -> re.Pattern[str]:
        self[source] = re.compile(source)
        return self[source]


COMPILED = CompiledPatterns()


def find(text: str) -> list[tuple[str, int, int]]:
    """(kind, start, end) of every secret in `text`, in order, none overlapping another."""
    search = Search(text)
    found: list[Found] = []
    for hit in COMPILED[SCANNER].finditer(text):
        at = hit.start()
        if text[at] in SIGNS:
            found += search.assigned(at)
        if hit.lastindex is None or text[at] not in SIGNS:
            found += search.anchored(at)
    return merged(found)


def suspects(texts: list[str]) -> list[int]:
    """The indexes of those of `texts` in which a rule may apply, after one look through all of them."""
    joined = SEPARATOR.join(texts)
    scanner = COMPILED[SCANNER]
    indexes: list[int] = []
    index, end = -1, 0
    while hit := scanner.search(joined, end):
        while hit.start() >= end:
            index += 1
            end += len(texts[index]) + len(SEPARATOR)
        indexes.append(index)
    return indexes


def merged(found: list[Found]) -> list[tuple[str, int, int]]:
    """What overlaps as one, called by the rule that stands first in rules.yaml."""
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
    """The numbers of the rules for the words of a name written backwards, the most specific first."""
    numbers: set[int] = set()
    for name in names(reversed_name[::-1]):
        numbers.update(NAMES.get(name, ()))
        for ending, rules in ENDINGS.items():
            if name.endswith(ending):
                numbers.update(rules)
    return tuple(sorted(numbers))


class Search:
    """One text, and what is known of it: which literals it holds, and where the last find of a rule ends."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.known = {"": True}
        self.ends: dict[int, int] = {}

    def holds(self, literal: str) -> bool:
        """Whether `literal` stands anywhere in the text, which is looked through once."""
        if literal not in self.known:
            self.known[literal] = literal in self.text
        return self.known[literal]

    def anchored(self, at: int) -> list[Found]:
        """What the rules find whose literals the scanner looks for at `at`."""
        text = self.text
        found: list[Found] = []
        rows = ANCHORS.get(text[at], ())
        for length in TAIL_LENGTHS:
            rows += TAILS.get(text[max(0, at + 1 - length) : at + 1], ())
        for literal, offset, number, fold in rows:
            start = at - offset
            there = text[start : start + len(literal)] if start >= 0 else ""
            if (there.lower() if fold else there) == literal:
                found += self.matched(start, number)
        return found

    def matched(self, start: int, number: int) -> list[Found]:
        """What the rule finds where its literal stands, unless that is within what it found before."""
        _, _, source, before, also, _, _, _ = RULES[number]
        if start >= self.ends.get(number, 0) and self.holds(also):
            match = COMPILED[source].match
            for at in range(max(0, start - before), start + 1):
                if (hit := match(self.text, at)) is not None:
                    return self.judged(hit, number)
        return []

    def assigned(self, at: int) -> list[Found]:
        """What the rules for the name before the sign at `at` find in the value after it."""
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
        """The secret in the match, if what the rule demands beyond its regex holds."""
        groups = hit.re.groupindex
        start, end = hit.span("secret") if "secret" in groups else hit.span()
        secret = self.text[start:end]
        _, _, _, _, _, judge, least, reject = RULES[number]
        if secret.startswith(MARK) or (least and entropy(secret) < least):
            return []
        if reject and COMPILED[reject].search(secret):
            return []
        body = hit["body"] if "body" in groups else secret
        if judge == "random" and not looks_random(body, STRICT):
            return []
        if judge == "shape" and not looks_random(body, LENIENT):
            return []
        quoted = self.text[start - 1 : start] in ('"', "'", "`")
        if judge == "password" and not looks_like_password(secret, quoted):
            return []
        self.ends[number] = end
        return [(start, end, number)]
