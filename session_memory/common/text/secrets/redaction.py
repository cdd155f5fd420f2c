"""Finds secrets in text and redacts them: `find_secrets`, `redact`.

The first look is here, with plain string methods. It finds the keywords of rules, and the signs of
assignments to names like PASSWORD. Few texts have any. Only for these is scan.py loaded, with the
regexes and the judge, because prompts wait for it.
"""

from __future__ import annotations

from .rules import (
    ALPHANUMERIC,
    AS_WORDS,
    BETWEEN,
    FOREIGN_WORDS,
    GATE,
    LETTERS,
    LONG_VALUE,
    NAME_WITHIN,
    NO_RULE,
    TABLES,
    rule,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .assignments import AssignedValue
    from .rules import Row

LONGEST_WORD = 34  # a run that is longer may be a token without a digit
LEAST_RUN = 14  # the length of the shortest tokens, and of the shortest values of names in rules
LONG_RUN = b"\xff" * LEAST_RUN
VERY_LONG_RUN = b"\xff" * (LONGEST_WORD + 1)
TIME = b"0000 00 00T00:00"  # as it is among the shapes
LONGEST_TIME = 32
# In bytes: a text is searched as ASCII, one byte per character, so offsets are the same as in the
# text.
DIGITS = b"0123456789"
RUN_CHARACTERS = (ALPHANUMERIC + "_+/=-.~:%$@!&#?*^|{}").encode()
IN_RUNS = bytes(255 if code in RUN_CHARACTERS else 0 for code in range(256))
DIGITS_AS_ZERO = bytes.maketrans(b"123456789-", b"000000000 ")
ANY_BIT = bytes((0, *[1] * 255))
# The names before a sign, and the characters allowed between them.
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
LEAST_BEHIND_TWO = 24  # a word with a keyword of two letters is as long
LONG_BEGINNING = 40  # longer than that, and than the longest word of a prefix
PASSWORD_WITHIN = 240
ENDS_OF_WORDS = b".,:;)(\"'`"
LETTERS_AND_ENDS = LETTERS.encode() + b".,:;)(\"'`-/_"
NEAR = 500
SOON = 60
AS_CLAUSES = bytes.maketrans(b".;\"'`", b"\n" * 5)
AS_URLS = bytes.maketrans(b"\t\n\r\f\v\"'`<>\\", b" " * 11)
COMMAND_WITHIN = 300  # characters between the name of a command and its option
ENDS_OF_COMMANDS = (b"\n", b"\\n", b"|", b";", b" && ")
ENDS_OF_ESCAPES = b"bfm0123456789"
UUID_LENGTH = 36
# Words of an assigned name, and parts of a value for them that is a placeholder (see _judge.py)
KEYS = ("secret", "token", "key")
PLACEHOLDERS = ("example", "placeholder", "redacted", "changeme", "your-", "your_", "...", "***")
BLOCK = 1 << 15  # characters that are searched for roots at once
# Characters: of texts that get one look, and of the longest of them
TOGETHER = 32_000
LONGEST_TOGETHER = 2_000
MOST_NAMES = 1000
MOST_WORDS = 10_000
MOST_ROOTS = 5000
MOST_RUNS = 20_000
LONGEST_KNOWN = 200  # characters of a run that is remembered
# Texts have the same names, words and runs over and over
_known_names: dict[bytes, bool] = {}
_known_roots: dict[bytes, list[Row]] = {}
_dull_words: set[bytes] = set()  # with which no token begins
_dull_runs: set[bytes] = set()  # without the first word of a token
SIGNS_OF_TOKENS = (b"%", *[keyword for _, keyword in TABLES.inside])
FLAG_ENDS = ("=", " ", "\t", "\\")


class Secret:
    """A secret, `text[start:end]`; `kind` describes it in a few words, as in `[redacted: kind]`."""

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
    """Places for the second look.

    They are numbers of rules with the offsets of their keywords; values of names like PASSWORD; and
    (start, end) of long runs that may be the value of a rule's name."""

    def __init__(self) -> None:
        self.rules: list[tuple[int, int]] = []
        self.values: list[AssignedValue] = []
        self.named: list[tuple[int, int]] = []

    def __bool__(self) -> bool:
        return bool(self.rules or self.values or self.named)


def redact(text: str) -> str:
    """Return `text` with `[redacted: kind]` instead of every secret. Never raise for a string.

    Search again until nothing is found, because a secret next to another may be found only after
    that is gone."""
    while secrets := find_secrets(text):
        parts = []
        end = 0
        for secret in secrets:
            parts += [text[end : secret.start], f"[redacted: {secret.kind}]"]
            end = secret.end
        text = "".join(parts) + text[end:]
    return text


def redact_all(texts: Sequence[str]) -> list[str]:
    """Return `redact` of each text, in less time for many short ones."""
    possible = set(_possible(texts))
    return [redact(text) if n in possible else text for n, text in enumerate(texts)]


def _possible(texts: Sequence[str]) -> Iterator[int]:
    """Yield the numbers of the texts that may have a secret: all long ones, and few short ones.

    The steps of a look take most of the time for a short text, so many of them get one look."""
    batch: list[int] = []
    size = 0
    for number, text in enumerate(texts):
        # A word behind a % is also looked for with its neighbours
        if len(text) > LONGEST_TOGETHER or "%" in text:
            yield number
            continue
        batch.append(number)
        size += len(text)
        if size > TOGETHER:
            yield from _suspects_of(texts, batch)
            batch, size = [], 0
    if batch:
        yield from _suspects_of(texts, batch)


def _suspects_of(texts: Sequence[str], numbers: list[int]) -> Iterator[int]:
    """Yield the numbers of the texts in which one look at all of them finds a place.

    It finds every place that a look at each text finds, since it sees as much around a keyword."""
    candidates, signs = _look("\n".join([texts[number] for number in numbers]))
    places = [at for _, at in candidates.rules] + [end - 1 for _, end in candidates.named]
    end = -1
    following = iter(numbers)
    for at in sorted([*places, *signs]):
        if at <= end:
            continue
        for number in following:
            end += 1 + len(texts[number])
            if at < end:
                yield number
                break


def find_secrets(text: str) -> list[Secret]:
    """Return the secrets in `text`, in order, without overlaps. Never raise for a string."""
    candidates = spots(text)
    if not candidates:
        return []
    from .scan import find

    return [Secret(kind, start, end) for kind, start, end in find(text, candidates)]


def spots(text: str) -> Spots:
    """Return where secrets may be."""
    candidates, signs = _look(text)
    if signs:
        candidates.values = [
            value for value in _assigned_values(text, signs) if _may_be_secret(text, value)
        ]
    return candidates


def _look(text: str) -> tuple[Spots, dict[int, bool]]:
    """Return where secrets may be, and the signs of assignments (see `_look_behind_name`)."""
    # one byte a character: a place in it is that in the text
    shadow = text.encode("ascii", "replace")
    small = shadow.lower()
    if b"\\" in shadow:  # the letter of an escape is not part of the word after it
        shadow = shadow.replace(b"\\n", b"  ").replace(b"\\t", b"  ").replace(b"\\r", b"  ")
    shape = shadow.translate(DIGITS_AS_ZERO)
    candidates = Spots()
    _find_in_runs(candidates, shadow, shape)
    signs = _find_places(candidates, text, small)
    for number, keyword in TABLES.digits:
        if keyword in shape:
            candidates.rules += [
                (number, at) for at in _places(shape, keyword) if _begins_number(shape, at)
            ]
    return candidates, signs


def _begins_number(shape: bytes, at: int) -> bool:
    """Check if the digits that begin at `at` are not part of a number longer than a card's."""
    return shape[at - 1 : at] not in (b"0", b".") and shape[at : at + 17] != b"0" * 17


def _find_in_runs(candidates: Spots, shadow: bytes, shape: bytes) -> None:
    """Add the finds in long runs without spaces and brackets.

    A run needs a digit, as tokens have, or must be very long."""
    is_dull = _dull_runs.__contains__
    runs = []
    suspects = []
    for start, end, has_digit in _long_runs(shadow.translate(IN_RUNS) + b"\0", shape):
        length = end - start
        # Times and UUIDs are half of all runs with a digit, and hold no keyword
        if length <= LONGEST_TIME and shape.startswith(TIME, start):
            continue
        run = shadow[start:end]
        if length != UUID_LENGTH or run[8:-12:5] != b"----":
            runs.append(run)
            if not is_dull(run):
                suspects.append(run)
        if has_digit:
            first = _opening(shadow, start) if shadow[start - 1] in OPENS_RUN else start
            if (first < start and _names_rule(shadow, first)) or (
                (b":" in run or b"=" in run)
                and _names_rule_within(shadow, start, end - SHORTEST_VALUE)
            ):
                candidates.named.append((first, end))
    if suspects:
        _find_tokens(candidates, shadow, runs, suspects)


def _long_runs(inside: bytes, shape: bytes) -> Iterator[tuple[int, int, bool]]:
    """Yield the beginning and end of each long run with a digit, and of each very long run.

    `inside` has a 255 for each character of a run. Four of five long runs are neither, so the
    search goes from a long run to the next digit, and from that run to the next long one."""
    find = inside.find
    at = find(LONG_RUN)
    while at >= 0:
        digit = shape.find(48, at)
        start = (inside.rfind(0, at, digit) + 1 or at) if digit >= 0 else len(inside)
        very_long = find(VERY_LONG_RUN, at, start)
        while very_long >= 0:
            end = find(0, very_long)
            yield very_long, end, False
            very_long = find(VERY_LONG_RUN, end, start)
        if digit < 0:
            return
        end = find(0, digit)
        if end - start >= LEAST_RUN:
            yield start, end, True
        at = find(LONG_RUN, end)


def _opening(shadow: bytes, start: int) -> int:
    """Return where the signs, quotation marks and blanks before a run begin, if one is a sign."""
    if shadow[start - 2 : start - 1].isalnum() and shadow[start - 1] not in OTHER_SIGNS:
        return start
    before = shadow[max(0, start - LONGEST_OPENING) : start]
    opening = before[len(before.rstrip(OPENS_RUN)) :]
    return start - len(opening) if opening.strip(NO_SIGNS) else start


def _names_rule_within(shadow: bytes, start: int, end: int) -> bool:
    """Check if a rule's name precedes the first or last sign within `shadow[start:end]`."""
    for sign in SIGNS_WITHIN:
        at = shadow.find(sign, start, end)
        if at >= 0:
            last = shadow.rfind(sign, at, end)
            if _names_rule(shadow, at) or (last > at and _names_rule(shadow, last)):
                return True
    return False


def _find_tokens(
    candidates: Spots, shadow: bytes, runs: list[bytes], suspects: list[bytes]
) -> None:
    """Add the keywords of tokens in the runs. All that have some are among the suspects.

    They are looked up by their first word, or by the beginning of their only one."""
    joined = b" ".join(suspects)
    signs = [sign for sign in SIGNS_OF_TOKENS if sign in joined]
    rows = dict.fromkeys([row for row in TABLES.inside if row[1] in signs])
    # A word behind a URL's escape may be cut, within the next run
    words = _words_of(runs, behind_escapes=True) if b"%" in signs else _words_of(suspects)
    first_words = set()
    for word in set(words).difference(_dull_words):
        if rows_of_word := _rows_of(word):
            first_words.add(word)
            rows.update(dict.fromkeys(rows_of_word))
        elif len(word) <= LONGEST_WORD:
            _dull_words.add(word)
    _note_dull_runs(suspects, signs, first_words)
    joined = b" ".join(runs) if rows else b""
    for number, keyword in rows:
        if keyword in joined:
            row, length = rule(number), len(keyword)
            is_inside = row.form == "inside"
            candidates.rules += [
                (number, at)
                for at in _places(shadow, keyword)
                if (is_inside or _begins_word(shadow, at)) and row.may_follow(shadow, at + length)
            ]


def _note_dull_runs(suspects: list[bytes], signs: list[bytes], first_words: set[bytes]) -> None:
    """Remember the runs that have neither one of the signs nor a first word of a token."""
    if len(_dull_words) > MOST_WORDS:
        _dull_words.clear()
    if len(_dull_runs) > MOST_RUNS:
        _dull_runs.clear()
    _dull_runs.update(
        [
            run
            for run in suspects
            if len(run) <= LONGEST_KNOWN
            and not any([sign in run for sign in signs])
            and (not first_words or first_words.isdisjoint(_words_of([run])))
        ]
    )


def _words_of(runs: list[bytes], *, behind_escapes: bool = False) -> list[bytes]:
    """Return the words of runs.

    A run may begin with the end of an escape of JSON or of a terminal, which may be part of its
    first word. So that word is there without it, too. The same goes for words behind the escapes of
    a URL, on request."""
    rests = [run.lstrip(DIGITS)[1:LONG_BEGINNING] for run in runs if run[0] in ENDS_OF_ESCAPES]
    joined = b" ".join(runs + rests)
    if behind_escapes:
        joined = b" ".join([joined, *[part[2:LONG_BEGINNING] for part in joined.split(b"%")[1:]]])
    return joined.translate(AS_WORDS).split()


def _rows_of(word: bytes) -> list[tuple[int, bytes]]:
    """Return (number, keyword) of the tokens that may begin with a word."""
    rows = TABLES.words.get(word, []) + TABLES.heads.get(word[:3], [])
    return rows + TABLES.heads.get(word[:2], []) if len(word) >= LEAST_BEHIND_TWO else rows


def _begins_word(shadow: bytes, at: int) -> bool:
    """Check if no letter or digit precedes `at`.

    The end of an escape of JSON, a URL or a terminal may precede it."""
    before = shadow[max(0, at - 3) : at]
    return not before[-1:].isalnum() or before[-1:] == b"m" or b"\\" in before or b"%" in before


def _names_rule(shadow: bytes, sign: int) -> bool:
    """Check if the name before a sign is a rule's or contains one.

    Its words may be separated by signs or by case."""
    if shadow[sign + 1 : sign + 3] == b"//":
        return False
    before = shadow[max(0, sign - NAME_WITHIN) : sign].rstrip(BEHIND_NAME)
    name = before[len(before.rstrip(NAME_CHARACTERS)) :]
    is_known = _known_names.get(name)  # once, because another thread may clear them
    if is_known is None:
        if len(_known_names) > MOST_NAMES:
            _known_names.clear()
        is_known = _known_names[name] = _is_of_rule(name)
    return is_known


def _is_of_rule(name: bytes) -> bool:
    """Check if one word of a name, or two joined words, are a rule's name."""
    words = name.lower().translate(AS_WORDS).split()
    if not words:
        return False
    if words[-1].endswith(ENDINGS) or not TABLES.names.isdisjoint(
        [*words, *map(bytes.__add__, words, words[1:])]
    ):
        return True
    last = name.rsplit(b" ", 1)[-1]  # its words may be parted by case
    is_parted = last[1:] != last[1:].lower() and last != last.upper()
    joined = b"".join(words)
    return is_parted and any(known in joined for known in TABLES.names)


def _find_places(candidates: Spots, text: str, small: bytes) -> dict[int, bool]:
    """Add the keywords of rules for places. Return the signs after possible names.

    See `_look_behind_name`."""
    signs: dict[int, bool] = {}
    gates: set[bytes] = set()
    known = _known_roots.get
    for base in range(0, len(small), BLOCK):
        block = small[base : base + BLOCK + 3]  # a root may begin at its last character
        marks = _root_marks(block)
        mark = marks.find(1)
        while 0 <= mark < BLOCK:
            beginning = block[mark : mark + 4]
            rows = known(beginning)
            if rows is None:
                rows = _rows_at(beginning)
            for keyword, offset, numbers in rows:
                at = base + mark - offset
                if at < 0 or not small.startswith(keyword, at):
                    continue
                for number in numbers:
                    if number == NO_RULE:
                        _look_behind_name(signs, text, small, at + len(keyword))
                    elif number == GATE:
                        gates.add(keyword)
                    else:
                        _add_place(candidates, number, small, at, keyword, base + mark)
            mark = marks.find(1, mark + 1)
    for gate in gates:
        candidates.rules += [
            (number, at)
            for number, keyword in TABLES.gates[gate]
            for at in _places(small, keyword)
            if not (rule(number).begins_word and _ends_word(small, at))
        ]
    if not text.isascii():
        _add_foreign_words(candidates, text)
    return signs


def _rows_at(beginning: bytes) -> list[Row]:
    """Return the rows of the roots with which a keyword may go on, by its first four characters."""
    rows = [
        row
        for length in (3, 2)
        for row in TABLES.roots.get(beginning[:length], ())
        if row[0].startswith(beginning[: len(row[0]) - row[1]], row[1])
    ]
    if len(_known_roots) > MOST_ROOTS:
        _known_roots.clear()
    _known_roots[beginning] = rows
    return rows


def _add_place(
    candidates: Spots, number: int, small: bytes, at: int, keyword: bytes, root: int
) -> None:
    """Add a rule's keyword, at `at` and with its root at `root`, if its surroundings fit."""
    row = rule(number)
    if row.form == "command":
        if _stands_behind(small, at, row.gate.encode().split(b"|")):
            candidates.rules.append((number, at + 1))
    elif (
        row.may_follow(small, at + len(keyword))
        and (not row.soon or _has_soon(row.soon, small, at + len(keyword)))
        and (not row.near or small.find(row.near, at, at + NEAR) >= 0)
        and (not row.within_url or _is_in_url(row.within_url, small, at))
        and (row.judge not in ("prose", "password") or _holds_password(small, root))
    ):
        candidates.rules.append((number, at))


def _has_soon(words: list[bytes], text: bytes, at: int) -> bool:
    """Check if one of the words comes soon after `at`, before a sign that ends a clause."""
    clause = text[at : at + SOON].translate(AS_CLAUSES).partition(b"\n")[0]
    return any([clause.find(word) >= 0 for word in words])


def _is_in_url(part: bytes, text: bytes, at: int) -> bool:
    """Check if a part comes after `at` and before the next blank, quote, angle bracket or backslash.

    Few URLs have one of the parts, so it is searched for before the end of the URL."""
    place = text.find(part, at, at + NEAR)
    return place >= 0 and b" " not in text[at : place + len(part)].translate(AS_URLS)


def _ends_word(text: bytes, at: int) -> bool:
    """Check if a letter, a digit or _ precedes `at`."""
    before = text[at - 1 : at]
    return before.isalnum() or before == b"_"


def _add_foreign_words(candidates: Spots, text: str) -> None:
    """Add the words for passwords of other languages."""
    encoded = text.encode("utf-8", "ignore")  # a byte is found sooner than a letter
    for letter in FOREIGN_WORDS:
        if letter.encode()[:1] not in encoded or letter not in text:
            continue
        spots = [at for word in FOREIGN_WORDS[letter] for at in _places(text, word)]
        candidates.rules += [(number, at) for number in TABLES.foreign for at in spots]


def _root_marks(text: bytes) -> bytes:
    """Return bytes with a 1 where a root of keywords may begin.

    There, all of the first three characters have the bit of the root's set."""
    first, second, third = [
        int.from_bytes(text.translate(column), "little") for column in TABLES.columns
    ]
    return (first & second >> 8 & third >> 16).to_bytes(len(text), "little").translate(ANY_BIT)


def _holds_password(small: bytes, at: int) -> bool:
    """Check if a word soon after `at` has digits or signs among its letters.

    Sentences call such words a password."""
    for word in small[at : at + PASSWORD_WITHIN].split():
        signs = word.translate(None, LETTERS_AND_ENDS)
        if (
            len(word) >= 4
            and signs
            and (signs.translate(None, DIGITS) or len(signs) < len(word.strip(ENDS_OF_WORDS)))
        ):
            return True
    return False


def _stands_behind(small: bytes, option: int, names: list[bytes]) -> bool:
    """Check if the option at `option` belongs to a command with one of these names."""
    for name in names:
        start = small.rfind(name, max(0, option - COMMAND_WITHIN), option + 1)
        between = (
            small[start:option]
            .replace(b"\\\n", b" ")
            .replace(b"\\\\n", b" ")
            .replace(b"\\\r\n", b" ")
        )
        if start >= 0 and not any(end in between for end in ENDS_OF_COMMANDS):
            return True
    return False


def _assigned_values(text: str, signs: dict[int, bool]) -> Iterator[AssignedValue]:
    """Yield the values of names that end in a word like password, in order."""
    from .assignments import assigned_value, flag_value

    end = 0
    for sign in sorted(signs):
        value = (flag_value if signs[sign] else assigned_value)(text, sign) if sign >= end else None
        if value is not None:
            yield value
            if value.end - value.start > LONG_VALUE:
                # search no other value inside it, because time would then grow faster than the text
                end = value.end


def _look_behind_name(signs: dict[int, bool], text: str, small: bytes, at: int) -> None:
    """Add the place after the possible name at `at`, with whether it is an option.

    It is the sign of an assignment (False) or the end of an option (True)."""
    after_name = small[at : at + LONGEST_REST].lstrip(REST_OF_NAME)
    end = at + min(LONGEST_REST, len(small) - at) - len(after_name)
    behind = after_name.lstrip(BEHIND_NAME)
    if text[end : end + 1] in FLAG_ENDS and text.rfind("--", max(0, at - NAME_WITHIN), end) >= 0:
        signs[end] = True
    elif behind[:1] in OPENS_VALUE:
        signs.setdefault(end + len(after_name) - len(behind), False)


def _may_be_secret(text: str, value: AssignedValue) -> bool:
    """Check, before `re` is loaded, if a value may be a secret, token or key.

    Placeholders are not, and plain words in places where they cannot be secrets."""
    content = text[value.start : value.end]
    if value.word in KEYS and any(map(content.lower().__contains__, PLACEHOLDERS)):
        return False
    return value.word == "password" or value.form == "env" or not content.isalpha()


def _places(text: bytes | str, literal: bytes | str, first: int = 0) -> Iterator[int]:
    """Yield every offset of `literal` in the text, which begins at `first`."""
    at = text.find(literal)  # type: ignore[arg-type]
    while at >= 0:
        yield first + at
        at = text.find(literal, at + 1)  # type: ignore[arg-type]
