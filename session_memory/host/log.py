"""The log of a host, shown live and appended to host.log; and the lock of its directory: at most one host serves it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from ..errors import LockedError
from ..settings.host_layout import Layout
from ..system.files import lock, open_private
from ..text.sanitize import shortened
from ..text.timestamps import iso_time

LOG_BYTES = 1024 * 1024
LINE_CHARACTERS = 300


class HostLog:
    """The log in the file `path`, rotated to `<path>.1` when full. `show` is called with each line, without its time,
    and with True for an error."""

    def __init__(self, path: str, show: Callable[[str, bool], None]) -> None:
        self._path = path
        self._show = show

    def event(self, text: str) -> None:
        """Log an event."""
        self._write(text, is_fault=False)

    def fault(self, text: str) -> None:
        """Log an error."""
        self._write(text, is_fault=True)

    def _write(self, text: str, *, is_fault: bool) -> None:
        line = shortened(text, LINE_CHARACTERS)
        self._show(line, is_fault)
        with suppress(OSError):
            descriptor = open_private(self._path, os.O_WRONLY | os.O_APPEND)
            try:
                os.write(descriptor, f"{iso_time(time.time())} {line}\n".encode("utf-8", "replace"))
                is_full = os.fstat(descriptor).st_size > LOG_BYTES
            finally:
                os.close(descriptor)
            if is_full:
                os.replace(self._path, self._path + ".1")


WAIT_SECONDS = 0.5  # longer than `is_locked` holds it


@contextmanager
def host_lock(layout: Layout) -> Iterator[None]:
    """Hold the lock of the host's directory until the block ends. Raises LockedError if another host runs there."""
    try:
        held = lock(layout.lock_file, WAIT_SECONDS)
    except LockedError:
        raise LockedError(f"{layout.root}: its host is already running", "see session-memory host status") from None
    try:
        yield
    finally:
        os.close(held)
