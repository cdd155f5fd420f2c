"""The transcripts that a machine's own store can share, without what rules exclude, and their content."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from typing import NamedTuple

from ..values import ITEM_BITS, NUMBERS, StoredEntry, StoredSpan
from .engine import SqliteStore
from .exclusions import GIVEN_TITLE, SAID, title_by


class StoredFile(NamedTuple):
    """A transcript in the store, as values.FileState has it; `given_title` is a title that a person gave it,
    `known_title` the one by which rules may name it. The next item gets `next_number`; `ranges` are the first and last
    numbers of existing items, and `hidden` those that rules exclude: all, if `is_excluded`."""

    id: int
    home: str
    file_path: str
    session_id: str
    runtime: str
    title: str
    given_title: str
    known_title: str
    cwd: str
    first_at: int | None
    last_at: int | None
    next_number: int
    ranges: tuple[tuple[int, int], ...]
    hidden: frozenset[int]
    is_excluded: bool

    @property
    def item_count(self) -> int:
        """Return the number of its items that may be shown."""
        return 0 if self.is_excluded else self.count_without(self.hidden)

    def count_without(self, numbers: Collection[int]) -> int:
        return sum([last - first + 1 for first, last in self.ranges]) - len(numbers)


def store_id(store: SqliteStore) -> int:
    """Return the number that the store has instead of all others. Raises DatabaseError."""
    [(id,)] = store.rows("SELECT id FROM memory_store")
    return int(id)


def stored_files(store: SqliteStore) -> list[StoredFile]:
    """Return all transcripts, in the order in which they were first stored. Raises DatabaseError."""
    sql = f"""
        SELECT id, home, file_path, session_id, source, title, iif(title_rank >= {GIVEN_TITLE}, title, ''), {SAID},
            cwd, first_entry_timestamp, last_entry_timestamp, next_ordinal
        FROM memory_file_states AS f ORDER BY id
    """
    spans = "SELECT first_item, last_item FROM memory_conversations ORDER BY first_item"
    excluded = store.excluded_files()
    hidden: defaultdict[int, set[int]] = defaultdict(set)
    ranges: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    if store.is_excluding():
        for (item,) in store.rows("SELECT item FROM memory_excluded_items"):
            hidden[item >> ITEM_BITS].add(item & NUMBERS)
    for first, last in store.rows(spans):
        of_file = ranges[first >> ITEM_BITS]
        start = of_file.pop()[0] if of_file and of_file[-1][1] + 1 == first & NUMBERS else first & NUMBERS
        of_file.append((start, last & NUMBERS))
    found = []
    for *of, title, given, said, cwd, first, last, number in store.rows(sql):
        id = of[0]
        own = tuple(ranges[id]), frozenset(hidden[id]), id in excluded
        found.append(StoredFile._make((*of, title, given, title or title_by(said), cwd, first, last, number, *own)))
    return found


def common_items(store: SqliteStore) -> list[tuple[int, int]]:
    """Return the ids of a fork's copied items, each with its original's. Raises DatabaseError."""
    return store.rows("SELECT id, original FROM memory_shared_items")


def items_from(store: SqliteStore, file_id: int, first: int, most: int) -> list[StoredEntry]:
    """Return at most `most` shown items of a file from the number `first` on, in order. Raises DatabaseError."""
    begin = (file_id << ITEM_BITS) + first
    return store.items(begin, begin + most - 1)


def item_at(store: SqliteStore, file_id: int, number: int) -> StoredEntry | None:
    """Return one item of a file, if it is there and no rule excludes it. Raises DatabaseError."""
    return next(iter(items_from(store, file_id, number, 1)), None)


def spans_from(store: SqliteStore, file_id: int, first: int) -> list[StoredSpan]:
    """Return the conversations of a file that have items from the number `first` on, in order. Raises DatabaseError."""
    sql = (
        "SELECT first_item, last_item, first_message_at, last_message_at, entry_count, text_bytes "
        "FROM memory_conversations WHERE file_id = ? AND last_item >= ? ORDER BY first_item"
    )
    rows = store.rows(sql, (file_id, (file_id << ITEM_BITS) + first))
    return [StoredSpan(begin & NUMBERS, end & NUMBERS, *rest) for begin, end, *rest in rows]
