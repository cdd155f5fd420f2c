"""`python -m bench.crashes`: kills ingestion and makes its system calls fail; nothing may be lost.

Kills: an ingesting process is killed at a random moment, thousands of times, while the transcripts
grow, get torn lines, are truncated, replaced and deleted. Faults: an ingestion runs once for every
write, sync, truncation and opening of a file by SQLite, and that operation fails, with an I/O error
and with a full disk. Afterwards the store must have exactly the content of a store that was made
without interruption.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import apsw

from session_memory.common.system.sqlite import DatabaseError
from session_memory.history.store.ingest.ingestion import Ingestion
from session_memory.history.store.ingest.sources import SourceDirectory
from session_memory.history.store.sqlite.engine import SqliteStore
from session_memory.history.store.values import Filter

from .command import run
from .histories import Histories
from .kills import forked, is_killed
from .scratch import scratch_directory

BATCH_BYTES = 4096  # small, so a file takes several transactions
CHECK_EVERY = 1000
KINDS = (apsw.IOError, apsw.FullError, apsw.CantOpenError)


def main(kills: int = 10_000, seed: int = 7) -> None:
    kill(kills, seed, show=print)
    faults(seed, show=print)


def kill(count: int, seed: int, show: Any = lambda text: None) -> int:
    """Kills `count` ingestions; how many died of it. Raises AssertionError."""
    chance = random.Random(seed)
    landed = 0
    with scratch_directory() as name:
        root, database = name / "projects", str(name / "memory.db")
        histories = Histories(root, chance, lambda: ingest(root, database))
        began = time.monotonic()
        longest = 0.02
        for number in range(1, count + 1):
            histories.step()
            started = time.monotonic()
            if is_killed(forked(partial(ingest, root, database)), chance.uniform(0, longest)):
                landed += 1
            else:  # it was done before: aim at what it took
                longest = max(0.002, 0.9 * longest + 0.1 * (time.monotonic() - started))
            if number % CHECK_EVERY == 0 or number == count:
                check(root, database, histories)
                rate = number / (time.monotonic() - began)
                show(
                    f"kills: {number} of {count}, {landed} while at work: nothing lost or "
                    f"doubled, {rate:.0f} a second"
                )
    return landed


def faults(
    seed: int,
    steps: int = 30,
    kinds: tuple[type[Exception], ...] = KINDS,
    show: Any = lambda text: None,
) -> int:
    """Let every operation of an ingestion fail once in each way; return the number of operations.

    `steps` changes have made the transcripts. Raises AssertionError."""
    chance = random.Random(seed)
    total = 0
    with scratch_directory() as name, failing_files() as vfs:
        root = name / "projects"
        histories = Histories(root, chance)
        for _ in range(steps):
            histories.step()
        for kind in kinds:
            number = 0
            while True:
                database = str(name / f"{kind.__name__}-{number}" / "memory.db")
                vfs.fail_at(number, kind)
                try:
                    ingest(root, database)
                except (DatabaseError, apsw.Error):
                    pass
                if not vfs.has_failed:
                    break
                vfs.fail_at(None, kind)
                ingest(root, database)
                check(root, database, histories)
                number += 1
            total += number
            show(
                f"faults: {number} operations failed with {kind.__name__}, one a run: nothing "
                f"lost or doubled"
            )
    return total


def check(root: Path, database: str, histories: Histories) -> None:
    """Bring the store up to date, and compare it with the histories.

    SQLite's own check of the file must pass too."""
    ingest(root, database)
    store = SqliteStore(database)
    try:
        [(verdict,)] = store.connection.execute("PRAGMA integrity_check").fetchall()
        assert verdict == "ok", verdict
        store.connection.execute(
            "INSERT INTO memory_search (memory_search, rank) VALUES ('integrity-check', 1)"
        )
        held: dict[str, list[str]] = {}
        for conversation in store.conversations(Filter(limit=1_000_000)):
            texts = held.setdefault(conversation.session_id, [])
            texts += [item.text for item in store.entries(conversation.id)]
        for session, expected in histories.said.items():
            lacking = set(expected) - set(held.get(session, []))
            assert not lacking, f"{session}: lost {sorted(lacking)[:5]}"
            doubled = len(held.get(session, [])) - len(set(held.get(session, [])))
            assert not doubled, f"{session}: {doubled} are there twice"
        counts = store.counts()
        assert counts.entries == sum(len(set(texts)) for texts in held.values()), (
            "an entry is in no conversation"
        )
        assert counts.ingesting == 0
    finally:
        store.close()


def ingest(root: Path, database: str) -> None:
    store = SqliteStore(database)
    try:
        Ingestion(store, batch_bytes=BATCH_BYTES).scan(SourceDirectory(str(root)))
    finally:
        store.close()


class FailingFiles(apsw.VFS):
    """SQLite's files, with one operation that is made to fail."""

    def __init__(self) -> None:
        self.real = apsw.vfs_names()[0]
        super().__init__("failing", self.real, makedefault=True)
        self.has_failed = False
        self._left: int | None = None
        self._error: type[Exception] = apsw.IOError

    def fail_at(self, number: int | None, error: type[Exception]) -> None:
        """Let the operation with this number, counted from now, fail; None for none."""
        self.has_failed = False
        self._left = number
        self._error = error

    def count(self) -> None:
        """One more operation."""
        if self._left is None:
            return
        self._left -= 1
        if self._left < 0:
            self._left = None
            self.has_failed = True
            raise self._error("made to fail")

    def xOpen(self, name: Any, flags: Any) -> Any:
        self.count()
        return FailingFile(self, name, flags)

    def xDelete(self, name: str, sync_directory: bool) -> None:
        self.count()
        super().xDelete(name, sync_directory)


class FailingFile(apsw.VFSFile):
    """A file of FailingFiles."""

    def __init__(self, files: FailingFiles, name: Any, flags: Any) -> None:
        super().__init__(files.real, name, flags)
        self._files = files

    def xWrite(self, content: bytes, offset: int) -> None:
        self._files.count()
        super().xWrite(content, offset)

    def xSync(self, flags: int) -> None:
        self._files.count()
        super().xSync(flags)

    def xTruncate(self, size: int) -> None:
        self._files.count()
        super().xTruncate(size)


@contextmanager
def failing_files() -> Iterator[FailingFiles]:
    """Has all databases opened meanwhile go through FailingFiles."""
    vfs = FailingFiles()
    # failures that SQLite has no use for
    shown, sys.unraisablehook = sys.unraisablehook, lambda unraisable: None
    try:
        yield vfs
    finally:
        sys.unraisablehook = shown
        vfs.unregister()


if __name__ == "__main__":
    run(main)
