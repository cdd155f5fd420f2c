"""The lock of a host's directory: at most one host serves it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from filelock import FileLock, Timeout

from ..errors import LockedError
from ..settings.host_layout import Layout

WAIT_SECONDS = 0.5  # longer than `is_running` holds it


@contextmanager
def host_lock(layout: Layout) -> Iterator[None]:
    """Hold the lock of the host's directory until the block ends. Raises LockedError if another host runs there."""
    try:
        with FileLock(layout.lock_file, timeout=WAIT_SECONDS, mode=0o600):
            yield
    except Timeout:
        raise LockedError(f"{layout.root}: its host is already running", "see session-memory host status") from None


def is_running(layout: Layout) -> bool:
    """Return whether a host runs in the directory; False if the directory is not writable."""
    try:
        with FileLock(layout.lock_file, timeout=0, mode=0o600):
            return False
    except Timeout:
        return True
    except OSError:
        return False
