"""`session-memory health-check`: checks the store, shows what it holds, and if a watcher runs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..store.ingest.sources import FOREIGN, told_roots
from ..store.sqlite.corruption import fault_of
from ..store.sqlite.queue_database import damage
from ..system.confined_files import OutsideGroupError
from ..system.sqlite import CorruptDatabaseError
from ..system.zstd import can_decompress
from ..text.format import counted
from ..upkeep.watch_lock import watcher_of
from .arguments import add_common
from .opened_store import with_store
from .progress import megabytes

if TYPE_CHECKING:
    import argparse

    from ..store.ingest.sources import Unreadable
    from ..store.values import FileState
    from ..system.terminal import Terminal
    from .opened_store import OpenStore

SUMMARY = "check the store, and show what it contains"
SHOWN_FILES = 10
COMPRESSED = ".jsonl.zst"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_common(parser)


def run(arguments: argparse.Namespace) -> int:
    """Examines the store; 1 if there is something to be mended. Raises SessionMemoryError."""
    return with_store(arguments, _check)


def _check(opened: OpenStore) -> int:
    fault = fault_of(opened.store)
    if fault:
        raise CorruptDatabaseError(f"{opened.location.database}: {fault}", "session-memory ingest rebuilds it")
    counts = opened.store.counts(opened.location.homes)
    excluded = opened.store.excluded_files()  # they count, and are not named
    all_states = [state for home in _groups(opened) for state in opened.store.file_states(home).values()]
    states = [state for state in all_states if state.id not in excluded]
    unfinished = sorted(state.file_path for state in states if state.status == "ingesting")
    unreadable = {state.file_path: state.unreadable for state in states if state.unreadable}
    missing = [one.root for one in opened.location.watched if one.is_named and not os.path.isdir(one.root)]
    unread, compressed = _unread(opened), _compressed(opened)
    problems = {path: problem for path, problem in unread.items() if problem != FOREIGN}
    redacted = opened.store.redacted_share()
    watcher = watcher_of(opened.location.database)
    queue = damage(opened.location.database)
    opened.terminal.result(
        {
            "ok": not missing and not problems and not queue,
            "store": opened.location.database,
            "is_newer": opened.store.is_newer,
            "obstacle": str(opened.store.obstacle) if opened.store.obstacle else None,
            "is_rebuilt": opened.is_rebuilt,
            **counts._asdict(),
            "unfinished": unfinished,
            "unreadable": unreadable,
            "unread": unread,
            "compressed": compressed,
            "watched": told_roots(opened.location.watched),
            "redacted": round(redacted, 3),
            "missing": missing,
            "watcher": watcher or None,
            "queue": str(queue) if queue else None,
        }
    )
    _print(opened, counts._asdict(), states, unfinished, missing, watcher)
    if queue:
        opened.terminal.note(f"{queue} ({queue.hint})")
    if redacted < 1:
        share = f"{redacted:.0%} of the texts of earlier versions"
        opened.terminal.note(f"{share} was redacted again: session-memory ingest continues")
    for path, problem in list(unread.items())[:SHOWN_FILES]:
        opened.terminal.note(f"{opened.terminal.short(path)} is not in the store: {problem}")
    if len(unread) > SHOWN_FILES:
        opened.terminal.note(f"nor are {counted(len(unread) - SHOWN_FILES, 'other file')}: see --json")
    if compressed:
        what = counted(compressed, "transcript")
        opened.terminal.note(
            f"{what} compressed by its runtime ({COMPRESSED}): to read such, session-memory install --with zstd"
        )
    return 1 if missing or problems or queue else 0


def _compressed(opened: OpenStore) -> int:
    """Count the compressed transcripts of a runtime that cannot be read here."""
    if can_decompress():
        return 0
    return sum(1 for one in opened.location.watched for _ in Path(one.path).rglob(f"*{COMPRESSED}"))


def _unread(opened: OpenStore) -> dict[str, str]:
    """Return why files failed to ingest, by path; transcripts come first."""
    found: dict[str, str] = {}
    for directory in opened.location.watched:
        folders: Unreadable = []
        try:
            if directory.is_expected():
                directory.files(folders)
        except (OSError, OutsideGroupError) as error:
            folders.append(("", error))
        for folder, why in folders:
            found[f"{directory.root}/{folder}".rstrip("/")] = getattr(why, "strerror", None) or str(why)
    for home in _groups(opened):
        found.update({f"{one.root}/{key}": one.problem for key, one in opened.store.unread_files(home).items()})
    return dict(sorted(found.items(), key=lambda pair: pair[1] == FOREIGN))


def _groups(opened: OpenStore) -> list[str]:
    return sorted({watched.home for watched in opened.location.watched})


def _print(
    opened: OpenStore,
    counts: dict[str, Any],
    states: list[FileState],
    unfinished: list[str],
    missing: list[str],
    watcher: int,
) -> None:
    terminal = opened.terminal
    _item(
        terminal, "store", f"{terminal.short(opened.location.database)}, {megabytes(counts['database_bytes'])}, whole"
    )
    rest = {"gone": "of them gone", "ingesting": "not yet read to the end"}
    notes = [f"{counts[name]} {text}" for name, text in rest.items() if counts[name]]
    _item(terminal, "transcripts", ", ".join([counted(counts["files"], "file"), *notes]))
    said = f"{counted(counts['entries'], 'entry', 'entries')}, {counted(counts['tool_uses'], 'tool use')}"
    _item(terminal, "holds", f"{said}, {megabytes(counts['text_bytes'])} of text")
    statuses = [f"{number} {status}" for status, number in sorted(counts["conversations"].items())]
    _item(terminal, "conversations", ", ".join(statuses) or "none yet")
    _item(terminal, "watch", f"runs, process {watcher}" if watcher else "does not run")
    for root in told_roots(opened.location.watched):
        _item(terminal, "watched", terminal.short(root) + ("" if os.path.isdir(root) else " (not there)"))
    if opened.store.obstacle and not opened.store.is_newer:
        terminal.note(f"nothing new can be ingested: {terminal.short(str(opened.store.obstacle))}")
    for path in missing:
        terminal.note(f"{terminal.short(path)} is not there: see watchPath in config.yaml")
    for path in unfinished[:SHOWN_FILES]:
        terminal.note(f"{path} is not read to its end: session-memory ingest goes on with it")
    worst = sorted((state for state in states if state.unreadable), key=lambda state: -state.unreadable)
    for state in worst[:SHOWN_FILES]:
        terminal.note(f"{state.file_path}: {counted(state.unreadable, 'record')} could not be read")


def _item(terminal: Terminal, label: str, text: str) -> None:
    terminal.paragraph(text, indent=" " * 17, first=f"  {label:<15}")
