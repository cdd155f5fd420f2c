"""The queue of strategies and the token accounts in a database of their own, `<store>.queue`.

No transcript tells what is in it, so it is never replaced: if it cannot be read, nothing is spent until a person has
decided."""

from __future__ import annotations

import os
from contextlib import closing
from typing import TYPE_CHECKING, Any

from ...errors import described
from ...system.files import is_file, read_whole
from ...system.json import decode
from ...system.sqlite import CorruptDatabaseError, Database, DatabaseError, connect_migrated, explained, fetch, writing

if TYPE_CHECKING:
    from apsw import Connection


_TABLES = ("memory_work", "memory_spending")
_RESTORE = (
    "restore it from a backup, or move it away: then a finished conversation is not processed again, "
    "but what was spent today is not known any more"
)


class UnreadableQueueError(DatabaseError):
    """The queue and the token accounts are damaged. What was spent today is unknown, so it counts as all."""


def path_of(database: str) -> str:
    return f"{database}.queue"


def create_queue(connection: Connection) -> None:
    connection.execute(read_whole(os.path.join(os.path.dirname(__file__), "queue.sql")).decode())


MIGRATIONS = (create_queue,)


def has_queue(database: str) -> bool:
    """Check that there is a queue of the store at `database`, or a copy of one of 0.2.0."""
    return os.path.lexists(path_of(database)) or os.path.lexists(_copy_of(database))


def highest_conversation(database: str) -> int:
    """Return the highest id of a conversation in the queue; 0 if there is none, or if it cannot be read."""
    import apsw

    if not has_queue(database):
        return 0
    try:
        with closing(open_queue(database)) as queue, explained(queue.path):
            return int(fetch(queue.connection, "SELECT coalesce(max(conversation_id), 0) FROM memory_work")[0][0])
    except (DatabaseError, apsw.Error, ValueError):
        return 0


def move_from(connection: Connection) -> None:
    """Move the queue and the token accounts of 0.2.0 out of the store."""
    if not fetch(connection, "SELECT 1 FROM sqlite_schema WHERE name = 'memory_work'"):
        return
    path = connection.filename
    open_queue(path).close()
    with closing(connect_migrated(path_of(path), MIGRATIONS, "full")) as queue, writing(queue):
        work = "SELECT * FROM memory_work ORDER BY result IS NOT NULL, seen_until, first_item"
        for table, sql in (("memory_work", work), ("memory_spending", "SELECT * FROM memory_spending")):
            cursor = connection.execute(sql)
            for values in cursor:
                row = dict(zip((name for name, *_ in cursor.get_description()), values))
                _insert(queue, table, row, "REPLACE")
        queue.execute("UPDATE memory_queue_store SET id = ?", fetch(connection, "SELECT id FROM memory_store")[0])
    drop_queue(connection)


def drop_queue(connection: Connection) -> None:
    """Drop the queue of 0.2.0 from the store."""
    connection.execute("DROP TRIGGER IF EXISTS memory_work_forgets; DROP TABLE memory_work; DROP TABLE memory_spending")


def open_queue(database: str) -> Database:
    """Open the queue. Create it if missing, with what a copy of 0.2.0 holds. Raises DatabaseError."""
    path = path_of(database)
    try:
        queue = Database(path, MIGRATIONS)
    except CorruptDatabaseError as error:
        raise unreadable(path, str(error)) from error
    try:
        if not queue.obstacle and is_file(_copy_of(database)):
            _import_copy(queue, _copy_of(database))
    except BaseException:
        queue.close()
        raise
    return queue


def unreadable(path: str, fault: str) -> UnreadableQueueError:
    what = " ".join(fault.removeprefix(f"{path}: ").split())
    return UnreadableQueueError(f"{path}: damaged ({what}), so that today's token budget counts as spent", _RESTORE)


# What 0.2.0 kept beside its store: a line for each change of a row, the last of which counts.


def _copy_of(database: str) -> str:
    return f"{database}.queue.jsonl"


def _import_copy(queue: Database, path: str) -> None:
    """Take over the rows that the queue does not have, then delete the copy. A damaged line costs itself."""
    try:
        lines = read_whole(path).splitlines()
        with queue.transaction() as connection:
            for line in reversed(lines):
                _import_line(connection, line)
            spent = "input_tokens + output_tokens + cached_tokens + pending"
            connection.execute(f"DELETE FROM memory_spending WHERE is_settled AND {spent} = 0")
        os.unlink(path)
    except OSError as error:
        raise DatabaseError(described(error)) from error


def _import_line(connection: Connection, line: bytes) -> None:
    import apsw

    try:
        table, row = decode(line.decode())
        if table in _TABLES:
            _insert(connection, table, {**row, "first_item": 0, "seen_item": 0}, "IGNORE")
    except (apsw.Error, TypeError, ValueError, OverflowError):
        pass


def _insert(connection: Connection, table: str, row: dict[str, Any], conflict: str) -> None:
    """Insert a row of 0.2.0. Raises ValueError for a value of another type, and what apsw raises."""
    kinds = {"INTEGER": int, "TEXT": str}
    columns = {
        name: kinds[kind] for name, kind in fetch(connection, f"SELECT name, type FROM pragma_table_info('{table}')")
    }
    row = {name: value for name, value in row.items() if name in columns}
    if table == "memory_work" and row.get("first_message_at") is None:
        row["first_message_at"] = 0
    if any(value is not None and type(value) is not columns[name] for name, value in row.items()):
        raise ValueError(f"{table}: a value of another type")
    marks = ", ".join("?" * len(row))
    connection.execute(f"INSERT OR {conflict} INTO {table} ({', '.join(row)}) VALUES ({marks})", tuple(row.values()))
