"""Forks: a session that begins as a copy of another one's entries, which are not told a second time."""

from __future__ import annotations

from ..transcripts.cursor import id_checksum
from .unseen import entries_back_to

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ..runtimes import Runtime
    from ..transcripts.cursor import Cursor
    from ..transcripts.entries import Entry, Session
    from .changes import OwnSession
    from .unseen import Unseen


def forked_before(path: str, runtime: Runtime, oldest: float, now: float) -> float | None:
    """Since when the session with this transcript goes on by itself, if it is a fork: `now` where nothing but copies is
    in it yet. None for any other; copies that were said before `oldest` show none."""
    try:
        entries = entries_back_to(runtime, path, oldest)
    except OSError:
        return None
    own = [entry for entry in entries if not entry.is_copy]
    if len(own) == len(entries):
        return None
    return min([entry.timestamp for entry in own if entry.timestamp is not None], default=now)


def drop_copies(
    read: list[Unseen], sessions: Iterable[Session], cursors: Mapping[str, Cursor], own: OwnSession
) -> list[Unseen]:
    """Take out of `read` what a session that is seen first copied from the session `own`, or from one of `sessions`
    that is known. Return those of which that can be told: what may be a copy is not told as new."""
    first_seen = [unseen for unseen in read if unseen.is_first_sight and unseen.entries]
    times = [entry.timestamp for unseen in first_seen for entry in unseen.entries if entry.timestamp is not None]
    oldest = min(times, default=0.0)
    asked = (own.path, _ids, own.runtime, own.path, oldest)
    seen: set[str] = (own.deadline.attempt(*asked) if first_seen and own.path else None) or set()
    told = []
    for unseen in reversed(read):  # the one written to last is the copy
        if unseen.is_first_sight and unseen.entries:
            entries = own.deadline.attempt(
                unseen.session.path, _own_entries, unseen, seen, sessions, cursors, own, oldest
            )
            if entries is None:
                continue
            # What lies before copies are copies too.
            unseen.is_partial = unseen.is_partial and len(entries) == len(unseen.entries)
            unseen.entries = entries
        seen.update([entry.id for entry in unseen.entries if entry.id])
        told.append(unseen)
    return told[::-1]


def _own_entries(
    unseen: Unseen, seen: set[str], sessions: Iterable[Session], cursors: Mapping[str, Cursor], own: OwnSession,
    oldest: float,
) -> list[Entry]:  # fmt: skip
    """Return the entries of a session that no other one has: neither those with the ids `seen`, nor its kin."""
    kin = _kin(unseen, sessions, cursors)
    known = seen.union(*[_ids(own.runtime_of(one), one.path, oldest) for one in kin])
    return [entry for entry in unseen.entries if entry.id not in known and not entry.is_copy]


def _kin(unseen: Unseen, sessions: Iterable[Session], cursors: Mapping[str, Cursor]) -> list[Session]:
    """The sessions that a session may have copied from: they begin as it does, or, where it was forked after a
    compaction and begins there, the last entries that were seen of them are among its own."""
    first = unseen.cursor.get("first")
    checksums = {id_checksum(entry.id) for entry in unseen.entries if entry.id}
    kin = []
    for other in sessions:
        cursor = cursors.get(other.key, {})
        begins_alike = bool(first) and cursor.get("first") == first
        if other is not unseen.session and (begins_alike or not checksums.isdisjoint(cursor.get("ids", ()))):
            kin.append(other)
    return kin


def _ids(runtime: Runtime, path: str, oldest: float) -> set[str]:
    """The ids of the last entries in a transcript, back to the time `oldest`; none where there is no transcript."""
    try:
        return {entry.id for entry in entries_back_to(runtime, path, oldest) if entry.id}
    except OSError:
        return set()
