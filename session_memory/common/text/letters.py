"""Letters with several forms, in the form that search compares: NFKC, with ß as ss."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from functools import cache

_ASCII = bytes(range(128))
# Letters that only casefolding, which FTS5 does not do, turns into several.
_SEVERAL = {"ß": "ss", "ẞ": "ss", "և": "եւ"}
# vowels of Thai and Lao, which NFKC splits but everybody types as one
_UNCHANGED = "\u0e33\u0eb3"
# symbols in Unicode, which PDFs have for ideographs
_FIRST_RADICAL, _LAST_RADICAL = "\u2f00", "\u2fd5"
_HALF_DOT = "\uff65"  # joins words of half-width kana
_FRACTION = "\u2044"  # 1½ is not 11


class Aligned:
    """A text and its `compatible` form. `span` maps a part of the form back to the text."""

    def __init__(self, text: str) -> None:
        self.form = compatible(text)
        self._starts: Sequence[int] = range(len(text) + 1)
        if self.form != text:
            self._starts = _starts(text)

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Return the start and end in the text of a non-empty part of the form."""
        starts = self._starts
        return starts[start], starts[bisect_right(starts, starts[end - 1])]


def beyond_ascii(text: str) -> set[str]:
    """Return the characters of `text` that are not ASCII; lone surrogates are left out."""
    return set(text.encode("utf-8", "replace").translate(None, _ASCII).decode())


def compatible(text: str) -> str:
    """Return `text` with one form of each letter.

    `ﬁ` becomes `fi`, `Ａ` `a`, `ｶﾞ` `ガ`, and `ß` `ss`."""
    if text.isascii():
        return text
    beyond = beyond_ascii(text)
    forms = {
        ord(character): form for character in beyond if (form := _form(character)) != character
    }
    if forms:
        text = text.translate(forms)
    elif not may_compose(beyond):
        return text
    return _composing().sub(lambda match: _composed(match[0]), text)


def may_compose(characters: Iterable[str]) -> bool:
    """Check if one of these characters may be a part of a letter written as several."""
    return any(
        "\u1100" <= character <= "\u11ff" or character in "\u3099\u309a" for character in characters
    )


def _starts(text: str) -> list[int]:
    """Return where in `text` each character of the compatible form begins, then its length."""
    forms = [_form(character) for character in text]
    each = [at for at, form in enumerate(forms) for _ in form]
    starts: list[int] = []
    last = 0
    for match in _composing().finditer("".join(forms)):
        starts += each[last : match.start()] + [each[match.start()]] * len(_composed(match[0]))
        last = match.end()
    return [*starts, *each[last:], len(text)]


@cache
def _form(character: str) -> str:
    is_letter = (
        character.isalnum()
        or _FIRST_RADICAL <= character <= _LAST_RADICAL
        or character == _HALF_DOT
    )
    if not is_letter or character in _UNCHANGED or character.isascii():
        return character
    from unicodedata import normalize  # imported late: most texts need none

    form = normalize("NFKC", character)
    if _FRACTION in form or form == character:
        return _SEVERAL.get(character, character)
    return form.casefold()


@cache
def _composing() -> re.Pattern[str]:
    """Return the pattern of letters written as several characters.

    These are kana with a voiced mark, and Hangul."""
    syllable = "(?:[\u1100-\u1112][\u1161-\u1175]|[\uac00-\ud7a3])[\u11a8-\u11c2]"
    return re.compile(f"[\u3046-\u30ff][\u3099\u309a]|{syllable}|[\u1100-\u1112][\u1161-\u1175]")


def _composed(text: str) -> str:
    from unicodedata import normalize

    return normalize("NFC", text)
