"""From transcripts to the store: what is new in which file, batch by batch, each in one transaction.

A file is read on from where its state says, if it is still the same file; else it is a new generation, read from the
beginning, of which what is known already is not stored again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ...errors import SessionMemoryError
from ...runtimes.detection import HEAD_BYTES, runtime_of, unusual_form
from ...system.confined_files import OutsideGroupError
from ...system.files import path_text, read_at
from ...system.sqlite import DatabaseError
from ...system.zstd import DamagedFileError, NoLibraryError
from ...text.timestamps import now_milliseconds
from ..sqlite.known_files import RETRY_MILLISECONDS
from ..values import Batch, UnreadFile
from .extract import Extract, Extractor
from .file_state import advanced, begun, is_beginning, is_unchanged
from .read_ahead import ReadAhead
from .sources import FOREIGN

if TYPE_CHECKING:
    from ...runtimes import Runtime
    from ..contract import Store
    from ..values import FileState
    from .sources import SourceDirectory, SourceFile, Unreadable

    Progress = Callable[[str, int], None]

BATCH_BYTES = 32 * 1024 * 1024
ATTEMPTS = 3


class UnreadableFileError(SessionMemoryError):
    """A transcript cannot be taken in as it is, so that there is no use in trying again until it changes."""


class IngestReport:
    """What an ingestion did: files seen, changed and gone, bytes and entries read, what could not be read and why, and
    the `foreign` files, which are no transcripts."""

    def __init__(self) -> None:
        self.files = 0
        self.changed = 0
        self.gone = 0
        self.bytes = 0
        self.entries = 0
        self.unreadable = 0
        self.problems: list[tuple[str, str]] = []
        self.foreign: list[str] = []

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
        self._unread = store.unread_files(home)
        self._noted: dict[str, UnreadFile] = {}
        self._cleared: set[str] = set()
        self._waiting: list[tuple[SourceFile, Batch]] = []
        self._waiting_bytes = 0
        self._again: list[SourceFile] = []
        self._live_roots: set[str] = set()

    def scan(self, directory: SourceDirectory) -> None:
        """Takes in what is new in a directory, and notes which of its files are gone. Raises DatabaseError; a root or a
        folder that cannot be read is a problem in the report, and none of its files are gone for that."""
        unreadable: Unreadable = []
        try:
            files = directory.files(unreadable)
        except (OSError, OutsideGroupError) as error:
            self._note_problem(directory.root, error)
            return
        self.take(files)
        for folder, why in unreadable:
            self._note_problem(f"{directory.root}/{folder.rstrip('/')}", why)
        keys = {file.key for file in files}
        folders = tuple([folder for folder, _ in unreadable])

        def is_gone(root: str, key: str) -> bool:
            is_expected = root == directory.root and directory.holds(key) and not key.startswith(folders)
            return is_expected and key not in keys

        gone = [key for key, state in self._states.items() if state.status != "gone" and is_gone(state.root, key)]
        if gone:
            self._store.mark_gone(self._home, gone)
            self.report.gone += len(gone)
        self._cleared.update([key for key, one in self._unread.items() if is_gone(one.root, key)])
        self._write_notes()

    def take(self, files: Iterable[SourceFile]) -> None:
        """Takes in what is new in these files. Raises DatabaseError."""
        changed = []
        for file in files:
            self.report.files += 1
            if is_unchanged(file, self._states.get(file.key)):
                self._cleared.add(file.key)
            elif not self._is_left_alone(file):
                changed.append(file)
        for _ in range(ATTEMPTS):
            with ReadAhead(self._unknown(changed), self._home, self._batch_bytes, self._workers) as ahead:
                for file in changed:
                    try:
                        self._take_file(file, ahead)
                    except (OSError, OutsideGroupError, UnreadableFileError, NoLibraryError) as error:
                        self._note_unread(file, error)
            self._flush()
            if not self._again:
                self._write_notes()
                return
            changed, self._again = self._again, []
            self._states = self._store.file_states(self._home)  # another process was quicker
        self.report.problems += [(file.path, "another process reads it at the same time") for file in changed]

    def _unknown(self, files: Iterable[SourceFile]) -> Iterator[SourceFile]:
        return (file for file in files if file.key not in self._states and not file.directory.confined_to)

    def _is_left_alone(self, file: SourceFile) -> bool:
        """Whether a file could not be taken in as it still is, and it is not time to try again; says so anew."""
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
            self._home, file.key, file.directory.root, *file.stamp, now_milliseconds(), problem, is_lasting
        )
        self._report_unread(file.path, problem)

    def _report_unread(self, path: str, problem: str) -> None:
        if problem == FOREIGN:
            self.report.foreign.append(path)
        else:
            self.report.problems.append((path, problem))

    def _write_notes(self) -> None:
        """Notes in the store which files could not be taken in, and which could."""
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
        try:
            status = os.fstat(descriptor)
            before = self._states.get(file.key)
            with _faults_of_the_file():
                runtime = runtime_of(descriptor)
                is_older_copy = before and runtime and self._is_older_copy(file, before, descriptor, status)
            if runtime is None and status.st_size:
                raise UnreadableFileError(unusual_form(read_at(descriptor, 0, HEAD_BYTES)) or FOREIGN)
            if runtime and not is_older_copy:
                self._read_file(file, descriptor, status, runtime, ahead)
            self._cleared.add(file.key)
        finally:
            os.close(descriptor)

    def _read_file(
        self, file: SourceFile, descriptor: int, status: os.stat_result, runtime: Runtime, ahead: ReadAhead
    ) -> None:
        """Reads what is new up to the size that the file has now: what is appended meanwhile is for the next time."""
        before = self._states.get(file.key)
        with _faults_of_the_file():
            state, start = begun(file, before, descriptor, status, runtime)
            extractor = Extractor(runtime, descriptor, state.session_id, self._home)
        self.report.changed += 1
        self._progress(file.path, 0)
        read_ahead = ahead.extracts(file, status.st_ino, status.st_size) if before is None else iter(())
        while True:
            with _faults_of_the_file():
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
            if extract.is_last or file in self._again or file.key in self._noted:
                return
            state = before = self._states[file.key]
            start = extract.reached

    def _is_older_copy(self, file: SourceFile, state: FileState, descriptor: int, status: os.stat_result) -> bool:
        """Whether this is a copy, in another directory, of what is known: a backup beside what it is of."""
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
        try:
            states = self._store.write([batch for _, batch in waiting])
        except DatabaseError:
            raise
        except Exception as error:
            if len(waiting) == 1:
                self._note_unread(waiting[0][0], UnreadableFileError(_described(error)))
            for one in waiting if len(waiting) > 1 else ():  # one of them is to blame
                self._waiting = [one]
                self._flush()
            return
        for (file, _), state in zip(waiting, states):
            if state is None:
                self._again.append(file)
            else:
                self._states[file.key] = state


@contextmanager
def _faults_of_the_file() -> Iterator[None]:
    """Turns whatever its content leads to into an UnreadableFileError; the file is to blame, and no other."""
    try:
        yield
    except (OSError, SessionMemoryError):
        raise
    except Exception as error:
        raise UnreadableFileError(_described(error)) from error


def _described(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
