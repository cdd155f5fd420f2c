"""The lines that items wrote, as keyed hashes: found by `why`, and hashed for files that were ingested without.

The key lies outside the store's directory, so that a copy of that does not tell which lines were written. It never goes
to a team. A store whose key is lost gets another, and its lines are read again from the transcripts.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from ...system.files import open_regular, read_whole, write_private
from ...system.sqlite import fetch
from ..values import ITEM_BITS, NewEntry, items_of_file, key_of
from .exclusions import item_shown
from .rows import ids_of

if TYPE_CHECKING:
    from apsw import Connection

    from .engine import SqliteStore

KEY_FILE = "lines.key"
KEY_BYTES = 32
MOST_ITEMS = 64  # with one line: more say nothing of who wrote it
EXCLUDED = (
    f"SELECT file_id FROM memory_excluded_files UNION SELECT item >> {ITEM_BITS} AS file_id FROM memory_excluded_items"
)
_TO_READ = "INSERT OR IGNORE INTO memory_files_without_lines SELECT id FROM memory_file_states WHERE next_ordinal > 0"
_SUB_AGENTS = "INSERT OR REPLACE INTO memory_unread_sub_agents SELECT id, 0 FROM memory_file_states"


class WrittenLine(NamedTuple):
    """An item that wrote a line: `hash` of the line, when (milliseconds or None), the argument of its call (a path or
    a command), and the file that has the item."""

    hash: int
    item: int
    at: int | None
    argument: str
    kind: str
    file_id: int
    session_id: str = ""


def key_path(database: str) -> str:
    """Return the path of the key: above `store/`, the directory of the database."""
    return f"{os.path.dirname(os.path.dirname(database))}/{KEY_FILE}"


def key_for(store: SqliteStore) -> bytes:
    """Return the key of a store that is written to; make one if there is none. Raises DatabaseError, OSError."""
    known = known_key(store.path)
    if known:
        _move_key(store.path, known)
        return known
    with store.transaction() as connection:
        connection.execute("DELETE FROM memory_written_lines")
        connection.execute(_TO_READ)
        connection.execute(_SUB_AGENTS)
        known = known_key(store.path)  # another process may have been quicker
        if not known:
            known = secrets.token_bytes(KEY_BYTES)
            write_private(key_path(store.path), known)
    return known


def known_key(database: str) -> bytes:
    """Return the key; b'' if there is none."""
    for path in (key_path(database), _key_of_0_3(database)):
        with suppress(OSError):
            key = read_whole(path, KEY_BYTES + 1)
            if len(key) == KEY_BYTES:
                return key
    return b""


def _key_of_0_3(database: str) -> str:
    return f"{os.path.dirname(database)}/{KEY_FILE}"


def _move_key(database: str, key: bytes) -> None:
    """Move a key that lies beside the database. It is written first, so that none is lost."""
    if os.path.lexists(before := _key_of_0_3(database)):
        write_private(key_path(database), key)
        os.unlink(before)


def writers(store: SqliteStore, hashes: Iterable[int], homes: tuple[str, ...] | None = None) -> list[WrittenLine]:
    """Return the items that wrote these lines, the earliest first, without what failed or rules exclude; none of a line
    that more than MOST_ITEMS wrote. Raises DatabaseError."""
    shown = f"AND {item_shown('t.id')}" if store.is_excluding() else ""
    group = f"AND f.home IN ({', '.join('?' * len(homes))})" if homes is not None else ""
    sql = f"""
        SELECT l.line, t.id, t.timestamp, t.argument, t.kind, f.id, f.session_id FROM memory_written_lines AS l
        JOIN memory_tool_uses AS t ON t.id = l.item JOIN memory_file_states AS f ON f.id = t.id >> {ITEM_BITS}
        WHERE l.line = ? AND t.outcome IS NOT 'error' {shown} {group} ORDER BY t.timestamp, t.id LIMIT {MOST_ITEMS + 1}
    """
    found = []
    for one in dict.fromkeys(hashes):
        rows = store.rows(sql, (one, *(homes or ())))
        found += [WrittenLine._make(row) for row in rows] if len(rows) <= MOST_ITEMS else []
    return found


def is_without_lines(connection: Connection, file_id: int) -> bool:
    """Check if a file is noted as without lines: what is new in it is hashed with the rest."""
    return bool(fetch(connection, "SELECT 1 FROM memory_files_without_lines WHERE file_id = ?", (file_id,)))


def insert(connection: Connection, lines: Sequence[tuple[int, int]]) -> None:
    """Write lines, as (hash, item), within the caller's transaction."""
    connection.executemany("INSERT OR IGNORE INTO memory_written_lines VALUES (?, ?)", sorted(lines))


def remove(connection: Connection, first: int, last: int, new_ids: dict[int, int]) -> None:
    """Remove the lines of the items from `first` to `last`; those of items with new ids move. A scan without the index
    that forgetting makes."""
    sql = "SELECT line, item FROM memory_written_lines WHERE item BETWEEN ? AND ?"
    rows = fetch(connection, sql, (first, last))
    connection.executemany("DELETE FROM memory_written_lines WHERE line = ? AND item = ?", rows)
    insert(connection, [(line, new_ids[item]) for line, item in rows if item in new_ids])


def add_missing(store: SqliteStore, deadline: float) -> None:
    """Hash the lines of files that have none, since an earlier version ingested them or rules excluded them; the next
    call continues after the deadline. A file that is gone has none. Raises DatabaseError."""
    is_excluding = store.is_excluding()
    if is_excluding:
        _remove_excluded(store)
    waiting = f"WHERE w.file_id NOT IN ({EXCLUDED})" if is_excluding else ""
    if not store.rows(f"SELECT 1 FROM memory_files_without_lines AS w {waiting} LIMIT 1"):
        return
    key = key_for(store)
    sql = (
        "SELECT f.id, f.home, f.root || '/' || f.file_path, f.session_id, f.last_processed_offset "
        f"FROM memory_files_without_lines AS w LEFT JOIN memory_file_states AS f ON f.id = w.file_id {waiting} "
        "ORDER BY f.last_entry_timestamp DESC"
    )
    for file_id, home, path, session_id, end in store.rows(sql):
        if time.monotonic() > deadline:
            return
        entries = _entries_of(path, home, session_id, end, key) if file_id else []
        with store.transaction() as connection:
            insert(connection, _lines_of(connection, file_id, entries))
            connection.execute("DELETE FROM memory_files_without_lines WHERE file_id IS ?", (file_id,))
            # Transcripts of sub-agents that are ingested for themselves have no items of their own.
            connection.execute(f"{_SUB_AGENTS} WHERE id = ? OR next_ordinal = 0", (file_id,))
            if not file_id:  # forgotten meanwhile
                connection.execute(
                    "DELETE FROM memory_files_without_lines WHERE file_id NOT IN (SELECT id FROM memory_file_states)"
                )


def _remove_excluded(store: SqliteStore) -> None:
    """Remove the lines of files of which rules exclude a part. These are noted as without lines, so that a file has
    them again once no rule excludes it."""
    ids = [file_id for (file_id,) in store.rows(f"{EXCLUDED} EXCEPT SELECT file_id FROM memory_files_without_lines")]
    if not ids:
        return
    with store.transaction() as connection:
        connection.execute(f"DELETE FROM memory_written_lines WHERE item >> {ITEM_BITS} IN carray(?)", (ids_of(ids),))
        connection.executemany("INSERT OR IGNORE INTO memory_files_without_lines VALUES (?)", [(one,) for one in ids])


def _entries_of(path: str, home: str, session_id: str, end: int, key: bytes) -> list[NewEntry]:
    from ...runtimes.detection import runtime_of
    from ..ingest.extract import Extractor

    try:
        descriptor = open_regular(path)
    except OSError:
        return []
    try:
        runtime = runtime_of(descriptor)
        size = min(end, os.fstat(descriptor).st_size)
        return Extractor(runtime, descriptor, session_id, home, key).read(0, size, size).entries if runtime else []
    except Exception:  # a file that cannot be read has no lines; ingesting it reports the reason
        return []
    finally:
        os.close(descriptor)


def _lines_of(connection: Connection, file_id: int, entries: Iterable[NewEntry]) -> list[tuple[int, int]]:
    """Return the lines of entries with the ids of their items, those of this file."""
    tools = [tool for entry in entries for tool in entry.tools if tool.lines]
    keys = [tool.key for tool in tools] + [key_of(f"{tool.key} {tool.argument}") for tool in tools]
    if not keys:
        return []
    sql = "SELECT key, id FROM memory_item_keys WHERE key IN carray(?) AND id BETWEEN ? AND ?"
    known = dict(fetch(connection, sql, (ids_of(keys), *items_of_file(file_id))))
    found = [(tool, known.get(key_of(f"{tool.key} {tool.argument}")) or known.get(tool.key)) for tool in tools]
    return [(line, item) for tool, item in found if item for line in tool.lines]
