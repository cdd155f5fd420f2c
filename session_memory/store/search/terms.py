"""Texts as terms. In scripts without spaces between words, each two characters that follow each other are a term."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

# Thai, Lao, Myanmar, Khmer; radicals, kana, Bopomofo, ideographs, Hangul; half-width kana; ideographs beyond the BMP.
# Korean has spaces, but its words have particles attached.
_UNSPACED = (
    ("\u0e01", "\u0eff"), ("\u1000", "\u109f"), ("\u1780", "\u17ff"), ("\u2e80", "\u2fdf"), ("\u3005", "\u3007"),
    ("\u3040", "\u312f"), ("\u31a0", "\u31ff"), ("\u3400", "\u4dbf"), ("\u4e00", "\u9fff"), ("\uac00", "\ud7af"),
    ("\uf900", "\ufaff"), ("\uff66", "\uff9f"), ("\U00020000", "\U0003ffff"),
)  # fmt: skip
_ASCII = bytes(range(128))
_SPACED: set[str] = set()  # characters that were met, of other scripts
_LETTER = re.compile(r"[^\W\x00-\x7f]")  # beyond ASCII


@cache
def _runs() -> re.Pattern[str]:
    """Return the pattern of a run of such characters. Compiling it takes a quarter of Python's start."""
    return re.compile(f"[{''.join(f'{first}-{last}' for first, last in _UNSPACED)}]+")


def _has_unspaced(text: str) -> bool:
    if text.isascii():
        return False
    beyond = text.encode("utf-8", "replace").translate(None, _ASCII).decode()  # few, most of the time
    for character in set(beyond).difference(_SPACED):
        if any(first <= character <= last for first, last in _UNSPACED):
            return True
        _SPACED.add(character)
    return False


def indexable(text: str) -> str:
    """Return `text` for the index, also to delete it there: runs of scripts without spaces become pairs."""
    if not _has_unspaced(text):
        return text
    return _runs().sub(lambda run: f" {' '.join(pairs(run[0]))} ", text)


def pairs(run: str) -> list[str]:
    """Return the pairs of characters in a text without spaces. The last character is alone, so that a prefix search
    finds a single character anywhere: `京都市` is `京都`, `都市`, `市`."""
    return [run[at : at + 2] for at in range(len(run))]


def split_unspaced(text: str) -> list[tuple[bool, int, str]]:
    """Split `text` into pieces, in order, each as (has no spaces between words, start, text)."""
    if not _has_unspaced(text):
        return [(False, 0, text)] if text else []
    pieces = []
    at = 0
    for run in _runs().finditer(text):
        if run.start() > at:
            pieces.append((False, at, text[at : run.start()]))
        pieces.append((True, run.start(), run[0]))
        at = run.end()
    if at < len(text):
        pieces.append((False, at, text[at:]))
    return pieces


class Terms:
    """Splits text into terms with the tokenizer of the index, so that both agree. `tokens` returns the terms in UTF-8,
    `spans` also their start and end in bytes."""

    def __init__(
        self, tokens: Callable[[bytes], list[str]], spans: Callable[[bytes], list[tuple[int, int, str]]]
    ) -> None:
        self._tokens = tokens
        self._byte_spans = spans

    def of(self, text: str) -> list[str]:
        return self._tokens(_encoded(indexable(text)))

    def of_word(self, word: str) -> str:
        """Return the term of a word of an expression, or of a pair of characters; '' if it has none."""
        return "".join(self._tokens(_encoded(word))[:1])

    def spans(self, text: str) -> list[tuple[int, int, str]]:
        """Return the terms of `text` with their start and end; pairs overlap."""
        if text.isascii():
            return self._byte_spans(text.encode())
        if not _LETTER.search(text):
            return self.spans(text.encode("ascii", "replace").decode())  # as long; what is replaced is no term
        spans = []
        for is_unspaced, start, piece in split_unspaced(text):
            if is_unspaced:
                for number, pair in enumerate(pairs(piece)):
                    at = start + number
                    spans += [(at, at + len(pair), term) for term in self._tokens(_encoded(pair))]
            else:
                spans += self._spans_of_spaced(piece, start)
        return spans

    def _spans_of_spaced(self, text: str, at: int) -> list[tuple[int, int, str]]:
        """Return the spans of a text with spaces that begins at `at`; the tokenizer counts bytes."""
        encoded = _encoded(text)
        spans = []
        byte = 0
        for start, end, term in self._byte_spans(encoded):
            begin = at + len(encoded[byte:start].decode())
            byte, at = end, begin + len(encoded[start:end].decode())
            spans.append((begin, at, term))
        return spans


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "replace")
