"""Whether a short text may hold a secret, told with nothing but `in` and `find`: the hot path imports no `re`.

What scan.py would find, this lets through; test_secrets.py holds the two together.
"""

from __future__ import annotations

from ._literals import ANY_CASE, ENDINGS, LITERALS, NAMES, PREFIXES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

ALPHANUMERIC = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
RUN_CHARACTERS = ALPHANUMERIC + "_+/=-"
RUN_LENGTH = 10
SIGNS = ":=>|,(?"
SIGNS_AND_QUOTES = SIGNS + "\"'`"
SIGN_WITHIN = 49
OPENING = " \t\n\"'`*>=|?\\"
VALUE_CHARACTERS = ALPHANUMERIC + "_.+/~%=:|-"
VALUE_LENGTH = 10
DIGIT_WITHIN = 51
NAME_WITHIN = 64


def may_hold_secret(text: str) -> bool:
    """Whether a literal of a rule stands in `text` so that the rule may apply, or a named value."""
    if any(prefix in text and begins_token(text, prefix) for prefix in PREFIXES):
        return True
    if any(literal in text and also in text and leads_on(text, literal, ahead) for literal, also, ahead in LITERALS):
        return True
    lower = text.lower()
    if any(literal in lower and also in text and leads_on(lower, literal, ahead) for literal, also, ahead in ANY_CASE):
        return True
    return any(names_value(text, at) for sign in SIGNS for at in places(text, sign))


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
    """Whether `prefix` begins a word somewhere, or follows an escape as in JSON, URLs or on terminals, and a run follows."""
    return any(
        is_run(text, at + len(prefix)) and (at == 0 or text[at - 1] not in ALPHANUMERIC or follows_escape(text, at))
        for at in places(text, prefix)
    )


def follows_escape(text: str, at: int) -> bool:
    return text[at - 1] == "m" or "\\" in text[max(0, at - 2) : at] or "%" in text[max(0, at - 3) : at]


def leads_on(text: str, literal: str, ahead: str) -> bool:
    """Whether after `literal` comes what its rule asks for: a run, a sign, or nothing."""
    ends = (at + len(literal) for at in places(text, literal))
    if ahead == "<run>":
        return any(is_run(text, end) for end in ends)
    if ahead == "<sign>":
        return any(sign in text[end : end + SIGN_WITHIN] for end in ends for sign in SIGNS_AND_QUOTES)
    return True


def names_value(text: str, at: int) -> bool:
    """Whether before the sign at `at` stands a name of a rule, and after it something that can be a key."""
    value = text[at + 1 : at + 100].lstrip(OPENING)
    if len(value) < VALUE_LENGTH or value[:VALUE_LENGTH].strip(VALUE_CHARACTERS):
        return False
    if not any(character.isdigit() for character in value[:DIGIT_WITHIN]):
        return False
    return any(name in NAMES or name.endswith(ENDINGS) for name in names(text[max(0, at - NAME_WITHIN) : at]))


def names(text: str) -> list[str]:
    """What an identifier may be called in a rule: its words in small letters, with and without digits, and pairs of them.

    As `newRelicKey2`: new, relic, key2, key, newrelic, relickey2, relickey.
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
    words += [first + second for first, second in zip(words, words[1:])]
    return words + [word.rstrip("0123456789") for word in words if word[-1].isdigit()]
