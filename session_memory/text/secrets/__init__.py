"""Finding secrets in text and taking them out: `find_secrets`, `redact`. rules.yaml says what is one.

Prompts wait for this, so a short text is first checked with plain string methods, `may_hold_secret`. Only where that
returns True, or the text is long, the search is loaded (scan.py), and with it `re`. The check is true for every text in
which the search finds something; tests/text/test_secrets.py holds them together.
"""

from __future__ import annotations

import sys

from ._literals import DIGIT_RUNS, ENDINGS, LITERALS, NAMES, PREFIXES, SHORTEST_PREFIX, WORD_ENDINGS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

SHORT_CHARACTERS = 4096
SCAN = "session_memory.text.secrets.scan"

ALPHANUMERIC = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
RUN_CHARACTERS = ALPHANUMERIC + "_+/=-"
RUN_LENGTH = 10
SHORTEST_WORD = SHORTEST_PREFIX + RUN_LENGTH
SIGNS = ":=>|,"
QUOTES = "\"'`"
SIGNS_OF_PASSWORDS = SIGNS + QUOTES + "(?"
SIGN_WITHIN = 60
OPENING = " \t\n\"'`*>=|?\\"
VALUE_CHARACTERS = ALPHANUMERIC + "_.+/~%=:|-"
VALUE_LENGTH = 10
VALUE_WITHIN = 100
DIGIT_WITHIN = 65
DIGITS_AS_ZERO = bytes.maketrans(b"123456789-", b"000000000 ")
AFTER_WORDS = "0123456789_.-"  # may end a name behind its last word
BETWEEN = " \t\"'`*?]\\+"  # may stand between a name and its sign
BEHIND_WORDS = AFTER_WORDS + BETWEEN
WORD_WITHIN = 40
VERBS = tuple(f" {verb}{end}" for verb in ("is", "was", "ist", "war", "lautet", "to", "auf") for end in " :")
NAME_WITHIN = 64


class Secret:
    """A secret is `text[start:end]`; `kind` says what it is in a few words, as in `[redacted: kind]`."""

    __slots__ = ("end", "kind", "start")

    def __init__(self, kind: str, start: int, end: int) -> None:
        self.kind = kind
        self.start = start
        self.end = end

    def __repr__(self) -> str:
        return f"Secret({self.kind!r}, {self.start}, {self.end})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))


def redact(text: str, start: int = 0) -> str:
    """`text` with `[redacted: kind]` in place of every secret. Never raises for a string.

    Searches until nothing is found: a secret next to another one may be found only when that is gone. The scanner finds
    nothing before `start`, if the caller knows.
    """
    while secrets := find_secrets(text, start):
        parts = []
        end = 0
        for secret in secrets:
            parts += [text[end : secret.start], f"[redacted: {secret.kind}]"]
            end = secret.end
        text = "".join(parts) + text[end:]
        start = 0
    return text


def redact_all(texts: list[str]) -> list[str]:
    """Each of `texts` as `redact` returns it. All are checked as one first, since hardly any holds a secret."""
    if SCAN not in sys.modules and not may_hold_secret("\n".join(texts)):
        return texts
    return [redact(text) for text in texts]


def find_secrets(text: str, start: int = 0) -> list[Secret]:
    """The secrets in `text`, in order, without overlaps; `start` as in `redact`. Never raises for a string."""
    if SCAN in sys.modules:
        find = sys.modules[SCAN].find  # an import statement takes as long as the search in a hundred characters
    elif len(text) <= SHORT_CHARACTERS and not may_hold_secret(text):
        return []
    else:
        from .scan import find
    found = find(text, start)
    return [Secret(kind, start, end) for kind, start, end in found] if found else []


def may_hold_secret(text: str) -> bool:
    """Whether `text` holds a literal of a rule where the rule wants it, or a value with a name of a rule.

    True for texts joined by line feeds if it is for one of them.
    """
    # A prefix and the run after it hold no white space, and few words are long enough for them: search only those.
    words = " ".join([word for word in text.split() if len(word) >= SHORTEST_WORD])
    if words and any(prefix in words and begins_token(words, prefix) for prefix in PREFIXES.split("\n")):
        return True
    small = text.lower()
    for ignores_case, also, ahead, literals in LITERALS:
        if also in text:
            within = small if ignores_case else text
            if any(literal in within and goes_on(within, literal, ahead) for literal in literals.split("\n")):
                return True
    return any(names_value(text, at) for sign in SIGNS for at in places(text, sign)) or bool(
        digit_runs(text)
    )


def digit_runs(text: str) -> list[tuple[int, int]]:
    """Where a rule for digits may apply, and its number: a literal of it is there, in which 0 stands for any digit and
    a blank for a hyphen too."""
    shape = text.encode("ascii", "replace").translate(DIGITS_AS_ZERO)
    runs = []
    for literal, number in DIGIT_RUNS:
        at = shape.find(literal)
        while at >= 0:
            runs.append((at, number))
            at = shape.find(literal, at + 1)
    return runs


def places(text: str, literal: str) -> Iterator[int]:
    """Every offset of `literal`."""
    at = text.find(literal)
    while at >= 0:
        yield at
        at = text.find(literal, at + 1)


def is_run(text: str, start: int) -> bool:
    run = text[start : start + RUN_LENGTH]
    return len(run) == RUN_LENGTH and not run.strip(RUN_CHARACTERS)


def begins_token(text: str, prefix: str) -> bool:
    """Whether `prefix` stands before a run of RUN_LENGTH token characters and not within a word."""
    return any(
        is_run(text, at + len(prefix)) and (not at or text[at - 1] not in ALPHANUMERIC or is_escaped(text, at))
        for at in places(text, prefix)
    )


def is_escaped(text: str, at: int) -> bool:
    """Whether the letter before `at` may end an escape of JSON, a URL or a terminal."""
    return text[at - 1] == "m" or "\\" in text[max(0, at - 2) : at] or "%" in text[max(0, at - 3) : at]


def goes_on(text: str, literal: str, ahead: str) -> bool:
    """Whether `literal` is followed by what its rule wants: a run, a sign, or anything."""
    ends = (at + len(literal) for at in places(text, literal))
    if ahead == "<run>":
        return any(is_run(text, end) for end in ends)
    if ahead == "<sign>":
        rests = (text[end : end + SIGN_WITHIN].lstrip(ALPHANUMERIC + "_-").lstrip(" \t\\]") for end in ends)
        return any(rest[0] in SIGNS_OF_PASSWORDS for rest in rests if rest)
    return any(AHEAD[ahead](text, end) for end in ends) if ahead in AHEAD else True


def is_dotted(text: str, end: int) -> bool:
    """Whether six characters, a dot and a run follow."""
    return text[end + 6 : end + 7] == "." and is_run(text, end + 7) and is_run(text, end + 17)


def is_flag(text: str, end: int) -> bool:
    """Whether the name of an option follows that ends in one of WORD_ENDINGS, and then its value."""
    rest = text[end : end + NAME_WITHIN]
    name = rest[: len(rest) - len(rest.lstrip(ALPHANUMERIC + "_-"))]
    return name.lower().endswith(WORD_ENDINGS) and rest[len(name) : len(name) + 1] in tuple("= \t\\")


def is_told(text: str, end: int) -> bool:
    """Whether a verb follows, behind which something may be told."""
    rest = text[end : end + SIGN_WITHIN + 12]
    return any(verb in rest for verb in VERBS)


AHEAD = {"<dotted>": is_dotted, "<flag>": is_flag, "<prose>": is_told}


def names_value(text: str, at: int) -> bool:
    """Whether the sign at `at` has a name of a rule before it and what may be a key after it."""
    if text[at] in ":=>" and is_behind_word(text, at) and assigns(text, at):
        return True
    after = text[at + 1 : at + VALUE_WITHIN]
    if text[at] == "," and after.lstrip(" \t?\\")[:1] not in tuple(QUOTES):
        return False
    value = after.lstrip(OPENING)
    if len(value) < VALUE_LENGTH or value[:VALUE_LENGTH].strip(VALUE_CHARACTERS) or not begins_with_digit(value):
        return False
    before = text[max(0, at - NAME_WITHIN) : at].encode("ascii", "replace").decode()  # names are ASCII
    for escape in ("\\n", "\\r", "\\t"):
        before = before.replace(escape, " ")
    return any(name.endswith(ENDINGS) or f"\n{name}\n" in NAMES for name in names(before))


def is_behind_word(text: str, at: int) -> bool:
    """Whether the name before the sign at `at` ends like a word of assignments.py, as hardly any does."""
    return text[max(0, at - WORD_WITHIN) : at].rstrip(BEHIND_WORDS)[-4:].lower().endswith(WORD_ENDINGS)


def assigns(text: str, at: int) -> bool:
    """Whether the sign at `at` gives a value to a name like PASSWORD, or one that is more than a word to API_KEY."""
    from .assignments import assigned_value

    value = assigned_value(text, at)
    is_sure = value is not None and (value.word == "password" or value.form == "env")
    return value is not None and (is_sure or not text[value.start : value.end].isalpha())


def begins_with_digit(value: str) -> bool:
    """Whether `value` has a digit among its first DIGIT_WITHIN characters, before any that keys do not have."""
    for character in value[:DIGIT_WITHIN]:
        if character.isdigit():
            return True
        if character not in VALUE_CHARACTERS:
            return False
    return False


def names(text: str) -> list[str]:
    """The names by which rules may call an identifier: its words in lower case, and pairs of words as one.

    Of `newRelicKey2`: new, relic, key2, newrelic, relickey2, and without their digits key, relickey.
    """
    words = []
    word = ""
    for character, following in zip(text, text[1:] + " "):
        begins = character.isupper() and (not word.isupper() or following.islower())
        if word and (begins or not character.isalnum() or (word[-1].isdigit() and character.isalpha())):
            words.append(word.lower())
            word = ""
        if character.isalpha() or (word and character.isdigit()):
            word += character
    words += [word.lower()] if word else []
    words += [*map(str.__add__, words, words[1:])]
    return words + [word.rstrip("0123456789") for word in words if word[-1].isdigit()]
