"""A copy of what no transcript tells: the queue of strategies and the token accounts, in `<database>.queue.jsonl`.

A line holds a row as it was after a change, `["memory_work", {column: value, ...}]`; the last one about a row counts.
Lines are appended within the transaction that changes the row, so that the database's write lock orders them, and the
copy is never behind the database. A new database takes in what the copy holds.
"""

from __future__ import annotations

import os
from contextlib import closing
from typing import TYPE_CHECKING, Any

from ...system.files import is_file, open_private, read_whole, write_atomically
from ...system.json import decode, encode
from ...system.sqlite import fetch, open_file, set_aside

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apsw import Connection

    Row = dict[str, Any]
    Rows = dict[tuple[Any, ...], tuple[str, Row]]  # a table and a row of it, by table and key

WORK = "memory_work"
ACCOUNTS = "memory_spending"
_KEYS: dict[str, dict[str, type]] = {WORK: {"conversation_id": int, "strategy": str}, ACCOUNTS: {"id": int}}
_KINDS = {"INTEGER": int, "TEXT": str}
_HIGHEST_ID = 1 << 53  # which no database of ours reaches; behind the highest of all SQLite finds no other
_SPARE_BYTES = 64 * 1024  # that the copy may hold in lines that do not count, beside
_BYTES_A_ROW = 1000  # for each row that does; a row takes about 400
_RESULT = b'"result": "'  # how the result of a line begins that has one
_SPENT_NOTHING = "is_settled AND input_tokens + output_tokens + cached_tokens + pending = 0"


def path_of(database: str) -> str:
    """Where the copy of a database lies."""
    return f"{database}.queue.jsonl"


def note(connection: Connection, table: str, *key: Any) -> None:
    """Adds a row that the current transaction has changed. A copy that cannot be written is no reason to stop the work:
    it is needed only where the database is lost."""
    condition = " AND ".join(f"{column} = ?" for column in _KEYS[table])
    lines = [_line(table, row) for row in _rows(connection, f"SELECT * FROM {table} WHERE {condition}", key)]
    try:
        descriptor = open_private(path_of(connection.filename), os.O_WRONLY | os.O_APPEND)
        try:
            os.write(descriptor, b"".join(lines))
        finally:
            os.close(descriptor)
    except OSError:
        pass


def shorten(connection: Connection) -> None:
    """Writes the copy anew without the lines that do not count any more, where these are many or hold what was made of
    a conversation, which may be forgotten later; also where there is no copy, or a damaged one. Within a transaction,
    as `note`."""
    path = path_of(connection.filename)
    [(number, results)] = fetch(
        connection,
        f"SELECT (SELECT count(*) FROM {WORK}) + (SELECT count(*) FROM {ACCOUNTS}), "
        f"(SELECT count(*) FROM {WORK} WHERE result IS NOT NULL)",
    )
    try:
        content = read_whole(path)
    except OSError:
        content = b""
    is_long = len(content) > _SPARE_BYTES + _BYTES_A_ROW * number
    if is_long or content.count(_RESULT) > results or len(_rows_in(content)) < number:
        try:
            _write(path, _all_rows(connection))
        except OSError:
            pass  # as in `note`


def rewrite(connection: Connection) -> None:
    """Writes the copy anew: what was removed from the database is in it no more. Within a transaction. Raises
    OSError."""
    _write(path_of(connection.filename), _all_rows(connection))


def restore(connection: Connection) -> None:
    """Has a database that was just made take in the copy. Items have other ids now, so the times decide what was seen,
    until `StoredQueue` finds the conversations again; new conversations get ids that none of the rows has."""
    import apsw

    highest = 0
    for table, row in _read(path_of(connection.filename)).values():
        known = {column: _KINDS[kind] for _, column, kind, *_ in fetch(connection, f"PRAGMA table_info({table})")}
        row = {column: value for column, value in row.items() if column in known}
        if any(value is not None and type(value) is not known[column] for column, value in row.items()):
            continue
        if table == WORK:
            row.update(first_item=0, seen_item=0)
        columns = ", ".join(row)
        try:
            connection.execute(
                f"INSERT OR IGNORE INTO {table} ({columns}) VALUES ({', '.join('?' * len(row))})", tuple(row.values())
            )
        except (apsw.Error, TypeError, ValueError, OverflowError):
            continue  # a line that is damaged
        highest = max(highest, row.get("conversation_id") or 0)
    connection.execute(f"DELETE FROM {ACCOUNTS} WHERE {_SPENT_NOTHING}")
    if highest:
        connection.execute("INSERT INTO sqlite_sequence (name, seq) VALUES ('memory_conversations', ?)", (highest,))


def salvage(database: str) -> None:
    """Adds to the copy what can be read of a damaged database and is not in the copy. Raises nothing: what cannot be
    read is lost."""
    import apsw

    rows: Rows = {}
    try:
        with closing(open_file(database)) as connection:
            for table in _KEYS:
                for order in ("ASC", "DESC"):  # from both ends up to where it is damaged
                    key = ", ".join(f"{column} {order}" for column in _KEYS[table])
                    _collect(rows, connection, table, f"SELECT * FROM {table} ORDER BY {key}")
    except (apsw.Error, OSError):
        pass
    path = path_of(database)
    found = {**rows, **_read(path)}
    try:
        if rows:
            _write(path, found)
    except OSError:
        pass


def _collect(rows: Rows, connection: Connection, table: str, sql: str) -> None:
    """Adds the rows up to the first that cannot be read."""
    import apsw

    try:
        for row in _rows(connection, sql):
            if _is_sound(table, row):
                rows[_key(table, row)] = (table, row)
    except apsw.Error:
        pass


def _rows(connection: Connection, sql: str, values: tuple[Any, ...] = ()) -> Iterator[Row]:
    cursor = connection.execute(sql, values)
    for row in cursor:
        yield {name: value for (name, _), value in zip(cursor.get_description(), row)}


def _all_rows(connection: Connection) -> Rows:
    found: Rows = {}
    for table in _KEYS:
        _collect(found, connection, table, f"SELECT * FROM {table}")
    return found


def _read(path: str) -> Rows:
    """The rows of a copy; of a line that is damaged, nothing; none where it cannot be read."""
    try:
        return _rows_in(read_whole(path))
    except OSError:
        return {}


def _rows_in(content: bytes) -> Rows:
    rows: Rows = {}
    for line in content.splitlines():
        try:
            table, row = decode(line.decode())
            if _is_sound(table, row):
                rows[_key(table, row)] = (table, row)
        except (ValueError, TypeError):
            continue
    return rows


def _is_sound(table: str, row: Row) -> bool:
    """Whether a row has a key and nothing but numbers and texts."""
    return (
        isinstance(row, dict)
        and table in _KEYS
        and all(type(row.get(column)) is kind for column, kind in _KEYS[table].items())
        and all(row[column] < _HIGHEST_ID for column, kind in _KEYS[table].items() if kind is int)
        and all(value is None or isinstance(value, str | int) for value in row.values())
    )


def _key(table: str, row: Row) -> tuple[Any, ...]:
    return (table, *[row[column] for column in _KEYS[table]])


def _line(table: str, row: Row) -> bytes:
    """The line begins with a newline: so it is whole even behind one that was cut off."""
    return b"\n" + encode([table, row]).encode()


def _write(path: str, rows: Rows) -> None:
    if os.path.lexists(path) and not is_file(path):
        set_aside(path)
    write_atomically(path, b"".join([_line(table, row) for table, row in rows.values()]))
