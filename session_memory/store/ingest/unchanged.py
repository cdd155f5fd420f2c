"""Whether anything is new at all, which is usually not so: told in a fraction of the time that it takes to load what
takes it in. In doubt there is."""

from __future__ import annotations

import os

from ...runtimes.recognition import runtime_of
from ...settings.store_section import DEFAULT_GAP_MINUTES
from ...system.files import open_regular
from ..place import SUFFIX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from apsw import Connection

    from ..place import StorePlace, Watched

    Known = tuple[str, int, int, int]  # root, size, modified, inode

BUSY_MILLISECONDS = 1000
_IDLE = """
    SELECT file_path, root, file_size, last_modified, inode FROM memory_file_states
    WHERE home = ? AND status = 'idle' AND source != 'archive'
"""
_UNFINISHED = "SELECT count(*) FROM memory_file_states WHERE home = ? AND status = 'ingesting'"
_ENDED = "SELECT 1 FROM memory_conversations WHERE status = 'active' AND coalesce(last_message_at, 0) < ? LIMIT 1"


def unchanged_files(place: StorePlace, now: int) -> int | None:
    """How many files there are, if all of them are in the store as they are, none is gone, and no conversation has
    ended since; None if something is to be done, or that cannot be told. `now` is in milliseconds since the epoch."""
    import apsw

    if not os.path.exists(place.database):
        return None
    connection = None
    try:
        flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_NOFOLLOW
        connection = apsw.Connection(place.database, flags=flags)
        connection.set_busy_timeout(BUSY_MILLISECONDS)
        return count_unchanged(connection, place, now)
    except apsw.Error:
        return None
    finally:
        if connection is not None:
            connection.close()


def count_unchanged(connection: Connection, place: StorePlace, now: int) -> int | None:
    """The same over an open database. Raises what apsw raises."""
    try:
        return _count(connection, place, now)
    except OSError:
        return None


def _count(connection: Connection, place: StorePlace, now: int) -> int | None:
    [(minutes,)] = connection.execute("PRAGMA user_version").fetchall()
    if (minutes or DEFAULT_GAP_MINUTES) != place.settings.gap_minutes:
        return None
    if connection.execute(_ENDED, (now - place.settings.gap,)).fetchall():
        return None
    total = 0
    for home in dict.fromkeys([watched.home for watched in place.watched]):
        if connection.execute(_UNFINISHED, (home,)).fetchall() != [(0,)]:
            return None
        rows: list[Any] = connection.execute(_IDLE, (home,)).fetchall()
        known: dict[str, Known] = {row[0]: row[1:] for row in rows}
        left = set(known)
        for watched in place.watched:
            if watched.home == home:
                found = _unchanged_in(watched, known)
                if found is None:
                    return None
                total += len(found)
                left.difference_update(found)
        roots = {watched.root for watched in place.watched}
        if any(known[key][0] in roots for key in left):
            return None  # files that are gone
    return total


def _unchanged_in(watched: Watched, known: dict[str, Known]) -> list[str] | None:
    """The keys of a directory's transcripts, if the store knows each as it is."""
    found: list[str] = []
    if not watched.is_named and not os.path.isdir(watched.root):
        return found
    prefixes = [""]
    for prefix in prefixes:
        with os.scandir(f"{watched.root}/{prefix}") as listing:
            for entry in listing:
                name = entry.name
                if not name.endswith(SUFFIX):
                    if not prefix and entry.is_dir():
                        prefixes.append(f"{name}/")
                    continue
                key = prefix + name
                if (watched.within is not None and not watched.holds(key)) or not entry.is_file(follow_symlinks=False):
                    continue
                status = entry.stat(follow_symlinks=False)
                stamp = (watched.root, status.st_size, status.st_mtime_ns // 1_000_000, status.st_ino)
                if known.get(key) != stamp and (key in known or (status.st_size and _is_transcript(entry.path))):
                    return None
                found.append(key)
    return found


def _is_transcript(path: str) -> bool:
    """Whether a file is one of a runtime's. What is nobody's is never stored, and so is new for ever."""
    descriptor = open_regular(path)
    try:
        return runtime_of(descriptor) is not None
    finally:
        os.close(descriptor)
