"""Tells a secret from a name, path, version or placeholder in the same position. Pure."""

from __future__ import annotations

from math import log2, sqrt

from ._regexes import pattern
from .assignments import AssignedValue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    WordLists = dict[str, frozenset[str]]

# The most common pairs of letters in English and code. They are three quarters of the pairs in
# words, and a fifth in random text.
_PAIRS = (
    "thheineranreonatenndtiesorteofedisitalarsttontngsehaasouiolevecomedehiriroicneearacelichllbemasiom"
    "urcaeltalansdifohopeecprnoctusacotiltrlyncetutsssorsunlowageiewheewiemadolrtpowenaulnitsmoowpaimmi"
    "aishirsuidosiviaamficivipligtuevldrympfeblabghtyopwosaayexkeuieypiapagodobbosp"
)
PAIRS = frozenset(map("".join, zip(_PAIRS[::2], _PAIRS[1::2])))


def _word_lists() -> WordLists:
    """Return the lists in words.tsv, which says what each of them is."""
    from ..words import word_lists  # which loads commands in an install

    return word_lists(__file__.rpartition("_judge.")[0] + "words.tsv")


PREBUILT: WordLists | Callable[[], WordLists] = _word_lists  # its result in an install
_WORDS = PREBUILT() if callable(PREBUILT) else PREBUILT
ABOUT, NO_PASSWORDS, OBJECTS, OTHER_KEYS, NO_PASS = _WORDS.values()
COMMON = len(PAIRS) / 26**2
# The number of standard deviations above chance at which a text counts as words. STRICT is for
# values that only their name marks as a key: it mistakes one key in a thousand for words. LENIENT
# is for values that also have the shape of a key: it mistakes hardly any.
STRICT = 4.2
LENIENT = 6.5
WORDY = 2.0
ENOUGH = 120  # characters that are examined

WORD = pattern("[A-Z]*[a-z]+|[A-Z]+")
UUID = pattern("[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
HEX = pattern("[0-9a-fA-F-]+")
LOWER, UPPER, DIGIT, LETTER = map(pattern, ("[a-z]", "[A-Z]", "[0-9]", "[A-Za-z]"))
SIGN, SIGNS, JOINS = map(pattern, (r"[^\w.-]", "[^A-Za-z0-9]+", "[-/_.]"))
NOT_IN_TOKENS, NOT_IN_PROSE = map(pattern, (r"[^\w.+/~=-]", r"[^\w\s()'’/.,:;-]"))
PLACEHOLDER = pattern(
    r"(?i)example|placeholder|redacted|changeme|replace|dummy|sample|xxxx|^your|your[_-]|<|\.\.\.|\*\*\*"
    r"|12345678|abcdefgh|0000000"
)
# Code in the position of a password: a.b, A_B, $variable, {template}, a URL, a path.
CODE = pattern(
    r"[A-Za-z_$][\w$]*(?:(?:\.|->|::)[A-Za-z_$][\w$]*)+[!?]?|[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+"
    r"|[$%{<@].*|https?://.*|/.*|.*[$#{]\{.*"
)

# A variable that holds a password.
IDENTIFIER = pattern(r"(?i)\w*(?:passw|passphrase)\w*")
# Placeholders: a variable, a template, a command's output, a row of dots or stars.
STANDS_FOR = pattern(
    r"(?i)\$\w+|\$\{.*|\$\(.*|\$env:.*|%\w+%|%[a-z]|%\(.*|\{.*\}|\[.*\]|<.*>|.*(?:\$\{|\{\{).*|@[a-z.]+\(.*|:[a-z_]+"
    r"|([^\w])\1*|(x|0)\2{2,}"
    r"|.*(?:changeme|change-me|redacted|placeholder|your[_-]).*|(?:example|dummy|sample|test|fake|my|some|the)[_-]?"
    r"(?:password|passwd|pass|secret|token|key)?|.*\.\.\.|https?://.*|(?:~|\.{1,2})?/(?:[\w.@-]+/)*[\w.@*-]*"
    r"|[\w.@-]+(?:/[\w.@-]+)+\.[a-z]\w{0,5}"
)
# Words of a sentence about a password.
PROSE = pattern(
    r"(?i)\b(?:the|your|is|are|must|should|enter|please|required|at "
    r"least|characters|forgot|reset|confirm|and|or|not"
    r"|be)\b"
)
SMALL_WORDS = pattern(
    r"(?i)\b(?:for|to|used|using|a|an|of|in|with|that|was|will|can|if|it|on|from|by)\b"
)
# A number, a date or a time, perhaps with a unit; a short hexadecimal one.
NUMBER = pattern(r"[-+]?[0-9][0-9_.,:/T%-]*(?:[a-zA-Z]{1,3})?|(?i:0x)[0-9a-fA-F]{1,8}")
# A name in code; then a name or a path of names, perhaps called or with a subscript, which is code
# unless it is unlike words.
NAME = r"[A-Za-z_$][\w$]*"
NAMES = pattern(rf"(?s)({NAME}(?:(?:\?\.|\.|->|::){NAME})*)([!?]?[(\[].*)?[!?;]?")
ONE_NAME = pattern(NAME)
SEED = pattern("[A-Z2-7 =-]{10,200}|[a-z2-7]{16,200}")  # of one-time passwords, in base32
PAIR_OF_WORDS = pattern(r"([A-Za-z]{3,})[._-][A-Za-z]{3,}[0-9]{1,4}[!?]?")
CAMEL_CASE = pattern("[a-z]+(?:[A-Z][a-z]+)+[0-9]?")
CHUNK = pattern(r"[A-Za-z]+|[0-9]+")
CASED_WORD = pattern("[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
# Technical terms that have a number.
_TECHNICAL = (
    r"(?i)(?:saml|webauthn|fido|sha|md|base|utf|argon|aes|rsa|oauth|http|ipv|blake|ed|ecdsa|uuid|ulid|v|x|p|h|s|ec|k|i"
    r"|l|py|node|amd|arm)[0-9]{1,5}"
)
TECHNICAL, TERM = pattern(_TECHNICAL), pattern(_TECHNICAL + r"(?![A-Za-z0-9])")


def entropy(text: str) -> float:
    """Return the Shannon entropy of the first characters of `text`, in bits a character."""
    text = text[:ENOUGH]
    size = len(text)
    return -sum(n / size * log2(n / size) for n in map(text.count, set(text)))


def reads_like_words(text: str, deviations: float) -> bool:
    """Check if `text` has more common pairs of letters than chance, by so many deviations.

    The unit is the standard deviation."""
    pairs = [word[i : i + 2].lower() for word in WORD.findall(text) for i in range(len(word) - 1)]
    by_chance = len(pairs) * COMMON
    deviation = sqrt(by_chance * (1 - COMMON))
    return sum(pair in PAIRS for pair in pairs) > by_chance + deviations * deviation - 0.5


def looks_random(text: str, deviations: float) -> bool:
    """Check that `text` has digits and letters that form no words, as keys have."""
    text = text[:ENOUGH]
    digits, letters = len(DIGIT.findall(text)), len(LETTER.findall(text))
    if not digits or not letters or PLACEHOLDER.search(text) or entropy(text) < 2.8:
        return False
    if HEX.fullmatch(text):
        return digits >= 3 and letters >= 2
    return not reads_like_words(text, deviations) and (deviations == LENIENT or not is_wordy(text))


def looks_like_password(text: str, quoted: bool) -> bool:
    """Check if `text`, the value of a name for passwords, is neither code nor a mere word."""
    text = text[:ENOUGH]
    if PLACEHOLDER.search(text) or CODE.fullmatch(text) or IDENTIFIER.fullmatch(text):
        return False
    if not quoted and CAMEL_CASE.fullmatch(text):
        return False
    kinds = sum(kind.search(text) is not None for kind in (LOWER, UPPER, DIGIT, SIGN))
    if DIGIT.search(text) or SIGN.search(text):
        return kinds >= 2
    if kinds == 2:
        return quoted or not reads_like_words(text, STRICT)
    return quoted and len(text) >= 8 and not reads_like_words(text, WORDY)


def is_wordy(text: str) -> bool:
    """Check if `text` is words and numbers.

    Each part, between signs and changes of case, reads like a word or is short."""
    for part in SIGNS.split(text):
        chunks = CHUNK.findall(part)
        if len(chunks) > 5 or (
            len(chunks) > 1 and not TECHNICAL.fullmatch(part) and not _is_numbered(chunks)
        ):
            return False
        if not all(_is_word(chunk) for chunk in chunks if chunk.isalpha()):
            return False
    return True


def _is_numbered(chunks: list[str]) -> bool:
    """Check if the parts of a name are words with a number.

    They are a word with up to four digits, or words with up to two digits between them."""
    longest = 4 if len(chunks) == 2 else 2
    return (
        all(len(chunk) > 2 if chunk.isalpha() else len(chunk) <= longest for chunk in chunks)
        and chunks[0].isalpha()
    )


def _is_word(letters: str) -> bool:
    """Check that letters may be words, in one case or in camel case."""
    words = CASED_WORD.findall(letters)
    if len(words) > 2 and len(letters) < 3 * len(words):
        return False
    return len(letters) < 6 or reads_like_words(letters, 0)


def is_assigned_secret(text: str, value: AssignedValue) -> bool:
    """Check if the value of a name is a secret.

    A password nearly always is; a secret, token or key is unless it is a number, a name or words.
    """
    content = text[value.start : value.end]
    if value.word == "seed":
        return SEED.fullmatch(content) is not None
    is_password = value.word in ("password", "pass")
    if not is_password and (
        len(content) < 6 or (value.form != "env" and not DIGIT.search(content))
    ):
        return False  # most of them
    if (
        len(content) < 3
        or STANDS_FOR.fullmatch(content)
        or content.lower().strip("'\"") in NO_PASSWORDS
    ):
        return False
    if not is_password:
        return _is_key(content, value)
    return _is_password(content, value) and (value.word == "password" or _is_pass(content, value))


def _is_password(content: str, value: AssignedValue) -> bool:
    """Check if the value of a name for passwords is a password.

    Anything in an env file is, nearly anything in quotation marks or alone on a line, and elsewhere
    anything that is not code."""
    if value.form == "env":
        return True
    is_short_number = NUMBER.fullmatch(content) is not None and len(content) < 6
    if value.qualifier in NO_PASS or (is_short_number and not value.qualifier):
        return False
    if IDENTIFIER.search(content) and (content.isidentifier() or " " in content or "." in content):
        return False
    if value.quote:
        return len(content) >= 4 and not (" " in content and PROSE.search(content))
    return is_pair_of_words(content) or _is_bare_password(content, value)


def _is_bare_password(content: str, value: AssignedValue) -> bool:
    """Check that a value without quotation marks is a password."""
    if value.form == "line":
        is_prose = " " in content and (PROSE.search(content) or SMALL_WORDS.search(content))
        return not is_call(content) and not is_prose
    if NAMES.fullmatch(content):
        return looks_like_password(content, False) and not is_call(content)
    return len(content) >= 5 and looks_like_password(content, False)


def _is_pass(content: str, value: AssignedValue) -> bool:
    """Check if `pass` is short for a password here.

    Test runners print PASS:, the path of a test and its time."""
    if value.qualifier or value.form == "flag":
        return True
    if value.form == "env":
        return not NUMBER.fullmatch(content)
    if value.quote:
        return looks_like_password(content, True)
    return not {" ", "/"} & set(content) and looks_random(content, STRICT)


def is_pair_of_words(content: str) -> bool:
    """Check if `content` is two words and a number, like Maple.tunnel36.

    A value inside an object of code does not count."""
    pair = PAIR_OF_WORDS.fullmatch(content)
    return pair is not None and pair[1].lower() not in OBJECTS


def is_call(content: str) -> bool:
    """Check if `content` is code that calls something or takes a part of it.

    The names in it read like words."""
    names = NAMES.fullmatch(content)
    if names is None:
        return False
    return (names[2] is not None or not ONE_NAME.fullmatch(names[1])) and is_wordy(names[1])


def _is_key(content: str, value: AssignedValue) -> bool:
    """Check if the value of a name for secrets, tokens or keys is one.

    In an env file, nearly anything is. Elsewhere it must have no words, and must look random if the
    name is just a key."""
    is_placeholder = PLACEHOLDER.search(content.replace("<", "")) is not None
    is_just_key = value.word == "key" and not value.qualifier
    if _names_no_secret(content, value, is_just_key=is_just_key):
        return False
    if value.form == "env" and not is_just_key:
        is_wordy_key = value.word == "key" and is_wordy(content)
        return len(content) >= 6 and not is_placeholder and not is_wordy_key
    if is_placeholder or not _is_one_token(content, value):
        return False
    if is_just_key:
        return looks_random(content, STRICT)
    return entropy(content) >= 2.5 and not reads_like_words(content[:ENOUGH], LENIENT)


def _names_no_secret(content: str, value: AssignedValue, *, is_just_key: bool) -> bool:
    """Check if a value is a number, words, a UUID as a key, or a key of another kind.

    An example of another kind is a primary key."""
    if is_just_key and UUID.fullmatch(content):
        return True
    if NUMBER.fullmatch(content) or (content.isalpha() and reads_like_words(content, STRICT)):
        return True
    return value.word == "key" and value.qualifier in OTHER_KEYS


def _is_one_token(content: str, value: AssignedValue) -> bool:
    """Check if a value is long enough, has letters, and is neither words nor code."""
    if " " in content and not (value.quote and not any(map(is_wordy, content.split()))):
        return False
    if len(content) < 8 or is_call(content) or not LETTER.search(content) or is_wordy(content):
        return False
    has_signs = NOT_IN_TOKENS.search(content) is not None
    return not has_signs or bool(value.quote or value.form)


def is_told(text: str, quoted: bool) -> bool:
    """Check if a word that a sentence calls a password is one.

    It needs letters with digits or signs, and must not be words or terms."""
    if is_pair_of_words(text.rstrip("!?")):
        return True
    if (
        STANDS_FOR.fullmatch(text)
        or is_call(text)
        or IDENTIFIER.fullmatch(text)
        or TERM.match(text)
        or NUMBER.fullmatch(text)
    ):
        return False
    if JOINS.search(text) and is_wordy(text.strip("()[]{}?!%+*")):
        return False
    inner = text[:-1] if text[-1] in "!?" else text
    has_sign = NOT_IN_PROSE.search(inner) is not None
    return LETTER.search(text) is not None and (DIGIT.search(text) is not None or has_sign)


def is_card_number(text: str, quoted: bool) -> bool:
    """Check if digits satisfy Luhn's check (ISO/IEC 7812), and are not all the same."""
    digits = [int(character) for character in text if character.isdigit()]
    doubled = [sum(divmod(2 * digit, 10)) for digit in digits[-2::-2]]
    return len(set(digits)) > 2 and (sum(digits[::-2]) + sum(doubled)) % 10 == 0


JUDGES = {
    "varied": lambda text, quoted: entropy(text) >= 2.5,
    "url": lambda text, quoted: text[0] != "$" and "{{" not in text and "${" not in text,
    "random": lambda text, quoted: looks_random(text, STRICT),
    "shape": lambda text, quoted: looks_random(text, LENIENT),
    "password": looks_like_password,
    # The value of a command's password option must not be a variable, a template or another option.
    "argument": lambda text, quoted: (
        len(text) >= 3
        and text[0] != "-"
        and not STANDS_FOR.fullmatch(text)
        and text.lower() not in NO_PASSWORDS
    ),
    "prose": is_told,
    "luhn": is_card_number,
}
