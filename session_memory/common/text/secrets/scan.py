"""The second look: applies the rule's regex and the judge at each place of the first look.

This is loaded only if there is a place to check (see redaction.py). From sources it imports `re`;
an install has the regexes compiled in PREBUILT.
"""

from __future__ import annotations

from ._judge import ABOUT, JUDGES, is_assigned_secret
from ._regexes import compiled, pattern, prebuilt_regexes, use_prebuilt
from .assignments import MARK, AssignedValue, whole_value, words_of
from .rules import (
    FOREIGN,
    FOREIGN_WORDS,
    LONG_VALUE,
    NAME_WITHIN,
    PASSWORDS,
    ROWS,
    SecretRule,
    rule,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Callable

    from ._regexes import Prebuilt
    from .redaction import Spots

CLASSES = {
    "<hex>": "[0-9a-fA-F]",
    "<b36>": "[0-9a-z]",
    "<B36>": "[0-9A-Z]",
    "<b62>": "[0-9A-Za-z]",
    "<b64>": "[0-9A-Za-z+/]",
    "<b64u>": r"[\w+/-]",
    "<url>": r"[\w-]",
    "<uuid>": "[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}",
    # The beginning of a word; or the position after the n of a JSON string's \n, a URL's percent
    # escape, or a terminal's colour.
    "<begin>": r"(?:(?<![A-Za-z0-9])|(?<=\\[bfnrt])|(?<=%[0-9A-Fa-f]{2})|(?<=[0-9;\[]m))",
    "<token-end>": r"(?<!\.)(?![A-Za-z0-9])",
    "<value-end>": r"(?![\w+/-])",
    # Between two lines of base64: white space, quotes, a string's escapes, a join, a listing's line
    # number.
    "<gap>": r"""(?:[\s"'`,|>→]|\\+[nrt"']|\+(?=[\s"'])|[0-9]{1,6}(?:[→|: \t]|\\+u2192))""",
    # White space within a class, also beyond ASCII; quotation marks within a class, as one, and as
    # one that may be escaped.
    "<blank>": r"\s\x85\xa0\u2000-\u200a\u2028\u2029\u202f\u205f\u3000",
    "<marks>": "\"'`",
    "<mark>": "[\"'`]",
    "<quote>": r"""(?:\\{0,7}["'`])""",
    # Between the arguments of a command: blanks, or the end of a line that a backslash continues;
    # and some arguments.
    "<space>": r"(?:[ \t]{0,4}\\{1,8}(?:\r?\n|(?<=\\\\)n)[ \t]{0,16}|[ \t]{1,4})",
    "<args>": r"(?:[^\n|;&\\]|\\{1,8}[\nn\"']){0,160}?",
    "<value>": "(?P<value>)",
    "<passwords>": "|".join([PASSWORDS, *sum(FOREIGN_WORDS.values(), ())]),
    "<foreign>": "|".join([FOREIGN, *sum(FOREIGN_WORDS.values(), ())]),
}
# A sign and the text allowed between it and a value of a named rule, which has a digit among its
# first 65 characters.
NAMED_SIGN = pattern(
    r"""(?a)[:=>|,][ \t"'`*>=|?\\]{0,12}(?:(?<=[>|])[ \t]{0,8}(?:\n|\\n)[ \t]{0,16})?"""
    r"(?=(?P<value>[\w.+/~%-])[\w.+/~%=:|-]{9})(?=[A-Za-z_.+/~%=:|-]{0,64}[0-9])"
)
# The name before a sign, and the text allowed between them, all backwards.
NAME = pattern(
    r"""[ \t"'`\\*|?>:-]{0,12}(?:\](?=["'\\])["'\\]{1,8})?([A-Za-z0-9_ .-]{1,60})(\\?)"""
)
WORDS_OF_NAME = pattern(r"[A-Z]+(?![a-z])[0-9]*|[A-Z]?[a-z]+[0-9]*")
KINDS = {
    rule(number).kind: number for number, row in enumerate(ROWS) if row.startswith(b"assigned\t")
}
# others are called as the word
KIND_OF_WORD = {"pass": "password", "seed": "secret", "key": "api key"}
MOST_NAMES = 4096  # that are remembered
_named: list[dict[str, list[int]]] = []  # the result of `_named_rules`, once it is needed
_rules_by_name: dict[str, tuple[int, ...]] = {}

Found = tuple[int, int, int]  # start, end, number of the rule

_compiled_rules: dict[int, re.Pattern[str]] = {}


def _compiled(number: int) -> re.Pattern[str]:
    """Return the compiled regex of a rule.

    It is compiled on first use, because most never are."""
    if number not in _compiled_rules:
        _compiled_rules[number] = compiled(_regex_of(number))
    return _compiled_rules[number]


def _regex_of(number: int) -> str:
    """Return the regex of a rule, with its classes written out."""
    row = rule(number)
    regex = row.pattern
    if row.form == "token":
        prefixes = "|".join(map(_escaped, row.keywords))
        regex = f"<begin>(?:{prefixes})(?P<body>{regex})<token-end>"
    elif row.form == "named":
        regex = f"(?:{regex})<value-end>"
    for name, characters in CLASSES.items():
        regex = regex.replace(name, characters)
    return f"(?a){regex}"


def _escaped(keyword: str) -> str:
    """Return a regex that matches a keyword."""
    return "".join(
        [letter if letter.isalnum() or letter == "_" else f"\\{letter}" for letter in keyword]
    )


def _prebuilt() -> Prebuilt:
    """Return all regexes as this interpreter compiles them."""
    return prebuilt_regexes([_regex_of(number) for number in range(len(ROWS))])


PREBUILT: Prebuilt | Callable[[], Prebuilt] = _prebuilt  # its result in an install
if not callable(PREBUILT):
    use_prebuilt(PREBUILT)


def find(text: str, spots: Spots) -> list[tuple[str, int, int]]:
    """Return (kind, start, end) of every secret at these places, in order, without overlaps."""
    search = Search(text)
    finds: list[Found] = []
    for number, at in sorted(spots.rules, key=lambda spot: spot[1]):
        finds += search.matched(rule(number), at)
    for value in spots.values:
        finds += search.assigned(value)
    for start, end in spots.named:
        for hit in NAMED_SIGN.finditer(text, start, end):
            finds += search.named(hit)
    return _merged(finds)


def _merged(finds: list[Found]) -> list[tuple[str, int, int]]:
    """Join finds that overlap, under the rule that stands first."""
    result: list[Found] = []
    for start, end, number in sorted(finds):
        if result and start < result[-1][1]:
            first, last, other = result[-1]
            result[-1] = (first, max(last, end), min(other, number))
        else:
            result.append((start, end, number))
    return [(rule(number).kind, start, end) for start, end, number in result]


def _named_rules() -> tuple[dict[str, list[int]], dict[str, list[int]]]:
    """Return the numbers of the rules for a word of a name, and for the word's ending."""
    whole: dict[str, list[int]] = {}
    endings: dict[str, list[int]] = {}
    for number, row in enumerate(ROWS):
        for name in rule(number).keywords if row.startswith(b"named\t") else ():
            (endings if name[0] == "*" else whole).setdefault(name.lstrip("*"), []).append(number)
    return whole, endings


def _rules_of(name: str) -> tuple[int, ...]:
    """Return the numbers of the rules for the words of a name, in order."""
    if name in _rules_by_name:
        return _rules_by_name[name]
    if not _named:
        _named.extend(_named_rules())
    whole, endings = _named
    numbers: set[int] = set()
    is_about = bool(words := words_of(name)) and words[-1] in ABOUT
    for word in _names(name):
        numbers.update(whole.get(word, ()))
        for ending, rules in endings.items():
            if word.endswith(ending):
                numbers.update(rules)
    if len(_rules_by_name) > MOST_NAMES:
        _rules_by_name.clear()
    _rules_by_name[name] = tuple(
        sorted(number for number in numbers if not (is_about and rule(number).judge == "random"))
    )
    return _rules_by_name[name]


def _names(text: str) -> list[str]:
    """Return the names by which rules may call an identifier.

    They are its words in lower case, and pairs of words joined. `newRelicKey2` gives new, relic,
    key2, newrelic, relickey2, and without digits key, relickey."""
    words = [word.lower() for word in WORDS_OF_NAME.findall(text)]
    words += [*map(str.__add__, words, words[1:])]
    return words + [word.rstrip("0123456789") for word in words if word[-1].isdigit()]


class Search:
    """The search in one text.

    It remembers the end of the last find of each rule, and how far places were tried whose find may
    begin before the keyword."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.ends: dict[int, int] = {}
        self.tried: dict[int, int] = {}
        self.assigned_end = 0

    def matched(self, rule: SecretRule, start: int) -> list[Found]:
        """Return the find of a rule with its keyword at `start`, unless in the last find."""
        if start < self.ends.get(rule.number, 0):
            return []
        match = _compiled(rule.number).match
        first = max(0, start - rule.before, self.tried.get(rule.number, 0) if rule.before else 0)
        self.tried[rule.number] = start + 1
        for at in range(first, start + 1):
            if (hit := match(self.text, at)) is not None:
                return self.judged(hit, rule)
        return []

    def named(self, hit: re.Match[str]) -> list[Found]:
        """Return a find, by the rules for the name before a sign, in the value after it."""
        name = NAME.match(self.text[max(0, hit.start() - NAME_WITHIN) : hit.start()][::-1])
        if name is None:
            return []
        is_escape = name[2] and name[1][-1] in "nrt"
        for number in _rules_of((name[1][:-1] if is_escape else name[1])[::-1]):
            value = _compiled(number).match(self.text, hit.start("value"))
            if value is not None and (finds := self.judged(value, rule(number))):
                return finds
        return []

    def judged(self, hit: re.Match[str], rule: SecretRule) -> list[Found]:
        """Return the secret in a match, unless the rule's judge rejects it."""
        named = hit.re.groupindex
        start, end = hit.span("secret") if "secret" in named else hit.span()
        quote = (
            self.text[start - 1 : start] if self.text[start - 1 : start] in ('"', "'", "`") else ""
        )
        if "value" in named:
            start, end, quote = whole_value(self.text, end)
            if end - start > LONG_VALUE:
                self.ends[rule.number] = end
        secret = self.text[start:end]
        if not secret or secret.startswith(MARK):
            return []
        if rule.judge and not JUDGES[rule.judge](
            hit["body"] if "body" in named else secret, bool(quote)
        ):
            return []
        self.ends[rule.number] = end
        return [(start, end, rule.number)]

    def assigned(self, value: AssignedValue) -> list[Found]:
        """Return the find for the value of a name like API_KEY, unless in an earlier one."""
        if value.start < self.assigned_end:
            return []
        is_secret = is_assigned_secret(self.text, value)
        if is_secret or value.end - value.start > LONG_VALUE:
            self.assigned_end = value.end
        return (
            [(value.start, value.end, KINDS[KIND_OF_WORD.get(value.word, value.word)])]
            if is_secret
            else []
        )
