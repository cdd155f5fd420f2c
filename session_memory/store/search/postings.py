"""What the index has for a part of a query, within the files that a search is limited to."""

from __future__ import annotations

from itertools import islice
from typing import NamedTuple

from ..sqlite.filters import where
from ..sqlite.items import ids_of
from ..sqlite.schema import ITEM_BITS
from ..values import TOOL_ROLE, Filter
from .ranking import Posting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from apsw import Connection, Cursor

MOST_RANGES = 40  # more are not asked for one by one
MOST_LOOKED_AT = 200_000  # items of the index, where those of other files are among them
LITERAL_ITEMS = 20_000
MOST_COUNTED = 5000
_EVERYTHING = [(0, (1 << 63) - 1)]


class Scope(NamedTuple):
    """The files that a search is limited to: their items as ranges of ids, the newest first. `files` is None where
    that is all of them; `share` says which part of all files they are."""

    ranges: list[tuple[int, int]]
    files: frozenset[int] | None
    share: float


def scope_of(connection: Connection, wanted: Filter) -> Scope:
    """The files that `wanted` allows. What it says about conversations and entries is not looked at."""
    if _is_everything(connection, wanted):
        return Scope(_EVERYTHING, None, 1.0)
    condition, values = where(Filter(homes=wanted.homes, project=wanted.project, session=wanted.session))
    if wanted.since is not None:
        condition += " AND f.last_entry_timestamp >= ?"
        values += (wanted.since,)
    if wanted.until is not None:
        condition += " AND f.first_entry_timestamp <= ?"
        values += (wanted.until,)
    sql = f"SELECT f.id FROM memory_file_states AS f WHERE {condition}"
    files = sorted([file for (file,) in connection.execute(sql, values)], reverse=True)
    ranges: list[tuple[int, int]] = []
    for file in files:
        first, last = file << ITEM_BITS, (file + 1 << ITEM_BITS) - 1
        if ranges and ranges[-1][0] == last + 1:
            ranges[-1] = (first, ranges[-1][1])
        else:
            ranges.append((first, last))
    newest = connection.execute("SELECT max(id) FROM memory_file_states").get
    return Scope(ranges, frozenset(files), len(files) / max(1, newest or 0))


def _is_everything(connection: Connection, wanted: Filter) -> bool:
    """Whether the filter leaves out no file; of several groups that one has all files is not looked for."""
    if wanted.project or wanted.session or wanted.since is not None or wanted.until is not None:
        return False
    if wanted.homes is None:
        return True
    sql = "SELECT (SELECT min(home) FROM memory_file_states), (SELECT max(home) FROM memory_file_states)"
    first, last = connection.execute(sql).get
    return first == last and first in wanted.homes


def items_with(connection: Connection, match: str, scope: Scope, limit: int) -> Posting:
    """The newest `limit` items that match. Of a scope in very many pieces only the newest items are looked at."""
    sql = "SELECT rowid FROM memory_search WHERE memory_search MATCH ? AND rowid BETWEEN ? AND ? ORDER BY rowid DESC"
    found: list[int] = []
    if len(scope.ranges) <= MOST_RANGES or scope.files is None:
        for first, last in scope.ranges:
            found += _column(connection.execute(f"{sql} LIMIT ?", (match, first, last, limit + 1 - len(found))))
            if len(found) > limit:
                return Posting(found[:limit], False)
        return Posting(found, True)
    rows = connection.execute(sql, (match, scope.ranges[-1][0], scope.ranges[0][1]))
    files = scope.files
    looked_at = 0
    while block := [item for (item,) in islice(rows, limit)]:
        found += [item for item in block if item >> ITEM_BITS in files]
        looked_at += len(block)
        if len(found) > limit or looked_at >= MOST_LOOKED_AT:
            return Posting(found[:limit], False)
    return Posting(found, True)


def _column(cursor: Cursor) -> list[int]:
    """The only column of all rows: not row by row, which takes longer than SQLite does."""
    found: Any = cursor.get
    if isinstance(found, list):
        return found
    return [] if found is None else [found]


def count_of(connection: Connection, match: str, posting: Posting, scope: Scope) -> int:
    """How many items match within the scope. What very many have is judged by how many files the newest are in."""
    if posting.is_complete:
        return len(posting.items)
    sql = "SELECT count(*) FROM (SELECT 1 FROM memory_search WHERE memory_search MATCH ? LIMIT ?)"
    counted: int = connection.execute(sql, (match, MOST_COUNTED)).get
    if counted == MOST_COUNTED:
        newest, oldest = posting.items[0] >> ITEM_BITS, posting.items[-1] >> ITEM_BITS
        counted = max(counted, len(posting.items) * newest // (newest - oldest + 1))
    return max(len(posting.items), round(counted * scope.share))


def literal_posting(connection: Connection, text: str, scope: Scope) -> list[int]:
    """The entries that have `text` as it stands, among the newest LITERAL_ITEMS."""
    sql = "SELECT id, content FROM memory_transcript_entries WHERE id BETWEEN ? AND ? ORDER BY id DESC LIMIT ?"
    ranges = scope.ranges[:MOST_RANGES]
    each = LITERAL_ITEMS // max(1, len(ranges))
    return [
        item
        for first, last in ranges
        for item, content in connection.execute(sql, (first, last, each))
        if text in content
    ]


def fitting(connection: Connection, items: list[int], wanted: Filter) -> list[int]:
    """Of `items` those of the role and from the time that are wanted."""
    condition, values = "", []
    if wanted.since is not None:
        condition += " AND coalesce(timestamp, ?) >= ?"
        values += [wanted.since, wanted.since]
    if wanted.until is not None:
        condition += " AND coalesce(timestamp, ?) <= ?"
        values += [wanted.until, wanted.until]
    kept: set[int] = set()
    if wanted.role != TOOL_ROLE:
        role = " AND role = ?" if wanted.role else ""
        sql = f"SELECT id FROM memory_transcript_entries WHERE id IN carray(?){condition}{role}"
        roles = [wanted.role] if wanted.role else []
        kept.update(item for (item,) in connection.execute(sql, (ids_of(items), *values, *roles)))
    if wanted.role in ("", TOOL_ROLE):
        sql = f"SELECT id FROM memory_tool_uses WHERE id IN carray(?){condition}"
        kept.update(item for (item,) in connection.execute(sql, (ids_of(items), *values)))
    return [item for item in items if item in kept]


def index_size(connection: Connection, match: str) -> tuple[int, float]:
    """How many items are indexed, and how many terms one has on average. FTS5 keeps count of both, but tells only a
    function that is called for a row: any that matches."""
    connection.register_fts5_function("memory_index_size", _index_size)
    sql = "SELECT memory_index_size(memory_search) FROM memory_search WHERE memory_search MATCH ? LIMIT 1"
    rows, terms = connection.execute(sql, (match,)).get.split()
    return int(rows), int(terms) / int(rows)


def _index_size(api: Any, *_: Any) -> str:
    return f"{api.row_count} {api.column_total_size(-1)}"
