"""One install or uninstall at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from ..errors import LockedError
from .places import Places

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

LOCK_NAME = "install.lock"


@contextmanager
def locked(places: Places) -> Iterator[None]:
    """Holds the program directory. Raises LockedError where somebody else does."""
    descriptor = os.open(places.program_dir / LOCK_NAME, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        if fcntl is not None:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise LockedError(f"{places.program_dir}: another install is at work", "wait for it to end") from None
    finally:
        os.close(descriptor)
