"""Odd values in the input of a hook: in records of a transcript, rows, events and files."""

from __future__ import annotations

import json
import random
from typing import Any

Json = Any


def nested(depth: int) -> Json:
    found: Json = "deep"
    for _ in range(depth):
        found = [found]
    return found


ODD: list[Json] = [
    "a\0b",
    "\ud800",
    "\udcff",
    "\u202e",
    "",
    " ",
    ":1",
    "..",
    "/dev/zero",
    "/",
    "x" * 1_000_000,
    "2026-99-99T99:99:99Z",
    "9999-12-31T23:59:59.999Z",
    "0000-00-00T00:00:00Z",
    None,
    True,
    False,
    0,
    -1,
    1.5,
    10**30,
    -(10**30),
    1e308,
    float("inf"),
    float("-inf"),
    float("nan"),
    [],
    {},
    [[]],
    [None],
    {"a": {"b": []}},
    {"": ""},
    nested(90),
    nested(900),
]


def places(value: Json) -> list[tuple[Json, Any]]:
    """Each place in a decoded value: what holds it, and its key or index."""
    found: list[tuple[Json, Any]] = []
    stack = [value]
    while stack:
        one = stack.pop()
        keys = (
            list(one)
            if isinstance(one, dict)
            else list(range(len(one)))
            if isinstance(one, list)
            else []
        )
        found += [(one, key) for key in keys]
        stack += [one[key] for key in keys]
    return found


def mutated(record: Json, others: list[Json], chance: random.Random) -> Json:
    """A copy of a record with one odd value, without one, or with that of another record."""
    copy = json.loads(json.dumps(record))
    holder, key = chance.choice(places(copy) or [([copy], 0)])
    kind = chance.random()
    if kind < 0.1:
        del holder[key]
    elif kind < 0.2 and isinstance(holder, dict):
        same = [other[key] for other in others if isinstance(other, dict) and key in other]
        holder[key] = chance.choice(same) if same else None  # as an id that is repeated
    else:
        holder[key] = chance.choice(ODD)
    return copy


def mutated_lines(content: bytes, chance: random.Random) -> bytes:
    """The lines of a transcript, of which one is odd."""
    lines = content.splitlines()
    at = chance.randrange(len(lines))
    kind = chance.random()
    if kind < 0.85:
        records = [json.loads(line) for line in lines]
        spaced = b'": ' in lines[at]
        separators = (", ", ": ") if spaced else (",", ":")
        lines[at] = json.dumps(
            mutated(records[at], records, chance), separators=separators
        ).encode()
    elif kind < 0.9:
        lines.insert(at, lines[at])
    else:
        lines[at] = mutated_bytes(lines[at], chance)
    return b"\n".join(lines) + b"\n"


def mutated_bytes(content: bytes, chance: random.Random) -> bytes:
    """Bytes of which some are others, missing, or too many."""
    at = chance.randrange(len(content) + 1)
    odd = chance.choice(
        [b"\0", b"\xff", b"\n", b"{", b'"', b"", b"\xed\xa0\x80", b"9" * 400, b"[" * 2000]
    )
    return content[:at] + odd + content[at + chance.choice([0, 1, 1, 40, len(content)]) :]
