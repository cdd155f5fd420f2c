"""Status line: the information about other sessions that the person sees.

Hooks write it to a file beside the session's state as soon as they know it. A separate command
shows it, with the number of other sessions that wait; it reads nothing else."""

from __future__ import annotations

import time

from ...common.system.files import checksum, os, read_whole, status_at, write_atomically
from ...common.system.json import decode, encode
from ...common.text.timestamps import age
from ...sessions.settings.compiled import stamp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ...sessions.settings.privacy import Privacy
    from ...sessions.transcripts.entries import Session
    from ...sessions.transcripts.read_cursor import ReadCursor
    from .changes import Observation, OwnSession

    # a sentence, the time of the event, and the key of the session that did it
    Edit = tuple[str, float, str]

ACTIVE_SECONDS = 15 * 60  # a session without writes since then is not active
EDIT_SECONDS = 3600
COUNT_SECONDS = 10  # between two counts of the sessions that wait
COUNTED_SECONDS = 120  # for which a count is shown: a runtime may run the line once a minute
MOST_JUDGED = 20  # sessions, the last active ones


def note(observed: Observation, edit: Edit | None) -> None:
    """Store when the other sessions last wrote, and the newest `edit` in this session's work.

    `edit` is None if there is no newer one. The gate judges the sessions, and the stamps of its
    inputs are stored too. Raises OSError."""
    from ...sessions.settings.homes import environment
    from ...sessions.settings.privacy import Privacy
    from .session_state import KnownState

    own_session = observed.own
    cursors = KnownState(own_session.cursor_file).of(own_session.key).as_reported().cursors
    recent = [
        pair for pair in observed.statuses if pair[1].st_mtime >= time.time() - ACTIVE_SECONDS
    ]
    recent.sort(key=lambda pair: -pair[1].st_mtime)
    privacy = Privacy(environment(), *([own_session.home] if own_session.home else []))
    shown = [
        pair
        for pair in recent[:MOST_JUDGED]
        if _is_visible(pair[0], cursors.get(pair[0].key), own_session, privacy)
    ]
    path = _path(own_session.cursor_file)
    kept_before = _kept(path)
    edit = edit or (kept_before and kept_before[1])
    keys = [session.key for session, _ in shown] + ([edit[2]] if edit else [])
    starts = dict.fromkeys(
        [own_session.directory, *[_start_of(cursors.get(key)) or "" for key in keys]]
    )
    files = dict.fromkeys([file for start in starts for file in privacy.files(start)])
    kept = {
        "active": [status.st_mtime for _, status in shown],
        "edit": edit,
        "rules": [(file, stamp(file)) for file in files],
    }
    write_atomically(path, encode(kept).encode())


def _is_visible(
    session: Session, cursor: ReadCursor | None, own_session: OwnSession, privacy: Privacy
) -> bool:
    """Check by its transcript's cursor that no rule hides a session.

    An unknown session may be hidden."""
    from ...sessions.transcripts.mirror import hidden_by  # not loaded to show the line
    from ...sessions.transcripts.projects import is_of_namesake

    known_start, session_id = _start_of(cursor), own_session.id_of(session)
    start = own_session.directory if known_start is None else known_start
    if is_of_namesake(
        own_session.runtime_of(session),
        session.path,
        start,
        own_session.directory,
        own_session.user_dir,
    ):
        return False
    if hidden_by(session.path):  # by a rule about what only the runtime knows
        return False
    if privacy.is_open(start):
        return True
    if cursor is None or known_start is None:
        return False
    if cursor.titled is None and privacy.has_name_rules(start):
        return False
    names = (session.name or session.key, cursor.title[1] if cursor.title else "", session_id)
    return (
        not privacy.rule(start, *names).ignore
        and privacy.forgotten_until(session_id, start) is None
    )


def _start_of(cursor: ReadCursor | None) -> str | None:
    """Return the directory that a session was started in; None if unknown."""
    return cursor.start if cursor else None


def status_line(cursor_file: str) -> str:
    """Return the line for a session, or ''.

    A line stored before rules or tombstones changed is not shown."""
    kept, now = _kept(_path(cursor_file)), time.time()
    if kept is None:
        return ""
    active, edit = [at for at in kept[0] if now - at < ACTIVE_SECONDS], kept[1]
    parts = []
    if active:
        parts.append(
            f"{len(active)} {'other' if len(active) == 1 else 'others'} active "
            f"({_age(now - max(active))})"
        )
    if edit and now - edit[1] < EDIT_SECONDS:
        parts.append(f"{edit[0]} ({_age(now - edit[1])})")
    return " · ".join(parts)


class WaitingSessions:
    """The sessions that waited for their user when they were last counted, in the file `path`."""

    def __init__(self, path: str) -> None:
        self._path = path

    def store(self, ids: Iterable[str]) -> None:
        """Store the sessions, by checksums. Raises OSError."""
        counted = [time.time(), [checksum(id.encode()) for id in ids]]
        write_atomically(self._path, encode(counted).encode())

    def text(self, own_id: str) -> str:
        """Return how many sessions except one waited, such as `2 wait for you`.

        Return '' if there were none, or if they were not counted lately."""
        try:
            at, ids = decode(read_whole(self._path).decode())
            is_late = time.time() - at > COUNTED_SECONDS
            count = 0 if is_late else len(ids) - ids.count(checksum(own_id.encode()))
        except (OSError, ValueError, TypeError, AttributeError):
            return ""
        return f"{count} {'waits' if count == 1 else 'wait'} for you" if count else ""

    def must_count(self) -> bool:
        """Check if they are to be counted again, and note that they are. Raises OSError."""
        status = status_at(self._path)
        if status and abs(time.time() - status.st_mtime) < COUNT_SECONDS:
            return False
        if status:
            os.utime(self._path)
        else:
            write_atomically(self._path, b"[0, []]")
        return True


def is_noted(cursor_file: str) -> bool:
    """Check that a line is stored for a session and was judged by the rules in force."""
    return _kept(_path(cursor_file)) is not None


def forget_line(cursor_file: str) -> None:
    """Delete a session's stored line, because it may name a forgotten session."""
    try:
        os.unlink(_path(cursor_file))
    except FileNotFoundError:
        pass


def _kept(path: str) -> tuple[list[float], Edit | None] | None:
    """Return the stored line; None if it was judged by other rules."""
    try:
        kept = decode(read_whole(path).decode())
        if all([stamp(file) == known for file, known in kept["rules"]]):
            edit = kept["edit"]
            return [float(at) for at in kept["active"]], edit and (
                str(edit[0]),
                float(edit[1]),
                str(edit[2]),
            )
    except (OSError, ValueError, LookupError, TypeError):
        pass
    return None


def _age(seconds: float) -> str:
    return age(seconds).removesuffix(" ago")


def _path(cursor_file: str) -> str:
    return cursor_file.removesuffix(".json") + ".line"
