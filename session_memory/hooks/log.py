"""Faults of hooks: a home's hook.log, and the hooks that missed their deadline.

hook.log has a line for every event that could not be answered, the same only once a day; at most LOG_BYTES and one
older file. Missed deadlines are counted in one file, for doctor and the start of the next session: by session and event
how often in a row, and what came too late the last time.

    {"main": {"UserPromptSubmit": [3, "pi"]}}"""

from __future__ import annotations

import time

from ..errors import SessionMemoryError
from ..hooks.log import untold, untold_home
from ..settings.homes import environment
from ..system.files import Closing, is_directory, open_private, os, read_end, read_whole, write_atomically
from ..system.json import decode, encode
from ..text.format import one_line
from ..text.sanitize import for_prompt
from ..text.timestamps import iso_time
from .context import MISSED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..settings.homes import Home
    from .context import Context

LOG_BYTES = 64 * 1024
MESSAGE_CHARACTERS = 1000
MOST_LINES = 20  # of one event
MOST_EVENT_CHARACTERS = 64  # of the name of an event
MOST_SESSIONS = 50  # that missed a deadline
TOO_MANY = 3  # in a row: one alone is a busy machine
MISSED_NOTICE = "hooks took longer than 1 s, so that agents heard only a part: `session-memory doctor` says which"
_LATEST_BYTES = 16 * 1024  # of the log, searched for the same line


class HookLog:
    """The log of a home. If it cannot be written, nothing is raised."""

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
            with Closing(open_private(path, os.O_WRONLY | os.O_APPEND)) as descriptor:
                os.write(descriptor, line)
                is_full = os.fstat(descriptor).st_size > LOG_BYTES
            if is_full:
                os.replace(path, path + ".1")
        except OSError:
            pass

    def write_each(self, event_name: str, messages: list[str]) -> None:
        """Append a line for each of the messages, the first MOST_LINES of them."""
        for message in messages[:MOST_LINES]:
            self.write(event_name, message)

    def write_fault(self, event_name: str, error: BaseException) -> None:
        """Append what went wrong, with the error's type if it is not ours."""
        is_foreseen = isinstance(error, (SessionMemoryError, ValueError))
        self.write(event_name, f"{error}" if is_foreseen else f"{type(error).__name__}: {error}")


def _is_among(latest: bytes, line: bytes, time_bytes: int) -> bool:
    """Check that one of the `latest` lines of a log says the same as `line`, and is of the same day."""
    at = latest.rfind(line[time_bytes:])
    return at >= time_bytes and latest[at - time_bytes :][:10] == line[:10]


def missed_file(home: Home) -> str:
    """Return the path of the file that counts missed deadlines; it exists only if there are some."""
    return home.state_dir + MISSED


def note_deadline(home: Home, session: str, event_name: str, late: list[str]) -> None:
    """Note what came too late for an event of a session, [] for nothing. Raises OSError."""
    path = missed_file(home)
    before = _read_missed(path)
    missed = {key: dict(events) for key, events in before.items()}
    count = missed.setdefault(session, {}).pop(event_name, (0, ""))[0]
    if late:
        missed[session][event_name] = (count + 1, late[-1])
    missed = dict([(key, events) for key, events in missed.items() if events][-MOST_SESSIONS:])
    if missed and missed != before:
        write_atomically(path, encode(missed).encode())
    elif not missed:
        os.unlink(path)


def notice_of(context: Context) -> str:
    """Return what a person should know at the start of a session, '' for nothing: each fault is reported once."""
    home, environ, runtime = context.home, environment(), context.runtime
    start = runtime.start_dir(context.event, environ)
    notice = untold(home, [MISSED_NOTICE] if missed_too_often(home) else [])
    return "\n".join(filter(None, (notice, untold_home(home, start, environ, runtime.SESSIONS_FOLDER))))


def missed_too_often(home: Home) -> list[tuple[str, str, int, str]]:
    """Return session, event, how often in a row it missed its deadline, and what came too late the last time."""
    return [
        (session, event_name, count, what)
        for session, events in sorted(_read_missed(missed_file(home)).items())
        for event_name, (count, what) in events.items()
        if count >= TOO_MANY
    ]


def _read_missed(path: str) -> dict[str, dict[str, tuple[int, str]]]:
    try:
        return {
            str(session): {str(event): (int(count), str(what)) for event, (count, what) in events.items()}
            for session, events in decode(read_whole(path).decode()).items()
        }
    except (OSError, ValueError, TypeError, AttributeError):
        return {}
