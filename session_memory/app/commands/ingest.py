"""`session-memory ingest`: ingests new entries of the transcripts into the store.

Usually there are none, so the modules that ingest are imported only if needed.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...common.errors import SessionMemoryError, WrongCallError
from ...common.system.files import Opened
from ...common.system.terminal import Result, Terminal, byte_size, print_note
from ...common.text.format import counted
from ...common.text.timestamps import now_milliseconds
from ...history.store.ingest.sources import (
    COMPRESSED,
    DEEPEST,
    FOREIGN,
    SUFFIX,
    SourceDirectory,
    SourceFile,
    told_roots,
)
from ...history.store.location import StoreLocation, find_location
from ...history.store.sqlite.unchanged import unchanged_files
from ...sessions.runtimes.detection import is_started_by_agent, runtime_of
from ...sessions.runtimes.table import all_runtimes
from ...sessions.settings.forgotten import is_unfinished
from .arguments import OnlyForPeopleError, add_common
from .opened_store import OpenStore

if TYPE_CHECKING:
    from ...history.store.ingest.ingestion import IngestReport
    from ...history.store.ingest.values import FileState

SUMMARY = "read new transcript entries into the store"
SHOWN_PROBLEMS = 20
WORDS_SECONDS = 60.0
REDACTION_SECONDS = 10.0  # for texts stored by earlier versions
SHOWN_FOREIGN = 3
MOST_LEVELS = 12  # below a named directory, searched for transcripts


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--file", metavar="FILE", help="only this transcript")
    parser.add_argument(
        "--dir", metavar="DIR", help="all transcripts below this directory, such as a backup"
    )
    kept_in_git = (
        "sessions that this repository keeps in git (entire/checkpoints/v1), as history of its "
        "project"
    )
    parser.add_argument("--checkpoints", metavar="REPOSITORY", help=kept_in_git)
    parser.add_argument(
        "--reimport",
        action="store_true",
        help="discard the stored content of these files, and read them again",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="show how much would be stored, without storing it"
    )
    add_common(parser)


def run(arguments: argparse.Namespace) -> int:
    """Ingest the requested files; return 1 if one could not be read. Raises SessionMemoryError."""
    if sum(map(bool, (arguments.file, arguments.dir, arguments.checkpoints))) > 1:
        raise WrongCallError(
            "use only one of --file, --dir and --checkpoints", "run it once for each"
        )
    if arguments.checkpoints and is_started_by_agent(os.environ):
        raise OnlyForPeopleError("--checkpoints")
    if arguments.dry_run:
        return _plan(arguments)
    if not (
        arguments.file
        or arguments.dir
        or arguments.checkpoints
        or arguments.reimport
        or arguments.json
    ):
        location = find_location(arguments.home, os.environ)
        files = unchanged_files(location, now_milliseconds())
        if files and not is_unfinished(location.database):
            Terminal(os.environ).line(_nothing_new(files))
            return 0
    from .opened_store import with_store

    return with_store(arguments, lambda opened: _ingest(opened, arguments), writes=True)


def _plan(arguments: argparse.Namespace) -> int:
    """Print how many files would be ingested, and their size; without a store, all files.

    Raises SessionMemoryError."""
    location, terminal = (
        find_location(arguments.home, os.environ),
        Terminal(os.environ, is_json=arguments.json),
    )
    directories = _directories(arguments, location, {})
    every = [file_at(arguments.file, location)] if arguments.file else _files(directories)
    amounts = len(every), sum(file.size for file in every)
    if os.path.exists(location.database) and not (arguments.file or arguments.reimport):
        from ...history.store.ingest.intake import pending
        from .opened_store import with_store

        here = [directory for directory in directories if directory.is_expected()]
        amounts = with_store(arguments, lambda opened: pending(opened.store, here)[:2])
    terminal.show(IngestPlan(*amounts, is_again=arguments.reimport))
    return 0


@dataclass(frozen=True)
class IngestPlan(Result):
    """The number of files to ingest and their bytes; `is_again` if they are forgotten first."""

    files: int
    bytes: int
    is_again: bool

    def show(self, terminal: Terminal) -> None:
        again = "forgotten, and ingested again" if self.is_again else "ingested"
        terminal.line(f"{counted(self.files, 'file')} ({byte_size(self.bytes)}) would be {again}.")

    def as_json(self) -> dict[str, Any]:
        return {"dry_run": True, "files": self.files, "bytes": self.bytes}


def _ingest(opened: OpenStore, arguments: argparse.Namespace) -> int:
    from ...history.store.refresh import NEWER
    from ...history.store.sqlite.unread_lines import add_missing
    from ...history.store.sqlite.unread_words import forget_incomplete
    from ..upkeep import forget_journal
    from ..upkeep.rules import follow_rules

    if opened.store.is_newer:
        raise SessionMemoryError(f"{opened.terminal.short(opened.location.database)}: {NEWER}")
    if opened.store.obstacle:
        raise opened.store.obstacle
    for fault in opened.location.home.settings().faults:
        print_note(fault)
    for problem in forget_journal.finish(opened.location, opened.store, opened.note):
        print_note(problem)
    file = file_at(arguments.file, opened.location) if arguments.file else None
    states = (
        opened.store.file_states(_home_name(os.getcwd(), opened.location))
        if arguments.checkpoints
        else {}
    )
    directories = _directories(arguments, opened.location, states)
    if arguments.reimport:
        # Only existing files can be ingested again; the entries of deleted ones would be lost.
        by_home: dict[str, list[str]] = {}
        for source_file in [file] if file else _files(directories):
            by_home.setdefault(source_file.directory.home, []).append(source_file.key)
        for home, keys in by_home.items():
            opened.store.forget(home, *keys)
    elif file is None:
        forget_incomplete(opened.store, directories, WORDS_SECONDS)
    began = time.monotonic()
    report = _take(opened, directories, file)
    ready = opened.store.mark_ready(now_milliseconds())
    opened.store.redact_again(REDACTION_SECONDS)
    add_missing(opened.store, REDACTION_SECONDS)
    follow_rules(opened.location, opened.note)
    seconds = time.monotonic() - began
    database = os.path.abspath(opened.location.database)
    opened.terminal.show(Ingested(report, told_roots(directories), ready, seconds, database))
    return 1 if report.problems else 0


def _take(
    opened: OpenStore, directories: Sequence[SourceDirectory], file: SourceFile | None
) -> IngestReport:
    from ...history.store.ingest.ingestion import Ingestion
    from ...history.store.ingest.intake import pending, take_in
    from .progress import shown

    with shown(
        opened.terminal, lambda: pending(opened.store, () if file else directories)[:2]
    ) as progress:
        if file:
            ingestion = Ingestion(opened.store, file.directory.home, progress)
            ingestion.take([file])
            return ingestion.report
        where = opened.location._replace(watched=directories)
        return take_in(opened.store, where, progress, workers=os.cpu_count() or 1)


def _directories(
    arguments: argparse.Namespace, location: StoreLocation, states: Mapping[str, FileState]
) -> Sequence[SourceDirectory]:
    """Return the directories to ingest. Raises SessionMemoryError."""
    if not arguments.checkpoints:
        return directories_at(arguments.dir, location) if arguments.dir else location.watched
    from ...common.system.git_process import GitUnavailableError
    from ...history.store.ingest.checkpoints import CheckpointDirectory

    try:
        return [
            CheckpointDirectory(arguments.checkpoints, states, _home_name(os.getcwd(), location))
        ]
    except GitUnavailableError as error:
        raise SessionMemoryError(str(error)) from error


def _files(directories: Sequence[SourceDirectory]) -> list[SourceFile]:
    return [
        file for directory in directories if directory.is_expected() for file in directory.files()
    ]


def _nothing_new(files: int) -> str:
    return f"Nothing new in {counted(files, 'file')}."


@dataclass(frozen=True)
class Ingested(Result):
    """The numbers of an ingestion from the directories `roots` into the store.

    `ready` counts the conversations that have ended since the last ingestion."""

    report: IngestReport
    roots: list[str]
    ready: int
    seconds: float
    store: str

    def show(self, terminal: Terminal) -> None:
        report = self.report
        terminal.line(self._summary(terminal))
        kept = report.gone - report.forgotten
        if kept > 0:
            terminal.line(f"{counted(kept, 'file')} deleted; the store keeps their entries.")
        if report.forgotten:
            deleted = counted(report.forgotten, "file")
            terminal.line(f"{deleted} deleted: forgotten, as `keep: none` asks.")
        if report.unreadable:
            terminal.line(
                f"{counted(report.unreadable, 'record')} could not be read and were left out."
            )
        if report.foreign:
            paths = ", ".join([terminal.short(path) for path in report.foreign[:SHOWN_FOREIGN]])
            others = len(report.foreign) - SHOWN_FOREIGN
            more = f" and {others} more" if others > 0 else ""
            number = counted(len(report.foreign), "file")
            terminal.note(f"{number} left out ({FOREIGN}): {paths}{more}")
        for path, why in report.problems[:SHOWN_PROBLEMS]:
            terminal.note(f"{terminal.short(path)}: {why}")
        if len(report.problems) > SHOWN_PROBLEMS:
            terminal.note(f"and {len(report.problems) - SHOWN_PROBLEMS} more")

    def _summary(self, terminal: Terminal) -> str:
        """Return how much was ingested, in a line."""
        report = self.report
        if not report.files and not report.problems:
            return f"No transcripts in {', '.join(map(terminal.short, self.roots))}."
        if not report.bytes:
            return _nothing_new(report.files)
        size = byte_size(report.bytes)
        rate = f", {byte_size(report.bytes / self.seconds)}/s" if report.bytes > 1_000_000 else ""
        amount = f"{counted(report.entries, 'entry', 'entries')} from {size}{rate}"
        return f"{report.changed} of {counted(report.files, 'file')} had something new: {amount}."

    def as_json(self) -> dict[str, Any]:
        report = vars(self.report)
        return {
            **{name: value for name, value in report.items() if name != "problems"},
            "ready": self.ready,
            "seconds": round(self.seconds, 3),
            "problems": [{"path": path, "problem": why} for path, why in self.report.problems],
            "store": self.store,
        }


def directories_at(path: str, location: StoreLocation) -> list[SourceDirectory]:
    """Return the directories of transcripts in `path` at any depth.

    They belong to a runtime, or to a backup of several runtimes. Keys of files are relative to each
    directory, so a backup has the same keys as its original. A watched directory keeps its usual
    keys. Raises SessionMemoryError."""
    absolute = os.path.abspath(path)
    if not os.path.isdir(absolute):
        raise SessionMemoryError(f"{path}: this directory does not exist")
    home_name = _home_name(absolute, location)
    for watched in location.watched:
        root, deepest = watched.root, watched.deepest
        if f"{absolute}/".startswith(f"{root}/"):
            within = (absolute[len(root) + 1 :],) if absolute != root else watched.within
            return [SourceDirectory(root, home_name, within, is_named=True, deepest=deepest)]
    roots = _roots_in(absolute, MOST_LEVELS) or {absolute: DEEPEST}
    return [
        SourceDirectory(
            root, home_name, is_named=True, is_asked_for=True, deepest=deepest, place_of=_place_of
        )
        for root, deepest in roots.items()
    ]


def _roots_in(directory: str, levels: int) -> dict[str, int]:
    """Return the directories at or below this one whose transcripts have a runtime's layout.

    Each comes with the depth of its transcripts, which are sorted by project."""
    depths: dict[str, int] = {}
    for runtime in all_runtimes():
        for root in [
            runtime.transcripts_dir(place)
            for place in (directory, f"{directory}/{runtime.USUAL_DIR}")
        ]:
            if _holds_transcripts(root, runtime.DEEPEST):
                depths[root] = max(runtime.DEEPEST, depths.get(root, 0))
    for root in list(depths):  # the runtime may keep archived ones beside it
        beside = [folder for folder in _folders(os.path.dirname(root)) if folder not in depths]
        depths.update({folder: DEEPEST for folder in beside if any(map(_place_of, _names(folder)))})
    if depths or not levels:
        return depths
    if _holds_transcripts(directory, DEEPEST):
        return {directory: DEEPEST}
    return {
        root: deepest
        for folder in _folders(directory)
        for root, deepest in _roots_in(folder, levels - 1).items()
    }


def _holds_transcripts(directory: str, levels: int) -> bool:
    """Check if a transcript is at most so many levels below."""
    wanted = [name for name in _names(directory) if name.endswith((SUFFIX, SUFFIX + COMPRESSED))]
    if any(_is_transcript(f"{directory}/{name}") for name in wanted):
        return True
    return levels > 1 and any(
        _holds_transcripts(folder, levels - 1) for folder in _folders(directory)
    )


def _names(directory: str) -> list[str]:
    try:
        return os.listdir(directory)
    except OSError:
        return []


def _is_transcript(path: str) -> bool:
    try:
        # ingesting reports compressed files that are not transcripts
        with Opened(path) as descriptor:
            return path.endswith(COMPRESSED) or runtime_of(descriptor) is not None
    except OSError:
        return False


def _folders(directory: str) -> list[str]:
    """Return the directories in a directory, without links to any."""
    try:
        with os.scandir(directory) as entries:
            return sorted([entry.path for entry in entries if entry.is_dir(follow_symlinks=False)])
    except OSError:
        return []


def file_at(path: str, location: StoreLocation) -> SourceFile:
    """Return the transcript at a path, with the key that the store has for it.

    The key is relative to the watched directory, or else to the parent of the project's directory.
    Raises SessionMemoryError."""
    absolute = os.path.abspath(path)
    root = next(
        (
            root
            for root in (watched.root for watched in location.watched)
            if absolute.startswith(root + "/")
        ),
        "",
    )
    parent = os.path.dirname(os.path.dirname(absolute))
    directory = SourceDirectory(
        root or parent, _home_name(absolute, location), is_backup=True, place_of=_place_of
    )
    file = directory.file_at(absolute)
    if file is None or not os.path.isfile(absolute):
        raise SessionMemoryError(
            f"{path}: this file does not exist",
            "the store keeps the content of files that are gone",
        )
    return file


def _place_of(file: str) -> str:
    """Return where a transcript's runtime would store it, judged by its name; '' if unknown."""
    places = (runtime.place_of(file.removesuffix(COMPRESSED)) for runtime in all_runtimes())
    return next((place for place in places if place), "")


def _home_name(path: str, location: StoreLocation) -> str:
    """Return the group of a file: its directory's, else the caller's."""
    for watched in location.watched:
        if path == watched.root or path.startswith(watched.root + "/"):
            return watched.home
    home_names = {watched.home for watched in location.watched}
    if len(home_names) > 1:
        hint = "name the group's directory: --home PATH"
        raise SessionMemoryError(f"{path}: its group is unknown", hint)
    return next(iter(home_names), "")
