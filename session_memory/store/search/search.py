"""Search: from a query to the entries that fit it best, each in its conversation, with a snippet.

The index tells which items have a term, nothing else. From that follows how well each conversation fits; the texts of
the best items of the best conversations are read, which tells how often a term is in them and whether a phrase is.
"""

from __future__ import annotations

import time

from ...text.characters import plain
from ..values import Filter, Hits
from .candidates import Candidates
from .dates import times_in
from .index import SearchIndex
from .postings import WHOLE, postings_of, postings_of_literal, scope_of
from .query import LONGEST, parse, relaxed


def search(index: SearchIndex, query: str, wanted: Filter, *, now: float | None = None, whole: int = WHOLE) -> Hits:
    """Return the entries that fit `query`, asked at `now` (seconds since the epoch), best first. Nothing is omitted up
    to `whole` items. Raises the errors of the engine's driver."""
    text = plain(query[:LONGEST]).strip()
    asked = parse(text, index.terms)
    times = times_in(text, time.time() if now is None else now)
    with index.snapshot():
        scope = scope_of(index, wanted)
        if asked.parts:
            found = postings_of(index, asked, scope, wanted, whole)
        else:
            found = postings_of_literal(index, text, scope, wanted)
        hits = Candidates(index, asked, found, wanted, times).hits()
        if not hits and any(part.is_required for part in asked.parts):
            asked, unchecked = relaxed(asked), hits.unchecked
            hits = Candidates(index, asked, postings_of(index, asked, scope, wanted, whole), wanted, times).hits()
            hits.unchecked = max(hits.unchecked, unchecked)
    return hits
