"""Faults: a home's hook.log, hooks that missed their deadline, and invalid settings.

A person sees an invalid setting once. hook.log has a line for every event that could not be
answered, but the same line only once a day. It has at most LOG_BYTES, and there is one older file.
For doctor and the start of the next session, missed deadlines are counted in one file, by session
and event: the number in a row, and the last late part.

    {"main": {"UserPromptSubmit": [3, "pi"]}}
"""

from __future__ import annotations

import time

from ...common.errors import SessionMemoryError
from ...common.system.files import (
    LARGEST_BYTES,
    Closing,
    is_directory,
    open_private,
    os,
    read_end,
    read_whole,
    user_dir,
    write_atomically,
)
from ...common.system.json import decode, encode
from ...common.text.format import one_line
from ...common.text.sanitize import for_prompt
from ...common.text.timestamps import iso_time
from ...sessions.settings.homes import Home, environment
from ...sessions.settings.registry import unregistered_home
from .context import MISSED, Context

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


LOG_BYTES = 64 * 1024
MESSAGE_CHARACTERS = 1000
MOST_LINES = 20  # for one event
MOST_EVENT_CHARACTERS = 64  # of the name of an event
MOST_SESSIONS = 50  # that missed a deadline
TOO_MANY = 3  # in a row; a single one means a busy machine
MISSED_NOTICE = "some hooks took longer than 1 s, so agents got incomplete updates; `session-memory doctor` shows them"
_LATEST_BYTES = 16 * 1024  # of the log, searched for the same line


class HookLog:
    """The log of a home. If it cannot be written, nothing is raised."""

    def __init__(self, home: Home) -> None:
        self._home = home

    def write(self, event_name: str, message: str) -> None:
        """Append a line with the time, unless the log has it from the same day.

        A full log becomes `hook.log.1`."""
        when = iso_time(time.time())
        said = " ".join(
            [
                one_line(for_prompt(part[:MESSAGE_CHARACTERS]))
                for part in (f"{event_name}:", message)
            ]
        )
        line = f"{when} {said}\n".encode("utf-8", "replace")
        path = self._home.log_file
        try:
            latest = read_end(path, _LATEST_BYTES)
            at = latest.rfind(line[len(when) :])
            is_noted = at >= len(when) and latest[at - len(when) :][:10] == line[:10]
            if is_noted or not is_directory(self._home.root):
                return
            with Closing(open_private(path, os.O_WRONLY | os.O_APPEND)) as descriptor:
                os.write(descriptor, line)
                is_full = os.fstat(descriptor).st_size > LOG_BYTES
            if is_full:
                os.replace(path, path + ".1")
        except OSError:
            pass

    def write_fault(self, event_name: str, error: BaseException) -> None:
        """Append an error, with its type if it is not ours."""
        is_foreseen = isinstance(error, (SessionMemoryError, ValueError))
        self.write(event_name, f"{error}" if is_foreseen else f"{type(error).__name__}: {error}")


def _missed_file(home: Home) -> str:
    """Return the path of the file that counts missed deadlines; it exists only if there are any."""
    return home.state_dir + MISSED


def note_deadline(home: Home, session: str, event_name: str, late: list[str]) -> None:
    """Note the parts that were late for an event of a session, [] if none. Raises OSError."""
    path = _missed_file(home)
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
    """Return the notice for a person at the start of a session, or ''.

    Each fault is reported once."""
    home, environ, runtime = context.home, environment(), context.runtime
    start = runtime.start_dir(context.event, environ)
    notice = _untold(home, [MISSED_NOTICE] if missed_too_often(home) else [])
    return "\n".join(
        filter(None, (notice, _untold_home(home, start, environ, runtime.SESSIONS_FOLDER)))
    )


def missed_too_often(home: Home) -> list[tuple[str, str, int, str]]:
    """Return session, event, number of missed deadlines in a row, and the last late part."""
    return [
        (session, event_name, count, what)
        for session, events in sorted(_read_missed(_missed_file(home)).items())
        for event_name, (count, what) in events.items()
        if count >= TOO_MANY
    ]


def _read_missed(path: str) -> dict[str, dict[str, tuple[int, str]]]:
    try:
        return {
            str(session): {
                str(event): (int(count), str(what)) for event, (count, what) in events.items()
            }
            for session, events in decode(read_whole(path).decode()).items()
        }
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


_NOTICES_FILE = "/notices.json"  # the lines that a person was shown, by kind
_FAULTS, _LOOKALIKES = "faults", "homes"  # these only look like agent homes
_MOST_NOTICES = 100  # of one kind


def notices(home: Home) -> list[str]:
    """Return a line for each fault in a home's settings, and for each unreadable file of rules."""
    return [*home.settings().faults, *_leftovers(home)]


def _untold(home: Home, others: Sequence[str] = ()) -> str:
    """Return the notice at the start of a session on one line, or ''; it then counts as shown.

    It has the faults, in the settings and `others`, that no session has shown yet. Unreadable files
    with rules are shown each time until they are gone."""
    faults = [*home.settings().faults, *others]
    said = [*_not_shown_yet(home, _FAULTS, faults, are_all=True), *_leftovers(home)]
    if not said:
        return ""
    more = f" (and {len(said) - 1} more: see `session-memory config`)" if len(said) > 1 else ""
    return f"session-memory: {' '.join(said[0].split())}{more}"


def looks_like_home(start: str, environ: Mapping[str, str], folder: str) -> str:
    """Return a line about an unregistered directory above `start` that looks like an agent home.

    The line has the command that registers it. Return '' without such a directory."""
    root = unregistered_home(start, environ, stop=user_dir(environ), folder=folder)
    if not root:
        return ""
    from shlex import quote

    shown = quote(" ".join(for_prompt(root).split()))
    return (
        f"{shown} looks like an agent home but is not registered: session-memory "
        f"install --home {shown}"
    )


def _untold_home(home: Home, start: str, environ: Mapping[str, str], folder: str) -> str:
    """Return the line of `looks_like_home` for the start of a session, once per directory.

    A returned line counts as shown."""
    line = looks_like_home(start, environ, folder)
    if not line or not _not_shown_yet(home, _LOOKALIKES, [line]):
        return ""
    return f"session-memory: {line}"


def _not_shown_yet(home: Home, kind: str, lines: list[str], *, are_all: bool = False) -> list[str]:
    """Return the `lines` that no person has been shown; they then count as shown.

    If `are_all`, `lines` has all lines of this `kind`: any other line is forgotten, and shown again
    when it returns."""
    path = home.state_dir + _NOTICES_FILE
    shown = _read_notices(path)
    before = shown.get(kind, [])
    new = [line for line in lines if line not in before]
    after = lines if are_all else [*before, *new][-_MOST_NOTICES:]
    if after != before:
        try:
            write_atomically(path, encode({**shown, kind: after}).encode())
        except OSError:  # then the next session shows it again
            pass
    return new


def _read_notices(path: str) -> dict[str, list[str]]:
    try:
        return {
            str(kind): [*map(str, lines)]
            for kind, lines in decode(read_whole(path).decode()).items()
        }
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def _leftovers(home: Home) -> list[str]:
    """Return a line about a file with rules in a home's root, if another file is in force.

    A group's agent or the person has put it there."""
    path = f"{home.root}/.session-memory/config.yaml"
    said = f"{path} is no longer read: move its rules for sessions to {home.config_file}, and remove it"
    return [said] if path != home.config_file and _may_hold_rules(path) else []


def _may_hold_rules(path: str) -> bool:
    try:
        text = read_whole(path, LARGEST_BYTES).decode("utf-8", "replace")
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:  # a link, or too large, or it cannot be read
        return True
    said = [line.partition("#")[0] for line in text.splitlines()]
    return any("sessions" in line or "projects" in line for line in said)
