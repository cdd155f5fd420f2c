"""Whether anything is new at all: usually not, and then what takes it in need not be loaded."""

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
    """How many files there are, if all of them are in the store as they are, none is gone, and no conversation has
    ended since; None if something is to be done, or told, or in doubt. `now` is in milliseconds since the epoch."""
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
    """The same over an open database. What could not be taken in, and is as it was then, counts as unchanged, unless
    `with_faults` is false. Raises what apsw raises."""
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
    """How many transcripts a directory has, if the store knows each as it is, or that it cannot be taken in; else None.
    Takes them out of `known` and `unread`."""
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
    """Of how many transcripts something is not in the store, and how many there are. Raises what apsw raises."""
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
    """Whether a file that could not be taken in, and may be tried again some day, is as it was, permissions and all."""
    stamp, noted_at = noted
    has_changed = stamp != stamp_of(status) or status.st_ctime_ns // 1_000_000 > noted_at
    return not has_changed and now - noted_at < RETRY_MILLISECONDS
