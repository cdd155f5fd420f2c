"""Names the runtimes that delete sessions, when and how many soon, and how to keep the sessions."""

import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, suppress
from glob import escape, glob
from typing import NamedTuple

from ...common.errors import SessionMemoryError, described
from ...common.system.sqlite import CorruptDatabaseError
from ...common.system.terminal import byte_size
from ...common.text.format import counted
from ...sessions.runtimes.backup import DAY_SECONDS
from ...sessions.runtimes.base import Runtime
from ...sessions.settings.compiled import Settings
from ..store.location import StoreLocation
from .pack import FORMS, NONE, open_if_there, pack_path

SOON_DAYS = 7
CHECK_SECONDS = 20.0  # for all kept transcripts


class RuntimeDeletion(NamedTuple):
    """A runtime that deletes its sessions after `days`.

    `source` is the file with this setting, '' for the default. It will delete `soon` of its
    `sessions` within SOON_DAYS. `traps` are as in runtimes.backup."""

    runtime: str
    days: float
    source: str
    sessions: int
    soon: int
    traps: tuple[str, ...]


class Kept(NamedTuple):
    """The setting `keep` as `form`, and what the pack contains.

    It counts the kept sessions, those that the runtime has deleted, and the bytes on the disk."""

    form: str
    sessions: int
    gone: int
    bytes: int


def deletions(
    location: StoreLocation,
    directories: Iterable[str],
    statuses: Mapping[str, os.stat_result] | None = None,
) -> list[RuntimeDeletion]:
    """Return the runtimes, watched by the store, that delete sessions.

    `directories` are the sessions' start directories; `statuses` are known statuses of transcripts,
    by path."""
    by_path = statuses or {}
    listed, now, known = [], time.time(), list(directories)
    for runtime, config_dir in dict.fromkeys(
        source.origin for source in location.watched if source.origin
    ):
        deletion = runtime.backup.deletion(config_dir, known)
        if deletion.days is None and not deletion.traps:
            continue
        times = list(_times_of_last_use(runtime, config_dir, by_path))
        if times and deletion.days is not None:
            until = now - (deletion.days - SOON_DAYS) * DAY_SECONDS
            soon = sum(deleted_at < until for deleted_at in times)
            traps = deletion.traps
            listed.append(
                RuntimeDeletion(
                    runtime.TITLE, deletion.days, deletion.source, len(times), soon, traps
                )
            )
    return listed


def _times_of_last_use(
    runtime: Runtime, config_dir: str, statuses: Mapping[str, os.stat_result]
) -> Iterator[float]:
    backup = runtime.backup
    known = statuses if backup.is_used_when_written else {}
    for path in backup.transcripts(config_dir):
        if path in known:
            yield known[path].st_mtime
        else:
            with suppress(OSError):
                yield backup.last_used(path)


def deletion_lines(listed: Iterable[RuntimeDeletion]) -> list[str]:
    """Return a line for each runtime that deletes sessions."""
    lines = []
    for deletion in listed:
        days = counted(round(deletion.days), "day") if deletion.days >= 1 else "less than a day"
        soon = (
            f"{counted(deletion.soon, 'session')} of {deletion.sessions}"
            if deletion.soon
            else f"none of {deletion.sessions}"
        )
        why = f" ({deletion.source})" if deletion.source else ""
        lines.append(f"{deletion.runtime} after {days}{why}: {soon} in the next {SOON_DAYS} days")
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


def problems_of(listed: Iterable[RuntimeDeletion]) -> list[str]:
    """Return the settings with which runtimes delete more than anyone expects."""
    return [trap for deletion in listed for trap in deletion.traps]


def kept_or_why_not(location: StoreLocation, settings: Settings) -> tuple[Kept, list[str]]:
    """Return how sessions are kept, and problems with the pack.

    Either the pack cannot be read, or damaged parts were moved away."""
    path = pack_path(location.database)
    kept, problems = Kept(settings.keep, 0, 0, 0), []
    try:
        if pack := open_if_there(path):
            with closing(pack):
                sessions = [session for session in pack.sessions() if not session.is_earlier]
            gone = sum(session.gone_at is not None for session in sessions)
            kept = Kept(settings.keep, len(sessions), gone, os.stat(path).st_size)
    except (SessionMemoryError, OSError) as error:
        problems = [described(error)]
    moved = [
        name
        for name in glob(f"{escape(path)}.{CorruptDatabaseError.WHY}-*")
        if not name.endswith(("-wal", "-shm"))
    ]
    return kept, [
        *problems,
        *[
            f"{name}: damaged kept transcripts; recover them with sqlite3 .recover, "
            f"or delete the file"
            for name in moved
        ],
    ]


def damaged_sessions(location: StoreLocation) -> list[str]:
    """Return a line for each kept session that is damaged. Raises SessionMemoryError."""
    pack = open_if_there(pack_path(location.database))
    if pack is None:
        return []
    with closing(pack):
        return [
            f"the kept transcript of {session.session_id} is damaged: "
            + (
                "the next upkeep keeps it again"
                if session.gone_at is None
                else "it was the only copy"
            )
            for session in pack.damaged(CHECK_SECONDS)
        ]
