"""A home's hook.log: one line for every event that could not be answered, at most LOG_BYTES and one older file."""

from __future__ import annotations

import time

from ..errors import SessionMemoryError
from ..system.files import is_directory, open_private, os
from ..text.format import one_line
from ..text.sanitize import for_prompt
from ..text.timestamps import iso_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..settings.homes import Home

LOG_BYTES = 64 * 1024


class HookLog:
    """The log of a home. Nothing is written, and nothing raised, where the home or the file cannot be written to."""

    def __init__(self, home: Home) -> None:
        self._home = home

    def write(self, event_name: str, message: str) -> None:
        """Appends a line with the time. A full log becomes `hook.log.1`."""
        line = f"{iso_time(time.time())} {event_name}: {one_line(for_prompt(message))}\n"
        path = self._home.log_file
        try:
            if not is_directory(self._home.root):
                return
            descriptor = open_private(path, os.O_WRONLY | os.O_APPEND)
            try:
                os.write(descriptor, line.encode("utf-8", "replace"))
                is_full = os.fstat(descriptor).st_size > LOG_BYTES
            finally:
                os.close(descriptor)
            if is_full:
                os.replace(path, path + ".1")
        except OSError:
            pass

    def write_fault(self, event_name: str, error: BaseException) -> None:
        """Appends what went wrong, with the error's type where it is not one of ours."""
        is_foreseen = isinstance(error, (SessionMemoryError, ValueError))
        self.write(event_name, f"{error}" if is_foreseen else f"{type(error).__name__}: {error}")
