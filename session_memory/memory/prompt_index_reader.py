"""The index of memories that hooks read, quickly for any number of memories.

The index is one file, written by `memory/prompt_index.py`: a table of buckets; the stop words,
between spaces; its sources; the memories; then the buckets with their terms. A prompt reads one
bucket for each of its other words.
"""

# A bucket is a JSON object, `{"expir": [weight, at, -at, ...], ...}`: the weight of a term, and the
# places of the memories that have it, negative if only their further text does. A memory is
#
#     [total, key, text, hurdle, projects, files, settled, branch, ...]
#
# `key` is its id with the version of its content, `total` the weight of all its terms. In projects
# other than `projects`, if there are any, it has to fit `hurdle` times as well. It may be outdated,
# and is left out, once one of its `files` was written after the time `settled`, or if another branch
# than `branch` ('' for any) is checked out. `call_memories` explains the remaining values. Of its cues
# (`_cues`), the index lists each by one of its terms, behind CUE.

from __future__ import annotations

from ..common.system.files import Opened, read_at
from ..common.system.json import decode
from ..sessions.settings.compiled import stamp
from ..sessions.transcripts.entries import REMEMBERED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, TypeVar

    Found = TypeVar("Found")

PROMPT_INDEX = ".prompt-index"  # in the directory of memories; `extension_points` has it too
MAGIC = b"session-memory 7"
BUCKETS = 1021
NUMBER_BYTES = 4
SILENT_AT = len(MAGIC) + NUMBER_BYTES * (BUCKETS + 1)
TEXTS_AT = SILENT_AT + 1024

CUE = "!"  # begins the key by which a memory with a cue is listed
AT_CALLS = ""  # in a cue that counts only with calls, as no prompt has this term
COLUMNS = 12  # of a memory that tool calls may get
SHORTEST = 60  # a memory shortened to less is not informative
WHOLE = 100  # weighs a term at most


def found_in(directory: str, find: Callable[[int, bytes], list[Found]]) -> list[Found]:
    """Return the results of `find` in the index of a directory's memories.

    `find` gets the index's descriptor and its head. Return [] without an index, for an index of
    another version, or if a rule has changed since, because it may exclude some results. The next
    access to the memories rewrites such an index. Raises OSError, ValueError if the file is not an
    index."""
    try:
        with Opened(f"{directory}/{PROMPT_INDEX}") as descriptor:
            head = read_at(descriptor, 0, TEXTS_AT)
            if head.startswith(MAGIC):
                results = find(descriptor, head)
                rules = value_at(descriptor, TEXTS_AT)["settings"] if results else {}
                return (
                    results if all([stamp(path) == known for path, known in rules.items()]) else []
                )
            if not head.startswith(MAGIC[:-1]):
                raise ValueError(f"{directory}/{PROMPT_INDEX}: not an index of memories")
    except FileNotFoundError:
        pass
    return []


def composed(memories: Iterable[tuple[str, str]], limit: int) -> tuple[str, list[str]]:
    """Return a text of memories in at most `limit` characters, and the keys of those in it.

    Each memory is a key and a line. The first is shortened if needed; the next are added if they
    fit. The text is '' if there are none."""
    text = REMEMBERED
    keys: list[str] = []
    for key, line in memories:
        room = limit - len(text) - len("- ")
        if not keys and len(line) > room >= SHORTEST:
            from ..common.text.format import shorten

            mark = '"' if line.endswith('"') else ""  # of a quotation
            line = shorten(line.removesuffix(mark), room - len(mark)) + mark
        if len(line) <= room:
            text += f"- {line}\n"
            keys.append(key)
    return (text[:-1] if keys else ""), keys


def bucket_of(term: str) -> int:
    """Return the bucket of a term."""
    return int.from_bytes(term.encode("utf-8", "replace"), "little") % BUCKETS


def listed_in(descriptor: int, head: bytes, term: str) -> list[int]:
    """Return the weight of a term, and the places of the memories that have it.

    Only its list is decoded: with 5,000 memories a short prompt takes 0.05 ms, and 0.14 ms with
    whole buckets."""
    at = len(MAGIC) + NUMBER_BYTES * bucket_of(term)
    start, end = (
        _number(head[at : at + NUMBER_BYTES]),
        _number(head[at + NUMBER_BYTES : at + 2 * NUMBER_BYTES]),
    )
    bucket = read_at(descriptor, start, end) if start < end else b""
    _, _, listed_text = bucket.partition(f'"{term}": ['.encode("utf-8", "replace"))
    if not listed_text:
        return [WHOLE]
    listed: list[int] = decode(f"[{listed_text[: listed_text.index(b']')].decode()}]")
    return listed


def value_at(descriptor: int, at: int) -> Any:
    """Return the value at an offset of the index."""
    start = at + NUMBER_BYTES
    return decode(
        read_at(descriptor, start, start + _number(read_at(descriptor, at, start))).decode()
    )


def _number(content: bytes) -> int:
    return int.from_bytes(content, "big")
