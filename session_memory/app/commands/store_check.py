"""The section `store` of `doctor`: the store's integrity, its contents, and files not ingested."""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...common.errors import SessionMemoryError
from ...common.system.sqlite import CorruptDatabaseError
from ...common.system.terminal import Terminal, byte_size
from ...common.system.zstd import can_decompress
from ...common.text.format import counted
from ...history.archives.due import only_in_store
from ...history.copies.deletions import damaged_sessions
from ...history.store.ingest.sources import FOREIGN, told_roots
from ...history.store.location import StoreLocation
from ...history.store.sqlite.corruption import aside_lines, fault_of
from ...history.store.sqlite.queue_database import damage
from ...history.store.values import Counts
from ...sessions.confined_files import OutsideGroupError
from ..upkeep._runs import watcher_of
from .opened_store import OpenStore, with_store
from .output import CheckResult

SHOWN = 10
COMPRESSED = ".jsonl.zst"
_RENAMED = ("path", "obstacle", "counts", "redacted", "queue")  # or in another form in JSON


def check_store(arguments: argparse.Namespace) -> StoreCheck:
    """Return the state of the store, for `doctor`. Raises SessionMemoryError."""
    return with_store(arguments, _checked)


def _checked(opened: OpenStore) -> StoreCheck:
    """Return the state of a sound store. Raises CorruptDatabaseError for a damaged one."""
    store, location = opened.store, opened.location
    if fault := fault_of(store):
        raise CorruptDatabaseError(
            f"{location.database}: {fault}", "session-memory ingest rebuilds it"
        )
    excluded = store.excluded_files()  # they count, and are not named
    states = [state for state in location.known_files(store) if state.id not in excluded]
    named = [watched.root for watched in location.watched if watched.is_named]
    return StoreCheck(
        path=location.database,
        is_newer=store.is_newer,
        obstacle=store.obstacle,
        is_rebuilt=opened.is_rebuilt,
        counts=store.counts(),
        unfinished=sorted(state.file_path for state in states if state.status == "ingesting"),
        unreadable={state.file_path: state.unreadable for state in states if state.unreadable},
        unread=_unread(opened),
        compressed=0 if can_decompress() else _compressed_files(location),
        watched=told_roots(location.watched),
        redacted=store.redacted_share(),
        missing=[root for root in named if not os.path.isdir(root)],
        watcher=watcher_of(location.database) or None,
        queue=damage(location.database),
        damaged=damaged_sessions(location),
        only_in_store=only_in_store(store, location),
        set_aside=aside_lines(store),
    )


@dataclass(frozen=True)
class StoreCheck(CheckResult):
    """The state of a sound store.

    It has the counts of its contents; an `obstacle` to ingesting; files that were not read to
    their end, with unreadable records (their number), and that failed to ingest (the reason); the
    number of compressed transcripts, if they cannot be read; the roots of watched directories, and
    missing ones; the share of redacted texts; the process that watches; the fault of the queue;
    lines about damaged sessions and stores set aside; the number of sessions that only the store
    has."""

    path: str
    is_newer: bool
    obstacle: SessionMemoryError | None
    is_rebuilt: bool
    counts: Counts
    unfinished: list[str]
    unreadable: dict[str, int]
    unread: dict[str, str]
    compressed: int
    watched: list[str]
    redacted: float
    missing: list[str]
    watcher: int | None
    queue: SessionMemoryError | None
    damaged: list[str]
    only_in_store: int
    set_aside: list[str]

    @property
    def is_well(self) -> bool:
        is_read = all(problem == FOREIGN for problem in self.unread.values())
        return not (self.missing or self.queue or self.damaged) and is_read

    def show(self, terminal: Terminal) -> None:
        for label, text in self._contents(terminal):
            terminal.paragraph(text, indent=" " * 17, first=f"  {label:<15}")
        if self.obstacle and not self.is_newer:
            terminal.note(f"nothing new can be ingested: {terminal.short(str(self.obstacle))}")
        self._show_problems(terminal)
        if self.queue:
            terminal.note(f"{self.queue} ({self.queue.hint})")
        for line in (*self.damaged, *self.set_aside):
            terminal.note(terminal.short(line))

    def _contents(self, terminal: Terminal) -> list[tuple[str, str]]:
        """Return the contents of the store, each with its label."""
        counts, lonely = self.counts, self.only_in_store
        notes = [f"{counts.gone} deleted by the runtime"] if counts.gone else []
        notes += [f"{counts.ingesting} not yet read to the end"] if counts.ingesting else []
        entries = counted(counts.entries, "entry", "entries")
        held = f"{entries}, {counted(counts.tool_uses, 'tool use')}"
        statuses = [f"{number} {status}" for status, number in sorted(counts.conversations.items())]
        size, text_size = byte_size(counts.database_bytes), byte_size(counts.text_bytes)
        only_here = f"{counted(lonely, 'session')}: no transcript or archive has them"
        watched = [terminal.short(root) for root in self.watched if os.path.isdir(root)]
        if absent := len(self.watched) - len(watched):
            watched.append(f"{absent} {'more ' if watched else ''}not there yet")
        return [
            ("store", f"{terminal.short(self.path)}, {size}, whole"),
            ("transcripts", ", ".join([counted(counts.files, "file"), *notes])),
            ("holds", f"{held}, {text_size} of text"),
            ("conversations", ", ".join(statuses) or "none yet"),
            ("watch", f"runs, process {self.watcher}" if self.watcher else "does not run"),
            *([("only here", only_here)] if lonely else []),
            *(("" if number else "watched", root) for number, root in enumerate(watched)),
        ]

    def _show_problems(self, terminal: Terminal) -> None:
        for path in self.missing:
            terminal.note(
                f"{terminal.short(path)} is not there: see store.watch_path in config.yaml"
            )
        for path in self.unfinished[:SHOWN]:
            terminal.note(f"{path} is not read to its end; session-memory ingest continues with it")
        for path, records in sorted(self.unreadable.items(), key=lambda pair: -pair[1])[:SHOWN]:
            terminal.note(f"{path}: {counted(records, 'record')} could not be read")
        if round(self.redacted, 3) < 1:
            share = f"{round(self.redacted, 3):.0%} of the texts of earlier versions"
            terminal.note(f"{share} was redacted again: session-memory ingest continues")
        for path, problem in list(self.unread.items())[:SHOWN]:
            terminal.note(f"{terminal.short(path)} is not in the store: {problem}")
        if len(self.unread) > SHOWN:
            others = counted(len(self.unread) - SHOWN, "other file")
            terminal.note(f"{others} are not in the store either: see --json")
        if self.compressed:
            what = counted(self.compressed, "transcript")
            terminal.note(
                f"{what} compressed ({COMPRESSED}); to read them: session-memory install --with "
                f"zstd"
            )

    def as_json(self) -> dict[str, Any]:
        values = {name: value for name, value in vars(self).items() if name not in _RENAMED}
        return {
            "ok": self.is_well,
            "store": self.path,
            "obstacle": str(self.obstacle) if self.obstacle else None,
            "redacted": round(self.redacted, 3),
            "queue": str(self.queue) if self.queue else None,
            **self.counts._asdict(),
            **values,
        }


def _compressed_files(location: StoreLocation) -> int:
    return sum(
        1 for watched in location.watched for _ in Path(watched.path).rglob(f"*{COMPRESSED}")
    )


def _unread(opened: OpenStore) -> dict[str, str]:
    """Return why files failed to ingest, by path; transcripts come first."""
    problems: dict[str, str] = {}
    for directory in opened.location.watched:
        folders: list[tuple[str, Exception]] = []
        try:
            if directory.is_expected():
                directory.files(folders)
        except (OSError, OutsideGroupError) as error:
            folders.append(("", error))
        for folder, why in folders:
            problems[f"{directory.root}/{folder}".rstrip("/")] = getattr(
                why, "strerror", None
            ) or str(why)
    for home in sorted({watched.home for watched in opened.location.watched}):
        problems.update(
            {
                f"{file.root}/{key}": file.problem
                for key, file in opened.store.unread_files(home).items()
            }
        )
    return dict(sorted(problems.items(), key=lambda pair: pair[1] == FOREIGN))
