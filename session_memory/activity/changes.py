"""One session's look at what the others did since it last looked: who has something new, and what was told of it.

This much every prompt pays for. Reading and telling (`telling`) is loaded where there is something to read.
"""

from __future__ import annotations

from ..system.files import is_regular, os
from .cursor_file import CursorFile, is_unchanged

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from os import stat_result

    from ..runtimes import Runtime
    from ..settings.compiled import Settings
    from ..transcripts.entries import Session
    from .cursor_file import Cursor

    Changed = tuple[Session, stat_result]


class Updates:
    """What there is to tell: `text`, or None; and `notes`, lines for the log. To be closed.

    No cursor moves before `commit`, so that `prepare`, handing over the text, `commit` delivers at least once.
    """

    def __init__(self, file: CursorFile) -> None:
        self.text: str | None = None
        self.notes: list[str] = []
        self.is_changed = False
        self._file = file

    def prepare(self) -> None:
        """Does all that can fail. Raises OSError."""
        if self.is_changed:
            self._file.prepare()

    def commit(self) -> None:
        """Moves the cursors of the sessions that `text` tells of, and of those that had nothing to tell."""
        if self.is_changed:
            self._file.commit()

    def close(self) -> None:
        """Lets the next look with the same cursors begin."""
        self._file.close()


class Look:
    """One look at `sessions`: their `cursors`, to be kept up to date, and the `updates` that come of it."""

    def __init__(
        self, sessions: Iterable[Session], cursors: dict[str, Cursor], settings: Settings, now: float, updates: Updates
    ) -> None:
        self.sessions = list(sessions)
        if settings.has_rules:
            self.sessions = [s for s in self.sessions if not settings.rule(s.name or s.key).ignore]
        self.cursors = cursors
        self.settings = settings
        self.now = now
        self.oldest = now - settings.first_sight_seconds
        self.updates = updates

    def changed(self) -> list[Changed]:
        """The sessions whose transcripts may hold something new, by what `stat` says; the last written first."""
        found = []
        for session in self.sessions:
            try:
                status = os.stat(session.path, follow_symlinks=False)
            except FileNotFoundError:
                continue
            except OSError as error:
                self.note(session, error.strerror or str(error))
                continue
            cursor = self.cursors.get(session.key)
            if is_unchanged(cursor, status) if cursor else status.st_mtime < self.oldest:
                continue
            if is_regular(status):
                found.append((session, status))
            else:
                self.note(session, "not a regular file")
        if len(found) > 1:
            found.sort(key=lambda pair: -pair[1].st_mtime_ns)
        return found

    def keep(self, session: Session, cursor: Cursor) -> None:
        """Moves a cursor: what lies before it has been told, or held nothing to tell."""
        if self.cursors.get(session.key) != cursor:
            self.cursors[session.key] = cursor
            self.updates.is_changed = True

    def note(self, session: Session, message: str) -> None:
        self.updates.notes.append(f"{session.path}: {message}")

    def forget_gone(self) -> None:
        """Drops the cursors of sessions that are no more, so that the file does not grow with the years."""
        keys = {session.key for session in self.sessions}
        for key in [key for key in self.cursors if key not in keys]:
            del self.cursors[key]


def look(
    current: str,
    sessions: Iterable[Session],
    *,
    cursor_file: str,
    runtime: Runtime,
    settings: Settings,
    now: float,
    limit: int,
    own_path: str = "",
) -> Updates:
    """What `sessions` did that `current` has not been told, in at most `limit` characters.

    `own_path` is the transcript of `current`: what a fork copied from it is no news. `now` is in seconds since the
    epoch. Where the cursor file cannot be read, or `current` is a fork at its first prompt, nothing is told, and what
    is there now counts as seen. Raises LockedError where another look holds the cursors, OSError where they cannot be
    had.
    """
    file = CursorFile(cursor_file)
    try:
        updates = Updates(file)
        is_first_look = current not in file.cursors
        this = Look(sessions, file.cursors.setdefault(current, {}), settings, now, updates)
        changed = this.changed()
        if file.was_corrupt:
            updates.notes.append(f"{cursor_file}: could not be read, set aside as .corrupt; starting anew from here")
            updates.is_changed = True
        if changed or file.was_corrupt:
            from . import updates as telling

            if file.was_corrupt or (is_first_look and telling.is_fresh_fork(own_path, runtime, now)):
                telling.skip(this, changed)
            else:
                updates.text = telling.tell(this, changed, runtime, limit, own_path)
            this.forget_gone()
        return updates
    except BaseException:
        file.close()
        raise


def start_here(current: str, sessions: Iterable[Session], *, cursor_file: str, settings: Settings, now: float) -> None:
    """Counts everything that is there now as seen by `current`, unless it has looked before. Raises as `look` does."""
    from . import updates as telling

    file = CursorFile(cursor_file)
    try:
        if current not in file.cursors:
            this = Look(sessions, file.cursors.setdefault(current, {}), settings, now, Updates(file))
            telling.skip(this, this.changed())
            file.prepare()
            file.commit()
    finally:
        file.close()
