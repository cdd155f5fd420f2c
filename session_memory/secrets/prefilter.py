"""Whether a short text may hold a secret, told by string methods alone: the hot path imports no `re`.

What scan.py would find, this lets through; tests/test_secrets.py holds the two together.
"""

from itertools import pairwise

from ._literals import ANY_CASE, ENDINGS, LITERALS, NAMES, PREFIXES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

ALPHANUMERIC = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
RUN_CHARACTERS = ALPHANUMERIC + "_+/=-"
RUN_LENGTH = 10
SIGNS = ":=>|,"
QUOTES = "\"'`"
SIGNS_OF_PASSWORDS = SIGNS + QUOTES + "(?"
SIGN_WITHIN = 60
OPENING = " \t\n\"'`*>=|?\\"
VALUE_CHARACTERS = ALPHANUMERIC + "_.+/~%=:|-"
VALUE_LENGTH = 10
VALUE_WITHIN = 100
DIGIT_WITHIN = 65
NAME_WITHIN = 64


def may_hold_secret(text: str) -> bool:
    """Whether in `text` stands a literal of a rule as the rule wants it, or a value with a name of a rule."""
    if any(prefix in text and begins_token(text, prefix) for prefix in PREFIXES):
        return True
    small = text.lower()
    for within, literals in ((text, LITERALS), (small, ANY_CASE)):
        for literal, also, ahead in literals:
            if literal in within and also in text and goes_on(within, literal, ahead):
                return True
    return any(names_value(text, at) for sign in SIGNS for at in places(text, sign))


def places(text: str, literal: str) -> "Iterator[int]":
    """Every offset of `literal`."""
    at = text.find(literal)
    while at >= 0:
        yield at
        at = text.find(literal, at + 1)


def is_run(text: str, start: int) -> bool:
    run = text[start : start + RUN_LENGTH]
    return len(run) == RUN_LENGTH and not run.strip(RUN_CHARACTERS)


def begins_token(text: str, prefix: str) -> bool:
    """Whether `prefix` stands before a run, and not within a word."""
    return any(
        is_run(text, at + len(prefix)) and (not at or text[at - 1] not in ALPHANUMERIC or is_escaped(text, at))
        for at in places(text, prefix)
    )


def is_escaped(text: str, at: int) -> bool:
    """Whether the letter before `at` may be the end of an escape, of JSON, of a URL or of a terminal."""
    return text[at - 1] == "m" or "\\" in text[max(0, at - 2) : at] or "%" in text[max(0, at - 3) : at]


def goes_on(text: str, literal: str, ahead: str) -> bool:
    """Whether after `literal` stands what its rule wants there: a run, a sign, or anything."""
    ends = (at + len(literal) for at in places(text, literal))
    if ahead == "<run>":
        return any(is_run(text, end) for end in ends)
    if ahead == "<sign>":
        rests = (text[end : end + SIGN_WITHIN].lstrip(ALPHANUMERIC + "_-").lstrip(" \t\\]") for end in ends)
        return any(rest[0] in SIGNS_OF_PASSWORDS for rest in rests if rest)
    return True


def names_value(text: str, at: int) -> bool:
    """Whether before the sign at `at` stands a name of a rule, and after it something that can be a key."""
    after = text[at + 1 : at + VALUE_WITHIN]
    if text[at] == "," and after.lstrip(" \t?\\")[:1] not in tuple(QUOTES):
        return False
    value = after.lstrip(OPENING)
    if len(value) < VALUE_LENGTH or value[:VALUE_LENGTH].strip(VALUE_CHARACTERS) or not begins_with_digit(value):
        return False
    before = text[max(0, at - NAME_WITHIN) : at]
    for escape in ("\\n", "\\r", "\\t"):
        before = before.replace(escape, " ")
    return any(name in NAMES or name.endswith(ENDINGS) for name in names(before))


def begins_with_digit(value: str) -> bool:
    """Whether there is a digit in the beginning of `value`, before anything that is not of a key."""
    for character in value[:DIGIT_WITHIN]:
        if character.isdigit():
            return True
        if character not in VALUE_CHARACTERS:
            return False
    return False


def names(text: str) -> list[str]:
    """What an identifier may be called in a rule: its words in small letters, and pairs of them as one.

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
    words += [first + second for first, second in pairwise(words)]
    return words + [word.rstrip("0123456789") for word in words if word[-1].isdigit()]
