"""Which items a strategy has seen: in a conversation, in others that it was cut from, in the file before that was
forgotten, in the session that it was forked from."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ...system.sqlite import fetch
from ..values import ITEM_BITS

if TYPE_CHECKING:
    from apsw import Connection

    from ..values import Conversation, StoredEntry

_ITEMS_OF_FILE = (1 << ITEM_BITS) - 1


class SeenItems(NamedTuple):
    """What a strategy has seen of a file, in ranges of ids and, where the file was forgotten since and has other ids
    now, in ranges of time. `is_archived` tells that something was made of some of it."""

    items: tuple[tuple[int, int], ...]
    times: tuple[tuple[int, int], ...]
    is_archived: bool


def seen_of(
    connection: Connection, strategy: str, conversation: Conversation, first: int, last: int, *, with_own: bool = True
) -> SeenItems:
    """What `strategy` has seen of a conversation with the items from `first` to `last`; without `with_own` only what it
    saw when that was another conversation."""
    began, ended = conversation.first_message_at, conversation.last_message_at
    rows = fetch(
        connection,
        "SELECT first_item, seen_item, first_message_at, seen_until, outcome FROM memory_work "
        "WHERE source_file = ?1 AND home = ?2 AND strategy = ?3 AND outcome != '' AND ("
        "first_item AND first_item <= ?5 AND seen_item >= ?4 OR "
        "NOT first_item AND first_message_at <= ?7 AND seen_until >= ?6) AND (?8 OR conversation_id != ?9)",
        (
            conversation.source_file,
            conversation.home,
            strategy,
            first,
            last,
            began,
            ended,
            with_own,
            conversation.id,
        ),
    )
    items = tuple((row[0], row[1]) for row in rows if row[0])
    times = tuple((row[2], row[3]) for row in rows if not row[0])
    return SeenItems(items, times, any(row[4] == "archived" for row in rows))


def unseen(items: list[StoredEntry], seen: SeenItems) -> list[StoredEntry]:
    """The items that were not seen. One without a time shares the fate of the one before it."""
    found = []
    was_seen = False
    for item in items:
        if item.timestamp is not None and seen.times:
            was_seen = any(begin <= item.timestamp <= end for begin, end in seen.times)
        if not was_seen and not any(first <= item.id <= last for first, last in seen.items):
            found.append(item)
    return found


def seen_elsewhere(
    connection: Connection, strategy: str, conversation: Conversation, first: int, last: int
) -> set[int]:
    """Of the items from `first` to `last` those that the strategy made something of in another file of the same group:
    in what this one was forked from, or in its fork."""
    pairs = fetch(
        connection,
        "SELECT id, original FROM memory_shared_items WHERE id BETWEEN ?1 AND ?2 "
        "UNION SELECT original, original FROM memory_shared_items WHERE original BETWEEN ?1 AND ?2",
        (first, last),
    )
    places_sql = "SELECT id FROM memory_shared_items WHERE original = ?1 UNION SELECT ?1"
    return {
        item
        for item, original in pairs
        for (place,) in fetch(connection, places_sql, (original,))
        if place != item and _was_used(connection, strategy, conversation.home, place)
    }


def _was_used(connection: Connection, strategy: str, home: str, item: int) -> bool:
    sql = (
        "SELECT 1 FROM memory_work WHERE strategy = ? AND first_item BETWEEN ? AND ? AND seen_item >= ? "
        "AND home = ? AND outcome = 'archived' LIMIT 1"
    )
    return bool(fetch(connection, sql, (strategy, item & ~_ITEMS_OF_FILE, item, item, home)))
