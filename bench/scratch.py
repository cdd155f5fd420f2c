"""Temporary directories, removed even if upkeep from a hook still writes to them, and databases there."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_WAIT_SECONDS = 60.0


@contextmanager
def scratch_directory(parent: Path | None = None) -> Iterator[Path]:
    """Make a directory and remove it afterwards."""
    place = Path(tempfile.mkdtemp(prefix="session-memory-bench-", dir=parent))
    try:
        yield place
    finally:
        remove_tree(place)


def remove_tree(place: Path) -> None:
    """Remove a directory with all its content, including files written meanwhile."""
    until = time.monotonic() + _WAIT_SECONDS
    while place.exists() and time.monotonic() < until:
        shutil.rmtree(place, ignore_errors=True)
        time.sleep(0.1 if place.exists() else 0)


def unsynced(database: Path) -> sqlite3.Connection:
    """Open a runtime's database as the runtime does, but without its waits for the disk."""
    connection = sqlite3.connect(database)
    connection.execute("PRAGMA synchronous = off")
    return connection
