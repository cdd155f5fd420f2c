"""Checks cheaply if anything is new. Usually nothing is, and the ingest need not be loaded."""

from __future__ import annotations

import os

from ...system.confined_files import OutsideGroupError
from ...system.files import path_text, stamp_of
from ..sqlite.exclusions import is_behind
from ..sqlite.known_files import (
    RETRY_MILLISECONDS,
    connected,
    gap_minutes,
    has_ended,
    has_faults,
    is_unfinished,
    known_files,
    unread_files,
)
from ..sqlite.redaction import state

TYPE_CHECKING = False
if TYPE_CHECKING:
    from apsw import Connection

    from ...system.files import Stamp
    from ..location import StoreLocation
    from .sources import SourceDirectory, Unreadable


def unchanged_files(location: StoreLocation, now: int) -> int | None:
    """Return the number of files if all are in the store and unchanged, none is gone, and no conversation has ended
    since; None if anything must be done or reported, or in doubt. `now` is in milliseconds since the epoch."""
    import apsw

    if not os.path.exists(location.database):
        return None
    connection = None
    try:
        connection = connected(location.database)
        if not state(connection).is_done:
            return None
        return count_unchanged(connection, location, now, with_faults=False)
    except (apsw.Error, OSError):
        return None
    finally:
        if connection is not None:
            connection.close()


def count_unchanged(
    connection: Connection, location: StoreLocation, now: int, *, with_faults: bool = True
) -> int | None:
    """Return the same over an open database. Failed files that are unchanged count as unchanged, unless `with_faults`
    is false. Raises the errors of apsw."""
    if gap_minutes(connection) != location.settings.gap_minutes or has_ended(connection, now - location.settings.gap):
        return None
    if is_behind(connection):
        return None
    groups = {directory.home for directory in location.watched}
    if any(is_unfinished(connection, home) or (not with_faults and has_faults(connection, home)) for home in groups):
        return None
    total = 0
    for directory in location.watched:
        known = known_files(connection, directory.home, directory.root)
        unread = unread_files(connection, directory.home, directory.root)
        unreadable: Unreadable = []
        try:
            files = _unchanged_in(directory, known, unread, unreadable, now)
        except (OSError, OutsideGroupError):
            return None
        if unreadable and not with_faults:
            return None
        folders = tuple([folder for folder, _ in unreadable])
        if files is None or any(directory.holds(key) and not key.startswith(folders) for key in (*known, *unread)):
            return None
        total += files
    return total


def _unchanged_in(
    directory: SourceDirectory, known: dict[str, Stamp], unread: dict[str, tuple[Stamp, int]],
    unreadable: Unreadable, now: int,
) -> int | None:  # fmt: skip
    """Return the number of transcripts in a directory if the store knows each as it is, or that it failed; else None.
    Remove them from `known` and `unread`."""
    files = 0
    if directory.is_expected():
        for inner, status in directory.transcripts(unreadable):
            key = inner if inner.isascii() else path_text(inner)
            stamp = known.pop(key, None)
            noted = unread.pop(key, None)
            is_known = stamp == stamp_of(status) or not (stamp or status.st_size)
            if not is_known and not (noted and _is_still(noted, status, now)):
                return None
            files += 1
    return files


def not_in_yet(connection: Connection, location: StoreLocation) -> tuple[int, int]:
    """Return how many transcripts are not fully in the store, and how many there are. Raises the errors of apsw."""
    missing = total = 0
    for directory in location.watched:
        known = known_files(connection, directory.home, directory.root)
        unread = unread_files(connection, directory.home, directory.root)
        try:
            stamps = {path_text(inner): stamp_of(status) for inner, status in directory.transcripts([])}
        except (OSError, OutsideGroupError):
            continue
        total += len(stamps)
        missing += sum(known.get(key) != stamp and key not in unread for key, stamp in stamps.items())
    return missing, total


def _is_still(noted: tuple[Stamp, int], status: os.stat_result, now: int) -> bool:
    """Check if a failed file that may be retried is unchanged, including its permissions."""
    stamp, noted_at = noted
    has_changed = stamp != stamp_of(status) or status.st_ctime_ns // 1_000_000 > noted_at
    return not has_changed and now - noted_at < RETRY_MILLISECONDS
