"""Taking transcripts into the store, as `session-memory ingest` does it, and what is said of it."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, NamedTuple

from ..errors import SessionMemoryError
from ..store.ingest.intake import take_files, take_in
from ..text.format import counted
from ..text.timestamps import now_milliseconds
from .ingest import nothing_new
from .opened_store import NEWER
from .paths import directory_at, file_at
from .progress import entries, megabytes, shown

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..store.ingest.ingestion import Report
    from ..store.ingest.sources import Found
    from ..store.place import Watched
    from .opened_store import Desk
    from .options import Arguments

SHOWN_PROBLEMS = 20


class IngestError(SessionMemoryError):
    """What was asked for cannot be taken in."""


class _Wanted(NamedTuple):
    """What is to be read: directories, or one file; `home` is the group that a file belongs to."""

    watched: tuple[Watched, ...]
    file: Found | None = None


def ingest(desk: Desk, arguments: Arguments) -> int:
    """Takes in what was asked for; 1 if something could not be read. Raises SessionMemoryError."""
    if desk.store.is_newer:
        raise IngestError(f"{desk.screen.short(desk.place.database)}: {NEWER}")
    wanted = _wanted(desk, arguments)
    if arguments.reimport:
        _forget(desk, wanted)
    began = time.monotonic()
    report = _taken(desk, wanted)
    ready = desk.store.mark_ready(now_milliseconds())
    _show(desk, report, ready, time.monotonic() - began)
    return 1 if report.problems else 0


def _wanted(desk: Desk, arguments: Arguments) -> _Wanted:
    if arguments.file and arguments.dir:
        raise IngestError("--file and --dir do not go together", "run it once for each")
    if not arguments.file and not arguments.dir:
        return _Wanted(desk.place.watched)
    if arguments.dir:
        return _Wanted((directory_at(arguments.dir, desk.place),))
    return _Wanted((), file_at(arguments.file, desk.place))


def _taken(desk: Desk, wanted: _Wanted) -> Report:
    def take(progress: Callable[[str, int], None] | None) -> Report:
        if wanted.file:
            return take_files(desk.store, wanted.file.source.home, [wanted.file], progress)
        return take_in(desk.store, desk.place.watching(wanted.watched), progress, workers=os.cpu_count() or 1)

    if desk.screen.is_json:
        return take(None)
    with shown(desk.screen, desk.store, wanted.watched) as progress:
        return take(progress)


def _forget(desk: Desk, wanted: _Wanted) -> None:
    """Forgets the files that are there to be read again. What is gone would be lost, and stays."""
    found = [wanted.file] if wanted.file else [one for watched in wanted.watched for one in _found(watched)]
    for one in found:
        desk.store.forget(one.source.home, one.key)


def _found(watched: Watched) -> list[Found]:
    try:
        return watched.find()
    except OSError:
        if watched.is_named:
            raise
        return []


def _show(desk: Desk, report: Report, ready: int, seconds: float) -> None:
    screen = desk.screen
    if not report.files and not report.problems:
        roots = ", ".join(screen.short(watched.root) for watched in desk.place.watched)
        screen.line(f"No transcripts in {roots}.")
    elif not report.bytes:
        screen.line(nothing_new(report.files))
    else:
        rate = f", {megabytes(report.bytes / seconds)}/s" if report.bytes > 1_000_000 else ""
        amount = f"{entries(report.entries)} from {megabytes(report.bytes)}{rate}"
        screen.line(f"{report.changed} of {counted(report.files, 'file')} had something new: {amount}.")
    if report.gone:
        screen.line(f"{counted(report.gone, 'file')} gone; what was in the store of them stays.")
    if report.unreadable:
        screen.line(f"{counted(report.unreadable, 'record')} could not be read and were left out.")
    for path, why in report.problems[:SHOWN_PROBLEMS]:
        screen.note(f"{screen.short(path)}: {why}")
    if len(report.problems) > SHOWN_PROBLEMS:
        screen.note(f"and {len(report.problems) - SHOWN_PROBLEMS} more")
    if screen.is_json:
        told = {name: value for name, value in vars(report).items() if name != "problems"}
        problems = [{"path": path, "problem": why} for path, why in report.problems]
        database = os.path.abspath(desk.place.database)
        screen.result({**told, "ready": ready, "seconds": round(seconds, 3), "problems": problems, "store": database})
