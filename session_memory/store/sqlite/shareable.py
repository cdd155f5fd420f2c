"""What a machine's own store has to share: its transcripts, without what rules exclude, and what is in them."""

from __future__ import annotations

from typing import NamedTuple

from ...system.sqlite import explained, fetch
from ..values import ITEM_BITS, StoredSpan
from .rows import items_between

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..values import StoredEntry
    from .engine import SqliteStore

_NUMBERS = (1 << ITEM_BITS) - 1


class StoredFile(NamedTuple):
    """A transcript that the store knows: as values.FileState has it. `next_number` is that of the item that comes next,
    `item_count` says how many of its items may be told; where `is_excluded`, none."""

    id: int
    home: str
    file_path: str
    session_id: str
    runtime: str
    title: str
    cwd: str
    first_at: int | None
    last_at: int | None
    next_number: int
    item_count: int
    is_excluded: bool


def stored_files(store: SqliteStore) -> list[StoredFile]:
    """All transcripts, in the order in which the store came to know them. Raises DatabaseError."""
    sql = """
        SELECT f.id, f.home, f.file_path, f.session_id, f.source, f.title, f.cwd, f.first_entry_timestamp,
            f.last_entry_timestamp, f.next_ordinal,
            (SELECT coalesce(sum(c.last_item - c.first_item + 1), 0) FROM memory_conversations AS c
                WHERE c.file_id = f.id)
        FROM memory_file_states AS f ORDER BY f.id
    """
    excluded = store.excluded_files()
    hidden: dict[int, int] = {}
    with explained(store.path):
        if store.is_excluding():
            counted = f"SELECT item >> {ITEM_BITS}, count(DISTINCT item) FROM memory_excluded_items GROUP BY 1"
            hidden = dict(fetch(store.connection, counted))
        rows = fetch(store.connection, sql)
    return [StoredFile._make((*row[:-1], row[-1] - hidden.get(row[0], 0), row[0] in excluded)) for row in rows]


def items_from(store: SqliteStore, file_id: int, first: int, most: int) -> list[StoredEntry]:
    """The items of a file from the number `first` on, at most `most`, that rules do not exclude, in order. Raises
    DatabaseError."""
    start = file_id << ITEM_BITS
    with explained(store.path):
        begin = start + first
        return list(items_between(store.connection, begin, begin + most - 1, excluding=store.is_excluding()))


def item_at(store: SqliteStore, file_id: int, number: int) -> StoredEntry | None:
    """One item of a file, if it is there and no rule excludes it. Raises DatabaseError."""
    return next(iter(items_from(store, file_id, number, 1)), None)


def copies_from(store: SqliteStore, file_id: int, first: int, most: int) -> frozenset[int]:
    """The numbers of those of these items that are copies, as a fork begins with. Raises DatabaseError."""
    begin = (file_id << ITEM_BITS) + first
    sql = "SELECT id FROM memory_shared_items WHERE id BETWEEN ? AND ?"
    with explained(store.path):
        return frozenset([id & _NUMBERS for (id,) in fetch(store.connection, sql, (begin, begin + most - 1))])


def spans_from(store: SqliteStore, file_id: int, first: int) -> list[StoredSpan]:
    """The conversations of a file that have items from the number `first` on, in order. Raises DatabaseError."""
    sql = (
        "SELECT first_item, last_item, first_message_at, last_message_at, entry_count, text_bytes "
        "FROM memory_conversations WHERE file_id = ? AND last_item >= ? ORDER BY first_item"
    )
    with explained(store.path):
        rows = fetch(store.connection, sql, (file_id, (file_id << ITEM_BITS) + first))
    return [StoredSpan(begin & _NUMBERS, end & _NUMBERS, *rest) for begin, end, *rest in rows]
