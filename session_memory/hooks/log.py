"""A home's hook.log: a line for every event that could not be answered, the same only once a day; at most LOG_BYTES and
one older file."""

from __future__ import annotations

import time

from ..errors import SessionMemoryError
from ..system.files import is_directory, open_private, os, read_end
from ..text.format import one_line
from ..text.sanitize import for_prompt
from ..text.timestamps import iso_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..settings.homes import Home

LOG_BYTES = 64 * 1024
MESSAGE_CHARACTERS = 1000
MOST_LINES = 20  # of one event
_LATEST_BYTES = 16 * 1024  # of the log, in which the same line is looked for


class HookLog:
    """The log of a home. Nothing is written, and nothing raised, where the home or the file cannot be written to."""

    def __init__(self, home: Home) -> None:
        self._home = home

    def write(self, event_name: str, message: str) -> None:
        """Append a line with the time, unless the log has it of the same day. A full log becomes `hook.log.1`."""
        when = iso_time(time.time())
        said = " ".join([one_line(for_prompt(part[:MESSAGE_CHARACTERS])) for part in (f"{event_name}:", message)])
        line = f"{when} {said}\n".encode("utf-8", "replace")
        path = self._home.log_file
        try:
            if not is_directory(self._home.root) or _is_among(read_end(path, _LATEST_BYTES), line, len(when)):
                return
            descriptor = open_private(path, os.O_WRONLY | os.O_APPEND)
            try:
                os.write(descriptor, line)
                is_full = os.fstat(descriptor).st_size > LOG_BYTES
            finally:
                os.close(descriptor)
            if is_full:
                os.replace(path, path + ".1")
        except OSError:
            pass

    def write_each(self, event_name: str, messages: list[str]) -> None:
        """Append a line for each of the messages, the first MOST_LINES of them."""
        for message in messages[:MOST_LINES]:
            self.write(event_name, message)

    def write_fault(self, event_name: str, error: BaseException) -> None:
        """Appends what went wrong, with the error's type where it is not one of ours."""
        is_foreseen = isinstance(error, (SessionMemoryError, ValueError))
        self.write(event_name, f"{error}" if is_foreseen else f"{type(error).__name__}: {error}")


def _is_among(latest: bytes, line: bytes, time_bytes: int) -> bool:
    """Check that one of the `latest` lines of a log says the same as `line`, and is of the same day."""
    at = latest.rfind(line[time_bytes:])
    return at >= time_bytes and latest[at - time_bytes :][:10] == line[:10]
