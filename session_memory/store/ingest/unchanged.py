"""Whether anything is new at all: usually not, and then what takes it in need not be loaded."""

from __future__ import annotations

import os

from ...runtimes.detection import runtime_of
from ...system.confined_files import OutsideGroupError
from ...system.files import open_regular, stamp_of
from ..sqlite.exclusions import is_behind
from ..sqlite.known_files import connected, gap_minutes, has_ended, is_unfinished, known_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from apsw import Connection

    from ...system.files import Stamp
    from ..location import StoreLocation
    from .sources import SourceDirectory


def unchanged_files(location: StoreLocation, now: int) -> int | None:
    """How many files there are, if all of them are in the store as they are, none is gone, and no conversation has
    ended since; None if something is to be done, or in doubt. `now` is in milliseconds since the epoch."""
    import apsw

    if not os.path.exists(location.database):
        return None
    connection = None
    try:
        connection = connected(location.database)
        return count_unchanged(connection, location, now)
    except apsw.Error:
        return None
    finally:
        if connection is not None:
            connection.close()


def count_unchanged(connection: Connection, location: StoreLocation, now: int) -> int | None:
    """The same over an open database. Raises what apsw raises."""
    if gap_minutes(connection) != location.settings.gap_minutes or has_ended(connection, now - location.settings.gap):
        return None
    if is_behind(connection):
        return None
    if any(is_unfinished(connection, home) for home in {directory.home for directory in location.watched}):
        return None
    total = 0
    for directory in location.watched:
        known = known_files(connection, directory.home, directory.root)
        try:
            files = _unchanged_in(directory, known)
        except (OSError, OutsideGroupError):
            return None
        if files is None or any(directory.holds(key) for key in known):
            return None
        total += files
    return total


def _unchanged_in(directory: SourceDirectory, known: dict[str, Stamp]) -> int | None:
    """How many transcripts a directory has, if the store knows each as it is; else None. Takes them out of `known`."""
    files = 0
    if directory.is_expected():
        for key, status in directory.transcripts():
            stamp = known.pop(key, None)
            if stamp != stamp_of(status) and (stamp or (status.st_size and _is_transcript(f"{directory.root}/{key}"))):
                return None
            files += 1
    return files


def _is_transcript(path: str) -> bool:
    """Whether a file is one of a runtime's. Others are never stored, so the store never knows them."""
    descriptor = open_regular(path)
    try:
        return runtime_of(descriptor) is not None
    finally:
        os.close(descriptor)
