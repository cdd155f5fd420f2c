"""The section `store` of `doctor`: the integrity of the store, its contents, and the files that
failed to ingest."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

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
from ...sessions.confined_files import OutsideGroupError
from ..upkeep._runs import watcher_of
from .opened_store import OpenStore, with_store

SHOWN = 10
COMPRESSED = ".jsonl.zst"


def show_store(arguments: argparse.Namespace, terminal: Terminal) -> tuple[bool, dict[str, Any]]:
    """Print the state of the store; return if it is sound, and the result for JSON. Raises
    SessionMemoryError."""
    state = with_store(arguments, lambda opened: _check(opened, terminal))
    return state["ok"], state


def _check(opened: OpenStore, terminal: Terminal) -> dict[str, Any]:
    store, location = opened.store, opened.location
    fault = fault_of(store)
    if fault:
        raise CorruptDatabaseError(
            f"{location.database}: {fault}", "session-memory ingest rebuilds it"
        )
    queue = damage(location.database)
    state = _state(opened, str(queue) if queue else None)
    _show_contents(state, terminal)
    if store.obstacle and not store.is_newer:
        terminal.note(f"nothing new can be ingested: {terminal.short(str(store.obstacle))}")
    _show_problems(state, terminal)
    if queue:
        terminal.note(f"{queue} ({queue.hint})")
    for line in (*state["damaged"], *state["set_aside"]):
        terminal.note(terminal.short(line))
    return state


def _state(opened: OpenStore, queue: str | None) -> dict[str, Any]:
    """Return the state of a sound store, for JSON; `queue` is the fault of its queue, if any."""
    store, location = opened.store, opened.location
    excluded = store.excluded_files()  # they count, and are not named
    states = [state for state in location.known_files(store) if state.id not in excluded]
    unread = _unread(opened)
    missing = [
        watched.root
        for watched in location.watched
        if watched.is_named and not os.path.isdir(watched.root)
    ]
    damaged = damaged_sessions(location)
    is_read = all(problem == FOREIGN for problem in unread.values())
    return {
        "ok": not (missing or queue or damaged) and is_read,
        "store": location.database,
        "is_newer": store.is_newer,
        "obstacle": str(store.obstacle) if store.obstacle else None,
        "is_rebuilt": opened.is_rebuilt,
        **store.counts()._asdict(),
        "unfinished": sorted(state.file_path for state in states if state.status == "ingesting"),
        "unreadable": {state.file_path: state.unreadable for state in states if state.unreadable},
        "unread": unread,
        "compressed": 0 if can_decompress() else _compressed_files(location),
        "watched": told_roots(location.watched),
        "redacted": round(store.redacted_share(), 3),
        "missing": missing,
        "watcher": watcher_of(location.database) or None,
        "queue": queue,
        "damaged": damaged,
        "only_in_store": only_in_store(store, location),
        "set_aside": aside_lines(store),
    }


def _compressed_files(location: StoreLocation) -> int:
    return sum(
        1 for watched in location.watched for _ in Path(watched.path).rglob(f"*{COMPRESSED}")
    )


def _unread(opened: OpenStore) -> dict[str, str]:
    """Return why files failed to ingest, by path; transcripts come first."""
    found: dict[str, str] = {}
    for directory in opened.location.watched:
        folders: list[tuple[str, Exception]] = []
        try:
            if directory.is_expected():
                directory.files(folders)
        except (OSError, OutsideGroupError) as error:
            folders.append(("", error))
        for folder, why in folders:
            found[f"{directory.root}/{folder}".rstrip("/")] = getattr(why, "strerror", None) or str(
                why
            )
    for home in sorted({watched.home for watched in opened.location.watched}):
        found.update(
            {
                f"{one.root}/{key}": one.problem
                for key, one in opened.store.unread_files(home).items()
            }
        )
    return dict(sorted(found.items(), key=lambda pair: pair[1] == FOREIGN))


def _show_contents(found: dict[str, Any], terminal: Terminal) -> None:
    rest = {"gone": "deleted by the runtime", "ingesting": "not yet read to the end"}
    notes = [f"{found[name]} {text}" for name, text in rest.items() if found[name]]
    said = (
        f"{counted(found['entries'], 'entry', 'entries')}, "
        f"{counted(found['tool_uses'], 'tool use')}"
    )
    statuses = [f"{number} {status}" for status, number in sorted(found["conversations"].items())]
    items = [
        ("store", f"{terminal.short(found['store'])}, {byte_size(found['database_bytes'])}, whole"),
        ("transcripts", ", ".join([counted(found["files"], "file"), *notes])),
        ("holds", f"{said}, {byte_size(found['text_bytes'])} of text"),
        ("conversations", ", ".join(statuses) or "none yet"),
        ("watch", f"runs, process {found['watcher']}" if found["watcher"] else "does not run"),
    ]
    if found["only_in_store"]:
        items.append(
            (
                "only here",
                f"{counted(found['only_in_store'], 'session')}: no transcript or archive has them",
            )
        )
    for root in found["watched"]:
        items.append(
            ("watched", terminal.short(root) + ("" if os.path.isdir(root) else " (not there)"))
        )
    for label, text in items:
        terminal.paragraph(text, indent=" " * 17, first=f"  {label:<15}")


def _show_problems(found: dict[str, Any], terminal: Terminal) -> None:
    for path in found["missing"]:
        terminal.note(f"{terminal.short(path)} is not there: see store.watch_path in config.yaml")
    for path in found["unfinished"][:SHOWN]:
        terminal.note(f"{path} is not read to its end: session-memory ingest goes on with it")
    for path, records in sorted(found["unreadable"].items(), key=lambda pair: -pair[1])[:SHOWN]:
        terminal.note(f"{path}: {counted(records, 'record')} could not be read")
    if found["redacted"] < 1:
        share = f"{found['redacted']:.0%} of the texts of earlier versions"
        terminal.note(f"{share} was redacted again: session-memory ingest continues")
    for path, problem in list(found["unread"].items())[:SHOWN]:
        terminal.note(f"{terminal.short(path)} is not in the store: {problem}")
    if len(found["unread"]) > SHOWN:
        terminal.note(f"nor are {counted(len(found['unread']) - SHOWN, 'other file')}: see --json")
    if found["compressed"]:
        what = counted(found["compressed"], "transcript")
        terminal.note(
            f"{what} compressed ({COMPRESSED}): to read such, session-memory install --with zstd"
        )
