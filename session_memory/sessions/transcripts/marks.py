"""The marks of a message: its copies have the same ones, in any file or session.

The store has the keys of its items, so it knows the marks of a session even if the transcript is
gone."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from .entries import Entry

if TYPE_CHECKING:
    from hashlib import blake2b

_HALF = 1 << 63
_GOLDEN_RATIO = 0x9E3779B97F4A7C15  # times 2**64: multiples of it are far apart
TITLE_CHARACTERS = 40
UNIQUE_ID_CHARACTERS = 32  # shorter ids (Pi's have 8) are unique only in their file


def key_of(text: str) -> int:
    """Return a 64-bit hash of an id, signed as SQLite's integers are."""
    hashed = _empty_hash().copy()  # a third of the time of a new one
    hashed.update(text.encode("utf-8", "surrogatepass"))
    return int.from_bytes(hashed.digest(), "little", signed=True)


@cache
def _empty_hash() -> blake2b:
    from hashlib import blake2b  # imported late: loads OpenSSL, and a search hashes nothing

    return blake2b(digest_size=8)


def entry_key(home: str, entry: Entry) -> int:
    """Return the store's key for an entry of a session of the group `home`."""
    if entry.id:
        return key_of_id(home, entry.id, _milliseconds(entry))
    return key_of(f"{home}{entry.role} {entry.text} {_milliseconds(entry)}")


def key_of_id(home: str, id: str, when: int | None) -> int:
    """Return the key of an entry with an id, written at `when` in milliseconds."""
    return key_of(home + id if len(id) >= UNIQUE_ID_CHARACTERS else f"{home}{id} {when}")


def tool_key(entry: int, place: int) -> int:
    """Return the key of the tool use at a place, from 1, in the entry with the key `entry`."""
    return (entry + place * _GOLDEN_RATIO + _HALF) % (2 * _HALF) - _HALF


def marks_of(home: str, entry: Entry) -> tuple[str, ...]:
    """Return the marks of an entry: its key, and its content with its time.

    A fork may give it another id."""
    when = _milliseconds(entry)
    mark = key_mark(entry_key(home, entry))
    if when is None:
        return (mark,)
    return mark, content_mark(
        entry.role, when, "\n".join([entry.text, *[tool.argument for tool in entry.tools]])
    )


def key_mark(key: int) -> str:
    """Return the mark of a key."""
    return f"key {key}"


def content_mark(role: str, when: int, content: str) -> str:
    """Return the mark of a message written at a time, in milliseconds since 1970."""
    return f"{role} {when} {content.strip()}"


def title_mark(title: str) -> str:
    """Return the mark of a session's title, which may be cut off."""
    return f"title {' '.join(title.split())[:TITLE_CHARACTERS]}"


def _milliseconds(entry: Entry) -> int | None:
    return None if entry.timestamp is None else round(entry.timestamp * 1000)
