"""Search: from a query to the entries that fit it best, each in its conversation, with a snippet.

The index tells which items have a term, nothing else. From that follows how well each item and each conversation fits;
the texts of the best items only are read, which tells how often a term is in them and whether a phrase is.
"""

from __future__ import annotations

from typing import NamedTuple

from ...text.characters import plain
from ..sqlite.schema import ITEM_BITS
from ..values import Filter, Hit
from .candidates import Candidates
from .postings import Scope, count_of, fitting, index_size, items_with, literal_posting, scope_of
from .query import LONGEST, Part, Query, alternatives, parse, relaxed
from .ranking import Posting, Weight, weigh
from .terms import Terms

TYPE_CHECKING = False
if TYPE_CHECKING:
    from apsw import Connection

MOST_ITEMS = 4000  # of a query of one part: the newest
LEAST_ITEMS = 400  # of each of several parts; and of those that have two of them
FILTERED = 4  # times as many where only some of them are of the role or the time that is wanted
FEW_FILES = 12  # in so few files of a rare part, a common one is counted to the end


class QueryPostings(NamedTuple):
    """What the index has for a query: its parts, their items, what each is worth; how many terms a text has."""

    parts: list[Part]
    postings: list[Posting]
    weights: list[Weight]
    average_terms: float


def search(connection: Connection, query: str, wanted: Filter) -> list[Hit]:
    """The entries that fit `query` best. Raises what apsw raises."""
    terms = Terms(connection)
    text = plain(query[:LONGEST]).strip()
    asked = parse(text, terms)
    with connection:  # all of it sees one state of the database, whatever is written meanwhile
        scope = scope_of(connection, wanted)
        if not asked.parts:
            found = _found_literally(connection, text, scope, wanted)
        else:
            found = _found(connection, asked, scope, wanted)
        hits = Candidates(connection, terms, asked, found, wanted).hits()
        if not hits and any(part.is_required for part in asked.parts):
            asked = relaxed(asked)
            hits = Candidates(connection, terms, asked, _found(connection, asked, scope, wanted), wanted).hits()
    return hits


def _found(connection: Connection, asked: Query, scope: Scope, wanted: Filter) -> QueryPostings:
    limit = MOST_ITEMS if len(asked.parts) == 1 else LEAST_ITEMS
    parts: list[Part] = []
    postings: list[Posting] = []
    for part in asked.parts:
        tried = {part: _posting(connection, part, asked, scope, wanted, limit)}
        if not tried[part].items and (others := alternatives(part)):
            tried = {other: _posting(connection, other, asked, scope, wanted, limit) for other in others}
        parts += tried.keys()
        postings += tried.values()
    known = [part for part, posting in zip(parts, postings) if posting.items]
    if not known:
        return QueryPostings(parts, postings, [Weight(0.0, 0.0)] * len(parts), 1.0)
    total, average_terms = index_size(connection, known[0].match)
    within = round(total * scope.share)
    weights = [
        weigh(posting, count_of(connection, part.match, posting, scope), within)
        for part, posting in zip(parts, postings)
    ]
    found = QueryPostings(parts, postings, weights, average_terms)
    return found._replace(postings=_completed(connection, asked, found, scope, wanted))


def _posting(connection: Connection, part: Part, asked: Query, scope: Scope, wanted: Filter, limit: int) -> Posting:
    """The items that have a part and are wanted."""
    match = f"({part.match}) NOT ({asked.unwanted})" if asked.unwanted else part.match
    if not wanted.role and wanted.since is None and wanted.until is None:
        return items_with(connection, match, scope, limit)
    found = items_with(connection, match, scope, limit * FILTERED)
    return Posting(fitting(connection, found.items, wanted), found.is_complete)


def _completed(
    connection: Connection, asked: Query, found: QueryPostings, scope: Scope, wanted: Filter
) -> list[Posting]:
    """The postings, and where some were cut off also those of their items that are worth most: in the few files that a
    rare part is in, or else those that have two parts."""
    cut_off = [number for number, posting in enumerate(found.postings) if not posting.is_complete]
    if not cut_off or len(found.parts) == 1:
        return found.postings
    files = {item >> ITEM_BITS for posting in found.postings if posting.is_complete for item in posting.items}
    if files and len(files) <= FEW_FILES:
        ranges = [(file << ITEM_BITS, (file + 1 << ITEM_BITS) - 1) for file in sorted(files, reverse=True)]
        near = Scope(ranges, None, 0.0)
        more = {
            number: _posting(connection, found.parts[number], asked, near, wanted, LEAST_ITEMS) for number in cut_off
        }
    else:
        first, second = sorted(range(len(found.parts)), key=lambda number: found.weights[number].entry)[-2:]
        both = Part(f"({found.parts[first].match}) AND ({found.parts[second].match})", ())
        having_both = _posting(connection, both, asked, scope, wanted, LEAST_ITEMS // 2)
        more = dict.fromkeys((first, second), having_both)
    return [
        posting.with_items(more[number].items) if number in more else posting
        for number, posting in enumerate(found.postings)
    ]


def _found_literally(connection: Connection, text: str, scope: Scope, wanted: Filter) -> QueryPostings:
    """For a query without a word (an emoji, an operator): what has it as it stands, among the newest."""
    if not text or text.startswith("-"):
        return QueryPostings([], [], [], 1.0)
    items = literal_posting(connection, text, scope)
    return QueryPostings(
        [Part("", (text,))], [Posting(fitting(connection, items, wanted), True)], [Weight(1.0, 1.0)], 1.0
    )
