"""Renames files of the store, with their conversations and the strategies' work on them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from contextlib import closing

from ....common.system.sqlite import Connection, fetch
from ._writer import remove
from .queue_database import QueueDatabase
from .queue_file import UnreadableQueueError, has_queue

_ID = "SELECT id FROM memory_file_states WHERE home = ? AND file_path = ?"


def rename_in_queue(database: str, home: str, keys: Iterable[tuple[str, str]]) -> None:
    """Give the work on files their new keys; it stays where it is if the queue is damaged."""
    if not has_queue(database):
        return
    try:
        with closing(QueueDatabase(database)) as queue, queue.transaction() as connection:
            for old, new in keys:
                of_old = "home = ? AND source_file = ?"
                connection.execute(
                    f"UPDATE OR IGNORE memory_work SET source_file = ? WHERE {of_old}",
                    (new, home, old),
                )
                connection.execute(f"DELETE FROM memory_work WHERE {of_old}", (home, old))
    except UnreadableQueueError:  # nothing is processed before a person has decided
        pass


def rename(
    connection: Connection, home: str, root: str, keys: Mapping[str, str], whole: Collection[str]
) -> list[int]:
    """Rename files to keys below `root`, and return the ids of the renamed.

    A file whose new key exists is removed, or, if it is `whole`, replaces the file there."""
    renamed = []
    for old, new in keys.items():
        connection.execute(
            "DELETE FROM memory_unread_files WHERE home = ? AND file_path = ?", (home, old)
        )
        before, there = fetch(connection, _ID, (home, old)), fetch(connection, _ID, (home, new))
        for (file_id,) in there if before and old in whole else ():
            remove(connection, file_id)
        for (file_id,) in before:
            if there and old not in whole:
                remove(connection, file_id)
                continue
            connection.execute(
                "UPDATE memory_file_states SET file_path = ?, root = ? WHERE id = ?",
                (new, root, file_id),
            )
            connection.execute(
                "UPDATE memory_conversations SET source_file = ? WHERE file_id = ?", (new, file_id)
            )
            renamed.append(file_id)
    return renamed
