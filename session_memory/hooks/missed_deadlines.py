"""Hooks that missed their deadline: how often in a row, beside the cursors of each session, for doctor and the start of
the next one.

    {"UserPromptSubmit": [3, "pi"]}    the event, how often, and what came too late the last time
"""

from __future__ import annotations

from ..settings.homes import environment
from ..settings.notices import untold, untold_home
from ..system.files import names_in, os, read_whole, write_atomically
from ..system.json import decode, encode
from .context import MISSED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..settings.homes import Home
    from .context import Context

MOST_CHARACTERS = 64  # of the name of an event
TOO_MANY = 3  # in a row: one alone is a busy machine
NOTICE = "hooks took longer than 1 s, so that agents heard only a part: `session-memory doctor` says which"


def note_deadline(cursor_file: str, event_name: str, late: list[str]) -> None:
    """Note what came too late for an event of a session, [] for nothing. Raises OSError."""
    path = cursor_file.removesuffix(".json") + MISSED
    missed = _read(path)
    count = missed.pop(event_name, (0, ""))[0]
    if late:
        missed[event_name] = (count + 1, late[-1])
    if missed:
        write_atomically(path, encode(missed).encode())
    else:
        os.unlink(path)


def notice_of(context: Context) -> str:
    """Return what a person should know at the start of a session, '' for nothing: each fault is told once."""
    home, environ, runtime = context.home, environment(), context.runtime
    start = runtime.start_dir(context.event, environ)
    told = untold(home, [NOTICE] if missed_too_often(home) else [])
    return "\n".join(filter(None, (told, untold_home(home, start, environ, runtime.SESSIONS_FOLDER))))


def missed_too_often(home: Home) -> list[tuple[str, str, int, str]]:
    """Return session, event, how often in a row it missed its deadline, and what came too late the last time."""
    directory = home.cursor_file("").rpartition("/")[0]
    return [
        (name.removesuffix(MISSED), event_name, count, what)
        for name in sorted(names_in(directory))
        if name.endswith(MISSED)
        for event_name, (count, what) in _read(f"{directory}/{name}").items()
        if count >= TOO_MANY
    ]


def _read(path: str) -> dict[str, tuple[int, str]]:
    try:
        content = decode(read_whole(path).decode())
        return {str(event): (int(count), str(what)) for event, (count, what) in content.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}
