"""The queue of strategies and the token accounts in a database of their own, `<store>.queue`.

No transcript tells what is in it, so it is never replaced: if it cannot be read, nothing is spent
until a person has decided."""

from __future__ import annotations

import os
from contextlib import closing, suppress

from ....common.system.files import read_whole
from ....common.system.sqlite import (
    Connection,
    CorruptDatabaseError,
    Database,
    DatabaseError,
    connect_migrated,
    explained,
    fetch,
    writing,
)

_RESTORE = (
    "restore it from a backup, or move it away: then a finished conversation is not processed "
    "again, but the tokens spent today are no longer known"
)


class UnreadableQueueError(DatabaseError):
    """The queue and the token accounts are damaged. What was spent today is unknown, so it counts
    as all."""


def path_of(database: str) -> str:
    return f"{database}.queue"


def create_queue(connection: Connection) -> None:
    connection.execute(read_whole(os.path.join(os.path.dirname(__file__), "queue.sql")).decode())


MIGRATIONS = (create_queue,)


def has_queue(database: str) -> bool:
    return os.path.lexists(path_of(database))


def highest_conversation(database: str) -> int:
    """Return the highest id of a conversation in the queue; 0 if there is none, or if it cannot be
    read."""
    import apsw

    if not has_queue(database):
        return 0
    try:
        with closing(open_queue(database)) as queue, explained(queue.path):
            return int(
                fetch(
                    queue.connection, "SELECT coalesce(max(conversation_id), 0) FROM memory_work"
                )[0][0]
            )
    except (DatabaseError, apsw.Error, ValueError):
        return 0


def move_queue(connection: Connection) -> None:
    """Move the queue and the token accounts into a database of their own, for stores that were made
    with them."""
    if not fetch(connection, "SELECT 1 FROM sqlite_schema WHERE name = 'memory_work'"):
        return
    path = connection.filename
    open_queue(path).close()
    with closing(connect_migrated(path_of(path), MIGRATIONS, "full")) as queue, writing(queue):
        work = "SELECT * FROM memory_work ORDER BY result IS NOT NULL, seen_until, first_item"
        for table, sql in (
            ("memory_work", work),
            ("memory_spending", "SELECT * FROM memory_spending"),
        ):
            known = {
                name for (name,) in fetch(queue, f"SELECT name FROM pragma_table_info('{table}')")
            }
            cursor = connection.execute(sql)
            for values in cursor:
                row = {
                    name: value
                    for (name, *_), value in zip(cursor.get_description(), values)
                    if name in known
                }
                if table == "memory_work":
                    row["first_message_at"] = row["first_message_at"] or 0
                marks = ", ".join("?" * len(row))
                queue.execute(
                    f"REPLACE INTO {table} ({', '.join(row)}) VALUES ({marks})", tuple(row.values())
                )
        queue.execute(
            "UPDATE memory_queue_store SET id = ?",
            fetch(connection, "SELECT id FROM memory_store")[0],
        )
    drop_queue(connection)


def drop_queue(connection: Connection) -> None:
    """Drop the queue of 0.2.0 from the store."""
    connection.execute(
        "DROP TRIGGER IF EXISTS memory_work_forgets; DROP TABLE memory_work; DROP "
        "TABLE memory_spending"
    )


def open_queue(database: str) -> Database:
    """Open the queue; create it if missing. Raises DatabaseError."""
    path = path_of(database)
    with suppress(OSError):
        os.unlink(f"{path}.jsonl")  # a copy that 0.2.0 kept of what its store had
    try:
        return Database(path, MIGRATIONS)
    except CorruptDatabaseError as error:
        raise unreadable(path, str(error)) from error


def unreadable(path: str, fault: str) -> UnreadableQueueError:
    what = " ".join(fault.removeprefix(f"{path}: ").split())
    return UnreadableQueueError(
        f"{path}: damaged ({what}), so today's token budget counts as spent", _RESTORE
    )
