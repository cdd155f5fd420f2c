"""Split a conversation into chunks for a model, exchange by exchange, each within a token limit. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from .filtering import filtered_entry
from .tokens import estimated_tokens, longest_within

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ..settings.sections import Filtering
    from ..store.values import StoredEntry

GOES_ON = "[goes on]"
WENT_ON = "[went on]"


class Chunk(NamedTuple):
    """Filtered text of an exchange or of a part of it. `exchange` and `part` count from 0, `first_item` and `last_item`
    are ids of entries, `timestamp` is the first known time in it or None."""

    text: str
    tokens: int
    exchange: int
    part: int
    first_item: int
    last_item: int
    timestamp: int | None


def exchanges(entries: Iterable[StoredEntry]) -> list[list[StoredEntry]]:
    """Split entries into exchanges: consecutive user entries with all replies that follow. Entries before the first
    user entry form an exchange too."""
    found: list[list[StoredEntry]] = []
    was_user = False
    for entry in entries:
        is_user = entry.role == "user"
        if not found or (is_user and not was_user):
            found.append([])
        found[-1].append(entry)
        was_user = is_user
    return found


def chunks(entries: Sequence[StoredEntry], filtering: Filtering, max_tokens: int) -> list[Chunk]:
    """Return a conversation's exchanges as chunks of at most `max_tokens` (see `estimated_tokens`).

    Splits a larger exchange between entries, a larger entry between lines, and marks the cuts with GOES_ON and WENT_ON.
    An exchange that filtering empties yields no chunk.
    """
    found = []
    for number, exchange in enumerate(exchanges(entries)):
        for part, lines in enumerate(_packed(_lines(exchange, filtering, max_tokens), max_tokens)):
            text = "\n".join([line for _, line in lines])
            times = [entry.timestamp for entry, _ in lines if entry.timestamp is not None]
            first, last = lines[0][0].id, lines[-1][0].id
            found.append(Chunk(text, estimated_tokens(text), number, part, first, last, times[0] if times else None))
    return found


def _lines(exchange: Iterable[StoredEntry], filtering: Filtering, max_tokens: int) -> Iterator[tuple[StoredEntry, str]]:
    for entry in exchange:
        text = filtered_entry(entry, filtering)
        if text:
            for piece in _pieces(text, max_tokens):
                yield entry, piece


def _packed(lines: Iterable[tuple[StoredEntry, str]], max_tokens: int) -> Iterator[list[tuple[StoredEntry, str]]]:
    """Group lines: as many as fit `max_tokens`, at least one."""
    packed: list[tuple[StoredEntry, str]] = []
    text = ""
    for entry, line in lines:
        longer = f"{text}\n{line}" if packed else line
        if packed and estimated_tokens(longer) > max_tokens:
            yield packed
            packed, longer = [], line
        packed.append((entry, line))
        text = longer
    if packed:
        yield packed


def _pieces(text: str, max_tokens: int) -> Iterator[str]:
    """Yield `text` in pieces of at most `max_tokens`, cut after a paragraph, else a line, else a word."""
    seam = 2 * estimated_tokens(f"\n{GOES_ON}{WENT_ON}\n")
    room = max(1, max_tokens - seam)
    before = ""
    while estimated_tokens(before + text) > max_tokens:
        at = _cut(text, longest_within(text, room))
        yield f"{before}{text[:at].rstrip()}\n{GOES_ON}"
        text = text[at:].lstrip("\n")
        before = f"{WENT_ON}\n"
    if text:
        yield before + text


def _cut(text: str, limit: int) -> int:
    """Return the index at which to cut `text`, at most `limit`: the last end of a paragraph, line or word in the second
    half."""
    for border in ("\n\n", "\n", " "):
        at = text.rfind(border, limit // 2, limit)
        if at > 0:
            return at + len(border)
    return limit
