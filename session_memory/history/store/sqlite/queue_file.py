"""The queue of strategies and the token accounts, in a separate database `<store>.queue`.

Its content cannot be rebuilt from transcripts, so it is never replaced. If it cannot be read,
nothing is spent until a person has decided.
"""

from __future__ import annotations

import os
from contextlib import closing

from ....common.system.files import read_whole
from ....common.system.sqlite import (
    Connection,
    CorruptDatabaseError,
    Database,
    DatabaseError,
    explained,
    fetch,
)

_RESTORE = (
    "restore it from a backup, or move it away; without it, finished conversations are not "
    "processed again, but today's spent tokens are no longer known"
)


class UnreadableQueueError(DatabaseError):
    """The queue and the token accounts are damaged.

    The tokens spent today are unknown, so the whole day's budget counts as spent."""


def path_of(database: str) -> str:
    """Return the path of a store's queue."""
    return f"{database}.queue"


def create_queue(connection: Connection) -> None:
    """Create the tables of the queue."""
    connection.execute(read_whole(os.path.join(os.path.dirname(__file__), "queue.sql")).decode())


MIGRATIONS = (create_queue,)


def has_queue(database: str) -> bool:
    """Check if a store has a queue."""
    return os.path.lexists(path_of(database))


def highest_conversation(database: str) -> int:
    """Return the highest id of a conversation in the queue; 0 if empty or unreadable."""
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


def open_queue(database: str) -> Database:
    """Open the queue; create it if missing. Raises DatabaseError."""
    path = path_of(database)
    try:
        return Database(path, MIGRATIONS)
    except CorruptDatabaseError as error:
        raise unreadable(path, str(error)) from error


def unreadable(path: str, fault: str) -> UnreadableQueueError:
    """Return the error for a damaged queue."""
    what = " ".join(fault.removeprefix(f"{path}: ").split())
    return UnreadableQueueError(
        f"{path}: damaged ({what}), so today's token budget counts as spent", _RESTORE
    )
