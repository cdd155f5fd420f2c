"""Text on one line, shortened at the end of a word. Pure."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

ELLIPSIS = "…"
THEN = " → "  # between the first and the later one of two texts
_MOST_DIGITS = 400  # of a number: more than any that is stored
_ID_CHARACTERS = 8
_WORD_SEARCH = 16  # how far back a cut looks for a space; a longer word is cut


def one_line(text: str) -> str:
    """Return `text` with every run of white space, newlines included, as one space."""
    return " ".join(text.split())


def shorten(text: str, limit: int) -> str:
    """Return `text` in at most `limit` characters, cut after a word and ending in an ellipsis.

    A path or another long word is cut too, rather than left out. At least one grapheme is kept."""
    if len(text) <= limit:
        return text
    if limit < 2:
        return ELLIPSIS[:limit]
    cut = limit - len(ELLIPSIS)
    space = text.rfind(" ", max(1, cut - _WORD_SEARCH), cut + 1)
    if space > 0:
        word = text[space + 1 : space + 2 + _WORD_SEARCH]
        if space == cut or " " in word or len(word) <= _WORD_SEARCH:
            return text[:space].rstrip() + ELLIPSIS
    while cut > 0 and not _may_cut(text, cut):
        cut -= 1
    return text[:cut].rstrip() + ELLIPSIS


def shortened_id(id: str) -> str:
    """Return the first eight characters of a session's id, after a word or date that ends with _."""
    return id[: id.find("_") + 1 + _ID_CHARACTERS]


def shorten_both(
    first: str,
    then: str,
    limit: int,
    cut: Callable[[str, int], str] = shorten,
    measure: Callable[[str], int] = len,
) -> str:
    """Return `first → then` in at most `limit` characters, most of them for `then`; without `then`,
    only `first`.

    `cut` shortens a text; `measure` may count something else, such as columns."""
    if not then:
        return cut(first, limit)
    room = limit - measure(THEN)
    then = cut(then, max(room * 3 // 5, room - measure(first)))
    return f"{cut(first, room - measure(then))}{THEN}{then}"


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return `1 command`, `1,300 commands`; `plural` is for nouns that take no -s."""
    return f"{number} {noun}" if number == 1 else f"{number:,} {plural or f'{noun}s'}"


def whole_number(value: object) -> int | None:
    """Return the whole number in `5`, `5.0`, `"5"` or `" 5.0 "`; None for other values."""
    if isinstance(value, str):
        text = value.strip()
        whole, _, zeros = text.partition(".")
        return (
            int(whole[:_MOST_DIGITS])
            if _is_whole(whole.removeprefix("+").removeprefix("-"), zeros)
            else None
        )
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    return value if isinstance(value, int) else None


def _is_whole(digits: str, zeros: str) -> bool:
    return digits.isascii() and digits.isdecimal() and not zeros.strip("0")


def enumerated(words: Iterable[str], link: str = "and") -> str:
    """Return `a`, `a and b` or `a, b and c`. Raises ValueError if there are none."""
    *others, last = words
    return f"{', '.join(others)} {link} {last}" if others else last


def _may_cut(text: str, at: int) -> bool:
    """Check that no grapheme cluster spans position `at`, by the usual rules of UAX #29.

    Return False in doubt."""
    before, after = text[at - 1], text[at]
    if before.isascii() and after.isascii():
        return True
    if before == "\u200d" or _extends(after) or _is_prepended(before):
        return False
    if _is_regional(before) and _is_regional(after):
        start = at
        while start > 0 and _is_regional(text[start - 1]):
            start -= 1
        return (at - start) % 2 == 0
    # a precomposed syllable; Jamo do not count: they may continue one
    begins = "\uac00" <= after <= "\ud7a3"
    return begins or not (_is_hangul(before) and _is_hangul(after))


def _extends(character: str) -> bool:
    """Check if `character` extends the one before it.

    Marks, joiners, variation selectors, skin tones and tags do."""
    if character.isascii():
        return False
    if "\U0001f3fb" <= character <= "\U0001f3ff" or "\U000e0020" <= character <= "\U000e01ef":
        return True
    if character in "\u200c\u200d\uff9e\uff9f\u0e33\u0eb3":
        return True
    if character.isalnum() or "\u2000" <= character < "\u20d0" or "\u2100" <= character < "\u2c00":
        return False  # letters; dashes, quotes, arrows and other symbols
    import unicodedata

    return unicodedata.category(character)[0] == "M"


def _is_prepended(character: str) -> bool:
    """Check if `character` belongs to the one after it, such as an Arabic number sign."""
    if character in "\u0d4e\U000111c2\U000111c3":
        return True
    if character.isprintable():
        return False
    import unicodedata

    return unicodedata.category(character) == "Cf"


def _is_regional(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


def _is_hangul(character: str) -> bool:
    return (
        "\u1100" <= character <= "\u11ff"
        or "\ua960" <= character <= "\ua97c"
        or "\uac00" <= character <= "\ud7fb"
    )


def has_words(text: str, words: str) -> bool:
    """Check if each of `words` begins a word of `text`, in any case."""
    known = words_of(text.casefold())
    wanted = words_of(words.casefold())
    return bool(wanted) and all(
        any(word.startswith(beginning) for word in known) for beginning in wanted
    )


def words_of(text: str) -> list[str]:
    """Return the words of `text`: letters and digits, with their vowel signs and other marks."""
    if text.isascii():
        return "".join([c if c.isalnum() else " " for c in text]).split()
    words = "".join([c if c.isalnum() or _extends(c) else " " for c in text]).split()
    return [word for word in words if word.isalnum() or any([c.isalnum() for c in word])]


def share_of(part: int, whole: int) -> str:
    """Return a share in percent; `under 0.1%` for less."""
    share = part / whole if whole else 0.0
    return f"{share:.1%}" if share >= 0.001 or not part else "under 0.1%"
