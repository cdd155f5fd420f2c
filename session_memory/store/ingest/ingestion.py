"""From transcripts to the store: what is new in which file, batch by batch, each in one transaction.

A file is read on from where its state says, if it is still the same file; else it is a new generation, read from the
beginning, of which what is known already is not stored again.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from ...runtimes.recognition import runtime_of, source_of
from ...system.confined_files import OutsideGroupError
from ...system.files import open_regular, read_at
from ...transcripts.cursor import make_cursor, resume_offset
from ...transcripts.lines import BLOCK_BYTES
from ..values import Batch, FileState
from .extract import Piece, Reader
from .pool import ReadAhead
from .sources import Found, Source, find_files, open_found

if TYPE_CHECKING:
    from ...runtimes import Runtime
    from ..contract import Store

BATCH_BYTES = 32 * 1024 * 1024
ATTEMPTS = 3


class Report:
    """What an ingestion did: files seen, changed and gone, bytes and entries read, what could not be read and why."""

    def __init__(self) -> None:
        self.files = 0
        self.changed = 0
        self.gone = 0
        self.bytes = 0
        self.entries = 0
        self.unreadable = 0
        self.problems: list[tuple[str, str]] = []


class Ingestion:
    """One run over files of a group. `progress` is called with each file that is taken up and the bytes done since;
    about `batch_bytes` go into one transaction. Where there is much to read, `workers` processes do that."""

    def __init__(
        self,
        store: Store,
        home: str = "",
        progress: Callable[[str, int], None] | None = None,
        batch_bytes: int = BATCH_BYTES,
        workers: int = 0,
    ) -> None:
        self.report = Report()
        self._store = store
        self._home = home
        self._batch_bytes = batch_bytes
        self._workers = workers
        self._progress = progress or (lambda path, size: None)
        self._states = store.file_states(home)
        self._waiting: list[tuple[Found, Batch]] = []
        self._waiting_bytes = 0
        self._again: list[Found] = []
        self._live_roots: set[str] = set()

    def scan(self, source: Source, holds: Callable[[str], bool] = lambda key: True) -> None:
        """Takes in what is new below a source, as far as `holds` says of a key that it belongs there, and notes which
        of its files are gone. Raises DatabaseError; a root that cannot be read is a problem in the report, and none of
        its files are gone for that."""
        try:
            found = [one for one in find_files(source) if holds(one.key)]
        except (OSError, OutsideGroupError) as error:
            self.report.problems.append((source.root, getattr(error, "strerror", None) or str(error)))
            return
        self.take(found)
        keys = {one.key for one in found}
        gone = [
            key
            for key, state in self._states.items()
            if state.root == source.root and state.status != "gone" and key not in keys
        ]
        if gone:
            self._store.mark_gone(self._home, gone)
            self.report.gone += len(gone)

    def take(self, found: Iterable[Found]) -> None:
        """Takes in what is new in these files. Raises DatabaseError."""
        changed = []
        for one in found:
            self.report.files += 1
            if not _is_unchanged(one, self._states.get(one.key)):
                changed.append(one)
        for _ in range(ATTEMPTS):
            with ReadAhead(self._new(changed), self._home, self._batch_bytes, self._workers) as ahead:
                for one in changed:
                    try:
                        self._take_file(one, ahead)
                    except (OSError, OutsideGroupError) as error:
                        self.report.problems.append((one.path, getattr(error, "strerror", None) or str(error)))
            self._flush()
            if not self._again:
                return
            changed, self._again = self._again, []
            self._states = self._store.file_states(self._home)  # another process was quicker
        self.report.problems += [(one.path, "another process reads it at the same time") for one in changed]

    def _new(self, found: Iterable[Found]) -> Iterator[Found]:
        return (one for one in found if one.key not in self._states and not one.source.confined_to)

    def _take_file(self, found: Found, ahead: ReadAhead) -> None:
        descriptor = open_found(found)
        try:
            status = os.fstat(descriptor)
            before = self._states.get(found.key)
            runtime = runtime_of(descriptor)
            if runtime is not None and not (before and self._is_older_copy(found, before, descriptor, status)):
                self._read_file(found, descriptor, status, runtime, ahead)
        finally:
            os.close(descriptor)

    def _read_file(
        self, found: Found, descriptor: int, status: os.stat_result, runtime: Runtime, ahead: ReadAhead
    ) -> None:
        """Reads what is new up to the size that the file has now: what is appended meanwhile is for the next time."""
        before = self._states.get(found.key)
        state, start = _begun(found, before, descriptor, status, runtime)
        reader = Reader(runtime, descriptor, self._home)
        self.report.changed += 1
        self._progress(found.path, 0)
        pieces = ahead.pieces(found, status.st_ino, status.st_size) if before is None else iter(())
        while True:
            piece = next(pieces, None) or reader.read(start, status.st_size, self._batch_bytes)
            after = _advanced(state, piece, descriptor, status)
            if not piece.is_last:
                after = after._replace(status="ingesting")
            self._waiting.append((found, Batch(before, after, piece.entries, piece.outcomes)))
            self._count(found.path, piece.reached - start, piece)
            # Of less than that the index is made in too many pieces; but there may be nothing else to do.
            enough = self._batch_bytes // 8 if ahead.is_behind() else self._batch_bytes
            if self._waiting_bytes >= enough or not piece.is_last:
                self._flush()
            if piece.is_last or found in self._again:
                return
            state = before = self._states[found.key]
            start = piece.reached

    def _is_older_copy(self, found: Found, state: FileState, descriptor: int, status: os.stat_result) -> bool:
        """Whether this is a copy, in another directory, of what is known: a backup beside what it is of."""
        if found.source.is_live:
            is_first = state.root not in self._live_roots
            self._live_roots.add(found.source.root)
            if is_first and status.st_size == state.file_size:
                return False
        if state.root == found.source.root or status.st_size > state.file_size or found.source.confined_to:
            return False
        return _is_beginning(found, state, descriptor, status)

    def _count(self, path: str, size: int, piece: Piece) -> None:
        self._waiting_bytes += size
        self.report.bytes += size
        self.report.entries += len(piece.entries)
        self.report.unreadable += piece.unreadable
        self._progress(path, size)

    def _flush(self) -> None:
        """Stores what waits, in one transaction. A file that another process has read on is to be looked at again."""
        waiting, self._waiting, self._waiting_bytes = self._waiting, [], 0
        if not waiting:
            return
        for (found, _), state in zip(waiting, self._store.write([batch for _, batch in waiting])):
            if state is None:
                self._again.append(found)
            else:
                self._states[found.key] = state


def _is_unchanged(found: Found, state: FileState | None) -> bool:
    return (
        state is not None
        and state.status == "idle"
        and state.file_size == found.size
        and state.last_modified == found.modified
        and state.inode == found.inode
        and state.root == found.source.root
    )


def _is_beginning(found: Found, state: FileState, descriptor: int, status: os.stat_result) -> bool:
    """Whether a file is the beginning, or all, of the one that is known under its key."""
    try:
        known = open_regular(f"{state.root}/{state.file_path}")
    except OSError:
        cursor = make_cursor(descriptor, status, min(state.offset, status.st_size), 0)
        return bool(cursor["head"] == state.head)
    try:
        return all(
            read_at(known, start, min(start + BLOCK_BYTES, status.st_size))
            == read_at(descriptor, start, start + BLOCK_BYTES)
            for start in range(0, status.st_size, BLOCK_BYTES)
        )
    finally:
        os.close(known)


def _begun(
    found: Found, before: FileState | None, descriptor: int, status: os.stat_result, runtime: Runtime
) -> tuple[FileState, int]:
    """The state of the file as it is now, and where to read on."""
    home, root = found.source.home, found.source.root
    if before is None:
        return FileState(home, found.key, root, source_of(descriptor, runtime), runtime.session_id_of(found.path)), 0
    is_elsewhere = before.root != root
    cursor = {
        "offset": before.offset,
        "inode": status.st_ino if is_elsewhere else before.inode,
        "head": before.head,
        "tail": before.tail,
    }
    start = resume_offset(cursor, descriptor, status)
    state = before._replace(root=root)
    if start is None:
        return state._replace(generation=before.generation + 1, unreadable=0), 0
    return state, start


def _advanced(state: FileState, piece: Piece, descriptor: int, status: os.stat_result) -> FileState:
    """The state once a piece is stored."""
    cursor = make_cursor(descriptor, status, piece.reached, time.time_ns())
    times = [entry.timestamp for entry in piece.entries if entry.timestamp is not None]
    is_better = piece.title[0] >= max(state.title_rank, 0)  # of two titles alike the later one
    rank, title = piece.title if is_better else (state.title_rank, state.title)
    return state._replace(
        status="idle",
        file_size=piece.size,
        last_modified=cursor["mtime"] // 1_000_000 if piece.size == status.st_size else 0,
        inode=status.st_ino,
        offset=piece.reached,
        head=cursor["head"],
        tail=cursor["tail"],
        unreadable=state.unreadable + piece.unreadable,
        first_entry_timestamp=state.first_entry_timestamp or min(times, default=None),
        last_entry_timestamp=max(times, default=state.last_entry_timestamp),
        cwd=state.cwd or piece.cwd,
        title=title,
        title_rank=rank,
    )
