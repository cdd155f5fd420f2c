"""The search itself: one pass of a generated regex finds where a rule may apply, then that rule is matched there.

Loaded where the prefilter found something or the text is long: it imports `re`.
"""

from __future__ import annotations

import re
from functools import lru_cache

from ._rules import ANCHORS, ENDINGS, NAMES, RULES, SCANNER, SIGNS, TAILS
from .judge import LENIENT, STRICT, entropy, looks_like_password, looks_random
from .prefilter import names

# What stands between the sign and the value; and, backwards from the sign, what may stand before it and then the name.
OPENING = re.compile(
    r"""(?:[:=,(?]|[>|](?:[ \t]{0,8}(?:\n|\\n)[ \t]{0,16})?)(?:[ \t"'`*>=|?]|\\(?=[\\"'`])){0,8}"""
)
NAME = re.compile(r"""[ \t"'`\\*|?>:-]{0,8}(?:\](?=["'\\])["'\\]{1,4})?([A-Za-z0-9_ .-]{1,60})""")
MARK = "[redacted"

Found = tuple[int, int, int]


class Patterns(dict[str, "re.Pattern[str]"]):
    """Regex -> that regex compiled, when it is first needed: most never are."""

    def __missing__(self, source: str) -> re.Pattern[str]:
        self[source] = re.compile(source)
        return self[source]


COMPILED = Patterns()


def find(text: str) -> list[tuple[str, int, int]]:
    """(kind, start, end) of every secret in `text`, in order, none overlapping another."""
    found: list[Found] = []
    for hit in COMPILED[SCANNER].finditer(text):
        at = hit.start()
        if hit.lastindex is None or text[at] in SIGNS:
            found += assigned(text, at)
        if hit.lastindex is None or text[at] not in SIGNS:
            found += anchored(text, at)
    return merged(found)


def anchored(text: str, at: int) -> list[Found]:
    """What the rules find whose literals the scanner looks for at `at`."""
    found: list[Found] = []
    for literal, offset, number, fold in (*TAILS.get(text[max(0, at - 2) : at + 1], ()), *ANCHORS.get(text[at], ())):
        start = at - offset
        there = text[start : start + len(literal)] if start >= 0 else ""
        if (there.lower() if fold else there) == literal:
            found += matched(text, start, number)
    return found


def matched(text: str, start: int, number: int) -> list[Found]:
    """What the rule finds where its literal stands."""
    _, _, source, before, _, _, _, _ = RULES[number]
    match = COMPILED[source].match
    for at in range(max(0, start - before), start + 1):
        if (hit := match(text, at)) is not None:
            return judged(text, hit, number)
    return []


def assigned(text: str, at: int) -> list[Found]:
    """What the rules for the names before the sign at `at` find in the value after it."""
    numbers = named(text[max(0, at - 64) : at]) if text[at] in SIGNS else ()
    opening = OPENING.match(text, at) if numbers else None
    if opening is None:
        return []
    for number in numbers:
        hit = COMPILED[RULES[number][2]].match(text, opening.end())
        if hit is not None and (found := judged(text, hit, number)):
            return found
    return []


def named(before: str) -> tuple[int, ...]:
    """The numbers of the rules for the words of the name at the end of `before`, most specific first."""
    name = NAME.match(before[::-1])
    return called(name[1]) if name is not None else ()


@lru_cache(maxsize=4096)
def called(reversed_name: str) -> tuple[int, ...]:
    """The same for a name written backwards."""
    numbers: set[int] = set()
    for name in names(reversed_name[::-1]):
        numbers.update(NAMES.get(name, ()))
        for ending, rules in ENDINGS.items():
            if name.endswith(ending):
                numbers.update(rules)
    return tuple(sorted(numbers))


def judged(text: str, hit: re.Match[str], number: int) -> list[Found]:
    """The secret of the match, if what the rule demands beyond its regex holds."""
    groups = hit.re.groupindex
    start, end = hit.span("secret") if "secret" in groups else hit.span()
    secret = text[start:end]
    _, _, _, _, also, judge, least, reject = RULES[number]
    if secret.startswith(MARK) or (also and also not in text):
        return []
    if (reject and COMPILED[reject].search(secret)) or (least and entropy(secret) < least):
        return []
    if judge in ("random", "shape"):
        body = hit["body"] if "body" in groups else secret
        return [(start, end, number)] if looks_random(body, STRICT if judge == "random" else LENIENT) else []
    if judge == "password" and not looks_like_password(secret, text[start - 1 : start] in tuple("\"'`")):
        return []
    return [(start, end, number)]


def merged(found: list[Found]) -> list[tuple[str, int, int]]:
    """Overlapping finds as one, called by the rule that stands first in rules.yaml."""
    result: list[Found] = []
    for start, end, number in sorted(found):
        if result and start < result[-1][1]:
            first, last, other = result[-1]
            result[-1] = (first, max(last, end), min(other, number))
        else:
            result.append((start, end, number))
    return [(RULES[number][1], start, end) for start, end, number in result]
