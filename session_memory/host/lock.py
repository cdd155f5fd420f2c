"""One host at a time in a directory, and whether one runs there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ..errors import LockedError
from ..system.files import lock

if TYPE_CHECKING:
    from ..settings.host_layout import Layout

WAIT_SECONDS = 0.5  # longer than anybody holds it who only asks


@contextmanager
def held(layout: Layout) -> Iterator[None]:
    """Holds the host's directory. Raises LockedError where another host runs there."""
    try:
        descriptor = lock(layout.lock_file, WAIT_SECONDS)
    except LockedError:
        raise LockedError(f"{layout.root}: its host runs already", "session-memory host status shows it") from None
    try:
        yield
    finally:
        os.close(descriptor)


def is_running(layout: Layout) -> bool:
    """Whether a host runs in the directory."""
    try:
        os.close(lock(layout.lock_file, 0.0))
    except LockedError:
        return True
    return False
