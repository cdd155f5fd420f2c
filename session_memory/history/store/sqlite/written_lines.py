"""The lines that items wrote, as keyed hashes, for `why`.

unread_lines.py hashes lines that ingest left out. The key is outside the store's directory, so a
copy of the directory does not reveal which lines were written. It never goes to a team. A store
that lost its key gets another, and its lines are read again from the transcripts.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from ....common.system.files import read_whole, write_private
from ....common.system.sqlite import Connection, fetch
from ..values import ITEM_BITS, joined
from .exclusions import item_shown
from .rows import is_visible

if TYPE_CHECKING:
    from .engine import SqliteStore

KEY_FILE = "lines.key"
KEY_BYTES = 32
MOST_CALLS = 50_000  # between two times
MOST_ITEMS = 64  # with one line: more say nothing of who wrote it


class WrittenLine(NamedTuple):
    """An item that wrote a line.

    It has the `hash` of the line, the time (milliseconds or None), the argument of the call (a path
    or a command), and the file that contains the item."""

    hash: int
    item: int
    at: int | None
    argument: str
    kind: str
    file_id: int
    session_id: str = ""


class TimedCall(NamedTuple):
    """An edit or a command: the item, its working directory, and its outcome ('' if unknown)."""

    item: WrittenLine
    directory: str
    outcome: str


def _key_path(database: str) -> str:
    """Return the path of the key, above `store/`, the directory of the database."""
    return f"{os.path.dirname(os.path.dirname(database))}/{KEY_FILE}"


def key_for(store: SqliteStore) -> bytes:
    """Return the key of a store for writing, created if missing. Raises DatabaseError, OSError."""
    known = known_key(store.path)
    if known:
        # the key is written first, so it is never lost
        if os.path.lexists(before := _key_of_0_3(store.path)):
            write_private(_key_path(store.path), known)
            os.unlink(before)
        return known
    with store.transaction() as connection:
        connection.execute("DELETE FROM memory_written_lines")
        connection.execute(
            "INSERT OR REPLACE INTO memory_unread_lines SELECT id, NULL FROM memory_file_states"
        )
        known = known_key(store.path)  # another process may have been quicker
        if not known:
            known = secrets.token_bytes(KEY_BYTES)
            write_private(_key_path(store.path), known)
    return known


def known_key(database: str) -> bytes:
    """Return the key; b'' if there is none."""
    for path in (_key_path(database), _key_of_0_3(database)):
        with suppress(OSError):
            key = read_whole(path, KEY_BYTES + 1)
            if len(key) == KEY_BYTES:
                return key
    return b""


def _key_of_0_3(database: str) -> str:
    return f"{os.path.dirname(database)}/{KEY_FILE}"


def writers(store: SqliteStore, hashes: Iterable[int]) -> list[WrittenLine]:
    """Return the items that wrote these lines, the earliest first, without failed or excluded ones.

    A line that more than MOST_ITEMS items wrote has none. Raises DatabaseError."""
    shown = f"AND {item_shown('t.id')}" if store.is_excluding() else ""
    visible, values = joined(is_visible(store.visible))
    sql = f"""
        SELECT l.line, t.id, t.timestamp, t.argument, t.kind, f.id, f.session_id FROM memory_written_lines AS l
        JOIN memory_tool_uses AS t ON t.id = l.item JOIN memory_file_states AS f ON f.id = t.id >> {ITEM_BITS}
        WHERE l.line = ? AND t.outcome IS NOT 'error' {shown} AND {visible}
        ORDER BY t.timestamp, t.id LIMIT {MOST_ITEMS + 1}
    """
    written = []
    for line_hash in dict.fromkeys(hashes):
        rows = store.rows(sql, (line_hash, *values))
        written += [WrittenLine._make(row) for row in rows] if len(rows) <= MOST_ITEMS else []
    return written


def calls_between(store: SqliteStore, since: int, until: int) -> list[TimedCall]:
    """Return the edits and commands between two times, the earliest first, without excluded ones.

    Of more than MOST_CALLS, only the latest are returned. Raises DatabaseError."""
    shown = f"AND {item_shown('t.id')}" if store.is_excluding() else ""
    visible, values = joined(is_visible(store.visible))
    sql = f"""
        SELECT t.id, t.timestamp, t.argument, t.kind, f.id, f.session_id,
            coalesce(t.cwd, f.cwd), coalesce(t.outcome, '')
        FROM memory_conversations AS c
        JOIN memory_tool_uses AS t ON t.id BETWEEN c.first_item AND c.last_item
        JOIN memory_file_states AS f ON f.id = t.id >> {ITEM_BITS}
        WHERE c.last_message_at >= ? AND c.first_message_at <= ? AND t.timestamp BETWEEN ? AND ?
            AND t.kind IN ('edit', 'command') {shown} AND {visible}
        ORDER BY t.timestamp DESC, t.id DESC LIMIT {MOST_CALLS}
    """
    rows = store.rows(sql, (since, until, since, until, *values))
    return [TimedCall(WrittenLine(0, *row[:6]), row[6], row[7]) for row in reversed(rows)]


def is_without_lines(connection: Connection, file_id: int) -> bool:
    """Check if no line of a file has been hashed; new lines then wait for the earlier ones."""
    sql = "SELECT 1 FROM memory_unread_lines WHERE file_id = ? AND since IS NULL"
    return bool(fetch(connection, sql, (file_id,)))


def insert(connection: Connection, lines: Sequence[tuple[int, int]]) -> None:
    """Write lines, as (hash, item), within the caller's transaction."""
    connection.executemany(
        "INSERT OR IGNORE INTO memory_written_lines VALUES (?, ?)", sorted(lines)
    )


def remove(connection: Connection, first: int, last: int, new_ids: dict[int, int]) -> None:
    """Remove the lines of the items from `first` to `last`, except that new ids keep theirs.

    This scans the table without the index that forgetting makes."""
    sql = "SELECT line, item FROM memory_written_lines WHERE item BETWEEN ? AND ?"
    rows = fetch(connection, sql, (first, last))
    connection.executemany("DELETE FROM memory_written_lines WHERE line = ? AND item = ?", rows)
    insert(connection, [(line, new_ids[item]) for line, item in rows if item in new_ids])
