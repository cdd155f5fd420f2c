"""Counts of transcripts, kept in the store until these change.

`costs` and `proof` count in whole transcripts, so each transcript is read once. The rows have no
text, and only commands that count add some. Forgetting a conversation deletes all of them.
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
from ....common.system.sqlite import Connection, DatabaseError
from ....sessions.runtimes.base import Runtime
from ....sessions.runtimes.table import all_runtimes
from ....sessions.transcripts.lines import RACY_NANOSECONDS
from ....sessions.transcripts.marks import key_of
from .redaction import rule_set

if TYPE_CHECKING:
    from .engine import SqliteStore

_AT_ONCE = 500  # files written in one transaction
_SELECT = (
    "SELECT inode, file_size, last_modified, version, runtime, notes, models "
    "FROM memory_counted_files WHERE id = ?"
)
_SELECT_ANSWERS = (
    "SELECT answer, timestamp, model, input, output, cached, written, written_for_an_hour, "
    "dollars, searches, is_copy FROM memory_counted_answers WHERE file_id = ? ORDER BY number"
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

    @property
    def tokens(self) -> int:
        return self.input + self.output + self.cached + self.written + self.written_for_an_hour


class CountedFile(NamedTuple):
    """A transcript's runtime, notes and answers; None for notes or answers not counted yet."""

    runtime: Runtime
    notes: str | None = None
    answers: Sequence[CountedAnswer] | None = None


class CountedFiles:
    """The counts of transcripts in a store. If they cannot be written, they are counted again.

    Use it in a `with` block, at whose end new counts are written."""

    def __init__(self, store: SqliteStore) -> None:
        self._store = store
        self._version = key_of(f"{__version__} {rule_set()}")
        self._new: dict[int, tuple[Stamp, CountedFile]] = {}
        self._is_writable = store.obstacle is None

    def __enter__(self) -> CountedFiles:
        return self

    def __exit__(self, *_: object) -> None:
        self._write()

    def find(self, path: str, stamp: Stamp, *, with_answers: bool = False) -> CountedFile | None:
        """Return the counts of a transcript in this state, without answers unless asked for."""
        id = key_of(path)
        if id in self._new:
            known_stamp, counted = self._new[id]
            return counted if known_stamp == stamp else None
        with self._store.explained():
            rows: list[Any] = self._store.connection.execute(_SELECT, (id,)).fetchall()
            if not rows or rows[0][:4] != (*stamp, self._version):
                return None
            *_, name, notes, models = rows[0]
            runtime = _runtimes().get(name)
            if runtime is None:
                return None
            answers = None
            if with_answers and models is not None:
                names = json.loads(models)
                answer_rows: Any = self._store.connection.execute(_SELECT_ANSWERS, (id,))
                answers = [
                    CountedAnswer(answer, at, names[model], *more)
                    for answer, at, model, *more in answer_rows
                ]
        return CountedFile(runtime, notes, answers)

    def keep(self, path: str, stamp: Stamp, counted: CountedFile) -> None:
        """Keep new counts of a transcript that had this state before it was read.

        Counts that are None keep their earlier values. A file that changed meanwhile, or a moment
        ago, is counted again the next time."""
        if not self._is_writable or _may_change(path, stamp):
            return
        before = self.find(path, stamp, with_answers=True) or CountedFile(counted.runtime)
        self._new[key_of(path)] = (
            stamp,
            counted._replace(
                notes=before.notes if counted.notes is None else counted.notes,
                answers=before.answers if counted.answers is None else counted.answers,
            ),
        )
        if len(self._new) >= _AT_ONCE:
            self._write()

    @staticmethod
    def forget(connection: Connection) -> None:
        """Delete all counts, within the caller's transaction."""
        connection.execute("DELETE FROM memory_counted_files")
        connection.execute("DELETE FROM memory_counted_answers")

    def _write(self) -> None:
        new, self._new = self._new, {}
        if not new:
            return
        try:
            with self._store.transaction() as connection:
                for id, (stamp, counted) in new.items():
                    _replace(connection, id, (*stamp, self._version), counted)
        except DatabaseError:
            self._is_writable = False


@cache
def _runtimes() -> dict[str, Runtime]:
    return {runtime.name: runtime for runtime in all_runtimes()}


def _may_change(path: str, stamp: Stamp) -> bool:
    """Check if a file differs from its stamp, or is too young for a stamp."""
    with suppress(OSError):
        status = os.lstat(path)
        return stamp_of(status) != stamp or time_ns() - status.st_mtime_ns < RACY_NANOSECONDS
    return True


def _replace(connection: Connection, id: int, state: tuple[int, ...], counted: CountedFile) -> None:
    models: list[str] | None = None
    connection.execute("DELETE FROM memory_counted_answers WHERE file_id = ?", (id,))
    if counted.answers is not None:
        models = list(dict.fromkeys(answer.model for answer in counted.answers))
        connection.executemany(
            "INSERT INTO memory_counted_answers VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [
                (id, number, *answer._replace(model=models.index(answer.model)))  # type: ignore[arg-type]
                for number, answer in enumerate(counted.answers)
            ],
        )
    row = (id, *state, counted.runtime.name, counted.notes)
    connection.execute(
        "REPLACE INTO memory_counted_files VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (*row, None if models is None else json.dumps(models)),
    )
