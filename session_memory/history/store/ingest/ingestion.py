"""Ingests the new content of transcripts into the store, in batches of one transaction each.

An appended file is read from its last offset. A replaced file is a new generation, read from the
beginning; its known entries are not stored again.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from ....common.errors import SessionMemoryError
from ....common.system.files import Closing, path_text
from ....common.system.garbage import without_collection
from ....common.system.sqlite import CorruptDatabaseError, DatabaseError
from ....common.system.zstd import DamagedFileError, NoLibraryError
from ....common.text.timestamps import now_milliseconds
from ....sessions.confined_files import OutsideGroupError
from ....sessions.runtimes.base import Runtime
from ....sessions.runtimes.detection import runtime_of, unusual_form
from ....sessions.runtimes.outside import OutsideAnswers
from ....sessions.settings.forgotten import forgotten_of
from ..sqlite.engine import SqliteStore
from ..sqlite.unchanged import RETRY_MILLISECONDS
from ..sqlite.written_lines import key_for
from ..values import Progress
from ._read_ahead import SPAN_BYTES, ReadAhead
from .extract import Extract, Extractor, advanced, begun, is_beginning, is_unchanged
from .sources import FOREIGN, SourceDirectory, SourceFile, Unreadable
from .values import Batch, FileState, UnreadFile

BATCH_BYTES = 64 * 1024 * 1024  # smaller ones write the pages of the store's hashes more often
BATCH_CHARACTERS = 4 * 1024 * 1024  # of text in a batch, to limit memory
LINE_CHARACTERS = 16  # as which a line that a call writes counts: its hash takes more memory
ATTEMPTS = 3
COMPACTED_BYTES = 64 * 1024 * 1024  # of a first import: less takes about as little room anyway


class UnreadableFileError(SessionMemoryError):
    """A transcript cannot be ingested, and should not be retried until it changes."""


@dataclass
class IngestReport:
    """The result of an ingestion.

    `foreign` files are not transcripts; `problems` are (path, reason)."""

    files: int = 0
    changed: int = 0
    gone: int = 0
    forgotten: int = 0
    bytes: int = 0
    entries: int = 0
    unreadable: int = 0
    problems: list[tuple[str, str]] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)

    def add(self, other: IngestReport) -> None:
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)


class Ingestion:
    """One run over the files of a group.

    `progress` is called with each file and the bytes done since the last call. A transaction has
    about `batch_bytes` of transcripts, or less if much of that is text or lines that calls write.
    `workers` processes read if there is much to read. Except on Linux, or if this process has
    several threads, they import the caller's main module."""

    def __init__(
        self,
        store: SqliteStore,
        home: str = "",
        progress: Progress | None = None,
        batch_bytes: int = BATCH_BYTES,
        workers: int = 0,
    ) -> None:
        self.report = IngestReport()
        self.directories: set[str] = set()  # in which the sessions began that were ingested
        self._store = store
        self._home = home
        self._batch_bytes = batch_bytes
        self._workers = workers
        self._progress = progress or (lambda path, size: None)
        self._states = store.file_states(home)
        self._is_first = not self._states
        self._unread = store.unread_files(home)
        self._noted: dict[str, UnreadFile] = {}
        self._cleared: set[str] = set()
        self._waiting: list[tuple[SourceFile, Batch]] = []
        self._waiting_bytes = self._waiting_characters = 0
        self._again: list[SourceFile] = []
        self._live_roots: set[str] = set()
        self._line_key = b""  # of the hashes of written lines
        self._forgotten = forgotten_of(store.path, home)
        # whether several parts of a file may be stored in one transaction: each part continues
        # the stored state of the part before, and this state lacks forgotten titles and times
        self._may_wait = not self._forgotten

    def scan(self, directory: SourceDirectory) -> None:
        """Ingest the new content of a directory, and note which of its files are gone.

        A root or folder that cannot be read is a problem in the report, and its files do not count
        as gone. Raises DatabaseError."""
        unreadable: Unreadable = []
        try:
            files = directory.files(unreadable)
        except (OSError, OutsideGroupError) as error:
            self._note_problem(directory.root, error)
            return
        keys = {file.key for file in files}
        given = iter(files)
        del files  # 20,000 would take memory until the end
        self.take(given)
        for folder, why in unreadable:
            self._note_problem(f"{directory.root}/{folder.rstrip('/')}", why)
        folders = tuple([folder for folder, _ in unreadable])

        def is_gone(root: str, key: str) -> bool:
            is_expected = (
                root == directory.root and directory.holds(key) and not key.startswith(folders)
            )
            return is_expected and key not in keys

        gone = [
            key
            for key, state in self._states.items()
            if state.status != "gone" and is_gone(state.root, key)
        ]
        if gone:
            self._store.mark_gone(self._home, gone)
            self.report.gone += len(gone)
        self._cleared.update(
            [key for key, state in self._unread.items() if is_gone(state.root, key)]
        )
        self._write_notes()

    def finish(self) -> None:
        """Compact the store after a large first import, if it is not busy and has room.

        Raises CorruptDatabaseError."""
        if self._is_first and self.report.bytes >= COMPACTED_BYTES:
            try:
                self._store.compact()
            except CorruptDatabaseError:
                raise
            except DatabaseError:  # only its form would change
                pass

    def take(self, files: Iterable[SourceFile]) -> None:
        """Ingest the new content of these files. Raises DatabaseError."""
        # records and rows have no cycles, and looking for some takes 4 % of the time of an import
        with without_collection():
            self._take(files)

    def _take(self, files: Iterable[SourceFile]) -> None:
        self._line_key = self._line_key or key_for(self._store)
        changed: deque[SourceFile] = deque()
        for file in files:
            self.report.files += 1
            if is_unchanged(file, self._states.get(file.key)):
                self._cleared.add(file.key)
            elif not self._is_left_alone(file):
                changed.append(file)
        for _ in range(ATTEMPTS):
            unknown = (
                file
                for file in changed
                if file.key not in self._states and not file.directory.confined_to
            )
            given = (self._home, self._batch_bytes, self._workers, self._line_key, self._forgotten)
            with ReadAhead(unknown, *given) as ahead:
                while changed:
                    file = changed.popleft()
                    try:
                        self._take_file(file, ahead)
                    except (
                        OSError,
                        OutsideGroupError,
                        UnreadableFileError,
                        NoLibraryError,
                    ) as error:
                        self._note_unread(file, error)
            self._flush()
            if not self._again:
                self._write_notes()
                return
            changed, self._again = deque(self._again), []
            self._states = self._store.file_states(self._home)  # another process was quicker
        self.report.problems += [
            (file.path, "another process is reading it at the same time") for file in changed
        ]

    def _is_left_alone(self, file: SourceFile) -> bool:
        """Check if a failed file is unchanged and not due for a retry; report the failure again."""
        noted = self._unread.get(file.key)
        if noted is None or noted.root != file.directory.root or noted[3:6] != file.stamp:
            return False
        if not noted.is_lasting or now_milliseconds() - noted.noted_at > RETRY_MILLISECONDS:
            return False
        self._report_unread(file.path, noted.problem)
        return True

    def _note_problem(self, path: str, error: Exception) -> None:
        self.report.problems.append((path, getattr(error, "strerror", None) or str(error)))

    def _note_unread(self, file: SourceFile, error: Exception) -> None:
        problem = path_text(getattr(error, "strerror", None) or str(error))
        is_lasting = isinstance(error, UnreadableFileError)
        self._noted[file.key] = UnreadFile(
            self._home,
            file.key,
            file.directory.root,
            *file.stamp,
            now_milliseconds(),
            problem,
            is_lasting,
        )
        self._report_unread(file.path, problem)

    def _report_unread(self, path: str, problem: str) -> None:
        if problem == FOREIGN:
            self.report.foreign.append(path)
        else:
            self.report.problems.append((path, problem))

    def _write_notes(self) -> None:
        cleared = [key for key in self._cleared if key in self._unread and key not in self._noted]
        if cleared or self._noted:
            self._store.note_unread(self._home, self._noted.values(), cleared)
            self._unread = self._store.unread_files(self._home)
        self._noted, self._cleared = {}, set()

    def _take_file(self, file: SourceFile, ahead: ReadAhead) -> None:
        try:
            descriptor = file.open()
        except DamagedFileError as error:
            raise UnreadableFileError(str(error)) from error
        with Closing(descriptor):
            status = os.fstat(descriptor)
            before, answers = self._states.get(file.key), OutsideAnswers()
            with _faults_of_the_file():
                runtime = runtime_of(descriptor)
                is_older_copy = (
                    before and runtime and self._is_older_copy(file, before, descriptor, status)
                )
            if runtime is None and status.st_size:
                answers.check()
                raise UnreadableFileError(unusual_form(descriptor) or FOREIGN)
            if runtime and not is_older_copy:
                self._read_file(file, descriptor, status, runtime, ahead)
            self._cleared.add(file.key)

    def _read_file(
        self,
        file: SourceFile,
        descriptor: int,
        status: os.stat_result,
        runtime: Runtime,
        ahead: ReadAhead,
    ) -> None:
        """Read the new content up to the file's current size, but no later additions."""
        before, answers = self._states.get(file.key), OutsideAnswers()
        with _faults_of_the_file():
            state, start = begun(file, before, descriptor, status, runtime)
            given = (runtime, descriptor, state.session_id, self._home, self._line_key)
            extractor = Extractor(*given, project=file.directory.project, forgotten=self._forgotten)
            has_changed = (
                before is not None and start and extractor.has_changed_before(start, status.st_size)
            )
        answers.check(runtime.name)
        if has_changed:
            self._flush()
            self._store.forget(self._home, file.key)
            before = None
            state, start = begun(file, None, descriptor, status, runtime)
        self.report.changed += 1
        self._progress(file.path, 0)
        is_ahead = before is None
        read_ahead = ahead.extracts(file, status.st_ino, status.st_size) if is_ahead else iter(())
        while True:
            with _faults_of_the_file():
                extract = next(read_ahead, None) or extractor.read(
                    start, status.st_size, min(self._batch_bytes, SPAN_BYTES)
                )
                after = advanced(state, extract, descriptor, status)
            answers.check(runtime.name)
            if not extract.is_last:
                after = after._replace(status="ingesting")
            of_calls = extract.outcomes, extract.lines, extract.whole
            batch = Batch(before, after, extract.entries, *of_calls)
            # a state without an id is the one that the batch before leaves
            state = before = after._replace(id=0)
            if self._take_extract(file, batch, extract, extract.reached - start):
                state = before = self._states.get(file.key, before)
            if extract.is_last or file in self._again or file.key in self._noted:
                return
            start = extract.reached

    def _take_extract(self, file: SourceFile, batch: Batch, extract: Extract, size: int) -> bool:
        """Add the extract of so many bytes of a file to the next transaction.

        Return whether it was written."""
        self._waiting.append((file, batch))
        self._waiting_bytes += size
        self._waiting_characters += sum([len(entry.text) for entry in extract.entries])
        lines = [len(tool.lines) for entry in extract.entries for tool in entry.tools]
        self._waiting_characters += LINE_CHARACTERS * sum(lines)
        self.report.bytes += size
        self.report.entries += len(extract.entries)
        self.report.unreadable += extract.unreadable
        self._progress(file.path, size)
        is_enough = (
            self._waiting_bytes >= self._batch_bytes or self._waiting_characters >= BATCH_CHARACTERS
        )
        if is_enough or not (extract.is_last or self._may_wait):
            self._flush()
            return True
        return False

    def _is_older_copy(
        self, file: SourceFile, state: FileState, descriptor: int, status: os.stat_result
    ) -> bool:
        """Check if this is an older copy of a known file in another directory, such as a backup."""
        directory = file.directory
        if not directory.is_backup and file.is_in_place:
            is_first = state.root not in self._live_roots
            self._live_roots.add(directory.root)
            if is_first and status.st_size == state.file_size:
                return False
        is_itself = state.root == directory.root and file.is_in_place
        if is_itself or status.st_size > state.file_size or directory.confined_to:
            return False
        return is_beginning(state, descriptor, status)

    def _flush(self) -> None:
        """Store the waiting batches in one transaction.

        If another process has read a file further, check that file again."""
        waiting, self._waiting = self._waiting, []
        self._waiting_bytes = self._waiting_characters = 0
        if not waiting:
            return
        try:
            states = self._store.write([batch for _, batch in waiting])
        except DatabaseError:
            raise
        except Exception as error:
            if len(waiting) == 1:
                self._note_unread(waiting[0][0], UnreadableFileError(_described(error)))
            for waiting_file in waiting if len(waiting) > 1 else ():  # one of them caused the error
                if waiting_file[0].key not in self._noted:
                    self._waiting = [waiting_file]
                    self._flush()
            return
        for (file, _), state in zip(waiting, states):
            if state is None:
                self._may_wait = False
                if file not in self._again:
                    self._again.append(file)
            else:
                self._states[file.key] = state
                self.directories.add(state.cwd)


@contextmanager
def _faults_of_the_file() -> Iterator[None]:
    """Turn an error caused by a file's content into UnreadableFileError, so no other file fails."""
    try:
        yield
    except (OSError, SessionMemoryError):
        raise
    except Exception as error:
        raise UnreadableFileError(_described(error)) from error


def _described(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
