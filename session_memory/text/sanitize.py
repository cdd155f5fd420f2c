"""Makes text from elsewhere safe for the store, people, or a prompt. Pure.

Secrets are searched for in plain characters, since an invisible one could hide them. Angle brackets are replaced last,
when no removal can join two halves of a tag any more. Text is cut only after redaction: half a token is not recognized.
If only the beginning of a long text is needed, cut it with `beginning` first.
"""

from __future__ import annotations

from .characters import plain
from .format import one_line, shorten
from .secrets import redact

_LONGEST_WORD = 16 * 1024  # a token is not longer, nor is a line of a key
_ANGLES = str.maketrans({"<": "‹", ">": "›", "＜": "‹", "＞": "›", "﹤": "‹", "﹥": "›"})


def for_storage(texts: list[str]) -> list[str]:
    """Return each of `texts` for the store: as `for_people` does, since people read the store."""
    return [for_people(text) for text in texts]


def for_people(text: str) -> str:
    """Return `text` for people (on a page, a terminal or in a log): plain characters, no secrets."""
    return redact(plain(text))


def all_for_people(texts: list[str]) -> list[str]:
    """Return each of `texts` as `for_people` does."""
    return [for_people(text) for text in texts]


def shortened(text: str, limit: int) -> str:
    """Return `for_people(text)` on one line, in at most `limit` characters."""
    return shorten(one_line(for_people(text)), limit)


def beginning(text: str, characters: int) -> str:
    """Return at least the first `characters` of a long text, to be sanitized. It never cuts a word, and so no secret.
    It omits a word without an end; the text shown must end before that."""
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
    """Return `text` for a model: as `for_people`, with angle brackets as ‹ ›, so that it opens and closes no tag."""
    return for_people(text).translate(_ANGLES)


def all_for_prompt(texts: list[str]) -> list[str]:
    """Return each of `texts` as `for_prompt` does."""
    return [for_prompt(text) for text in texts]
