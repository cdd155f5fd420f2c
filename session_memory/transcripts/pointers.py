"""Pointers: which session of each group is the active one, and its earlier sessions under the names they were given.

The conversations are the runtime's transcripts; what is lost here loses none of them.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple, Protocol

from ..errors import SessionMemoryError
from ..system.files import is_file, open_regular
from ..system.sqlite import connect_migrated, open_file, writing
from ..text.names import is_name
from ..text.sanitize import shortened
from ..text.timestamps import iso_time
from .reader import TranscriptHead

if TYPE_CHECKING:
    import apsw

    from ..runtimes import Runtime
    from ..system.sqlite import Migration

NAME_CHARACTERS = 200
LOST = "(could not be gone on with)"


class NoSessionError(SessionMemoryError):
    """There is no such session, or its transcript is gone."""


class SessionGroup(Protocol):
    """What a SessionManager needs to know of a group."""

    @property
    def runtime(self) -> Runtime:
        """The runtime of its agent."""

    def transcript(self, session_id: str) -> str:
        """Where the transcript of a session lies, or will lie."""


class HistoryEntry(NamedTuple):
    """An earlier session under the name that it was given. Times are ISO 8601, UTC."""

    id: int
    group: str
    session_id: str
    name: str
    created_at: str
    archived_at: str


class PutBy(NamedTuple):
    """A session that was replaced: its id in the history (None where no name was given) and the path of its archive."""

    session_id: str
    history_id: int | None
    archive: str | None


class SessionManager:
    """The pointers of all groups in the database at `path`, which is made where it is missing.

    `group_of` gives a group by its name, and raises for what is none. `archive` writes or renews the archive of a
    session, given the group's name, the session's id and the name that somebody gave it or ''; it returns the
    archive's path, None if there is nothing to archive, and raises SessionMemoryError or OSError. What was read is
    remembered until some other connection, of this process or another, has changed the database. May be used from
    several threads.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        group_of: Callable[[str], SessionGroup],
        archive: Callable[[str, str, str], str | None],
        now: Callable[[], float] = time.time,
    ) -> None:
        self._group_of = group_of
        self._archive = archive
        self._now = now
        self._lock = threading.RLock()
        self._connection = connect_migrated(os.fspath(path), MIGRATIONS, "full")
        self._active: dict[str, str] = {}
        self._version = -1

    def close(self) -> None:
        """Close the database. No other method may be called afterwards."""
        with self._lock:
            self._connection.close()

    def get(self, group: str) -> str | None:
        """The id of the group's active session; None if it has none."""
        with self._lock:
            self._refresh()
            return self._active.get(group)

    def all(self) -> dict[str, str]:
        """The active session of every group that has one."""
        with self._lock:
            self._refresh()
            return dict(self._active)

    def usable(self, group: str) -> str | None:
        """The session to go on with; None for a new one.

        A pointer whose transcript is gone is removed, which the history notes: the group begins anew, instead of
        failing at every message. To be asked when no session of the group is running: a new one has no transcript yet.
        """
        with self._lock:
            session_id = self.get(group)
            if session_id is None or is_file(self._group_of(group).transcript(session_id)):
                return session_id
            self.lose(group, session_id)
            return None

    def lose(self, group: str, session_id: str) -> None:
        """Remove the pointer to a session that cannot be resumed, and note that in the history."""
        with self._lock, self._writing():
            if self._active.get(group) == session_id:
                self._keep_row(group, session_id, LOST, self._begun(group, session_id))
                self._remove(group)

    def set(self, group: str, session_id: str) -> None:
        """Makes `session_id` the group's active session. Raises NoSessionError for what can be no session's id."""
        self._group_of(group)
        if not is_name(session_id):
            raise NoSessionError(f"{session_id!r} can be no session's id")
        with self._lock, self._writing():
            self._put(group, session_id)

    def delete(self, group: str) -> None:
        """Leaves the group without an active session: its next message begins a new one."""
        with self._lock, self._writing():
            self._remove(group)

    def archive(self, group: str, name: str) -> int:
        """Copies the group's pointer into the history as `name`; the entry's id. Raises NoSessionError."""
        with self._lock, self._writing():
            session_id = self._require(group)
            return self._keep_row(group, session_id, _checked(name), self._begun(group, session_id))

    def restore(self, group: str, history_id: int) -> str:
        """Makes the session of a history entry the active one, and takes the entry away; the session's id.

        Raises NoSessionError where the group has no such entry, or the transcript is gone.
        """
        with self._lock, self._writing():
            return self._restore(group, history_id)

    def get_history(self, group: str) -> list[HistoryEntry]:
        """The group's earlier sessions, the one last archived first."""
        query = (
            "SELECT id, group_folder, session_id, name, created_at, archived_at FROM session_history "
            "WHERE group_folder = ? ORDER BY id DESC"
        )
        with self._lock:
            return [HistoryEntry._make(row) for row in self._connection.execute(query, (group,))]

    def clear(self, group: str, name: str) -> PutBy:
        """Puts the active session by as `name`: its archive is written, it gets an entry in the history, and the group
        has no active session. Raises NoSessionError, OSError, LockedError; then all is as it was.

        The archive is renewed first and the rest is one transaction: whoever is interrupted in between leaves the old
        state, with an archive that is up to date.
        """
        name = _checked(name)
        while True:
            session_id = self._require(group)
            archive = self._archive(group, session_id, name)
            with self._lock, self._writing():
                if self._active.get(group) == session_id:
                    history_id = self._keep_row(group, session_id, name, self._begun(group, session_id))
                    self._remove(group)
                    return PutBy(session_id, history_id, archive)

    def resume(self, group: str, history_id: int, save_as: str | None = None) -> PutBy | None:
        """Makes the session of a history entry the active one; what became of the one that was, None if there was none.

        Its archive is written; with `save_as` it gets an entry in the history. Raises as `restore` and `clear` do; all
        is as it was then.
        """
        name = None if save_as is None else _checked(save_as)
        while True:
            before = self.get(group)
            archive = self._archive(group, before, name or "") if before else None
            with self._lock, self._writing():
                if self._active.get(group) != before:
                    continue
                kept = None
                if before:
                    entry = self._keep_row(group, before, name, self._begun(group, before)) if name else None
                    kept = PutBy(before, entry, archive)
                self._restore(group, history_id)
                return kept

    def _restore(self, group: str, history_id: int) -> str:
        query = "SELECT session_id, name FROM session_history WHERE id = ? AND group_folder = ?"
        row = self._connection.execute(query, (history_id, group)).fetchone()
        if row is None:
            raise NoSessionError(f"{history_id} is no session of {group}", "list_sessions shows the ids that there are")
        session_id, name = str(row[0]), str(row[1])
        if not is_file(self._group_of(group).transcript(session_id)):
            hint = "it cannot be resumed; its archive in conversations/ may still be read"
            raise NoSessionError(f"the transcript of {name!r} ({history_id}) is gone", hint)
        self._connection.execute("DELETE FROM session_history WHERE id = ?", (history_id,))
        self._put(group, session_id)
        return session_id

    def _require(self, group: str) -> str:
        session_id = self.get(group)
        if session_id is None:
            raise NoSessionError(f"{group} has no active session", "the next message begins one")
        return session_id

    def _put(self, group: str, session_id: str) -> None:
        query = "INSERT INTO sessions VALUES (?, ?) ON CONFLICT (group_folder) DO UPDATE SET session_id = ?"
        self._connection.execute(query, (group, session_id, session_id))
        self._active[group] = session_id

    def _remove(self, group: str) -> None:
        self._connection.execute("DELETE FROM sessions WHERE group_folder = ?", (group,))
        self._active.pop(group, None)

    def _keep_row(self, group: str, session_id: str, name: str, created_at: str) -> int:
        query = (
            "INSERT INTO session_history (group_folder, session_id, name, created_at, archived_at) "
            "VALUES (?, ?, ?, ?, ?)"
        )
        self._connection.execute(query, (group, session_id, name, created_at, iso_time(self._now())))
        return self._connection.last_insert_rowid()

    def _begun(self, group: str, session_id: str) -> str:
        """When the session began: the time of the first entry in its transcript, else now."""
        found = self._group_of(group)
        try:
            descriptor = open_regular(found.transcript(session_id))
        except OSError:
            return iso_time(self._now())
        try:
            began = TranscriptHead(found.runtime, descriptor).first_time
        finally:
            os.close(descriptor)
        return iso_time(self._now() if began is None else began)

    def _refresh(self) -> None:
        """Reads the pointers again if another connection has committed since."""
        version = int(self._connection.pragma("data_version"))
        if version != self._version:
            self._active = dict(self._connection.execute("SELECT group_folder, session_id FROM sessions"))
            self._version = version

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """One transaction that begins with the pointers as they are now. Where it fails, all is as before."""
        try:
            with writing(self._connection):
                self._refresh()
                yield
        except BaseException:
            self._version = -1
            raise


def earlier_names(path: str, group: str) -> dict[str, list[str]]:
    """Return the names of a group's earlier sessions by their ids, from the database at `path`; none if it cannot be
    read."""
    import apsw

    found: dict[str, list[str]] = {}
    try:
        connection = open_file(path, read_only=True)
        try:
            query = "SELECT session_id, name FROM session_history WHERE group_folder = ?"
            for session_id, name in connection.execute(query, (group,)):
                found.setdefault(str(session_id), []).append(str(name))
        finally:
            connection.close()
    except (apsw.Error, OSError):
        pass
    return found


def create_sessions(connection: apsw.Connection) -> None:
    """The active session of each group."""
    connection.execute(
        "CREATE TABLE IF NOT EXISTS sessions (\n  group_folder TEXT PRIMARY KEY,\n  session_id TEXT NOT NULL\n)"
    )


def create_session_history(connection: apsw.Connection) -> None:
    """The earlier sessions, with the names that they were given."""
    connection.execute(
        "CREATE TABLE IF NOT EXISTS session_history (\n"
        "  id INTEGER PRIMARY KEY AUTOINCREMENT,\n"
        "  group_folder TEXT NOT NULL,\n"
        "  session_id TEXT NOT NULL,\n"
        "  name TEXT NOT NULL,\n"
        "  created_at TEXT NOT NULL,\n"
        "  archived_at TEXT NOT NULL\n"
        ")"
    )


MIGRATIONS: tuple[Migration, ...] = (create_sessions, create_session_history)


def _checked(name: str) -> str:
    """A session's name on one line, without secrets. Raises NoSessionError where that leaves nothing."""
    found = shortened(name, NAME_CHARACTERS)
    if not found:
        raise NoSessionError("a session that is put by needs a name", "choose one that you will recognise")
    return found
