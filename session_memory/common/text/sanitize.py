"""Makes text from elsewhere safe for the store, people, or a prompt. Pure.

The result has plain characters on lines, without terminal sequences, invisible characters and
secrets. Secrets are searched for in plain characters, because an invisible one could hide them.
Angle brackets are replaced last, when no removal can join two halves of a tag any more. Text is cut
only after redaction, because half a token is not recognised. If only the beginning of a long text
is needed, cut it with `beginning` first.
"""

from __future__ import annotations

from .format import one_line, shorten
from .secrets.redaction import redact, redact_all, spots

# Invisible characters that `str.isprintable` accepts: joiners, fillers and variation selectors (Mn,
# Lo, So). It refuses control, format, bidi, tag, surrogate, private-use and unassigned characters,
# which are removed too.
_BLANK = frozenset(
    "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0\U0001d159"
    "\ufe00\ufe01\ufe02\ufe03\ufe04\ufe05\ufe06\ufe07\ufe08\ufe09\ufe0a\ufe0b\ufe0c\ufe0d\ufe0e\ufe0f"
)
_FIRST_SELECTOR = "\U000e0100"  # of the supplement: no visible character is beyond it
# Joiners, which matter in emoji and in several scripts; one is kept after a character beyond ASCII.
_JOINERS = frozenset("\u200c\u200d\ufe0e\ufe0f")
_ASCII = bytes(range(128))
# all bytes except the control characters of ASCII, but with the line feed
_NO_CONTROLS = bytes([10, *range(32, 127), *range(128, 256)])
QUOTABLE_CHARACTERS = 500  # the rest of a longer text is not quoted
FEW = 8  # different characters; up to this many, `str.replace` is faster than `str.translate`
_LONGEST_WORD = 16 * 1024  # a token is not longer, nor is a line of a key
_ANGLES = str.maketrans({"<": "‹", ">": "›", "＜": "‹", "＞": "›", "﹤": "‹", "﹥": "›"})


def for_storage(text: str) -> str:
    """Return `text` for the store, in the form of `for_people`, because people read the store."""
    return for_people(text)


def for_people(text: str) -> str:
    """Return `text` for people, on a page, a terminal or in a log: plain and without secrets."""
    return redact(plain(text))


def all_for_people(texts: list[str]) -> list[str]:
    """Return `for_people` of each text, in less time for many short ones."""
    return redact_all([plain(text) for text in texts])


def name_for_people(text: str) -> str:
    """Return `for_people(text)` on one line, for the name of a file, session or directory.

    Such a name may contain anything."""
    return for_people(text).replace("\n", " ")


def shortened(text: str, limit: int) -> str:
    """Return `for_people(text)` on one line, in at most `limit` characters."""
    return shorten(one_line(for_people(text)), limit)


def beginning(text: str, characters: int) -> str:
    """Return at least the first `characters` of a long text, to be sanitized.

    It never cuts a word, and so no secret, and omits a word without an end. The text that is shown
    must end before that."""
    if len(text) <= characters:
        return text
    for end in range(characters, min(len(text), characters + _LONGEST_WORD)):
        if text[end].isspace():
            return text[:end]
    if len(text) <= characters + _LONGEST_WORD:
        return text
    start = characters
    while start > 0 and not text[start - 1].isspace():
        start -= 1
    return text[:start]


def for_prompt(text: str) -> str:
    """Return `text` for a model, as `for_people` does, with angle brackets as ‹ ›.

    These neither open nor close a tag."""
    return for_people(text).translate(_ANGLES)


def quotable(texts: list[str]) -> list[str]:
    """Return the beginning of each of `texts` for a model, on one line.

    Single quotation marks replace double ones, so no text can end its quotation."""
    beginnings = [beginning(text, 2 * QUOTABLE_CHARACTERS) for text in texts]
    together = "\n".join(beginnings)  # nearly always one look at all of them is enough
    if plain(together) is together and not spots(together):
        sanitized = [text.translate(_ANGLES) for text in beginnings]
    else:
        sanitized = [for_prompt(text) for text in beginnings]
    return [" ".join(text[:QUOTABLE_CHARACTERS].split()).replace('"', "'") for text in sanitized]


def plain(text: str) -> str:
    """Return `text` as plain characters on lines.

    It has no ANSI sequences, invisible characters or lone surrogates. Line feeds stay; a tab
    becomes a space, like every other blank."""
    if text.replace("\n", " ").isprintable() and (
        text.isascii() or not _holds_blank(_beyond_ascii(text))
    ):
        return text  # nearly every text
    text = (
        text.replace("\r\n", "\n")
        .replace("\r", "\n")
        .replace("\u2028", "\n")
        .replace("\u2029", "\n")
    )
    text = text.replace("\x85", "\n").replace("\t", " ").replace("\v", "\n").replace("\f", "\n")
    if "\x1b" in text or "\x9b" in text:
        text = _without_ansi(text)
    if text.isascii():
        if not text.replace("\n", " ").isprintable():
            text = "".join([c for c in text if c == "\n" or c.isprintable()])
    else:
        text = _without_invisible(text)
    return text


def _without_ansi(text: str) -> str:
    """Return `text` without terminal control sequences (ECMA-48).

    These are CSI, OSC and other strings, and short escapes."""
    kept = []
    at = 0
    for escape in _places(text, "\x1b\x9b"):
        if escape < at:  # within the sequence before
            continue
        kept.append(text[at:escape])
        is_single = text[escape] == "\x9b"
        at = escape + (1 if is_single else 2)
        if is_single or text.startswith("[", escape + 1):
            while at < len(text) and not "@" <= text[at] <= "~" and text[at] >= " ":
                at += 1
            at += 1
        elif text[escape + 1 : escape + 2] in ("]", "P", "X", "^", "_"):
            at = _after_control_string(text, at)
    return "".join(kept) + text[at:]


def _places(text: str, characters: str) -> list[int]:
    """Return the offsets of any of `characters` in `text`, in order."""
    places = []
    for character in characters:
        at = text.find(character)
        while at >= 0:
            places.append(at)
            at = text.find(character, at + 1)
    return sorted(places)


def _after_control_string(text: str, at: int) -> int:
    """Return the offset after the BEL or ST that ends an OSC-like sequence, or the line's end."""
    while at < len(text) and text[at] not in "\x07\x9c\n":
        if text[at] == "\x1b":
            return at + 2 if text[at + 1 : at + 2] == "\\" else at
        at += 1
    return at if text[at : at + 1] == "\n" else at + 1


def _beyond_ascii(text: str) -> str:
    """Return the characters of `text` beyond ASCII; most texts have few."""
    return text.encode().translate(None, _ASCII).decode()


def _holds_blank(text: str) -> bool:
    return max(text) >= _FIRST_SELECTOR or not _BLANK.isdisjoint(text)


def _without_invisible(text: str) -> str:
    # nearly all characters are of ASCII and visible; a set of all takes five times as long
    encoded = text.encode("utf-8", "surrogatepass")
    beyond = set(encoded.translate(None, _ASCII).decode("utf-8", "surrogatepass"))
    characters = beyond.union(encoded.translate(None, _NO_CONTROLS).decode())
    shown = {character: _shown(character) for character in characters}
    changed = [character for character in shown if shown[character] != character]
    if len(changed) <= FEW:
        for character in changed:
            text = text.replace(character, shown[character])
    else:
        text = text.translate({ord(character): shown[character] for character in changed})
    joiners = "".join(_JOINERS.intersection(beyond))
    return _with_single_joiners(text, joiners) if joiners else text


def _with_single_joiners(text: str, joiners: str) -> str:
    """Return `text` with each run of joiners cut to one, or removed after an ASCII character."""
    kept = []
    at = 0
    for place in _places(text, joiners):
        if place < at:  # in the run before
            continue
        is_kept = place > 0 and text[place - 1] > "\x7f"
        kept.append(text[at : place + is_kept])
        at = place + 1
        while text[at : at + 1] in _JOINERS:
            at += 1
    return "".join(kept) + text[at:]


def _shown(character: str) -> str:
    """Return the replacement of a character.

    A joiner stays, because it depends on the character before it."""
    if "\ud800" <= character <= "\udfff":
        return "\ufffd"
    if character.isspace() and character != "\n":
        return " "
    return character if character in _JOINERS or _is_visible(character) else ""


def _is_visible(character: str) -> bool:
    if character.isascii():
        return character == "\n" or character.isprintable()
    if character in _BLANK or character >= _FIRST_SELECTOR:
        return False
    # An emoji newer than this Python counts as unassigned.
    return character.isprintable() or "\U0001f300" <= character <= "\U0001faff"
