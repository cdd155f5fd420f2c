"""Whether anything is new at all: usually not, and then what takes it in need not be loaded."""

from __future__ import annotations

import os

from ...runtimes.detection import runtime_of
from ...system.confined_files import OutsideGroupError
from ...system.files import open_regular, stamp_of
from ..sqlite.known_files import connected, gap_minutes, has_ended, known_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from apsw import Connection

    from ...system.files import Stamp
    from ..place import StorePlace
    from .sources import SourceDirectory


def unchanged_files(place: StorePlace, now: int) -> int | None:
    """How many files there are, if all of them are in the store as they are, none is gone, and no conversation has
    ended since; None if something is to be done, or in doubt. `now` is in milliseconds since the epoch."""
    import apsw

    if not os.path.exists(place.database):
        return None
    connection = None
    try:
        connection = connected(place.database)
        return count_unchanged(connection, place, now)
    except apsw.Error:
        return None
    finally:
        if connection is not None:
            connection.close()


def count_unchanged(connection: Connection, place: StorePlace, now: int) -> int | None:
    """The same over an open database. Raises what apsw raises."""
    if gap_minutes(connection) != place.settings.gap_minutes or has_ended(connection, now - place.settings.gap):
        return None
    total = 0
    for home in dict.fromkeys([directory.home for directory in place.watched]):
        known = known_files(connection, home)
        if known is None:
            return None
        missing = set(known)
        own = [directory for directory in place.watched if directory.home == home]
        for directory in own:
            try:
                keys = _unchanged_in(directory, known)
            except (OSError, OutsideGroupError):
                return None
            if keys is None:
                return None
            total += len(keys)
            missing.difference_update(keys)
        if any(known[key][0] == directory.root and directory.holds(key) for key in missing for directory in own):
            return None
    return total


def _unchanged_in(directory: SourceDirectory, known: dict[str, tuple[str, Stamp]]) -> list[str] | None:
    """The keys of a directory's transcripts, if the store knows each as it is; else None."""
    keys: list[str] = []
    if not directory.is_expected():
        return keys
    root = directory.root
    for key, entry in directory.entries():
        stamp = stamp_of(entry.stat(follow_symlinks=False))
        if known.get(key) != (root, stamp) and (key in known or (stamp[1] and _is_transcript(entry.path))):
            return None
        keys.append(key)
    return keys


def _is_transcript(path: str) -> bool:
    """Whether a file is one of a runtime's. Others are never stored, so the store never knows them."""
    descriptor = open_regular(path)
    try:
        return runtime_of(descriptor) is not None
    finally:
        os.close(descriptor)
