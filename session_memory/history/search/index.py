"""The interface between search and an engine: texts, and the items that have a term.

Everything else is the same for every engine. Items are named by id.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from functools import cache
from typing import NamedTuple, Protocol

from ...common.text.letters import Aligned, beyond_ascii, compatible, may_compose
from ...common.text.marks import folded
from ..store.values import NUMBERS, Conversation, Filter, StoredEntry


class Words(NamedTuple):
    """Words that an item must all have.

    If it `is_prefix`, there is only one word, and an item needs a word that begins with it."""

    each: tuple[str, ...]
    is_prefix: bool = False


class Expression(NamedTuple):
    """An expression: items with all of `required` and nothing `unwanted`.

    If there are `parts`, an item also needs at least one of these."""

    parts: tuple[Words, ...] = ()
    required: tuple[Words, ...] = ()
    unwanted: tuple[Words, ...] = ()


class Scope(NamedTuple):
    """The files that a search is limited to: their items as ranges of ids, the newest first.

    `files` is None for all files; `share` is the fraction of all files."""

    ranges: list[tuple[int, int]]
    files: frozenset[int] | None
    share: float


class ConversationTable(NamedTuple):
    """The values of conversations that ranking needs, as one list per value.

    The lists are in the order of the conversations' items. They have the first item, the number of
    items, the end in milliseconds since 1970 (0: unknown), and the `ranking.length_norms` of the
    size. Each conversation extends to the start of the next."""

    starts: list[int]
    counts: list[int]
    ends: list[int]
    norms: list[float]


class ConversationRange(NamedTuple):
    """A conversation: its first and last item, its id, and its end.

    The end is in milliseconds since 1970 (0: unknown). The session's id orders conversations with
    equal scores."""

    first_item: int
    last_item: int
    conversation_id: int
    ended: int
    session_id: str

    @property
    def order(self) -> tuple[int, str, int]:
        """Return a sort key that is the same in every engine.

        It has the time, the session, and the conversation's number in the session."""
        return self.ended, self.session_id, self.first_item & NUMBERS


class TextStart(NamedTuple):
    """The beginning of an item's text; `size` is the whole text's, in bytes."""

    text: str
    size: int
    is_tool: bool


class SearchIndex(Protocol):
    """The index of an engine. Methods raise the errors of the engine's driver."""

    @property
    def terms(self) -> Terms:
        """Make terms of texts as the index does."""

    def snapshot(self) -> AbstractContextManager[object]:
        """Read one state of the store within the block, even while others write."""

    def files(self, wanted: Filter) -> tuple[list[int], int] | None:
        """Return the ids of the files that a filter allows, the newest first, and the highest id.

        Return None if it allows all. Conditions on conversations and entries are ignored."""

    def items_with(self, expression: Expression, scope: Scope, newest: int = 0) -> list[int]:
        """Return the scope's matching items in order of id, only the newest `newest` unless 0."""

    def left_out(self, expression: Expression, scope: Scope) -> int:
        """Return how many older matching items `items_with` omitted."""

    def count_with(self, expression: Expression) -> int:
        """Count the matching items of the whole store."""

    def size(self) -> tuple[int, float]:
        """Return the number of indexed items, and their average number of terms."""

    def items_saying(self, text: str, scope: Scope) -> list[int]:
        """Return entries that contain `text` verbatim, among the scope's newest."""

    def fitting(self, items: list[int], wanted: Filter) -> list[int]:
        """Return the `items` of the wanted role, kind and time."""

    def table(self) -> ConversationTable:
        """Return all conversations of the store."""

    def conversations_at(self, starts: Iterable[int], wanted: Filter) -> list[ConversationRange]:
        """Return the conversations that begin with these items and fit the filter."""

    def text_starts(self, items: Iterable[int], characters: int) -> dict[int, TextStart]:
        """Return the beginnings of the texts of these items, at most `characters` of each."""

    def items(self, ids: Iterable[int]) -> dict[int, StoredEntry]:
        """Return the entries and tool uses with these ids."""

    def conversations(self, ids: Iterable[int]) -> dict[int, Conversation]:
        """Return the conversations with these ids."""


# Thai, Lao, Myanmar and Khmer; radicals, kana, Bopomofo, ideographs and Hangul; half-width kana;
# ideographs beyond the BMP. Korean has spaces, but attaches particles to its words.
_UNSPACED = (
    ("\u0e01", "\u0eff"),
    ("\u1000", "\u109f"),
    ("\u1780", "\u17ff"),
    ("\u2e80", "\u2fdf"),
    ("\u3005", "\u3007"),
    ("\u3040", "\u312f"),
    ("\u31a0", "\u31ff"),
    ("\u3400", "\u4dbf"),
    ("\u4e00", "\u9fff"),
    ("\uac00", "\ud7af"),
    ("\uf900", "\ufaff"),
    ("\uff66", "\uff9f"),
    ("\U00020000", "\U0003ffff"),
)
# Increase this if the terms of any text change; everything shared is then sent to a team again.
TERMS_VERSION = 3
_SPACED: set[str] = set()  # characters that were met, of other scripts
_UNCHANGED: set[str] = set()  # characters of texts that were the same in the form of the index
_ONLY_SPACED: set[str] = set()  # characters of texts that only got spaces
# beyond ASCII, or on a letter, of a folded text
_LETTER = re.compile(r"[^\W\x00-\x7f]|[\ue000-\uf8ff]|(?<=\w)\u0301")


@cache
def _runs() -> re.Pattern[str]:
    """Return the pattern for a run of such characters.

    It is compiled late, because that takes a quarter of Python's start."""
    return re.compile(f"[{''.join(f'{first}-{last}' for first, last in _UNSPACED)}]+")


def _has_unspaced(text: str) -> bool:
    if text.isascii():
        return False
    for character in beyond_ascii(text).difference(_SPACED):  # few, most of the time
        if any(first <= character <= last for first, last in _UNSPACED):
            return True
        _SPACED.add(character)
    return False


def indexable(text: str) -> str:
    """Return `text` in the form of the index, which is also needed to delete it there."""
    if text.isascii():
        return text
    others = beyond_ascii(text).difference(_UNCHANGED)
    if not others:
        return text
    if others.issubset(_ONLY_SPACED):
        return _in_pairs(text)
    form = folded(spaced(compatible(text)))
    if not may_compose(others):  # then each of them stays as it is
        if form == text:
            _UNCHANGED.update(others)
        elif form == spaced(text):
            _ONLY_SPACED.update(others)
    return form


def spaced(text: str) -> str:
    """Return `text` with spaces between words; scripts without spaces are split into pairs."""
    return _in_pairs(text) if _has_unspaced(text) else text


def _in_pairs(text: str) -> str:
    return _runs().sub(lambda run: f" {' '.join(_pairs(run[0]))} ", text)


def _pairs(run: str) -> list[str]:
    """Return the pairs of characters in a text without spaces, then its last character.

    `京都市` becomes `京都`, `都市`, `市`. With the single character at the end, a prefix search
    finds each character anywhere."""
    return [run[at : at + 2] for at in range(len(run))]


def split_unspaced(text: str) -> list[tuple[bool, int, str]]:
    """Split `text` into pieces, in order.

    Each is (whether its words have no spaces between them, start, text)."""
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
    """Splits text into terms with the index's tokenizer, so both agree.

    `tokens` returns the terms in UTF-8, `spans` also their start and end in bytes."""

    def __init__(
        self,
        tokens: Callable[[bytes], list[str]],
        spans: Callable[[bytes], list[tuple[int, int, str]]],
    ) -> None:
        self._tokens = tokens
        self._byte_spans = spans

    def of(self, text: str) -> list[str]:
        return self._tokens(_encoded(indexable(text)))

    def of_word(self, word: str) -> str:
        """Return the term of a word, or of a pair of characters, in an expression; '' for none."""
        return "".join(self._tokens(_encoded(folded(compatible(word))))[:1])

    def spans(self, text: str) -> list[tuple[int, int, str]]:
        """Return the terms of `text` with their start and end; terms of pairs overlap."""
        if text.isascii():
            return self._byte_spans(text.encode())
        aligned = Aligned(text)
        return [
            (*aligned.span(start, end), term)
            for start, end, term in self._spans_of_form(aligned.form)
        ]

    def _spans_of_form(self, text: str) -> list[tuple[int, int, str]]:
        """Return the spans in a text that has one form of each letter."""
        whole = folded(text)
        if not _LETTER.search(whole):
            # as long; a replaced character is not a term
            return self._byte_spans(whole.encode("ascii", "replace"))
        spans = []
        for is_unspaced, start, piece in split_unspaced(text):
            if is_unspaced:
                for number, pair in enumerate(_pairs(piece)):
                    at = start + number
                    spans += [
                        (at, at + len(pair), term) for term in self._tokens(_encoded(folded(pair)))
                    ]
            else:
                spans += self._spans_of_spaced(piece, start)
        return spans

    def _spans_of_spaced(self, text: str, at: int) -> list[tuple[int, int, str]]:
        """Return the spans of a text with spaces, which begins at `at`.

        The tokenizer counts bytes."""
        encoded = _encoded(folded(text))
        spans = []
        byte = 0
        for start, end, term in self._byte_spans(encoded):
            begin = at + len(encoded[byte:start].decode())
            byte, at = end, begin + len(encoded[start:end].decode())
            spans.append((begin, at, term))
        return spans


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "replace")
