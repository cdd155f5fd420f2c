"""A temporary directory for a scene."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_WAIT_SECONDS = 60.0


@contextmanager
def scratch_directory(parent: Path | None = None) -> Iterator[Path]:
    """Make a directory and remove it afterwards, once the upkeep that a hook started in it writes no more."""
    place = Path(tempfile.mkdtemp(prefix="session-memory-bench-", dir=parent))
    try:
        yield place
    finally:
        until = time.monotonic() + _WAIT_SECONDS
        while place.exists() and time.monotonic() < until:
            shutil.rmtree(place, ignore_errors=True)
            time.sleep(0.1 if place.exists() else 0)
