"""Ingests what is new in the watched directories, and in archives of lost transcripts."""

from __future__ import annotations

from collections.abc import Iterable

from ..contract import Store
from ..location import StoreLocation
from ..values import FileState, UnreadFile
from .archives import take_archives
from .file_state import is_unchanged
from .ingestion import BATCH_BYTES, Ingestion, IngestReport, Progress
from .sources import SourceDirectory, SourceFile


def take_in(
    store: Store, location: StoreLocation, progress: Progress | None = None, *, batch_bytes: int = BATCH_BYTES,
    workers: int = 0,
) -> IngestReport:  # fmt: skip
    """Ingest everything that is new, and report it. Errors from `progress` propagate; what was stored until then stays.
    Raises DatabaseError."""
    report = IngestReport()
    for home in dict.fromkeys([directory.home for directory in location.watched]):
        ingestion = Ingestion(store, home, progress, batch_bytes, workers)
        for directory in location.watched:
            if directory.home == home and directory.is_expected():
                ingestion.scan(directory)
        report.add(ingestion.report)
    for archives in location.archives:
        # Listing archives takes a while: do it only if something has changed, or nothing is known yet.
        if report.bytes or report.gone or not store.file_states(archives.home):
            report.add(take_archives(store, archives))
    return report


def take_files(
    store: Store, home: str, files: Iterable[SourceFile], progress: Progress | None = None, *,
    batch_bytes: int = BATCH_BYTES,
) -> IngestReport:  # fmt: skip
    """Ingest what is new in these files of one group. Raises DatabaseError."""
    ingestion = Ingestion(store, home, progress, batch_bytes)
    ingestion.take(files)
    return ingestion.report


def pending(store: Store, watched: Iterable[SourceDirectory]) -> tuple[int, int]:
    """Return how many files have something new, and about how many bytes; without files that failed and are
    unchanged."""
    files = size = 0
    states: dict[str, dict[str, FileState]] = {}
    unread: dict[str, dict[str, UnreadFile]] = {}
    for directory in watched:
        if directory.home not in states:
            states[directory.home] = store.file_states(directory.home)
            unread[directory.home] = store.unread_files(directory.home)
        try:
            found = directory.files()
        except OSError:
            continue
        for file in found:
            state = states[directory.home].get(file.key)
            noted = unread[directory.home].get(file.key)
            if is_unchanged(file, state) or (noted and noted[3:6] == file.stamp):
                continue
            is_same = state is not None and state.inode == file.inode and state.offset <= file.size
            new = file.size - state.offset if state and is_same else file.size
            files, size = files + bool(new), size + new
    return files, size
