"""Search: from a query to the entries that fit it best, each in its conversation, with a snippet.

The index tells which items have a term, nothing else. From that follows how well each item and each conversation fits;
the texts of the best items only are read, which tells how often a term is in them and whether a phrase is.
"""

from __future__ import annotations

from ...text.characters import plain
from .candidates import Candidates
from .postings import postings_of, postings_of_literal, scope_of
from .query import LONGEST, parse, relaxed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..values import Filter, Hit
    from .index import SearchIndex


def search(index: SearchIndex, query: str, wanted: Filter) -> list[Hit]:
    """The entries that fit `query` best, best first. Raises what the engine's driver raises."""
    text = plain(query[:LONGEST]).strip()
    asked = parse(text, index.terms)
    with index.snapshot():
        scope = scope_of(index, wanted)
        if asked.parts:
            found = postings_of(index, asked, scope, wanted)
        else:
            found = postings_of_literal(index, text, scope, wanted)
        hits = Candidates(index, asked, found, wanted).hits()
        if not hits and any(part.is_required for part in asked.parts):
            asked = relaxed(asked)
            hits = Candidates(index, asked, postings_of(index, asked, scope, wanted), wanted).hits()
    return hits
