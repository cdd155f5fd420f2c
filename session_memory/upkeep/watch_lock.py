"""The lock of a running watcher: one per store, released by the kernel even after a crash."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from ..errors import LockedError
from ..system.files import make_private_dir, read_whole, write_atomically

WAIT_SECONDS = 1.0  # longer than `watcher_of` holds it
UNKNOWN = -1


@contextmanager
def watch_lock(database: str) -> Iterator[None]:
    """Hold the lock of a store until the block ends. Raises LockedError, OSError."""
    from filelock import FileLock, Timeout  # imported late: help and version load this module without dependencies

    make_private_dir(os.path.dirname(database))
    try:
        with FileLock(_lock_file(database), timeout=WAIT_SECONDS, mode=0o600):
            # Not in the lock's own file, which some versions of filelock empty when they try it.
            write_atomically(_process_file(database), str(os.getpid()).encode())
            yield
    except Timeout:
        raise LockedError(f"{database}: process {watcher_of(database)} watches it already") from None


def watcher_of(database: str) -> int:
    """Return the id of the process that watches a store; UNKNOWN if it does not say, 0 if there is none."""
    if not os.path.lexists(_lock_file(database)):
        return 0
    from filelock import FileLock, Timeout

    try:
        with FileLock(_lock_file(database), timeout=0, mode=0o600):
            return 0
    except Timeout:
        pass
    except OSError:  # not writable
        return 0
    try:
        return int(read_whole(_process_file(database)))
    except (OSError, ValueError):
        return UNKNOWN


def _lock_file(database: str) -> str:
    return f"{os.path.dirname(database)}/watch.lock"


def _process_file(database: str) -> str:
    return f"{os.path.dirname(database)}/watch.pid"
