"""Text from elsewhere, made safe for whoever gets it: the store, people, or a prompt. Pure.

Secrets are looked for in plain characters, since an invisible one could hide them; angle brackets are replaced last,
when nothing that is taken out can bring two halves of a tag together any more. A text is cut only when its secrets are
out: half a token is not known for one. Where only the beginning of a long text is wanted, `beginning` cuts it first.
"""

from __future__ import annotations

from .characters import plain
from .format import one_line, shorten
from .secrets import redact

_LONGEST_WORD = 16 * 1024  # a token is not longer, nor is a line of a key
_ANGLES = str.maketrans({"<": "‹", ">": "›", "＜": "‹", "＞": "›", "﹤": "‹", "﹥": "›"})


def for_storage(texts: list[str]) -> list[str]:
    """Return each of `texts` for keeping: without secrets, and, as people open what is kept, as `for_people` has it."""
    return [for_people(text) for text in texts]


def for_people(text: str) -> str:
    """`text` for somebody who reads it on a page, a terminal or in a log: plain characters, no secrets."""
    return redact(plain(text))


def all_for_people(texts: list[str]) -> list[str]:
    """Return each of `texts` as `for_people` does."""
    return [for_people(text) for text in texts]


def shortened(text: str, limit: int) -> str:
    """What `for_people` leaves of `text`, on one line, in at most `limit` characters."""
    return shorten(one_line(for_people(text)), limit)


def beginning(text: str, characters: int) -> str:
    """The beginning of a long text, at least `characters` of it, for one of these verbs: no word is cut in it, so that
    no secret is. A word without an end is left out, and what is shown of the text is to end before it."""
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
    """`text` for a model: what `for_people` leaves, with angle brackets as ‹ ›, so that it opens and closes no tag."""
    return for_people(text).translate(_ANGLES)


def all_for_prompt(texts: list[str]) -> list[str]:
    """Return each of `texts` as `for_prompt` does."""
    return [for_prompt(text) for text in texts]
