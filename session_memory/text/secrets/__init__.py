"""Finding secrets in text and taking them out: `find_secrets`, `redact`. rules.py says what is one.

The first look is here, with plain string methods: where does a keyword of a rule stand, or the sign of an assignment to
a name like PASSWORD? Hardly a text has such a place. Only for one that has, the regexes and the judge are loaded
(scan.py), and with them `re`: prompts wait for this.
"""

from __future__ import annotations

from .rules import AS_WORDS, TABLES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from .assignments import AssignedValue
    from .rules import SecretRule

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
ALPHANUMERIC = "0123456789" + LETTERS
AFTER_WORDS = "0123456789_.-"  # may end a name behind its last word
BETWEEN = " \t\"'`*?]\\+"  # may stand between a name and its sign
NAME_WITHIN = 64
LONGEST_WORD = 34  # a run that is longer may be a token without a digit
LONG_RUN = 14  # the shortest of tokens and of the values that rules name
# In bytes: a text is searched as ASCII, one byte a character, so that the places are those in the text.
DIGITS = b"0123456789"
RUN_CHARACTERS = (ALPHANUMERIC + "_+/=-.~:%$@!&#?*^|{}").encode()
IN_RUNS = bytes(255 if code in RUN_CHARACTERS else 0 for code in range(256))
DIGITS_AS_ZERO = bytes.maketrans(b"123456789-", b"000000000 ")
ANY_BIT = bytes((0, *[1] * 255))
# The names before a sign, and what may stand between them.
NAME_CHARACTERS = (ALPHANUMERIC + "_-. ").encode()
ENDINGS = (b"key", b"token", b"secret")
REST_OF_NAME = (ALPHANUMERIC + "_.-").encode()
BEHIND_NAME = BETWEEN.encode()
SHORTEST_VALUE = 10
SIGNS_WITHIN = (b"=", b":")
OPENS_RUN = b" \t\n\"'`*>=|:,?\\"
OTHER_SIGNS = b">,"  # runs hold the others
NO_SIGNS = b" \t\n\"'`*?\\"
LONGEST_OPENING = 40
OPENS_VALUE = (b"=", b":", b">")
LONGEST_REST = 48
LONG_BEGINNING = 24  # more than the longest word of a prefix
LONG_VALUE = 200
PASSWORD_WITHIN = 240
ENDS_OF_WORDS = b".,:;)(\"'`"
LETTERS_AND_ENDS = LETTERS.encode() + b".,:;)(\"'`-/_"
COMMAND_WITHIN = 300  # characters between the name of a command and its option
ENDS_OF_COMMANDS = (b"\n", b"\\n", b"|", b";", b" && ")
COLOURS = tuple(b"%c" % code for code in b"0123456789;m")
MOST_NAMES = 1000
_is_of_rule: dict[bytes, bool] = {}  # a text has the same ones over and over
FLAG_ENDS = ("=", " ", "\t", "\\")


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


class Spots:
    """Where the second look is to be: rules with the places of their keywords; values that are given to a name like
    PASSWORD; (start, end) of long runs that may be given to a name of a rule."""

    __slots__ = ("named", "rules", "values")

    def __init__(self) -> None:
        self.rules: list[tuple[SecretRule, int]] = []
        self.values: list[AssignedValue] = []
        self.named: list[tuple[int, int]] = []

    def __bool__(self) -> bool:
        return bool(self.rules or self.values or self.named)


def redact(text: str) -> str:
    """Return `text` with `[redacted: kind]` in place of every secret. Never raise for a string.

    Search until nothing is found: a secret next to another one may be found only when that is gone.
    """
    while secrets := find_secrets(text):
        parts = []
        end = 0
        for secret in secrets:
            parts += [text[end : secret.start], f"[redacted: {secret.kind}]"]
            end = secret.end
        text = "".join(parts) + text[end:]
    return text


def find_secrets(text: str) -> list[Secret]:
    """Return the secrets in `text`, in order, without overlaps. Never raise for a string."""
    found = spots(text)
    if not found:
        return []
    from .scan import find

    return [Secret(kind, start, end) for kind, start, end in find(text, found)]


def spots(text: str) -> Spots:
    """Return where secrets may be."""
    shadow = text.encode("ascii", "replace")  # one byte a character: a place in it is that in the text
    shape = shadow.translate(DIGITS_AS_ZERO)
    found = Spots()
    if runs := long_runs(shadow, shape):
        _find_in_runs(found, shadow, shape, b" ".join([shadow[start:end] for start, end in runs]))
        found.named = given_runs(shadow, shape, runs)
    if signs := _find_places(found, text, shadow.lower()):
        found.values = [value for value in assigned_values(text, signs) if may_be_secret(text, value)]
    for rule, keyword in TABLES.digits:
        if keyword in shape:
            found.rules += [(rule, at) for at in places(shape, keyword) if begins_number(shape, at)]
    return found


def begins_number(shape: bytes, at: int) -> bool:
    """Check that the digits that begin at `at` are no part of more than a card has."""
    return shape[at - 1 : at] not in (b"0", b".") and shape[at : at + 17] != b"0" * 17


def long_runs(shadow: bytes, shape: bytes) -> list[tuple[int, int]]:
    """Return (start, end) of the long runs without blanks and brackets that hold a digit, as tokens do, in order."""
    if b"\\" in shadow:  # the letter of an escape is none of what follows it
        shadow = shadow.replace(b"\\n", b"  ").replace(b"\\t", b"  ").replace(b"\\r", b"  ")
    inside = shadow.translate(IN_RUNS)
    # One number, a byte a character, is a check of all places at once: those stay where as many more follow.
    bits = int.from_bytes(inside, "little")
    for more in (1, 2, 4, LONG_RUN - 8):
        bits &= bits >> 8 * more
    starts = bits.to_bytes(len(shadow), "little")
    inside += b"\0"
    runs = []
    start = starts.find(255)
    while start >= 0:
        end = inside.find(0, start)
        if shape.find(48, start, end) >= 0 or end - start > LONGEST_WORD:
            runs.append((start, end))
        start = starts.find(255, end)
    return runs


def given_runs(shadow: bytes, shape: bytes, runs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return (start, end) of the runs that are given to a name of a rule, or hold such an assignment: from the first
    sign on."""
    found = []
    for start, end in runs:
        first = start
        signs = []
        if not shadow[start - 2 : start - 1].isalnum() or shadow[start - 1] in OTHER_SIGNS:
            before = shadow[max(0, start - LONGEST_OPENING) : start]
            opening = before[len(before.rstrip(OPENS_RUN)) :]
            if opening.strip(NO_SIGNS):
                first -= len(opening)
                signs = [first]
        for sign in SIGNS_WITHIN:
            at = shadow.find(sign, start, end - SHORTEST_VALUE)
            if at >= 0:
                signs += [at, shadow.rfind(sign, at, end - SHORTEST_VALUE)]
        if signs and shape.find(48, start, end) >= 0 and any(names_rule(shadow, at) for at in signs):
            found.append((first, end))
    return found


def names_rule(shadow: bytes, sign: int) -> bool:
    """Check that the name before a sign is one of a rule, or holds one; its words may be parted by signs or by case."""
    if shadow[sign + 1 : sign + 3] == b"//":
        return False
    before = shadow[max(0, sign - NAME_WITHIN) : sign].rstrip(BEHIND_NAME)
    rest = before.rstrip(NAME_CHARACTERS)
    name = before[len(rest) + rest.endswith(b"\\") :]  # without the letter of an escape
    if name not in _is_of_rule:
        if len(_is_of_rule) > MOST_NAMES:
            _is_of_rule.clear()
        _is_of_rule[name] = is_of_rule(name)
    return _is_of_rule[name]


def is_of_rule(name: bytes) -> bool:
    """Check that one of the words of a name, or two as one, are a name of a rule."""
    words = name.lower().translate(AS_WORDS).split()
    if not words:
        return False
    if words[-1].endswith(ENDINGS) or not TABLES.names.isdisjoint([*words, *map(bytes.__add__, words, words[1:])]):
        return True
    last = name.rsplit(b" ", 1)[-1]  # its words may be parted by case
    is_parted = last[1:] != last[1:].lower() and last != last.upper()
    joined = b"".join(words)
    return is_parted and any(known in joined for known in TABLES.names)


def _find_in_runs(found: Spots, shadow: bytes, shape: bytes, runs: bytes) -> None:
    """Add the keywords of tokens, looked up by a word of theirs, or by what the only one begins with."""
    rests = []
    if b"%" in runs:
        rests = [part[2:LONG_BEGINNING] for part in runs.split(b"%")[1:]]
    if b"\\" in shadow:
        rests += [part[1:LONG_BEGINNING] for part in shadow.split(b"\\") if part[:1] in (b"b", b"f")]
    if b"[" in shadow and (b"0m" in shape or b"[m" in shadow):  # behind a terminal's colour
        colours = [rest.lstrip(b"0123456789;") for rest in shadow.split(b"[") if rest[:1] in COLOURS]
        rests += [rest[1:LONG_BEGINNING] for rest in colours if rest[:1] == b"m"]
    joined = b" ".join([b"", runs, *rests])
    words = TABLES.words.keys() & joined.translate(AS_WORDS).split()
    heads = {joined[at + 1 : at + 4] for at in root_places(joined, TABLES.head_columns)}
    heads |= {head[:2] for head in heads}
    rows = [row for word in words for row in TABLES.words[word]]
    rows += [row for head in TABLES.heads.keys() & heads for row in TABLES.heads[head]]
    for rule, keyword in rows:
        if keyword in runs:
            found.rules += [
                (rule, at) for at in places(shadow, keyword) if rule.form == "inside" or begins_word(shadow, at)
            ]
    for rule, keyword in TABLES.inside:
        if keyword in runs:
            found.rules += [(rule, at) for at in places(shadow, keyword)]


def begins_word(shadow: bytes, at: int) -> bool:
    """Check that no letter or digit stands before `at`, but for what may end an escape of JSON, a URL or a terminal."""
    before = shadow[max(0, at - 3) : at]
    return not before[-1:].isalnum() or before[-1:] == b"m" or b"\\" in before or b"%" in before


def _find_places(found: Spots, text: str, small: bytes) -> dict[int, bool]:
    """Add the keywords of rules for places. Return the signs behind what may be names, see `_look_behind_name`."""
    signs: dict[int, bool] = {}
    for root in root_places(small, TABLES.columns):
        rows = TABLES.roots.get(small[root : root + 3], ()) or TABLES.roots.get(small[root : root + 2], ())
        for rule, keyword, offset in rows:
            at = root - offset
            if at < 0 or not small.startswith(keyword, at):
                continue
            if rule is None:
                _look_behind_name(signs, text, small, at + len(keyword))
            elif rule.form == "command":
                if stands_behind(small, at, rule.gate.encode().split(b"|")):
                    found.rules.append((rule, at + 1))
            elif rule.judge not in ("prose", "password") or holds_password(small, root):
                found.rules.append((rule, at))
    for gate, others in TABLES.gates.items():
        if gate in small:
            found.rules += [(rule, at) for rule, keyword in others for at in places(small, keyword)]
    if not text.isascii():
        for letter, words in TABLES.foreign.items():
            if letter in text:
                found.rules += [(rule, at) for rule, word in words for at in places(text, word)]
    return signs


def root_places(text: bytes, columns: tuple[bytes, ...]) -> Iterator[int]:
    """Yield where a root of keywords may stand: its first three characters each have the bit of its group."""
    bits = -1
    for number, column in enumerate(columns):
        bits &= int.from_bytes(text.translate(column), "little") >> 8 * number
    return places(bits.to_bytes(len(text), "little").translate(ANY_BIT), b"\1")


def holds_password(small: bytes, at: int) -> bool:
    """Check that near behind `at` a word has digits or signs among its letters, as what a sentence calls a password."""
    for word in small[at : at + PASSWORD_WITHIN].split():
        rest = word.translate(None, LETTERS_AND_ENDS)
        if len(word) >= 4 and rest and (rest.translate(None, DIGITS) or len(rest) < len(word.strip(ENDS_OF_WORDS))):
            return True
    return False


def stands_behind(small: bytes, option: int, names: list[bytes]) -> bool:
    """Check that the option at `option` is one of a command that has one of these names."""
    for name in names:
        start = small.rfind(name, max(0, option - COMMAND_WITHIN), option + 1)
        between = small[start:option].replace(b"\\\n", b" ").replace(b"\\\\n", b" ").replace(b"\\\r\n", b" ")
        if start >= 0 and not any(end in between for end in ENDS_OF_COMMANDS):
            return True
    return False


def assigned_values(text: str, signs: dict[int, bool]) -> Iterator[AssignedValue]:
    """Yield what is given to names that end in a word like password, in order."""
    from .assignments import assigned_value, flag_value

    end = 0
    for sign in sorted(signs):
        value = (flag_value if signs[sign] else assigned_value)(text, sign) if sign >= end else None
        if value is not None:
            yield value
            if value.end - value.start > LONG_VALUE:
                end = value.end  # no other one is looked for within it, lest time grows faster than the text


def _look_behind_name(signs: dict[int, bool], text: str, small: bytes, at: int) -> None:
    """Add the sign of an assignment (False), or the end of an option (True), behind what may be the name at `at`."""
    rest = small[at : at + LONGEST_REST].lstrip(REST_OF_NAME)
    end = at + min(LONGEST_REST, len(small) - at) - len(rest)
    behind = rest.lstrip(BEHIND_NAME)
    if text[end : end + 1] in FLAG_ENDS and text.rfind("--", max(0, at - NAME_WITHIN), end) >= 0:
        signs[end] = True
    elif behind[:1] in OPENS_VALUE:
        signs.setdefault(end + len(rest) - len(behind), False)


def may_be_secret(text: str, value: AssignedValue) -> bool:
    """Check, before `re` is loaded for it, that a value is no mere word, where a secret, token or key is no mere
    word."""
    is_sure = value.word == "password" or value.form == "env"
    return is_sure or not text[value.start : value.end].isalpha()


def places(text: bytes | str, literal: bytes | str, first: int = 0) -> Iterator[int]:
    """Yield every offset of `literal`, where the text begins at `first`."""
    at = text.find(literal)  # type: ignore[arg-type]
    while at >= 0:
        yield first + at
        at = text.find(literal, at + 1)  # type: ignore[arg-type]
