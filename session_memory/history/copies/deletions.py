"""Name the runtimes that delete sessions, when and how many soon, and how to keep these."""

import os
import time
from collections.abc import Iterable
from contextlib import closing, suppress
from glob import escape, glob
from typing import NamedTuple

from ...common.errors import SessionMemoryError, described
from ...common.system.sqlite import CorruptDatabaseError
from ...common.system.terminal import byte_size
from ...common.text.format import counted
from ...sessions.runtimes.backup import DAY_SECONDS
from ...sessions.settings.compiled import Settings
from ..store.location import StoreLocation
from .pack import FORMS, NONE, open_if_there, pack_path

SOON_DAYS = 7
CHECK_SECONDS = 20.0  # for all kept transcripts


class RuntimeDeletion(NamedTuple):
    """A runtime that deletes its sessions after `days`.

    The setting is in the file `source` ('' for its default). Of `sessions` it deletes `soon` many
    within SOON_DAYS. `traps` are as in runtimes.backup."""

    runtime: str
    days: float
    source: str
    sessions: int
    soon: int
    traps: tuple[str, ...]


class Kept(NamedTuple):
    """The setting `keep` as `form`, and the pack's numbers.

    They are sessions, sessions that the runtime deleted, and bytes on the disk."""

    form: str
    sessions: int
    gone: int
    bytes: int


def deletions(location: StoreLocation, directories: Iterable[str]) -> list[RuntimeDeletion]:
    """Return the runtimes that delete sessions which the store watches.

    `directories` are the sessions' start directories."""
    found, now, known = [], time.time(), list(directories)
    for runtime, config_dir in dict.fromkeys(one.origin for one in location.watched if one.origin):
        deletion = runtime.backup.deletion(config_dir, known)
        if deletion.days is None and not deletion.traps:
            continue
        times = []
        for path in runtime.backup.transcripts(config_dir):
            with suppress(OSError):
                times.append(runtime.backup.last_used(path))
        if times and deletion.days is not None:
            until = now - (deletion.days - SOON_DAYS) * DAY_SECONDS
            soon = sum(one < until for one in times)
            traps = deletion.traps
            found.append(
                RuntimeDeletion(
                    runtime.TITLE, deletion.days, deletion.source, len(times), soon, traps
                )
            )
    return found


def deletion_lines(found: Iterable[RuntimeDeletion]) -> list[str]:
    """Return a line for each runtime that deletes sessions."""
    lines = []
    for one in found:
        days = counted(round(one.days), "day") if one.days >= 1 else "less than a day"
        soon = (
            f"{counted(one.soon, 'session')} of {one.sessions}"
            if one.soon
            else f"none of {one.sessions}"
        )
        why = f" ({one.source})" if one.source else ""
        lines.append(f"{one.runtime} after {days}{why}: {soon} in the next {SOON_DAYS} days")
    return lines


def kept_line(how: Kept) -> str:
    """Return a line that says how sessions are kept."""
    amount = (
        f"{counted(how.sessions, 'session')} in {byte_size(how.bytes)}, {how.gone} of them "
        f"deleted by the runtime"
    )
    if how.form in FORMS:
        return f"{how.form}: {amount}"
    text = "nothing" if how.form == NONE else "text only"
    return (
        f"{text}; to keep transcripts too, so sessions can be resumed: session-memory config "
        f"keep whole" + (f"; from before: {amount}" if how.sessions else "")
    )


def problems_of(found: Iterable[RuntimeDeletion]) -> list[str]:
    """Return the settings of runtimes that delete more than anyone expects."""
    return [trap for one in found for trap in one.traps]


def kept_or_why_not(location: StoreLocation, settings: Settings) -> tuple[Kept, list[str]]:
    """Return how sessions are kept, and problems with the pack.

    The pack cannot be read, or damaged parts were moved away."""
    path = pack_path(location.database)
    found, problems = Kept(settings.keep, 0, 0, 0), []
    try:
        if pack := open_if_there(path):
            with closing(pack):
                sessions = [one for one in pack.sessions() if not one.is_earlier]
            gone = sum(one.gone_at is not None for one in sessions)
            found = Kept(settings.keep, len(sessions), gone, os.stat(path).st_size)
    except (SessionMemoryError, OSError) as error:
        problems = [described(error)]
    moved = [
        one
        for one in glob(f"{escape(path)}.{CorruptDatabaseError.WHY}-*")
        if not one.endswith(("-wal", "-shm"))
    ]
    return found, [
        *problems,
        *[
            f"{one}: damaged kept transcripts; recover them with sqlite3 .recover, "
            f"or delete the file"
            for one in moved
        ],
    ]


def damaged_sessions(location: StoreLocation) -> list[str]:
    """Return a line for each kept session that is damaged. Raises SessionMemoryError."""
    pack = open_if_there(pack_path(location.database))
    if pack is None:
        return []
    with closing(pack):
        return [
            f"the kept transcript of {one.session_id} is damaged: "
            + ("the next upkeep keeps it again" if one.gone_at is None else "it was the only copy")
            for one in pack.damaged(CHECK_SECONDS)
        ]
