"""Forks: sessions that begin with a copy of another session's entries.

Copied entries are not reported again.
"""

from __future__ import annotations

from ...sessions.transcripts.lines import id_checksum
from ._new_entries import NewEntries, entries_back_to

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ...sessions.runtimes.base import Runtime
    from ...sessions.transcripts.entries import Entry, Session
    from ...sessions.transcripts.read_cursor import ReadCursors
    from .changes import OwnSession


def forked_before(read: NewEntries, oldest: float, now: float) -> tuple[float | None, set[str]]:
    """Return when a fork continued on its own, and the ids of the session's last entries.

    `read` are its entries at first sight, which are read again if they do not reach back to
    `oldest`. The time is `now` if the fork has only copies so far, None if the session is not a
    fork. Raises OSError."""
    entries = read.parsed
    if read.is_partial:
        entries = entries_back_to(read.runtime, read.session.path, oldest)
    ids = _ids_of(entries)
    own_entries = [entry for entry in entries if not entry.is_copy]
    if len(own_entries) == len(entries):
        return None, ids
    times = [entry.timestamp for entry in own_entries if entry.timestamp is not None]
    return min(times, default=now), ids


def drop_copies(
    read: list[NewEntries],
    sessions: Iterable[Session],
    cursors: ReadCursors,
    own_session: OwnSession,
    own_ids: set[str] | None = None,
) -> list[NewEntries]:
    """Remove from `read` the entries that a session at first sight copied from another one.

    The other one is `own_session`, whose last entries have `own_ids` (None if they were not read
    yet), or one of `sessions` with a cursor. Sessions for which this fails are left out, because
    their entries may be copies."""
    first_seen = [new for new in read if new.is_first_sight and new.entries]
    times = [
        entry.timestamp
        for new in first_seen
        for entry in new.entries
        if entry.timestamp is not None
    ]
    oldest = min(times, default=0.0)
    if own_ids is None and first_seen and own_session.path:
        inputs = (own_session.runtime, own_session.path, oldest)
        own_ids = own_session.deadline.attempt(own_session.path, _ids, *inputs)
    seen = set(own_ids or ())
    kept = []
    for new in reversed(read):  # the most recently written one is the copy
        if new.is_first_sight and new.entries:
            entries = own_session.deadline.attempt(
                new.session.path, _own_entries, new, seen, sessions, cursors, own_session, oldest
            )
            if entries is None:
                continue
            # Entries before copies are copies too.
            new.is_partial = new.is_partial and len(entries) == len(new.entries)
            new.entries = entries
        seen.update([entry.id for entry in new.entries if entry.id])
        kept.append(new)
    return kept[::-1]


def _own_entries(
    new: NewEntries,
    seen: set[str],
    sessions: Iterable[Session],
    cursors: ReadCursors,
    own_session: OwnSession,
    oldest: float,
) -> list[Entry]:
    """Return the entries whose ids are neither `seen` nor in a session of the same origin."""
    kin = _kin(new, sessions, cursors)
    known = seen.union(
        *[_ids(own_session.runtime_of(relative), relative.path, oldest) for relative in kin]
    )
    return [entry for entry in new.entries if entry.id not in known and not entry.is_copy]


def _kin(new: NewEntries, sessions: Iterable[Session], cursors: ReadCursors) -> list[Session]:
    """Return the sessions that a session may be a copy of.

    They have the same beginning. After a fork of a compacted session, their last seen entries are
    among this session's entries."""
    first = new.cursor.first
    checksums = {id_checksum(entry.id) for entry in new.entries if entry.id}
    kin = []
    for other in sessions:
        cursor = cursors.get(other.key)
        if cursor is None or other is new.session:
            continue
        if (first and cursor.first == first) or not checksums.isdisjoint(cursor.ids):
            kin.append(other)
    return kin


def _ids(runtime: Runtime, path: str, oldest: float) -> set[str]:
    """Return the ids of a transcript's last entries, back to the time `oldest`."""
    try:
        return _ids_of(entries_back_to(runtime, path, oldest))
    except OSError:
        return set()


def _ids_of(entries: list[Entry]) -> set[str]:
    return {entry.id for entry in entries if entry.id}
