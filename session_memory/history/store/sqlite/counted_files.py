"""Counts of transcripts, kept in the store until these change.

`costs` and `proof` count in whole transcripts, so each transcript is read once. The rows have the
names of files and models, redacted as the store's texts are, but no messages. Only commands that
count add rows. Forgetting a conversation deletes all of them; deleting a transcript, its own.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from time import time_ns
from typing import TYPE_CHECKING, Any, NamedTuple

from .... import __version__
from ....common.system.files import Stamp, stamp_of
from ....common.system.sqlite import Connection, DatabaseError, fetch
from ....sessions.runtimes.base import Runtime
from ....sessions.runtimes.table import all_runtimes
from ....sessions.settings import forgotten
from ....sessions.transcripts.lines import RACY_NANOSECONDS
from ....sessions.transcripts.marks import key_of
from .redaction import rule_set

if TYPE_CHECKING:
    from .engine import SqliteStore

# Raise it if `costs` or `proof` count something else in a transcript, or if `notes` get another form
COUNTS_VERSION = 1
_AT_ONCE = 500  # files written in one transaction
# The ids of a session's files differ in these bits, so its sub-agents' rows are deleted with its own.
_OF_SESSION = (1 << 20) - 1
_SELECT = (
    "SELECT inode, file_size, last_modified, version, runtime, notes, models "
    "FROM memory_counted_files WHERE id = ?"
)
_SELECT_ANSWERS = (
    "SELECT answer, timestamp, model, input, output, cached, written, written_for_an_hour, "
    "dollars, searches, is_copy, is_advisor FROM memory_counted_answers WHERE file_id = ? ORDER BY number"
)


class CountedAnswer(NamedTuple):
    """An answer's usage: the id as a number, 0 for none, and the time in milliseconds, or None."""

    answer: int
    timestamp: int | None
    model: str
    input: int
    output: int
    cached: int
    written: int
    written_for_an_hour: int
    dollars: float | None
    searches: int
    is_copy: bool
    is_advisor: bool = False

    @property
    def tokens(self) -> int:
        return self.input + self.output + self.cached + self.written + self.written_for_an_hour


class CountedFile(NamedTuple):
    """A transcript's runtime, notes and answers; None for notes or answers not counted yet."""

    runtime: Runtime
    notes: str | None = None
    answers: Sequence[CountedAnswer] | None = None


class CountedTranscript(NamedTuple):
    """A transcript's path and state, and the path by which the store knows its session's."""

    path: str
    stamp: Stamp
    of_session: str

    @property
    def id(self) -> int:
        first, _ = _ids_of(self.of_session)
        return first | (key_of(self.path) & _OF_SESSION)


class CountedFiles:
    """The counts of transcripts in a store. If they cannot be written, they are counted again.

    Use it in a `with` block, at whose end new counts are written."""

    def __init__(self, store: SqliteStore) -> None:
        self._store = store
        self._version = _version()
        self._new: dict[int, tuple[Stamp, CountedFile]] = {}
        self._is_writable = store.obstacle is None
        self._tombstones: list[forgotten.Tombstone] = []
        try:
            self._tombstones = forgotten.read(store.path)
        except OSError:
            self._is_writable = False

    def __enter__(self) -> CountedFiles:
        return self

    def __exit__(self, *_: object) -> None:
        self._write()

    def find(
        self, transcript: CountedTranscript, *, with_answers: bool = False
    ) -> CountedFile | None:
        """Return the counts of a transcript in this state, without answers unless asked for."""
        new = self._waiting(transcript)
        if new is None:
            return self._stored(transcript, with_answers)
        if (new.answers if with_answers else new.notes) is not None:
            return new
        return _with_earlier(new, self._stored(transcript, with_answers))

    def keep(self, transcript: CountedTranscript, counted: CountedFile) -> None:
        """Keep new counts of a transcript that had this state before it was read.

        Counts that are None keep their earlier values. A file that changed meanwhile, or a moment
        ago, is counted again the next time."""
        path, stamp, _ = transcript
        if not self._is_writable or _may_change(path, stamp):
            return
        new = _with_earlier(counted, self._waiting(transcript))
        self._new[transcript.id] = stamp, new
        if len(self._new) >= _AT_ONCE:
            self._write()

    def is_forgotten(self, home: str, key: str) -> bool:
        """Check if a part of the transcript with this key was forgotten, or all of it."""
        if not self._tombstones:
            return False
        sql = "SELECT session_id, cwd FROM memory_file_states WHERE home = ? AND file_path = ?"
        return any(
            forgotten.forgotten_until(self._tombstones, home, session_id, cwd) is not None
            for session_id, cwd in self._store.rows(sql, (home, key))
        )

    @staticmethod
    def forget(connection: Connection) -> None:
        """Delete all counts, within the caller's transaction."""
        connection.execute("DELETE FROM memory_counted_files")
        connection.execute("DELETE FROM memory_counted_answers")

    @staticmethod
    def forget_file(connection: Connection, path: str) -> None:
        """Delete a transcript's counts and its sub-agents', within the caller's transaction."""
        _delete(connection, "BETWEEN ? AND ?", _ids_of(path))

    @staticmethod
    def forget_outdated(connection: Connection) -> bool:
        """Delete the counts of other versions or rules, within the caller's transaction.

        Return whether there were any."""
        outdated = "IN (SELECT id FROM memory_counted_files WHERE version != ?)"
        return _delete(connection, outdated, (_version(),))

    def _waiting(self, transcript: CountedTranscript) -> CountedFile | None:
        """Return the counts of a transcript in this state that were not written yet."""
        known = self._new.get(transcript.id)
        return known[1] if known and known[0] == transcript.stamp else None

    def _stored(self, transcript: CountedTranscript, with_answers: bool) -> CountedFile | None:
        rows: list[tuple[Any, ...]] = []
        answer_rows: list[tuple[Any, ...]] = []
        # One read transaction: another process may replace the row and its answers in between.
        with self._store.explained(), self._store.connection as connection:
            rows = fetch(connection, _SELECT, (transcript.id,))
            if with_answers:
                answer_rows = fetch(connection, _SELECT_ANSWERS, (transcript.id,))
        if not rows or rows[0][:4] != (*transcript.stamp, self._version):
            return None
        *_, name, notes, models = rows[0]
        runtime = _runtimes().get(name)
        if runtime is None:
            return None
        if not with_answers or models is None:
            return CountedFile(runtime, notes)
        names = json.loads(models)
        answers = [
            CountedAnswer(answer, at, names[model], *more)
            for answer, at, model, *more in answer_rows
        ]
        return CountedFile(runtime, notes, answers)

    def _write(self) -> None:
        new, self._new = self._new, {}
        if not new:
            return
        try:
            with self._store.transaction() as connection:
                # Read the tombstones within the transaction: a process that forgets first records
                # this, then waits to delete. Earlier counts may be of what it forgot.
                tombstones = forgotten.read(self._store.path)
                if tombstones != self._tombstones:
                    self._tombstones = tombstones
                    return
                for id, (stamp, counted) in new.items():
                    _put(connection, id, (*stamp, self._version), counted)
        except (DatabaseError, OSError):
            self._is_writable = False


def _version() -> int:
    return key_of(f"{__version__} {COUNTS_VERSION} {rule_set()}")


def _ids_of(path: str) -> tuple[int, int]:
    """Return the first and the last possible id of a session's files, by its transcript."""
    first = key_of(path) & ~_OF_SESSION
    return first, first | _OF_SESSION


def _with_earlier(counted: CountedFile, earlier: CountedFile | None) -> CountedFile:
    """Return counts with the earlier values of those that are None."""
    if earlier is None:
        return counted
    return counted._replace(
        notes=earlier.notes if counted.notes is None else counted.notes,
        answers=earlier.answers if counted.answers is None else counted.answers,
    )


@cache
def _runtimes() -> dict[str, Runtime]:
    return {runtime.name: runtime for runtime in all_runtimes()}


def _may_change(path: str, stamp: Stamp) -> bool:
    """Check if a file differs from its stamp, or is too young for a stamp."""
    with suppress(OSError):
        status = os.lstat(path)
        return stamp_of(status) != stamp or time_ns() - status.st_mtime_ns < RACY_NANOSECONDS
    return True


def _put(connection: Connection, id: int, state: tuple[int, ...], counted: CountedFile) -> None:
    """Store the counts of a file in this state. Counts that are None keep their earlier values."""
    row = (id, *state, counted.runtime.name)
    sql = (
        "SELECT 1 FROM memory_counted_files WHERE id = ? AND inode = ? AND file_size = ? "
        "AND last_modified = ? AND version = ? AND runtime = ?"
    )
    if not fetch(connection, sql, row):
        _delete(connection, "= ?", (id,))
        sql = "INSERT INTO memory_counted_files VALUES (?, ?, ?, ?, ?, ?, NULL, NULL)"
        connection.execute(sql, row)
    if counted.notes is not None:
        connection.execute(
            "UPDATE memory_counted_files SET notes = ? WHERE id = ?", (counted.notes, id)
        )
    if counted.answers is not None:
        models = list(dict.fromkeys(answer.model for answer in counted.answers))
        connection.execute("DELETE FROM memory_counted_answers WHERE file_id = ?", (id,))
        connection.executemany(
            f"INSERT INTO memory_counted_answers VALUES (?, ?{', ?' * len(CountedAnswer._fields)})",
            [
                (id, number, *answer._replace(model=models.index(answer.model)))  # type: ignore[arg-type]
                for number, answer in enumerate(counted.answers)
            ],
        )
        connection.execute(
            "UPDATE memory_counted_files SET models = ? WHERE id = ?", (json.dumps(models), id)
        )


def _delete(connection: Connection, ids: str, values: tuple[int, ...]) -> bool:
    """Delete the counts whose ids fit a condition in SQL. Return whether there were any."""
    connection.execute(f"DELETE FROM memory_counted_answers WHERE file_id {ids}", values)
    connection.execute(f"DELETE FROM memory_counted_files WHERE id {ids}", values)
    return connection.changes() > 0
