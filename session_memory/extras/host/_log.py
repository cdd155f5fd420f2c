"""The log of a host, shown live and appended to host.log; and the lock of its directory.

At most one host serves a directory.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from ...common.errors import LockedError
from ...common.system.files import Closing, is_locked, lock, open_private
from ...common.text.sanitize import shortened
from ...common.text.timestamps import iso_time
from ...sessions.settings.host_layout import Layout

LOG_BYTES = 1024 * 1024
LINE_CHARACTERS = 300


class HostLog:
    """The log in the file `path`, rotated to `<path>.1` when full.

    `show` is called with each line, without its time, and with True for an error."""

    def __init__(self, path: str, show: Callable[[str, bool], None]) -> None:
        self._path = path
        self._show = show

    def fault(self, text: str) -> None:
        self.event(text, is_fault=True)

    def event(self, text: str, *, is_fault: bool = False) -> None:
        line = shortened(text, LINE_CHARACTERS)
        self._show(line, is_fault)
        with suppress(OSError):
            with Closing(open_private(self._path, os.O_WRONLY | os.O_APPEND)) as descriptor:
                os.write(descriptor, f"{iso_time(time.time())} {line}\n".encode("utf-8", "replace"))
                is_full = os.fstat(descriptor).st_size > LOG_BYTES
            if is_full:
                os.replace(self._path, self._path + ".1")


WAIT_SECONDS = 0.5  # longer than `is_locked` holds it


@contextmanager
def host_lock(layout: Layout) -> Iterator[None]:
    """Hold the lock of the host's directory until the block ends.

    Raises LockedError if another host runs there."""
    try:
        held = lock(layout.lock_file, WAIT_SECONDS)
    except LockedError:
        raise _already_running(layout) from None
    try:
        if _answers(layout.socket):
            raise _already_running(layout)
        yield
    finally:
        os.close(held)


def is_served(layout: Layout) -> bool:
    """Check if a host runs in the directory."""
    return is_locked(layout.lock_file) or _answers(layout.socket)


def _already_running(layout: Layout) -> LockedError:
    return LockedError(
        f"{layout.root}: its host is already running", "see session-memory host status"
    )


def _answers(path: str) -> bool:
    """Check if a host answers at its socket, the only sign on a file system without locks."""
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(WAIT_SECONDS)
        try:
            client.connect(path)
        except OSError:
            return False
    return True
