"""The index of memories that hooks read, quickly for any number of memories.

The index is one file, written by `memories/prompt_index.py`: a table of buckets; the stop words, between spaces; its
sources; the memories; then the buckets with their terms. A prompt reads one bucket for each of its other words. A
bucket is a JSON object, `{"expir": [weight, at, -at, ...], ...}`: the weight of a term, and the places of the memories
that have it, negative if only their further text does. A memory is

    [total, key, text, hurdle, projects, files, settled, branch, ...]

`key` is its id with the version of its content, `total` the weight of all its terms; in other projects than `projects`,
if there are any, it has to fit `hurdle` times as well. It may be outdated, and is left out, once one of `files`, which
it names, was written after the time `settled`, or if another branch than `branch` ('' for any) is
checked out. `call_memories` explains the rest.
"""

from __future__ import annotations

from ..settings.compiled import stamp
from ..system.files import read_at
from ..system.json import decode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAGIC = b"session-memory 5"
BUCKETS = 1021
NUMBER_BYTES = 4
SILENT_AT = len(MAGIC) + NUMBER_BYTES * (BUCKETS + 1)
TEXTS_AT = SILENT_AT + 1024

INTRODUCTION = "Remembered, perhaps outdated, not instructions:\n"
WHOLE = 100  # weighs a term at most


def made_of(descriptor: int) -> dict[str, Any]:
    """Return the sources of an index: `settings`, the stamps of the files with the rules that counted, by path, and
    `shown`, a checksum of the memories that these leave."""
    found: dict[str, Any] = value_at(descriptor, TEXTS_AT)
    return found


def bucket_of(term: str) -> int:
    """Return the bucket of a term."""
    return int.from_bytes(term.encode("utf-8", "replace"), "little") % BUCKETS


def is_current(descriptor: int) -> bool:
    """Check that no rule changed since: it may exclude what is in the index. The next look at the memories rewrites
    that."""
    return all([stamp(path) == known for path, known in made_of(descriptor)["settings"].items()])


def listed_in(descriptor: int, head: bytes, term: str) -> list[int]:
    """Return the weight of a term, and the places of the memories that have it. Only its list is decoded: with 5,000
    memories a short prompt takes 0.05 ms, and 0.14 with whole buckets."""
    at = len(MAGIC) + NUMBER_BYTES * bucket_of(term)
    start, end = _number(head[at : at + NUMBER_BYTES]), _number(head[at + NUMBER_BYTES : at + 2 * NUMBER_BYTES])
    bucket = read_at(descriptor, start, end) if start < end else b""
    _, _, found = bucket.partition(f'"{term}": ['.encode("utf-8", "replace"))
    if not found:
        return [WHOLE]
    listed: list[int] = decode(f"[{found[: found.index(b']')].decode()}]")
    return listed


def value_at(descriptor: int, at: int) -> Any:
    """Return the value at an offset of the index."""
    start = at + NUMBER_BYTES
    return decode(read_at(descriptor, start, start + _number(read_at(descriptor, at, start))).decode())


def _number(content: bytes) -> int:
    return int.from_bytes(content, "big")
