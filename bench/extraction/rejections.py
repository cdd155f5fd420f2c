"""Things that were tried and rejected, planted in conversations: none of them may come back as anything else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import yaml

from session_memory.memories.strategy import Memory

from .excerpts import entries_of, items_of

_KNOWN = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text())
_THINGS, _REASONS, _WAYS = (_KNOWN[name] for name in ("things", "reasons", "ways"))
PLANTED = len(_THINGS) * len(_WAYS)


def came_back() -> list[str]:
    """The things that were kept as something else than rejected, each with the item."""
    return [
        f"{thing}: {item.kind}: {item.title}"
        for thing, items in _played()
        for item in items
        if thing.casefold() in f"{item.title} {item.text}".casefold() and item.kind != "rejected"
    ]


def kept() -> int:
    """How many were kept as rejected."""
    return sum(any(item.kind == "rejected" for item in items) for _, items in _played())


def _played() -> Iterator[tuple[str, list[Memory]]]:
    for number, thing in enumerate(_THINGS):
        for at, way in enumerate(_WAYS):
            reason = _REASONS[(number + at) % len(_REASONS)]
            said = [(line[0], line[2:].format(thing=thing, reason=reason)) for line in way]
            yield thing, items_of(entries_of(said))
