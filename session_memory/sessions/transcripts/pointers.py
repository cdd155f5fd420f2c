"""Pointers: the active session of each group, and its saved sessions with their names.

The conversations are the runtime's transcripts; losing a pointer loses none of them."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple, Protocol

from ...common.errors import SessionMemoryError
from ...common.system.files import Opened, is_file
from ...common.system.sqlite import Migration, SharedDatabase, open_file
from ...common.text.paths import is_name
from ...common.text.sanitize import shortened
from ...common.text.timestamps import iso_time
from ..runtimes.base import Runtime
from .reader import TranscriptHead

if TYPE_CHECKING:
    import apsw

NAME_CHARACTERS = 200
LOST = "(could not be continued)"


class NoSessionError(SessionMemoryError):
    """The session does not exist, or its transcript is gone."""


class SessionGroup(Protocol):
    """The properties of a group that a SessionManager needs."""

    @property
    def runtime(self) -> Runtime:
        """Return the runtime of its agent."""

    def transcript(self, session_id: str) -> str:
        """Return the path of a session's transcript, which may not exist yet."""


class HistoryEntry(NamedTuple):
    """An earlier session under the name that it was given. Times are ISO 8601, UTC."""

    id: int
    group: str
    session_id: str
    name: str
    created_at: str
    archived_at: str


class SavedSession(NamedTuple):
    """A session that was replaced: its id in the history, and the path of its archive.

    The id is None if it got no name."""

    session_id: str
    history_id: int | None
    archive: str | None


class SessionManager:
    """The pointers of all groups in the database at `path`, which is created if missing.

    `group_of` returns a group by its name, and raises for an unknown one. `archive` writes or
    updates the archive of a session, given the group's name, the session's id and a person's name
    for it or ''; it returns the archive's path, None if there is nothing to archive, and raises
    SessionMemoryError or OSError. Reads are cached until another connection has changed the
    database. Safe for several threads."""

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
        self._database = SharedDatabase(os.fspath(path), MIGRATIONS)
        self._connection = self._database.connection
        self._active: dict[str, str] = {}
        self._version = -1

    def close(self) -> None:
        """Close the database. No other method may be called afterwards."""
        with self._lock:
            self._database.close()

    def get(self, group: str) -> str | None:
        """Return the id of the group's active session; None if it has none."""
        with self._lock:
            self._refresh()
            return self._active.get(group)

    def all(self) -> dict[str, str]:
        with self._lock:
            self._refresh()
            return dict(self._active)

    def usable(self, group: str) -> str | None:
        """Return the session to continue; None for a new one.

        A pointer whose transcript is gone is removed, and the history notes it. Then the group
        starts a new session instead of failing at every message. Call this only while no session of
        the group is running, because a new one has no transcript yet."""
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
        """Make `session_id` the group's active session. Raises NoSessionError for an invalid id."""
        self._group_of(group)
        if not is_name(session_id):
            raise NoSessionError(f"{session_id!r} cannot be the id of a session")
        with self._lock, self._writing():
            self._put(group, session_id)

    def delete(self, group: str) -> None:
        """Leave the group without an active session: its next message begins a new one."""
        with self._lock, self._writing():
            self._remove(group)

    def archive(self, group: str, name: str) -> int:
        """Copy the group's pointer into the history as `name`; return the entry's id.

        Raises NoSessionError."""
        with self._lock, self._writing():
            session_id = self._require(group)
            return self._keep_row(group, session_id, _checked(name), self._begun(group, session_id))

    def restore(self, group: str, history_id: int) -> str:
        """Make the session of a history entry active, remove the entry, and return its session id.

        Raises NoSessionError if the group has no such entry, or the transcript is gone."""
        with self._lock, self._writing():
            return self._restore(group, history_id)

    def get_history(self, group: str) -> list[HistoryEntry]:
        """Return the group's earlier sessions, the most recently archived first."""
        query = (
            "SELECT id, group_folder, session_id, name, created_at, archived_at "
            "FROM session_history "
            "WHERE group_folder = ? ORDER BY id DESC"
        )
        with self._lock:
            return [HistoryEntry._make(row) for row in self._connection.execute(query, (group,))]

    def clear(self, group: str, name: str) -> SavedSession:
        """Save the active session as `name`, and leave the group without one.

        This writes the session's archive and adds it to the history. The archive is updated first;
        the rest is one transaction, so an interruption leaves the old state and an updated archive.
        Raises NoSessionError, OSError, LockedError; then the state is unchanged."""
        name = _checked(name)
        while True:
            session_id = self._require(group)
            archive = self._archive(group, session_id, name)
            with self._lock, self._writing():
                if self._active.get(group) == session_id:
                    history_id = self._keep_row(
                        group, session_id, name, self._begun(group, session_id)
                    )
                    self._remove(group)
                    return SavedSession(session_id, history_id, archive)

    def resume(
        self, group: str, history_id: int, save_as: str | None = None
    ) -> SavedSession | None:
        """Make the session of a history entry active; return the former one as saved, or None.

        The former one is archived; with `save_as` it gets an entry in the history. Raises as
        `restore` and `clear` do; in that case the state is unchanged."""
        name = None if save_as is None else _checked(save_as)
        while True:
            before = self.get(group)
            archive = self._archive(group, before, name or "") if before else None
            with self._lock, self._writing():
                if self._active.get(group) != before:
                    continue
                kept = None
                if before:
                    entry = (
                        self._keep_row(group, before, name, self._begun(group, before))
                        if name
                        else None
                    )
                    kept = SavedSession(before, entry, archive)
                self._restore(group, history_id)
                return kept

    def _restore(self, group: str, history_id: int) -> str:
        query = "SELECT session_id, name FROM session_history WHERE id = ? AND group_folder = ?"
        row = self._connection.execute(query, (history_id, group)).fetchone()
        if row is None:
            raise NoSessionError(
                f"{history_id} is not a session of {group}",
                "list_sessions shows the existing ids",
            )
        session_id, name = str(row[0]), str(row[1])
        if not is_file(self._group_of(group).transcript(session_id)):
            hint = "it cannot be resumed, but you can still read its archive in conversations/"
            raise NoSessionError(f"the transcript of {name!r} ({history_id}) is gone", hint)
        self._connection.execute("DELETE FROM session_history WHERE id = ?", (history_id,))
        self._put(group, session_id)
        return session_id

    def _require(self, group: str) -> str:
        session_id = self.get(group)
        if session_id is None:
            raise NoSessionError(f"{group} has no active session", "the next message starts one")
        return session_id

    def _put(self, group: str, session_id: str) -> None:
        query = (
            "INSERT INTO sessions VALUES (?, ?) ON CONFLICT (group_folder) DO UPDATE SET "
            "session_id = ?"
        )
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
        self._connection.execute(
            query, (group, session_id, name, created_at, iso_time(self._now()))
        )
        return self._connection.last_insert_rowid()

    def _begun(self, group: str, session_id: str) -> str:
        """Return when a session began: the first time in its transcript, else now."""
        session_paths = self._group_of(group)
        try:
            with Opened(session_paths.transcript(session_id)) as descriptor:
                began = TranscriptHead(session_paths.runtime, descriptor).first_time
        except OSError:
            began = None
        return iso_time(self._now() if began is None else began)

    def _refresh(self) -> None:
        """Read the pointers again if another connection has committed since."""
        version = int(self._connection.pragma("data_version"))
        if version != self._version:
            self._active = dict(
                self._connection.execute("SELECT group_folder, session_id FROM sessions")
            )
            self._version = version

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Run a transaction that begins with the current pointers and is rolled back on failure."""
        try:
            with self._database.transaction():
                self._refresh()
                yield
        except BaseException:
            self._version = -1
            raise


def earlier_names(path: str, group: str) -> dict[str, list[str]]:
    """Return a group's earlier session names by id, from the database at `path` if readable."""
    import apsw

    names_by_id: dict[str, list[str]] = {}
    try:
        connection = open_file(path, read_only=True)
        try:
            query = "SELECT session_id, name FROM session_history WHERE group_folder = ?"
            for session_id, name in connection.execute(query, (group,)):
                names_by_id.setdefault(str(session_id), []).append(str(name))
        finally:
            connection.close()
    except (apsw.Error, OSError):
        pass
    return names_by_id


def _create_sessions(connection: apsw.Connection) -> None:
    connection.execute(
        "CREATE TABLE IF NOT EXISTS sessions (\n  group_folder TEXT PRIMARY KEY,\n  session_id "
        "TEXT NOT NULL\n)"
    )


def _create_session_history(connection: apsw.Connection) -> None:
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


MIGRATIONS: tuple[Migration, ...] = (_create_sessions, _create_session_history)


def _checked(name: str) -> str:
    """Return a session's name on one line, redacted. Raises NoSessionError if nothing is left."""
    short_name = shortened(name, NAME_CHARACTERS)
    if not short_name:
        raise NoSessionError(
            "a session that is saved for later needs a name", "choose one that you will recognise"
        )
    return short_name
