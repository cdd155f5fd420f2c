"""Finds the items of a conversation that a strategy has already seen.

It may have seen them in this conversation, in former conversations with the same items, before the
file was ingested again, or in the session that was forked.
"""

from typing import NamedTuple

from ....common.system.sqlite import Connection, fetch
from ..values import NUMBERS, Conversation, StoredEntry
from .rows import items_between

# Rows of the queue whose file was read again, with the conversation that each is about.
_MOVED = """
    SELECT w.home, w.source_file, w.first_message_at, w.strategy, w.outcome, w.seen_until, w.until_at,
        c.id, c.first_item, c.last_item
    FROM memory_work AS w
    JOIN memory_file_states AS f ON f.home = w.home AND f.file_path = w.source_file AND f.status != 'ingesting'
    JOIN memory_conversations AS c ON c.file_id = f.id AND coalesce(c.first_message_at, 0) = w.first_message_at
    WHERE w.first_item = 0
"""
# A deleted transcript may have left an archive, which has only the time of its last message, in
# seconds.
_MOVED_TO_ARCHIVES = """
    INSERT OR IGNORE INTO memory_work (
        home, source_file, first_message_at, strategy, conversation_id, first_item, seen_item, seen_until, outcome
    )
    SELECT f.home, c.source_file, coalesce(c.first_message_at, 0), w.strategy, c.id, c.first_item, c.last_item,
        c.last_message_at, w.outcome
    FROM memory_file_states AS f
    JOIN memory_conversations AS c ON c.file_id = f.id
    JOIN memory_work AS w ON w.home = f.home AND w.first_item = 0 AND w.outcome != ''
        AND substr(w.source_file, -length(f.session_id) - 6) = f.session_id || '.jsonl'
    WHERE f.source = 'archive' AND w.seen_until + 1000 > c.last_message_at
"""
_USED = (
    "SELECT 1 FROM memory_work WHERE strategy = ? AND first_item BETWEEN ? AND "
    "? AND seen_item >= ? "
    "AND home = ? AND outcome = 'archived' LIMIT 1"
)


class SeenItems(NamedTuple):
    """The items of a file that a strategy has seen.

    They are ranges of ids, and ranges of time from before the file was ingested again.
    `is_archived` means that memories were made of some of them."""

    items: tuple[tuple[int, int], ...]
    times: tuple[tuple[int, int], ...]
    is_archived: bool


def seen_of(
    connection: Connection,
    strategy: str,
    conversation: Conversation,
    first: int,
    last: int,
    *,
    with_own: bool = True,
) -> SeenItems:
    """Return the items from `first` to `last` of a conversation that `strategy` has seen.

    Without `with_own`, only items that it saw as part of another conversation are returned."""
    began, ended = conversation.first_message_at, conversation.last_message_at
    rows = fetch(
        connection,
        "SELECT first_item, seen_item, first_message_at, seen_until, outcome FROM memory_work "
        "WHERE source_file = ?1 AND home = ?2 AND strategy = ?3 AND outcome != '' AND ("
        "first_item AND first_item <= ?5 AND seen_item >= ?4 OR "
        "NOT first_item AND first_message_at <= ?7 AND seen_until >= ?6) AND (?8 OR "
        "first_message_at != ?9)",
        (
            conversation.source_file,
            conversation.home,
            strategy,
            first,
            last,
            began,
            ended,
            with_own,
            began or 0,
        ),
    )
    items = tuple((row[0], row[1]) for row in rows if row[0])
    times = tuple((row[2], row[3]) for row in rows if not row[0])
    return SeenItems(items, times, any(row[4] == "archived" for row in rows))


def find_again(connection: Connection) -> None:
    """Update the queue's rows for files that were read again, perhaps into a new store.

    Each row gets the new ids of its conversation's items: of the items seen, and of the items from
    which a result was made that has no memories yet."""
    for *key, outcome, seen_until, until_at, number, first, last in fetch(connection, _MOVED):
        items = items_between(connection, first, last)
        seen = _last_until(items, seen_until) if outcome else 0
        connection.execute(
            "UPDATE memory_work SET conversation_id = ?, first_item = ?, seen_item "
            "= ?, until_item = ? "
            "WHERE home = ? AND source_file = ? AND first_message_at = ? AND strategy = ?",
            (number, first, seen, _last_until(items, until_at), *key),
        )
    connection.execute(_MOVED_TO_ARCHIVES)


def _last_until(items: list[StoredEntry], time: int | None) -> int:
    """Return the conversation's last item before the first one later than `time`."""
    seen = 0
    for item in items:
        if item.timestamp is not None and time is not None and item.timestamp > time:
            break
        seen = item.id
    return seen


def unseen(items: list[StoredEntry], seen: SeenItems) -> list[StoredEntry]:
    """Return the items that were not seen.

    If times decide, an item without a time has the previous item's."""
    items_unseen = []
    was_seen = False
    for item in items:
        if item.timestamp is not None and seen.times:
            was_seen = any(begin <= item.timestamp <= end for begin, end in seen.times)
        if not was_seen and not any(first <= item.id <= last for first, last in seen.items):
            items_unseen.append(item)
    return items_unseen


def seen_elsewhere(
    connection: Connection, strategy: str, conversation: Conversation, first: int, last: int
) -> set[int]:
    """Return the items from `first` to `last` whose copies in other files became memories.

    The other files are this session's origin and its forks, in the same group and for the same
    strategy."""
    pairs = fetch(
        connection,
        "SELECT id, original FROM memory_shared_items WHERE id BETWEEN ?1 AND ?2 "
        "UNION SELECT original, original FROM memory_shared_items WHERE original BETWEEN ?1 AND ?2",
        (first, last),
    )
    copies_sql = "SELECT id FROM memory_shared_items WHERE original = ?1 UNION SELECT ?1"
    return {
        item
        for item, original in pairs
        for (copy,) in fetch(connection, copies_sql, (original,))
        if copy != item
        and fetch(connection, _USED, (strategy, copy & ~NUMBERS, copy, copy, conversation.home))
    }
