"""The snippet of a text for a hit, on one line, and the positions of the query's words in it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from ...text.format import one_line, shorten
from ...text.sanitize import all_for_prompt, beginning

CHARACTERS = 200
_BEFORE = 60  # characters before the first matching word
_STEP = 2000
_MOST = 40_000

Span = tuple[int, int, str]
Spans = Callable[[str], list[Span]]


class Excerpt(NamedTuple):
    """A piece of a text, safe for prompts and on one line; whether there is more text before it, and after it."""

    text: str
    has_before: bool
    has_behind: bool


def excerpts(texts: list[str], weights: Mapping[str, float], spans: Spans) -> list[Excerpt]:
    """Return the part of each text with most of the terms in `weights`. `spans` finds the terms of a text."""
    begins = [_begin(text, _best_start(text, weights, spans)) for text in texts]
    pieces = [beginning(text[begin:], 2 * CHARACTERS) for text, begin in zip(texts, begins)]
    return [
        Excerpt(one_line(piece), begin > 0, len(text) > begin + 2 * CHARACTERS)
        for piece, begin, text in zip(all_for_prompt(pieces), begins, texts)
    ]


def snippet(excerpt: Excerpt, weights: Mapping[str, float], spans: Spans) -> tuple[str, tuple[tuple[int, int], ...]]:
    """About CHARACTERS of an excerpt, and the pairs of start and end of the terms in it."""
    shown = shorten(excerpt.text, CHARACTERS)
    if excerpt.has_behind and not shown.endswith("…"):
        shown += "…"
    if excerpt.has_before:
        shown = f"…{shown}"
    return shown, merged([(at, end) for at, end, term in spans(shown) if term in weights])


def merged(ranges: list[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Return `ranges` in order, those that overlap as one."""
    found: list[tuple[int, int]] = []
    for start, end in ranges:
        if found and start < found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return tuple(found)


def _begin(text: str, start: int) -> int:
    """Return the start of the snippet: at a word, some characters before `start`."""
    if start <= _BEFORE + 20:
        return 0
    return text.rfind(" ", start - _BEFORE - 20, start - _BEFORE) + 1 or start - _BEFORE


def _best_start(text: str, weights: Mapping[str, float], spans: Spans) -> int:
    """Return the start of the stretch with the heaviest terms, in the first step of a long text that has any; or 0."""
    for begin in range(0, min(len(text), _MOST), _STEP):
        hits = [span for span in spans(text[begin : begin + _STEP]) if span[2] in weights]
        if hits:
            return begin + _heaviest(hits, weights)
    return 0


def _heaviest(hits: list[Span], weights: Mapping[str, float]) -> int:
    """Return the start of the hit from which on the terms that fit into the snippet weigh most, each counted once."""
    best, best_start = -1.0, 0
    for number, (start, _, _) in enumerate(hits):
        terms = {term for at, _, term in hits[number : number + 40] if at < start + CHARACTERS - _BEFORE}
        weight = sum([weights[term] for term in terms])
        if weight > best + 1e-9:
            best, best_start = weight, start
    return best_start
