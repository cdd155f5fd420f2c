"""How texts lie in the rows of a store: short ones as they are, others deflated.

A TEXT is the text itself. A BLOB is the number of a dictionary (one byte, 0 for none), the size of the text's UTF-8 in
bytes (seven bits a byte, the lowest first, the high bit set in all but the last), and that UTF-8 as raw deflate. The
dictionary of a store is made of words that several of its first texts have: most texts are too short to repeat much
themselves. It outlives them, so it holds nothing that one of them says alone. The small window costs next to no size,
and keeps the compressor, of which each text takes a primed copy, at 48 KB.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable

from ...system.sqlite import fetch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from apsw import Connection

    Kept = str | bytes

LEAST_BYTES = 64  # shorter texts gain little for the time that it takes
LEVEL = 1
WINDOW_BITS = 13
MEMORY_LEVEL = 5
DICTIONARY_BYTES = (1 << WINDOW_BITS) - 262  # what of the window can be referred to
HEAD_CHARACTERS = 200  # of a text, whose words are looked at
LEAST_TEXTS = 3  # that have a word of the dictionary
SHORTEST_WORD = 5  # characters
LEARNT_FROM_BYTES = 64 * 1024  # of text; from less, the dictionary would be of one matter
_MOST_TEXTS = 2000  # that the dictionary is made of
_MOST_UTF8 = 4  # bytes a character
_ROOM_BYTES = 300  # behind what is asked for: with less, zlib goes byte by byte
_STORED = """
    WITH chosen AS MATERIALIZED (SELECT id FROM memory_texts ORDER BY random() LIMIT ?)
    SELECT text FROM chosen JOIN memory_texts USING (id)
"""


class Texts:
    """The texts of the database behind a connection. Each transaction that keeps texts takes one of its own, since what
    it learns may be undone. What cannot be read raises apsw.CorruptError."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._dictionaries = {0: b""}
        self._prefix = b""
        self._primed: Any = None

    def learn(self, new: Iterable[str]) -> None:
        """Makes the dictionary, if there is none and the store holds enough text together with what is `new`."""
        if self._newest():
            return
        fresh = list(new)
        size = sum(map(len, fresh))
        known = self._connection.execute("SELECT total(text_bytes) FROM memory_conversations").get
        if size + known < LEARNT_FROM_BYTES:
            return
        if size < LEARNT_FROM_BYTES:
            stored = fetch(self._connection, _STORED, (_MOST_TEXTS,))
            fresh = [self.whole(kept) for (kept,) in stored] + fresh
        self._connection.execute("INSERT INTO memory_dictionaries VALUES (1, ?)", (dictionary_of(fresh),))
        self._primed = None

    def kept(self, text: str) -> Kept:
        """What to put into a row."""
        encoded = text.encode()
        if len(encoded) < LEAST_BYTES:
            return text
        if self._primed is None:
            self._prime()
        deflate = self._primed.copy()
        packed: bytes = self._prefix + _size_as_bytes(len(encoded)) + deflate.compress(encoded) + deflate.flush()
        return packed if len(packed) < len(encoded) else text

    def whole(self, kept: Kept) -> str:
        """The text that lies in a row."""
        return kept if isinstance(kept, str) else self._inflated(kept)[0]

    def beginning(self, kept: Kept, characters: int) -> tuple[str, int]:
        """So many characters of the text that lies in a row, and the size in bytes of all of it."""
        if isinstance(kept, str):
            return kept[:characters], len(kept.encode())
        text, size = self._inflated(kept, characters)
        if len(text) < characters < size:  # not all of it is one byte a character
            text, size = self._inflated(kept, _MOST_UTF8 * characters)
        return text[:characters], size

    def _inflated(self, kept: bytes, most: int | None = None) -> tuple[str, int]:
        """The text, or what the first `most` bytes of its UTF-8 have of it, and its size in bytes."""
        try:
            size, start = _read_size(kept)
            wanted = size if most is None else min(most, size)
            dictionary = self._dictionary(kept[0])
            inflate = zlib.decompressobj(-WINDOW_BITS, dictionary) if dictionary else zlib.decompressobj(-WINDOW_BITS)
            found = inflate.decompress(kept[start:], wanted + _ROOM_BYTES)
            if len(found) < wanted or len(found) > size:
                raise ValueError("of another size")
            return found[:wanted].decode("utf-8", "strict" if wanted == size else "ignore"), size
        except (zlib.error, ValueError, IndexError, OverflowError) as error:
            import apsw

            raise apsw.CorruptError(f"a text cannot be read: {error}") from error

    def _newest(self) -> int:
        newest: int | None = self._connection.execute("SELECT max(number) FROM memory_dictionaries").get
        return newest or 0

    def _dictionary(self, number: int) -> bytes:
        """Read when it is first needed, and so after whatever names it."""
        if number not in self._dictionaries:
            rows = fetch(self._connection, "SELECT content FROM memory_dictionaries WHERE number = ?", (number,))
            if not rows:
                raise ValueError(f"there is no dictionary {number}")
            self._dictionaries[number] = rows[0][0]
        return self._dictionaries[number]

    def _prime(self) -> None:
        number = self._newest()
        dictionary = self._dictionary(number)
        form = (LEVEL, zlib.DEFLATED, -WINDOW_BITS, MEMORY_LEVEL, zlib.Z_DEFAULT_STRATEGY)
        self._primed = zlib.compressobj(*form, dictionary) if dictionary else zlib.compressobj(*form)
        self._prefix = bytes([number])


def size_of(kept: Kept) -> int:
    """The size in bytes of the text that lies in a row."""
    return len(kept.encode()) if isinstance(kept, str) else _read_size(kept)[0]


def dictionary_of(texts: list[str]) -> bytes:
    """The words, and the directories in paths, that several of `texts` have; what saves most comes last, where deflate
    refers to it in fewest bits."""
    counts: Counter[str] = Counter()
    for text in texts[:: len(texts) // _MOST_TEXTS + 1]:
        words = set(text[:HEAD_CHARACTERS].split())
        words.update([word[: word.rindex("/") + 1] for word in words if "/" in word])
        counts.update(words)
    savings = {word: (count - 1) * len(word) for word, count in counts.items() if count >= LEAST_TEXTS}
    dictionary = ""
    for word in sorted(savings, key=lambda word: (savings[word], word), reverse=True):
        if len(word) >= SHORTEST_WORD and word not in dictionary:
            longer = f"{word} {dictionary}"
            if len(longer.encode()) > DICTIONARY_BYTES:
                break
            dictionary = longer
    return dictionary.encode()


def _size_as_bytes(size: int) -> bytes:
    found = bytearray()
    while size > 0x7F:
        found.append(size & 0x7F | 0x80)
        size >>= 7
    found.append(size)
    return bytes(found)


def _read_size(kept: bytes) -> tuple[int, int]:
    """The size, and where what is behind it begins. Raises IndexError where `kept` is too short."""
    size, at = 0, 1
    while kept[at] > 0x7F:
        size |= (kept[at] & 0x7F) << 7 * (at - 1)
        at += 1
    return size | kept[at] << 7 * (at - 1), at + 1
