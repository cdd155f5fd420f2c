"""Checks a store, moves a corrupt one aside, and rebuilds conversations after the gap has changed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from ...errors import SessionMemoryError
from ...system.files import lock
from ...system.sqlite import (
    LOCK_WAIT_SECONDS,
    CorruptDatabaseError,
    ForeignDatabaseError,
    OutdatedDatabaseError,
    explained,
    fetch,
    open_file,
    set_aside,
)  # fmt: skip
from ..values import ITEM_BITS
from .known_files import gap_minutes as cut_with
from .schema import differences
from .search_index import indexed_texts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from apsw import Connection

    from ..conversations import ConversationSpan
    from .engine import SqliteStore

REBUILT = "rebuilt from transcripts and, if these are gone, archives"
_CHECKED_FAULTS = 10
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
_COLUMNS = "last_item, first_message_at, last_message_at, entry_count, last_message, text_bytes"


def is_empty(store: SqliteStore) -> bool:
    """Check that nothing was ever stored."""
    with explained(store.path):
        return not fetch(store.connection, "SELECT 1 FROM memory_file_states LIMIT 1")


def holds_memories(store: SqliteStore) -> bool:
    """Check if the index has any memory."""
    with explained(store.path):
        return bool(fetch(store.connection, "SELECT 1 FROM memories LIMIT 1"))


def faults(connection: Connection, path: str) -> list[str]:
    """Return the faults that SQLite finds in a store, at most _CHECKED_FAULTS; empty if it is whole. Reads all of
    it."""
    try:
        with explained(path):
            rows = fetch(connection, f"PRAGMA quick_check({_CHECKED_FAULTS})")
            found = [text for (text,) in rows if text != "ok"] or differences(connection)
            return found or ([] if _is_indexed(connection) else ["its search index lacks texts"])
    except CorruptDatabaseError as error:
        return [str(error)]


def _is_indexed(connection: Connection) -> bool:
    """Check if the search index has most of the texts: an emptied one is whole for SQLite."""
    [(texts,)] = fetch(connection, "SELECT count(*) FROM memory_transcript_entries")
    return bool(indexed_texts(connection) * 2 >= texts)


@contextmanager
def damage_recognised(store: SqliteStore) -> Iterator[None]:
    """Raise CorruptDatabaseError for any failure within the block if a check finds the store damaged, such as a value
    of the wrong type or a missing column."""
    try:
        with explained(store.path):
            yield
    except (SessionMemoryError, OSError):
        raise
    except Exception as error:
        found = faults(store.connection, store.path)
        if found:
            raise CorruptDatabaseError(f"{store.path}: {found[0]}") from error
        raise


def rebuilt_notice(aside: str) -> str:
    """Return the notice for a person about a store that was moved to `aside`."""
    reasons = {OutdatedDatabaseError.WHY: "was made by an earlier version", ForeignDatabaseError.WHY: "was not ours"}
    why = next((reason for word, reason in reasons.items() if f".{word}-" in aside), "was corrupt")
    return f"the store {why}: it is {aside} now, and {REBUILT}"


def set_aside_if_corrupt(path: str, *, is_certain: bool = False) -> str:
    """Move the database at `path` aside if a check finds it corrupt, or without a check if `is_certain`: the damage may
    be in a page that the check does not read. Return its new path, '' if it stays."""
    held = lock(f"{path}.lock", LOCK_WAIT_SECONDS)
    try:
        if not os.path.lexists(path) or (not is_certain and _is_whole(path)):
            return ""
        return set_aside(path)
    finally:
        os.close(held)


def _is_whole(path: str) -> bool:
    with explained(path):
        connection = open_file(path)
    try:
        return not faults(connection, path)
    finally:
        connection.close()


def recut(store: SqliteStore, gap_minutes: int) -> bool:
    """Rebuild all conversations if they were cut with another gap. Return whether they were.

    An unchanged conversation keeps its id and status; one that only ends elsewhere keeps its id. Items that a fork
    copied count at the time of the original. Raises DatabaseError.
    """
    with explained(store.path):
        if cut_with(store.connection) == gap_minutes:
            return False
    connection = store.connection
    with explained(store.path):
        connection.execute("BEGIN IMMEDIATE")
        try:
            for (file_id,) in fetch(connection, "SELECT id FROM memory_file_states WHERE source != 'archive'"):
                _recut_file(connection, file_id, gap_minutes * 60_000)
            connection.execute(f"PRAGMA user_version = {gap_minutes:d}")
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
    return True


def _recut_file(connection: Connection, file_id: int, gap: int) -> None:
    from ..conversations import TimedItem, fold  # 1 ms that every command would take which opens the store

    first, last = file_id << ITEM_BITS, (file_id + 1 << ITEM_BITS) - 1
    # The message's id was not stored; its number (from 0) tells the messages of a file apart as well.
    items = [
        TimedItem(id, message + 1, timestamp, size)
        for id, message, timestamp, size in connection.execute(_ITEMS, (first, last))
    ]
    known = {
        row[0]: row
        for row in fetch(
            connection,
            f"SELECT first_item, id, status, reason, {_COLUMNS} FROM memory_conversations WHERE file_id = ?",
            (file_id,),
        )
    }
    if not known or not items:
        return
    last_message = max(known.values())[8]
    spans = fold(None, items, gap)
    spans[-1].last_message = last_message  # the id itself: items that are appended are compared with it
    gone = known.keys() - {span.first_item for span in spans}
    connection.executemany("DELETE FROM memory_conversations WHERE first_item = ?", [(item,) for item in gone])
    for span in spans:
        _write(connection, span, known.get(span.first_item), file_id)


def _write(connection: Connection, span: ConversationSpan, known: tuple[object, ...] | None, file_id: int) -> None:
    values = (span.last_item, span.first_at, span.last_at, span.count, span.last_message, span.text_bytes)
    if known is None:
        connection.execute(
            f"INSERT INTO memory_conversations (file_id, session_id, source_file, first_item, {_COLUMNS}, status) "
            "SELECT id, session_id, file_path, ?, ?, ?, ?, ?, ?, ?, 'active' FROM memory_file_states WHERE id = ?",
            (span.first_item, *values, file_id),
        )
    elif known[4] != span.last_item:
        connection.execute(
            f"UPDATE memory_conversations SET ({_COLUMNS}) = (?, ?, ?, ?, ?, ?), status = 'active', reason = '' "
            "WHERE id = ?",
            (*values, known[1]),
        )
    else:
        connection.execute(
            "UPDATE memory_conversations SET last_message = ? WHERE id = ?", (span.last_message, known[1])
        )
