"""Forks: a session that begins as a copy of another one's entries, which are not told a second time."""

from __future__ import annotations

from ..transcripts.cursor import id_checksum
from .unseen import entries_back_to

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ..runtimes import Runtime
    from ..transcripts.cursor import Cursor
    from ..transcripts.entries import Session
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
    read: list[Unseen], sessions: Iterable[Session], cursors: Mapping[str, Cursor], runtime: Runtime, own_path: str
) -> None:
    """Takes out of `read` what a session that is seen first copied from the one at `own_path`, or from one of
    `sessions` that is known."""
    first_seen = [unseen for unseen in read if unseen.is_first_sight and unseen.entries]
    times = [entry.timestamp for unseen in first_seen for entry in unseen.entries if entry.timestamp is not None]
    oldest = min(times, default=0.0)
    seen = _ids(runtime, own_path, oldest) if first_seen and own_path else set()
    for unseen in reversed(read):  # the one written to last is the copy
        if unseen.is_first_sight and unseen.entries:
            kin = _kin(unseen, sessions, cursors)
            known = seen.union(*[_ids(one.runtime or runtime, one.path, oldest) for one in kin])
            own = [entry for entry in unseen.entries if entry.id not in known and not entry.is_copy]
            # What lies before copies are copies too.
            unseen.is_partial = unseen.is_partial and len(own) == len(unseen.entries)
            unseen.entries = own
        seen.update([entry.id for entry in unseen.entries if entry.id])


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
