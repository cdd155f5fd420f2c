"""Marks on letters, for the search index: FTS5's tokenizer ends a word at most of them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from .letters import beyond_ascii

# The indexes of stores and teams depend on these lists and their order. To add to `_VOWELS`,
# append, and migrate. These are vowel signs and the like, without which a word is another word.
# Each becomes a character for private use, which FTS5 treats as a letter: Thaana, the scripts of
# India, Sinhala, Thai, Lao, Tibetan, Myanmar, Khmer, and others near them.
_VOWELS = (
    "7a6-7b0 900-903 93a-93b 93e-94f 955-957 962-963 981-983 9be-9cd 9d7 9e2-9e3 a01-a03 a3e-a51 "
    "a70-a71 a75 a81-a83 "
    "abe-acd ae2-ae3 b01-b03 b3e-b4d b56-b57 b62-b63 b82 bbe-bcd bd7 c01-c03 c3e-c56 c62-c63 "
    "c82-c83 cbe-cd6 ce2-ce3 "
    "d02-d03 d3e-d4d d57 d62-d63 d82-d83 dca-ddf df2-df3 e31 e34-e3a e47-e4e eb1 eb4-eb9 ebb-ebc "
    "ec8-ecd f18-f19 f35 "
    "f37 f39 f3e-f3f f71-f84 f86-f87 f8d-fbc fc6 102b-103e 1056-1059 105e-1060 1062-1064 "
    "1067-106d 1071-1074 1082-108d "
    "108f 109a-109d 1712-1714 1732-1734 1752-1753 1772-1773 17b4-17d3 17dd 18a9 1920-193b "
    "1a17-1a1b 1a55-1a7f "
    "1b00-1b04 1b34-1b44 1b6b-1b73 1b80-1b82 1ba1-1bad 1be6-1bf3 1c24-1c37 a802 a806 a80b "
    "a823-a827 a880-a881 "
    "a8b4-a8c4 a8e0-a8f1 a926-a92d a947-a953 a980-a983 a9b3-a9c0 aa29-aa36 aa43 aa4c-aa4d aa7b "
    "aab0 aab2-aab4 "
    "aab7-aab8 aabe-aabf aac1 aaeb-aaef aaf5-aaf6 abe3-abea abec-abed"
)
# Marks that many people leave out: accents, points of Hebrew, vowels and the long stroke of Arabic,
# dots of Hindi and Bengali, the joiner, variation selectors. Each becomes an accent that FTS5
# drops.
_OPTIONAL = (
    "300-36f 483-489 591-5bd 5bf 5c1-5c2 5c4-5c5 5c7 610-61a 640 64b-65f 670 6d6-6dc 6df-6e4 "
    "6e7-6e8 6ea-6ed 711 "
    "730-74a 7eb-7f3 816-819 81b-823 825-827 829-82d 859-85b 8d3-8e1 8e3-8ff 93c 951-954 9bc a3c "
    "abc b3c cbc 135d-135f "
    "180b-180d 1cd0-1cd2 1cd4-1ce8 1ced 1cf4 1dc0-1dff 200d 20d0-20f0 2cef-2cf1 2de0-2dff "
    "302a-302f a66f-a672 "
    "a674-a67d fb1e fe00-fe0f fe20-fe2f"
)
# Letters with a built-in mark, with the letters without it; letters and digits of full width.
_MARKED = "آأإٱؤئۀۂۓ" + "\u0929\u0931\u0934\u0958\u0959\u095a\u095b\u095c\u095d\u095e\u095f"
_UNMARKED = (
    "اااا"
    + "وي"
    + "\u06d5\u06c1\u06d2"
    + "\u0928\u0930\u0933\u0915\u0916\u0917\u091c\u0921\u0922\u092b\u092f"
)
_MARKED_OTHERS = "\u09dc\u09dd\u09df\u0a33\u0a36\u0a59\u0a5a\u0a5b\u0a5e\u0b5c\u0b5d"
_UNMARKED_OTHERS = "\u09a1\u09a2\u09af\u0a32\u0a38\u0a16\u0a17\u0a1c\u0a2b\u0b21\u0b22"
_WIDE = "ff10-ff19 ff21-ff3a ff41-ff5a"
_TO_ASCII = 0xFF01 - ord("!")
_PRIVATE = 0xE000
_ACCENT = 0x301


@cache
def _table() -> dict[int, int]:
    table = {code: _PRIVATE + number for number, code in enumerate(_codes(_VOWELS))}
    table |= dict.fromkeys(_codes(_OPTIONAL), _ACCENT)
    table |= {code: code - _TO_ASCII for code in _codes(_WIDE)}
    return table | dict(
        zip(map(ord, _MARKED + _MARKED_OTHERS), map(ord, _UNMARKED + _UNMARKED_OTHERS))
    )


def _codes(ranges: str) -> Iterator[int]:
    for limits in ranges.split():
        first, _, last = limits.partition("-")
        yield from range(int(first, 16), int(last or first, 16) + 1)


def folded(text: str) -> str:
    """Return `text` of the same length for FTS5, with vowel signs as letters.

    Marks that many people leave out are dropped."""
    if text.isascii():
        return text
    return (
        text
        if _table().keys().isdisjoint(map(ord, beyond_ascii(text)))
        else text.translate(_table())
    )
