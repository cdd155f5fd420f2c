"""Cuts the items of a file into conversations, and stores them.

A silence longer than the gap ends a conversation. Only the last conversation of a file can grow, so
new items are added only to that one."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ....common.system.sqlite import Connection, explained, fetch, writing
from ..values import items_of_file
from .unchanged import gap_minutes as stored_gap_minutes

if TYPE_CHECKING:
    from ..ingest.values import FileState
    from .corruption import StoreDatabase

_ITEMS = """
    SELECT id, message, timestamp, octet_length(content) FROM memory_transcript_entries WHERE id BETWEEN ?1 AND ?2
    UNION ALL
    SELECT id, message, timestamp, octet_length(argument) FROM memory_tool_uses WHERE id BETWEEN ?1 AND ?2
    UNION ALL
    SELECT s.id, e.message, e.timestamp, octet_length(e.content)
    FROM memory_shared_items AS s JOIN memory_transcript_entries AS e ON e.id = s.original WHERE s.id BETWEEN ?1 AND ?2
    UNION ALL
    SELECT s.id, t.message, t.timestamp, octet_length(t.argument)
    FROM memory_shared_items AS s JOIN memory_tool_uses AS t ON t.id = s.original WHERE s.id BETWEEN ?1 AND ?2
    ORDER BY 1
"""
_COLUMNS = (
    "first_item, last_item, first_message_at, last_message_at, entry_count, last_message, "
    "text_bytes"
)
# Not `INSERT ... SELECT`: that opens a savepoint, at which FTS5 writes what it has of the transaction
# as a segment, and each file of a batch would have its own.
_INSERT = f"""
    INSERT INTO memory_conversations (file_id, session_id, source_file, {_COLUMNS}, status)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'active')
"""
_UPDATE = f"""
    UPDATE memory_conversations SET ({_COLUMNS}) = (?2, ?3, ?4, ?5, ?6, ?7, ?8), status = 'active', reason = ''
    WHERE id = ?1
"""
_LAST = (
    f"SELECT id, {_COLUMNS} FROM memory_conversations WHERE file_id = ? ORDER BY first_item "
    f"DESC LIMIT 1"
)


class TimedItem(NamedTuple):
    """An entry or tool use, for cutting. `message` is 0 if each record is a message of its own."""

    id: int
    message: int
    timestamp: int | None
    text_bytes: int


class ConversationSpan(NamedTuple):
    """A conversation during cutting: its id (None until it is stored), and _COLUMNS."""

    id: int | None
    first_item: int
    last_item: int
    first_at: int | None
    last_at: int | None
    messages: int = 0
    last_message: int = 0
    text_bytes: int = 0


def fold(
    last: ConversationSpan | None, items: Iterable[TimedItem], gap: int
) -> list[ConversationSpan]:
    """Return the conversations of `items`, in order, beginning with `last` if they continue it.

    `gap` is in milliseconds. Only a step forward in time cuts, because clocks go back, and a
    missing time is not a silence."""
    touched = []
    is_open, is_joined = last is not None, False
    span = last or ConversationSpan(None, 0, 0, None, None)
    # plain values: a span for each item would take most of the time
    id, first, end, first_at, last_at, messages, last_message, size = span
    for item, message, at, text_bytes in items:
        if not is_open or (at is not None and last_at is not None and at - last_at > gap):
            if is_joined:
                counts = messages, last_message, size
                touched.append(ConversationSpan(id, first, end, first_at, last_at, *counts))
            id, first, first_at, last_at, is_open = None, item, at, at, True
            messages = last_message = size = 0
        if at is not None:
            first_at = at if first_at is None else first_at
            last_at = at if last_at is None else max(last_at, at)
        # the records of one API message count once
        messages += not message or message != last_message
        end, last_message, is_joined = item, message, True
        size += text_bytes
    if is_joined:
        counts = messages, last_message, size
        touched.append(ConversationSpan(id, first, end, first_at, last_at, *counts))
    return touched


def add_items(
    connection: Connection, file: FileState, items: list[TimedItem], gap: int, *, is_new: bool
) -> None:
    """Add items to the file's last conversation, or to new ones, within a transaction.

    A conversation that grows becomes active. A new file has none yet."""
    rows = fetch(connection, _LAST, (file.id,)) if items and not is_new else []
    known = [ConversationSpan._make(row) for row in rows]
    spans = fold(known[0] if known else None, items, gap)
    for span in spans:
        if span.id is not None:
            connection.execute(_UPDATE, span)
    new = [span for span in spans if span.id is None]
    _insert(connection, (file.id, file.session_id, file.file_path), new)


def _insert_into(connection: Connection, file_id: int, spans: Iterable[ConversationSpan]) -> None:
    """Add conversations to the file with this id."""
    sql = "SELECT id, session_id, file_path FROM memory_file_states WHERE id = ?"
    [file] = fetch(connection, sql, (file_id,))
    _insert(connection, file, spans)


def _insert(
    connection: Connection, file: tuple[Any, ...], spans: Iterable[ConversationSpan]
) -> None:
    """Add conversations to a file, which is its id, its session's id and its path."""
    connection.executemany(_INSERT, [(*file, *span[1:]) for span in spans])


def rebuild_conversations(store: StoreDatabase, gap_minutes: int) -> bool:
    """Rebuild all conversations if they were cut with another gap; return whether they were.

    An unchanged conversation keeps its id and status; one with only another end keeps its id. Items
    that a fork copied have the original's time. Raises DatabaseError."""
    with explained(store.path):
        if stored_gap_minutes(store.connection) == gap_minutes:
            return False
        connection = store.connection
        with writing(connection):
            for (file_id,) in fetch(
                connection, "SELECT id FROM memory_file_states WHERE source != 'archive'"
            ):
                rebuild_file(connection, file_id, gap_minutes * 60_000)
            connection.execute(f"PRAGMA user_version = {gap_minutes:d}")
    return True


def any_between(ordered: Sequence[int], first: int, last: int) -> bool:
    """Check if one of the sorted numbers is from `first` to `last`."""
    at = bisect_left(ordered, first)
    return at < len(ordered) and ordered[at] <= last


def recut(connection: Connection, file_id: int, gap: int, removed: Sequence[int]) -> None:
    """Recut a file after the items with the sorted ids `removed` are gone, within a transaction.

    Conversations without any of these keep their ids and status."""
    known = "SELECT id, first_item, last_item FROM memory_conversations WHERE file_id = ?"
    kept = set()
    for id, first, last in fetch(connection, known, (file_id,)):
        if any_between(removed, first, last):
            connection.execute("DELETE FROM memory_conversations WHERE id = ?", (id,))
        else:
            kept.add(first)
    rows = fetch(connection, _ITEMS, items_of_file(file_id))
    items = [TimedItem(id, message + 1, timestamp, size) for id, message, timestamp, size in rows]
    spans = fold(None, items, gap)
    _insert_into(connection, file_id, [span for span in spans if span.first_item not in kept])


def rebuild_file(connection: Connection, file_id: int, gap: int) -> None:
    """Recut the items of a file, within a transaction. `gap` is in milliseconds."""
    first, last = items_of_file(file_id)
    # The message's id was not stored. Its number (from 0) identifies a file's messages just as
    # well.
    items = [
        TimedItem(id, message + 1, timestamp, size)
        for id, message, timestamp, size in connection.execute(_ITEMS, (first, last))
    ]
    sql = (
        "SELECT first_item, id, last_item, last_message FROM memory_conversations WHERE file_id = ?"
    )
    known: dict[int, list[Any]] = {first: row for first, *row in fetch(connection, sql, (file_id,))}
    if not items:
        return
    spans = fold(None, items, gap)
    # the id itself, because appended items are compared with it
    last_message = known[max(known)][2] if known else 0
    spans[-1] = spans[-1]._replace(last_message=last_message)
    gone = known.keys() - {span.first_item for span in spans}
    connection.executemany(
        "DELETE FROM memory_conversations WHERE first_item = ?", [(item,) for item in gone]
    )
    _insert_into(connection, file_id, [span for span in spans if span.first_item not in known])
    for span in spans:
        number, last_item, _ = known.get(span.first_item) or (None, None, None)
        if number is None:
            continue
        if last_item != span.last_item:
            connection.execute(_UPDATE, (number, *span[1:]))
        else:
            sql = "UPDATE memory_conversations SET last_message = ? WHERE id = ?"
            connection.execute(sql, (span.last_message, number))
