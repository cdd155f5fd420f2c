"""The value assigned to a name like DB_PASSWORD or apiKey: its beginning and end. Pure.

It works in shell, env files, JSON, YAML, TOML, INI, URLs and code, also inside a string of another
file, and does not use `re`.
"""

from __future__ import annotations

from .rules import AFTER_WORDS, ALPHANUMERIC, BETWEEN, NAME_WITHIN

QUOTES = "\"'`"
# The kinds of names by their last word; words are separated by `_`, `-`, `.` or a change of case.
WORDS = {
    **dict.fromkeys(
        ("password", "passwd", "passwort", "passphrase", "passcode", "passe", "pw", "pwd"),
        "password",
    ),
    "pass": "pass",
    **{
        "kennwort": "password",
        "secret": "secret",
        "seed": "seed",
        "token": "token",
        "key": "key",
        "apikey": "key",
    },
}
GLUED = {
    **dict.fromkeys(
        ("password", "passwd", "passphrase", "dbpass", "userpass", "smtppass", "dbpw", "pwd"),
        "password",
    ),
    **dict.fromkeys(("clientsecret", "appsecret", "apisecret", "jwtsecret"), "secret"),
    **dict.fromkeys(("authtoken", "accesstoken", "apitoken", "bottoken", "refreshtoken"), "token"),
    **dict.fromkeys(("apikey", "accesskey", "secretkey", "privatekey", "authkey"), "key"),
}
# of what a seed is a secret
SEEDS = ("mfa", "otp", "totp", "hotp", "2fa", "authenticator", "wallet")
DIRECTORIES = ("PWD", "OLDPWD")  # of a shell
# the most characters from the word to the sign, not counting blanks before the sign
MOST_BETWEEN = 4
NAME_CHARACTERS = ALPHANUMERIC + "_.-"
AS_BLANKS = {ord(sign): " " for sign in "_.-"}  # what parts the words of a name
NO_DIGITS = NAME_CHARACTERS[10:] + " \t\r\"'`()[]{}<>,:;=+*/\\&|?!@#$%^~"
VALUE_WITHIN = 4096
BLANKS = " \t"
MOST_BLANKS = 40
MARK = "[redacted"
# Text allowed before the name if an assignment fills its line: prompts of a shell, diffs, lists,
# listings.
BEFORE_NAMES = "$#>+-→|0123456789 \t\"'`*"
KEYWORDS = (
    "export",
    "set",
    "setx",
    "env",
    "arg",
    "declare",
    "local",
    "readonly",
    "let",
    "const",
    "var",
)
MOST_NAMES = 1000
_known_names: dict[str, tuple[str, str]] = {}  # texts have the same names over and over
_CLOSING = {")": "(", "]": "[", "}": "{"}
_ENDS = ".,:;"


class AssignedValue:
    """The value `text[start:end]` of a name.

    `word` is the last word of the name (password, pass, secret, seed, token or key) and `qualifier`
    the word before it, both in lower case. `form` is `env` for NAME=value, `line` if the value is
    the rest of its line, `tight` for name=value, `flag` for --name value, else ''. `quote` is the
    quotation mark around the value, or ''."""

    def __init__(
        self, word: str, qualifier: str, form: str, quote: str, start: int, end: int
    ) -> None:
        self.word = word
        self.qualifier = qualifier
        self.form = form
        self.quote = quote
        self.start = start
        self.end = end


class _Name:
    """The name `text[start:end]` before the sign of an assignment, with its last two words."""

    __slots__ = ("end", "qualifier", "sign", "start", "text", "word")

    def __init__(self, text: str, sign: int, start: int, end: int) -> None:
        self.text = text
        self.sign = sign
        self.start = start
        self.end = end
        self.word, self.qualifier = _word_of(text[start:end])

    def is_tight(self, start: int) -> bool:
        """Check if the sign has no blanks around it, for a value that begins at `start`."""
        return self.end == self.sign and start == self.sign + 1

    def is_env(self, start: int) -> bool:
        """Check if this is a variable of an env file, for a value that begins at `start`."""
        is_equal = self.text[self.sign] == "=" and self.is_tight(start)
        return is_equal and self.text[self.start : self.end].isupper()


def assigned_value(text: str, sign: int) -> AssignedValue | None:
    """Return the value after the `:` or `=` at `sign`, or after the tag that ends there, or None.

    A name that ends in one of the WORDS must precede it."""
    name_start, name_end = _name_before(text, sign)
    if name_start < 0 or (text[sign] == ">" and not _is_tag(text, name_start, name_end, sign)):
        return None
    name = _Name(text, sign, name_start, name_end)
    start = _value_start(text, sign) if name.word else -1
    if start < 0:
        return None
    ends_line = _is_line_end(text, start)
    is_free = ends_line or name.word == "password" or name.is_env(start)
    if not is_free and not _has_digit_near(text, start):
        return None  # as most of them: nothing else is a secret without a digit
    line_start, is_first = _line_before(text, name_start)
    if ends_line:
        if not is_first or text[sign] != ":":
            return None
        start = _next_line_value(text, start, name_start - line_start)
        if start < 0:
            return None
        if text[sign + 1 : start].strip().startswith((">", "|")):
            end = _end_of_line(text, start)
            return AssignedValue(name.word, name.qualifier, "line", "", start, end)
    return _value_at(name, start, is_first=is_first)


def _value_at(name: _Name, start: int, *, is_first: bool) -> AssignedValue | None:
    """Return the value of a name that begins at `start`, or None.

    `is_first` means that the name is the first on its line."""
    text, sign, is_tight = name.text, name.sign, name.is_tight(start)
    form = "env" if name.is_env(start) else ""
    value_start, end, quote = whole_value(text, start, form == "env" and is_first)
    if not form and is_first and (text[sign] == ":" or is_tight) and not quote:
        is_phrase = text[name.start : name.end].lower().endswith("phrase")
        end, form = _rest_of_line(text, value_start, end, is_phrase)
    if is_tight and text[sign] == "=":
        form = form or "tight"
    if value_start >= end or text.startswith(MARK, value_start):
        return None
    return AssignedValue(name.word, name.qualifier, form, quote, value_start, end)


def _is_tag(text: str, name_start: int, name_end: int, sign: int) -> bool:
    """Check if the `>` at `sign` ends a tag with that name, and the element ends soon after."""
    is_tag = text[name_start - 1 : name_start] == "<" and name_end == sign
    return is_tag and text.find("</", sign, sign + VALUE_WITHIN) >= 0


def _has_digit_near(text: str, start: int) -> bool:
    """Check if the rest of a line has a digit, as far as a value may extend."""
    end = text.find("\n", start, start + VALUE_WITHIN)
    return text[start : end if end >= 0 else start + VALUE_WITHIN].strip(NO_DIGITS) != ""


def flag_value(text: str, end: int) -> AssignedValue | None:
    """Return the value of an option like --db-password, whose name ends at `end`, or None."""
    start = end
    while start > max(0, end - NAME_WITHIN) and text[start - 1] in NAME_CHARACTERS:
        start -= 1
    _, dashes, name = text[start:end].rpartition("--")  # behind an escape, letters may be before it
    word, qualifier = _word_of(name)
    if not word:  # its case parts it elsewhere, as in --passWord
        word, qualifier = _word_of(name.lower())
    at = end + 1 if text[end : end + 1] == "=" else _after_blanks(text, end)
    if not dashes or not word or at == end:
        return None
    value_start, value_end, quote = whole_value(text, at)
    if value_start >= value_end or text.startswith(MARK, value_start):
        return None
    return AssignedValue(word, qualifier, "flag", quote, value_start, value_end)


def _word_of(name: str) -> tuple[str, str]:
    """Return a name's last word, in the spelling of WORDS, and the word before it, or ''."""
    known = _known_names.get(name)  # once, because another thread may clear them
    if known is None:
        if len(_known_names) > MOST_NAMES:
            _known_names.clear()
        words = words_of(name)
        last = words[-1] if words else ""
        qualifier = words[-2] if len(words) > 1 else ""
        if name in DIRECTORIES or (last == "seed" and qualifier not in SEEDS):
            word = ""
        else:
            word = WORDS.get(last) or next((GLUED[end] for end in GLUED if last.endswith(end)), "")
        known = _known_names[name] = word, qualifier
    return known


def words_of(name: str) -> list[str]:
    """Return the words of an identifier in lower case, without trailing digits.

    `dbPassword_2` gives db, password."""
    words: list[str] = []
    word = ""
    name = name.rstrip(AFTER_WORDS)
    if name.islower():  # as most
        return name.translate(AS_BLANKS).split()
    for at, character in enumerate(name):
        following = name[at + 1 : at + 2]
        begins = character.isupper() and (
            not word.isupper() or (following.islower() and len(word) > 1)
        )
        if word and (begins or not character.isalnum()):
            words.append(word.lower())
            word = ""
        if character.isalnum():
            word += character
    return [*words, word.lower()] if word else words


def whole_value(text: str, start: int, is_line: bool = False) -> tuple[int, int, str]:
    """Return the bounds of the value at `start` without its quotation marks, and the mark.

    A value without a mark ends at white space, or where the surrounding syntax continues or ends.
    With `is_line`, if it fills its line, it ends only at white space, and at the quotation mark or
    escape that ends a string around it."""
    at = start
    while text[at : at + 1] == "\\":
        at += 1
    quote = text[at : at + 1]
    if quote and quote in QUOTES and at - start < 8:
        if text.startswith(quote * 3, at):
            end = text.find(quote * 3, at + 3)
            return at + 3, end if end >= 0 else _end_of_word(text, at + 3), quote
        end = _end_of_quoted(text, at + 1, quote, at - start)
        return at + 1, end if end >= 0 else _end_of_word(text, at + 1), quote if end >= 0 else ""
    return start, _end_of_unquoted(text, start, is_line), ""


def _name_before(text: str, sign: int) -> tuple[int, int]:
    """Return the beginning and end of the name before a sign.

    Return -1 without a name, or if the sign does not assign."""
    # a::b, a != b; `:=` is at its `:`
    if text[sign + 1 : sign + 2] == ":" or (sign and text[sign - 1] in "!<>=:~"):
        return -1, -1
    end = sign
    lowest = max(0, sign - MOST_BLANKS)
    while end > lowest and text[end - 1] in BETWEEN:
        if text[end - 1] == "]" and text[end - 2 : end - 1] not in ('"', "'"):
            return -1, -1  # no subscript: a mark, or Markdown
        end -= 1
    start = end
    lowest = max(0, end - NAME_WITHIN)
    while start > lowest and text[start - 1] in NAME_CHARACTERS:
        start -= 1
    # the escape of a line feed
    if text[start - 1 : start] == "\\" and text[start : start + 1] in tuple("nrt"):
        start += 1
    if sign - start - len(text[start:end].rstrip(AFTER_WORDS)) > MOST_BETWEEN and text[
        sign - 2 : sign
    ].strip(BLANKS):
        return -1, -1
    return start, end


def _value_start(text: str, sign: int) -> int:
    """Return the beginning of the value after a sign, on the same line, or -1."""
    at = sign + 1
    while text[at : at + 1] in ("=", ">"):
        at += 1
    if text.startswith("**", at):  # Markdown: `**Password:** value`
        at += 2
    at = _after_blanks(text, at)
    if text[sign] == ":":
        at = _after_type(text, at)
    # the prefix of a string
    if text[at : at + 1] in tuple("rbfuLN@$") and text[at + 1 : at + 2] in ('"', "'"):
        at += 1
    return at


def _after_blanks(text: str, at: int) -> int:
    """Return the offset after the blanks at `at`, and after a backslash that continues the line."""
    stop = at + MOST_BLANKS
    while at < stop and text[at : at + 1] in (" ", "\t"):
        at += 1
    end = at
    while text[end : end + 1] == "\\":
        end += 1
    if end > at and (
        text[end : end + 1] in ("\n", "\r") or (end > at + 1 and text[end : end + 1] == "n")
    ):
        end += 2 if text[end] == "\r" else 1
        return _after_blanks(text, end) if at < stop else at
    return at


def _after_type(text: str, at: int) -> int:
    """Return the offset after a type and its sign, as in `password: str = "..."`, else `at`."""
    end = at
    while end < at + MOST_BLANKS and (
        text[end : end + 1].isalnum() or text[end : end + 1] in tuple("_.&<>[]|? '")
    ):
        end += 1
    if end == at or text[end : end + 1] != "=":
        return at
    quote = _after_blanks(text, end + 1)
    return quote if text[quote : quote + 1] in tuple(QUOTES) else at


def _is_line_end(text: str, at: int) -> bool:
    """Check if the line ends at `at`, perhaps after YAML's sign for a text on the next lines."""
    while text[at : at + 1] in ("|", ">", "-", "+"):
        at += 1
    return at >= len(text) or text[at] in "\r\n" or text.startswith(("\\n", "\\r\\n"), at)


def _next_line_value(text: str, at: int, indent: int) -> int:
    """Return the beginning of the value on the next line, indented more than `indent`, or -1."""
    real, escaped = text.find("\n", at, at + 8), text.find("\\n", at, at + 8)
    if real < 0 and escaped < 0:
        return -1
    line = real + 1 if real >= 0 else escaped + 2
    start = line
    while text[start : start + 1] in (" ", "\t"):
        start += 1
    end = _end_of_word(text, start)
    if (
        start - line < indent + (text[at : at + 1] not in (">", "|"))
        or end == start
        or text[end - 1] == ":"
        or text[start] in "-#"
    ):
        return -1
    return start


def _end_of_line(text: str, start: int) -> int:
    ends = [text.find(mark, start, start + VALUE_WITHIN) for mark in ("\n", "\\n", '"')]
    end = min([end for end in ends if end >= 0], default=min(len(text), start + VALUE_WITHIN))
    return start + len(text[start:end].rstrip())


def _line_before(text: str, name_start: int) -> tuple[int, bool]:
    """Return where a name's line begins, after the text of listings, and if it is first there."""
    lowest = max(0, name_start - 80)
    escaped = text.rfind("\\n", lowest, name_start)
    start = max(
        text.rfind("\n", lowest, name_start) + 1, escaped + 2 if escaped >= 0 else 0, lowest
    )
    before = text[start:name_start]
    if not before.strip(BEFORE_NAMES):
        return start + len(before.rpartition("→")[0]) + (1 if "→" in before else 0), True
    words = before.strip(BEFORE_NAMES).lower().split()
    return start, all(word in KEYWORDS or word == "$env:" or word.startswith("-") for word in words)


def _rest_of_line(text: str, start: int, end: int, is_phrase: bool) -> tuple[int, str]:
    """Return the end of a value that is the rest of its line, and its form.

    If other text follows the value, return them unchanged. Several words are a value only if all
    have digits, or as a phrase, because YAML needs no quotation marks."""
    if text[end : end + 1] in tuple(";&,") and _begins_another(text, end + 1):
        return end, ""
    stop = _end_of_unquoted(text, start, True)
    while stop < len(text) and text[stop] not in "\r\n\"'`" and stop < start + VALUE_WITHIN:
        if text.startswith(("\\n", '\\"', " #", " //"), stop):
            break
        stop += 1
    remainder = text[start:stop].strip().rstrip("\\")
    words = remainder.split()
    if len(words) == 1 and remainder[-1] not in ",;{([":
        return start + len(remainder), "line"
    has_digits = all(any(character.isdigit() for character in word) for word in words)
    if 1 < len(words) <= 6 and (
        has_digits or (is_phrase and len(words) > 2 and remainder.replace(" ", "").isalpha())
    ):
        return start + len(remainder), "line"
    return end, ""


def _end_of_quoted(text: str, start: int, quote: str, backslashes: int) -> int:
    """Return the end of the string begun by `quote` after so many backslashes, or -1.

    It is -1 if the line ends before the string."""
    at = start
    while (at := text.find(quote, at, start + VALUE_WITHIN)) >= 0:
        before = at
        while before > start and text[before - 1] == "\\":
            before -= 1
        run = at - before
        if run % 2 == 0 if not backslashes else run <= backslashes:
            if "\n" in text[start:at]:
                return -1
            return before if backslashes else at
        at += 1
    return -1


def _end_of_word(text: str, start: int) -> int:
    at = start
    stop = min(len(text), start + VALUE_WITHIN)
    while at < stop and not text[at].isspace() and not text.startswith(("\\n", "\\r"), at):
        at += 1
    return at


def _end_of_unquoted(text: str, start: int, is_line: bool) -> int:
    opened: list[str] = []
    at = start
    stop = min(len(text), start + VALUE_WITHIN)
    while at < stop:
        character = text[at]
        if character.isalnum():
            at += 1
            continue
        following = text[at + 1 : at + 2]
        if character.isspace() or character == "\0" or _is_end(character, following):
            break
        if not is_line:
            if character == "<" and following == "/":
                break
            if character in ";&," and _begins_another(text, at + 1):
                break
            if character in "([{":
                opened.append(character)
            elif character in _CLOSING:
                if opened:
                    opened.pop()
                elif not following.isalnum():
                    break
        at += 1
    while at > start and text[at - 1] in _ENDS:
        at -= 1
    return at


def _is_end(character: str, following: str) -> bool:
    """Check if an escape or quotation mark ends a value, given the following character."""
    if character == "\\":
        return not following or following in "nrt\"'\\`"
    return character in QUOTES and not following.isalnum()


def _begins_another(text: str, at: int) -> bool:
    """Check if another assignment begins at `at`, as in a query, connection string or list."""
    end = at
    while end < at + NAME_WITHIN and (
        text[end : end + 1] in tuple(NAME_CHARACTERS) or text[end : end + 1] == " "
    ):
        end += 1
    return end > at and text[end : end + 1] == "="
