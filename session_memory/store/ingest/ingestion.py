"""From transcripts to the store: what is new in which file, batch by batch, each in one transaction.

A file is read on from where its state says, if it is still the same file; else it is a new generation, read from the
beginning, of which what is known already is not stored again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from ...runtimes.detection import runtime_of
from ...system.confined_files import OutsideGroupError
from ..values import Batch
from .extract import Extract, Extractor
from .file_state import advanced, begun, is_beginning, is_unchanged
from .read_ahead import ReadAhead

if TYPE_CHECKING:
    from ...runtimes import Runtime
    from ..contract import Store
    from ..values import FileState
    from .sources import SourceDirectory, SourceFile

    Progress = Callable[[str, int], None]

BATCH_BYTES = 32 * 1024 * 1024
ATTEMPTS = 3


class IngestReport:
    """What an ingestion did: files seen, changed and gone, bytes and entries read, what could not be read and why."""

    def __init__(self) -> None:
        self.files = 0
        self.changed = 0
        self.gone = 0
        self.bytes = 0
        self.entries = 0
        self.unreadable = 0
        self.problems: list[tuple[str, str]] = []

    def add(self, other: IngestReport) -> None:
        """Adds another report to this one."""
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)


class Ingestion:
    """One run over files of a group. `progress` is called with each file that is taken up and the bytes done since;
    about `batch_bytes` go into one transaction. Where there is much to read, `workers` processes do that; elsewhere
    than on Linux, or from a process with several threads, these import the caller's main module."""

    def __init__(
        self,
        store: Store,
        home: str = "",
        progress: Progress | None = None,
        batch_bytes: int = BATCH_BYTES,
        workers: int = 0,
    ) -> None:
        self.report = IngestReport()
        self._store = store
        self._home = home
        self._batch_bytes = batch_bytes
        self._workers = workers
        self._progress = progress or (lambda path, size: None)
        self._states = store.file_states(home)
        self._waiting: list[tuple[SourceFile, Batch]] = []
        self._waiting_bytes = 0
        self._again: list[SourceFile] = []
        self._live_roots: set[str] = set()

    def scan(self, directory: SourceDirectory) -> None:
        """Takes in what is new in a directory, and notes which of its files are gone. Raises DatabaseError; a root that
        cannot be read is a problem in the report, and none of its files are gone for that."""
        try:
            files = directory.files()
        except (OSError, OutsideGroupError) as error:
            self._note_problem(directory.root, error)
            return
        self.take(files)
        keys = {file.key for file in files}
        gone = [
            key
            for key, state in self._states.items()
            if state.root == directory.root and state.status != "gone" and key not in keys and directory.holds(key)
        ]
        if gone:
            self._store.mark_gone(self._home, gone)
            self.report.gone += len(gone)

    def take(self, files: Iterable[SourceFile]) -> None:
        """Takes in what is new in these files. Raises DatabaseError."""
        changed = []
        for file in files:
            self.report.files += 1
            if not is_unchanged(file, self._states.get(file.key)):
                changed.append(file)
        for _ in range(ATTEMPTS):
            with ReadAhead(self._unknown(changed), self._home, self._batch_bytes, self._workers) as ahead:
                for file in changed:
                    try:
                        self._take_file(file, ahead)
                    except (OSError, OutsideGroupError) as error:
                        self._note_problem(file.path, error)
            self._flush()
            if not self._again:
                return
            changed, self._again = self._again, []
            self._states = self._store.file_states(self._home)  # another process was quicker
        self.report.problems += [(file.path, "another process reads it at the same time") for file in changed]

    def _unknown(self, files: Iterable[SourceFile]) -> Iterator[SourceFile]:
        return (file for file in files if file.key not in self._states and not file.directory.confined_to)

    def _note_problem(self, path: str, error: OSError | OutsideGroupError) -> None:
        self.report.problems.append((path, getattr(error, "strerror", None) or str(error)))

    def _take_file(self, file: SourceFile, ahead: ReadAhead) -> None:
        descriptor = file.open()
        try:
            status = os.fstat(descriptor)
            before = self._states.get(file.key)
            runtime = runtime_of(descriptor)
            if runtime is not None and not (before and self._is_older_copy(file, before, descriptor, status)):
                self._read_file(file, descriptor, status, runtime, ahead)
        finally:
            os.close(descriptor)

    def _read_file(
        self, file: SourceFile, descriptor: int, status: os.stat_result, runtime: Runtime, ahead: ReadAhead
    ) -> None:
        """Reads what is new up to the size that the file has now: what is appended meanwhile is for the next time."""
        before = self._states.get(file.key)
        state, start = begun(file, before, descriptor, status, runtime)
        extractor = Extractor(runtime, descriptor, self._home)
        self.report.changed += 1
        self._progress(file.path, 0)
        read_ahead = ahead.extracts(file, status.st_ino, status.st_size) if before is None else iter(())
        while True:
            extract = next(read_ahead, None) or extractor.read(start, status.st_size, self._batch_bytes)
            after = advanced(state, extract, descriptor, status)
            if not extract.is_last:
                after = after._replace(status="ingesting")
            self._waiting.append((file, Batch(before, after, extract.entries, extract.outcomes)))
            self._count(file.path, extract.reached - start, extract)
            # A search index that is written in small batches becomes many parts; but while the processes that read are
            # behind, there is nothing else to do.
            enough = self._batch_bytes // 8 if ahead.is_behind() else self._batch_bytes
            if self._waiting_bytes >= enough or not extract.is_last:
                self._flush()
            if extract.is_last or file in self._again:
                return
            state = before = self._states[file.key]
            start = extract.reached

    def _is_older_copy(self, file: SourceFile, state: FileState, descriptor: int, status: os.stat_result) -> bool:
        """Whether this is a copy, in another directory, of what is known: a backup beside what it is of."""
        directory = file.directory
        if not directory.is_backup:
            is_first = state.root not in self._live_roots
            self._live_roots.add(directory.root)
            if is_first and status.st_size == state.file_size:
                return False
        if state.root == directory.root or status.st_size > state.file_size or directory.confined_to:
            return False
        return is_beginning(state, descriptor, status)

    def _count(self, path: str, size: int, extract: Extract) -> None:
        self._waiting_bytes += size
        self.report.bytes += size
        self.report.entries += len(extract.entries)
        self.report.unreadable += extract.unreadable
        self._progress(path, size)

    def _flush(self) -> None:
        """Stores what waits, in one transaction. A file that another process has read on is to be looked at again."""
        waiting, self._waiting, self._waiting_bytes = self._waiting, [], 0
        if not waiting:
            return
        for (file, _), state in zip(waiting, self._store.write([batch for _, batch in waiting])):
            if state is None:
                self._again.append(file)
            else:
                self._states[file.key] = state
