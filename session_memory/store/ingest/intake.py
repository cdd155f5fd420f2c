"""Takes into a store what is new in all that is watched for it; from archives where the transcripts are gone."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from .ingestion import BATCH_BYTES, Ingestion, Report

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ..contract import Store
    from ..place import StorePlace, Watched
    from ..values import FileState
    from .sources import Found

    Progress = Callable[[str, int], None]


def take_in(
    store: Store, place: StorePlace, progress: Progress | None = None, *, batch_bytes: int = BATCH_BYTES,
    workers: int = 0,
) -> Report:  # fmt: skip
    """Takes in everything that is new, and says what it was. What `progress` raises comes through; what was stored
    until then is stored. Raises DatabaseError."""
    report = Report()
    for home in dict.fromkeys([watched.home for watched in place.watched]):
        ingestion = Ingestion(store, home, progress, batch_bytes, workers)
        for watched in place.watched:
            if watched.home == home:
                _scan(ingestion, watched)
        add(report, ingestion.report)
    for archives in place.archives:
        # Listing them takes a while: only where something has changed, or nothing is known as yet.
        if report.bytes or report.gone or not store.file_states(archives.home):
            from .archived import take_archives

            add(report, take_archives(store, archives))
    return report


def take_files(
    store: Store, home: str, found: Iterable[Found], progress: Progress | None = None, *,
    batch_bytes: int = BATCH_BYTES,
) -> Report:  # fmt: skip
    """Takes in what is new in these files of one group. Raises DatabaseError."""
    ingestion = Ingestion(store, home, progress, batch_bytes)
    ingestion.take(found)
    return ingestion.report


def pending(store: Store, watched: Iterable[Watched]) -> tuple[int, int]:
    """How many files have something new, and about how many bytes that is."""
    files = size = 0
    states: dict[str, dict[str, FileState]] = {}
    for one in watched:
        home = one.home
        known = states.setdefault(home, {}) or store.file_states(home)
        states[home] = known
        try:
            found = one.find()
        except OSError:
            continue
        for file in found:
            state = known.get(file.key)
            if state is None or (state.file_size, state.inode) != (file.size, file.inode):
                is_same = state is not None and state.inode == file.inode and state.offset <= file.size
                files += 1
                size += file.size - state.offset if state and is_same else file.size
    return files, size


def add(report: Report, other: Report) -> None:
    """Adds another report to the first."""
    for name, value in vars(other).items():
        setattr(report, name, getattr(report, name) + value)


def _scan(ingestion: Ingestion, watched: Watched) -> None:
    """What is new in a directory, and what is gone from it. A runtime's own directory need not be there yet."""
    if watched.is_named or os.path.isdir(watched.root):
        ingestion.scan(watched.source, watched.holds)
