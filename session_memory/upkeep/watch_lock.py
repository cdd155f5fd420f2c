"""The lock that a watcher holds while it runs: one for each store, released by the kernel whatever becomes of it."""

from __future__ import annotations

import os

from ..errors import LockedError
from ..system.files import lock, read_whole

WAIT_SECONDS = 1.0
UNKNOWN = -1


def lock_file(database: str) -> str:
    """Where the lock of the store at `database` lies."""
    return f"{os.path.dirname(database)}/watch.lock"


def acquire(database: str) -> int:
    """A descriptor that holds the lock, with the id of this process in its file. Raises LockedError, OSError."""
    held = lock(lock_file(database), WAIT_SECONDS)
    os.ftruncate(held, 0)
    os.write(held, str(os.getpid()).encode())
    return held


def holder(database: str) -> int:
    """The id of the process that watches, UNKNOWN if it does not say; 0 if none does."""
    path = lock_file(database)
    if not os.path.lexists(path):
        return 0
    try:
        os.close(lock(path, 0.0))
    except LockedError:
        return _said_in(path)
    return 0


def _said_in(path: str) -> int:
    try:
        return int(read_whole(path))
    except (OSError, ValueError):
        return UNKNOWN
