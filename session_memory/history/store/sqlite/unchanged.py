"""Checks cheaply if anything is new. Usually nothing is, and the ingest need not be loaded."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from ....common.system.files import Stamp, path_text, stamp_of
from ....common.system.sqlite import Connection, fetch, open_file
from ....sessions.confined_files import OutsideGroupError
from ....sessions.settings.sections import StoreSettings
from ..ingest.sources import FOREIGN, SourceDirectory, Unreadable
from ..location import StoreLocation
from .exclusions import is_behind

Place = tuple[str, str]  # the group and the root of a directory


def unchanged_files(location: StoreLocation, now: int) -> int | None:
    """Return the number of files if nothing is new, else None.

    Nothing is new if all files are in the store and unchanged, none is gone, and no conversation
    has ended since. Return None also if anything must be reported, or in doubt. `now` is in
    milliseconds since the epoch."""
    import apsw

    from .redaction import state  # a search goes on with what it has

    if not os.path.exists(location.database):
        return None
    connection = None
    try:
        connection = open_file(location.database)
        connection.set_busy_timeout(BUSY_MILLISECONDS)
        if not state(connection).is_done or _any(connection, _UNREAD_WORDS):
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
    """Return the same for an open database; `with_faults` counts unchanged failed files too.

    Raises apsw's errors."""
    if gap_minutes(connection) != location.settings.conversation_gap_minutes:
        return None
    if _any(connection, _ENDED, now - location.settings.gap) or is_behind(connection):
        return None
    own_names = {directory.home for directory in location.watched}
    if any(home in own_names for (home,) in fetch(connection, _UNFINISHED)):
        return None
    if not with_faults and any(_any(connection, _FAULTS, home, FOREIGN) for home in own_names):
        return None
    all_known, all_unread = _known(connection), _unread(connection)
    if _has_narrow_keys(location, all_known):
        return None
    total = 0
    for directory in location.watched:
        place = directory.home, directory.root
        known, unread = dict(all_known.get(place, {})), dict(all_unread.get(place, {}))
        unreadable: Unreadable = []
        try:
            files = _unchanged_in(directory, known, unread, unreadable, now)
        except (OSError, OutsideGroupError):
            return None
        if unreadable and not with_faults:
            return None
        folders = tuple([folder for folder, _ in unreadable])
        if files is None or any(
            directory.holds(key) and not key.startswith(folders) for key in (*known, *unread)
        ):
            return None
        total += files
    return total


def _has_narrow_keys(location: StoreLocation, known: Iterable[Place]) -> bool:
    """Check if the store has files whose keys are relative to a part of a watched directory."""
    watched = {(directory.home, directory.root) for directory in location.watched}
    return any(
        directory.wider_key(root, "")
        for home, root in known
        if (home, root) not in watched
        for directory in location.watched
        if directory.home == home
    )


def _unchanged_in(
    directory: SourceDirectory,
    known: dict[str, Stamp],
    unread: dict[str, tuple[Stamp, int]],
    unreadable: Unreadable,
    now: int,
) -> int | None:
    """Count the transcripts in a directory; return None if any is new or changed.

    They are removed from `known` and `unread`."""
    files = 0
    if directory.is_expected():
        for inner, status in directory.transcripts(unreadable):
            key = inner if inner.isascii() else path_text(inner)
            stamp = known.pop(key, None)
            noted = unread.pop(key, None) if unread else None
            is_known = stamp == stamp_of(status) or not (stamp or status.st_size)
            # a failed file that may be retried counts as unchanged while its content and
            # permissions stay the same
            if not is_known:
                failed, noted_at = noted or (None, 0)
                has_changed = (
                    failed != stamp_of(status) or status.st_ctime_ns // 1_000_000 > noted_at
                )
                if has_changed or now - noted_at >= RETRY_MILLISECONDS:
                    return None
            files += 1
    return files


BUSY_MILLISECONDS = 1000
RETRY_MILLISECONDS = 24 * 3_600_000  # before a failed file is retried, unless it changes
# For all groups at once, in the order of the rows: the index of a group would look up each row
# separately, which takes seven times as long.
_IDLE = """
    SELECT home, root, file_path, inode, file_size, last_modified FROM memory_file_states NOT INDEXED
    WHERE status = 'idle' AND source != 'archive'
"""
_UNREAD = (
    "SELECT home, root, file_path, inode, file_size, last_modified, noted_at FROM "
    "memory_unread_files"
)
# fails in a store of an earlier version
_UNREAD_WORDS = "SELECT 1 FROM memory_unread_words LIMIT 1"
_FAULTS = "SELECT 1 FROM memory_unread_files WHERE home = ? AND problem != ? LIMIT 1"
_UNFINISHED = "SELECT DISTINCT home FROM memory_file_states NOT INDEXED WHERE status = 'ingesting'"
_ENDED = (
    "SELECT 1 FROM memory_conversations WHERE status = 'active' AND "
    "coalesce(last_message_at, 0) < ? LIMIT 1"
)


def gap_minutes(connection: Connection) -> int:
    """Return the gap, in minutes, with which conversations were cut.

    The database stores it as its `user_version`."""
    rows: list[tuple[int]] = connection.execute("PRAGMA user_version").fetchall()  # type: ignore[assignment]
    return rows[0][0] or StoreSettings().conversation_gap_minutes


def _any(connection: Connection, sql: str, *values: object) -> bool:
    return bool(connection.execute(sql, values).fetchall())


def _known(connection: Connection) -> dict[Place, dict[str, Stamp]]:
    """Return the stamps of the files in the store, by group and root, then by key."""
    known: dict[Place, dict[str, Stamp]] = {}
    rows: Any = connection.execute(_IDLE)
    for home, root, key, inode, size, modified in rows:
        known.setdefault((home, root), {})[key] = (inode, size, modified)
    return known


def _unread(connection: Connection) -> dict[Place, dict[str, tuple[Stamp, int]]]:
    """Return the stamps of failed files, each with the time of the failure."""
    unread: dict[Place, dict[str, tuple[Stamp, int]]] = {}
    rows: Any = connection.execute(_UNREAD)
    for home, root, key, inode, size, modified, noted_at in rows:
        unread.setdefault((home, root), {})[key] = ((inode, size, modified), noted_at)
    return unread
