"""`session-memory ingest`: ingests new entries of the transcripts into the store.

Usually there are none, so the modules for it are imported only if needed.
"""

from __future__ import annotations

import os
import time

from ..errors import SessionMemoryError, WrongCallError
from ..settings.forgotten import is_unfinished
from ..store.ingest.sources import FOREIGN
from ..store.location import find_location
from ..store.sqlite.unchanged import unchanged_files
from ..system.terminal import Terminal
from ..text.format import counted
from ..text.timestamps import now_milliseconds
from .arguments import add_common

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from ..store.ingest.ingestion import IngestReport, Progress
    from ..store.ingest.sources import SourceDirectory, SourceFile
    from .opened_store import OpenStore

SUMMARY = "ingest new entries of the transcripts into the store"
SHOWN_PROBLEMS = 20
REDACTION_SECONDS = 10.0  # for texts stored by earlier versions
SHOWN_FOREIGN = 3


class IngestError(SessionMemoryError):
    """The requested files cannot be ingested."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--file", metavar="FILE", help="only this transcript")
    parser.add_argument("--dir", metavar="DIR", help="the transcripts below this directory, such as a backup's")
    parser.add_argument("--reimport", action="store_true", help="forget these files, and ingest them again")
    add_common(parser)


def run(arguments: argparse.Namespace) -> int:
    """Ingest the requested files; return 1 if one could not be read. Raises SessionMemoryError."""
    if arguments.file and arguments.dir:
        raise WrongCallError("--file and --dir do not go together", "run it once for each")
    if not (arguments.file or arguments.dir or arguments.reimport or arguments.json):
        location = find_location(arguments.home, os.environ)
        files = unchanged_files(location, now_milliseconds())
        if files and not is_unfinished(location.database):
            Terminal(os.environ).line(_nothing_new(files))
            return 0
    from .opened_store import with_store

    return with_store(arguments, lambda opened: _ingest(opened, arguments), writes=True)


def _ingest(opened: OpenStore, arguments: argparse.Namespace) -> int:
    from ..store.ingest.sources import told_roots
    from ..store.refresh import NEWER
    from ..upkeep import forget_journal
    from ..upkeep.leftover_files import follow_rules
    from .opened_store import note
    from .paths import directories_at, file_at

    if opened.store.is_newer:
        raise IngestError(f"{opened.terminal.short(opened.location.database)}: {NEWER}")
    if opened.store.obstacle:
        raise opened.store.obstacle
    for fault in opened.location.home.settings().faults:
        note(fault)
    for problem in forget_journal.finish(opened.location, opened.store, os.environ, opened.note):
        note(problem)
    file = file_at(arguments.file, opened.location) if arguments.file else None
    directories = directories_at(arguments.dir, opened.location) if arguments.dir else opened.location.watched
    if arguments.reimport:
        # Only files that still exist can be ingested again: the entries of others would be lost.
        for one in [file] if file else _files(directories):
            opened.store.forget(one.directory.home, one.key)
    began = time.monotonic()
    report = _take(opened, directories, file)
    ready = opened.store.mark_ready(now_milliseconds())
    opened.store.redact_again(REDACTION_SECONDS)
    follow_rules(opened.location, os.environ, opened.note)
    _show(opened, report, told_roots(directories), ready, time.monotonic() - began)
    return 1 if report.problems else 0


def _take(opened: OpenStore, directories: Sequence[SourceDirectory], file: SourceFile | None) -> IngestReport:
    from ..store.ingest.intake import take_files, take_in
    from .progress import shown

    def take(progress: Progress | None) -> IngestReport:
        if file:
            return take_files(opened.store, file.directory.home, [file], progress)
        return take_in(opened.store, opened.location.watching(directories), progress, workers=os.cpu_count() or 1)

    if opened.terminal.is_json:
        return take(None)
    with shown(opened.terminal, opened.store, () if file else directories) as progress:
        return take(progress)


def _files(directories: Sequence[SourceDirectory]) -> list[SourceFile]:
    return [file for directory in directories if directory.is_expected() for file in directory.files()]


def _nothing_new(files: int) -> str:
    return f"Nothing new in {counted(files, 'file')}."


def _show(opened: OpenStore, report: IngestReport, roots: list[str], ready: int, seconds: float) -> None:
    from .progress import megabytes

    terminal = opened.terminal
    if not report.files and not report.problems:
        terminal.line(f"No transcripts in {', '.join(map(terminal.short, roots))}.")
    elif not report.bytes:
        terminal.line(_nothing_new(report.files))
    else:
        rate = f", {megabytes(report.bytes / seconds)}/s" if report.bytes > 1_000_000 else ""
        amount = f"{counted(report.entries, 'entry', 'entries')} from {megabytes(report.bytes)}{rate}"
        terminal.line(f"{report.changed} of {counted(report.files, 'file')} had something new: {amount}.")
    if report.gone:
        terminal.line(f"{counted(report.gone, 'file')} gone; the store keeps their entries.")
    if report.unreadable:
        terminal.line(f"{counted(report.unreadable, 'record')} could not be read and were left out.")
    if report.foreign:
        some = ", ".join([terminal.short(path) for path in report.foreign[:SHOWN_FOREIGN]])
        more = f" and {len(report.foreign) - SHOWN_FOREIGN} more" if len(report.foreign) > SHOWN_FOREIGN else ""
        terminal.note(f"{counted(len(report.foreign), 'file')} left out, being {FOREIGN}: {some}{more}")
    for path, why in report.problems[:SHOWN_PROBLEMS]:
        terminal.note(f"{terminal.short(path)}: {why}")
    if len(report.problems) > SHOWN_PROBLEMS:
        terminal.note(f"and {len(report.problems) - SHOWN_PROBLEMS} more")
    if terminal.is_json:
        numbers = {name: value for name, value in vars(report).items() if name != "problems"}
        problems = [{"path": path, "problem": why} for path, why in report.problems]
        database = os.path.abspath(opened.location.database)
        terminal.result(
            {**numbers, "ready": ready, "seconds": round(seconds, 3), "problems": problems, "store": database}
        )
