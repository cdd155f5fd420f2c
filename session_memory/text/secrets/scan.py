"""The search: one pass of a generated regex finds where rules may apply; there the rules are matched.

Imports `re`, so it is loaded only where it is needed (see __init__.py).
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
SEPARATOR = "\0"  # joins texts: no rule looks for it, so the scanner finds the same in the joined texts as in each

Found = tuple[int, int, int]  # start, end, number of the rule


class CompiledPatterns(dict[str, "re.Pattern[str]"]):
    """Regexes by their source, compiled when first used: most never are."""

    def __missing__(self, source: str) -> re.Pattern[str]:
        self[source] = re.compile(source)
        return self[source]


COMPILED = CompiledPatterns()


def find(text: str) -> list[tuple[str, int, int]]:
    """(kind, start, end) of every secret in `text`, in order, without overlaps."""
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
    """The indexes of the `texts` in which a rule may apply, found in one pass over all of them."""
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
    for name in names(reversed_name[::-1]):
        numbers.update(NAMES.get(name, ()))
        for ending, rules in ENDINGS.items():
            if name.endswith(ending):
                numbers.update(rules)
    return tuple(sorted(numbers))


class Search:
    """The search in one text; remembers which literals the text holds, and where the last find of each rule ends."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.known = {"": True}
        self.ends: dict[int, int] = {}

    def holds(self, literal: str) -> bool:
        """Whether the text holds `literal`; searches for each only once."""
        if literal not in self.known:
            self.known[literal] = literal in self.text
        return self.known[literal]

    def anchored(self, at: int) -> list[Found]:
        """The finds of the rules with a literal at `at`."""
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
        """The find of a rule whose literal is at `start`, unless that is within its last find."""
        _, _, source, before, also, _, _, _ = RULES[number]
        if start >= self.ends.get(number, 0) and self.holds(also):
            match = COMPILED[source].match
            for at in range(max(0, start - before), start + 1):
                if (hit := match(self.text, at)) is not None:
                    return self.judged(hit, number)
        return []

    def assigned(self, at: int) -> list[Found]:
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
