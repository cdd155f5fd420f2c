"""Databases that do not wait for the disk, which makes a new store five times as fast.

If the machine crashes, a test's content may be lost.
"""

from __future__ import annotations

from session_memory.common.system import sqlite


def stop_syncing() -> None:
    """Have all databases that this process opens from now on written without a sync, unless they
    are to be durable."""
    choose_wal = sqlite._choose_wal

    def chosen(connection: sqlite.Connection, patience: sqlite.Patience) -> None:
        connection.pragma("synchronous", "off")
        choose_wal(connection, patience)

    sqlite._choose_wal = chosen
    sqlite._connect.__defaults__ = ("off", None)
