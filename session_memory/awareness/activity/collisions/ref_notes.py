"""Notes of a repository's stashes, branches and worktrees, made before any of them is lost.

Git deletes the log of a stash, branch or worktree with it. So each prompt with news, and each call
that may run git, notes the stashes, the tips of the branches and the worktrees in a small file of
the home for the repository. The file is written only if something changed. A noted ref that is
missing later is a loss, which is kept as long as git keeps its objects.
"""

from __future__ import annotations

from ....common.errors import LockedError
from ....common.system.files import lock, names_in, os, read_whole, write_atomically
from ....common.system.git_refs import BRANCH, WORKTREE, SharedRef, shared_refs, went_on
from ....common.system.json import sealed, unsealed
from ..changes import shared_dir, shared_stamp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ....sessions.settings.homes import Home

LOCK_WAIT_SECONDS = 0.05
KEPT_SECONDS = 14 * 86400  # git prunes unreachable objects after so long
MOST_LOSSES = 300
MOST_OWNERS = 5  # of one branch
LARGEST_NOTES = 16 * 1024 * 1024
_SUFFIX = ".json"
NOTES = "/git"  # the directory of the notes, below that for state


class Loss:
    """A `ref` that is gone, or that moved to `now` ('' if gone).

    `now` is the other commit of a branch or the other path of a worktree. The ref existed at the
    time `seen` and was missing at `missed`, in seconds since 1970."""

    def __init__(self, ref: SharedRef, seen: float, missed: float, now: str = "") -> None:
        self.ref = ref
        self.seen = seen
        self.missed = missed
        self.now = now

    @property
    def key(self) -> str:
        """Identify the loss in its repository."""
        return f"{self.ref.key} {self.ref.commit} {self.ref.time:.0f}"

    def dump(self) -> list[object]:
        """Return the fields, to be stored."""
        return [*self.ref.dump(), self.seen, self.missed, self.now]


class RefNotes:
    """The notes of the repository at `common_dir`, in the file at `path`.

    They have the `refs` that existed at the time `at`, the `losses`, the newest last, and the
    `owners` by the key of a ref: the keys of the sessions that made it or committed to it.
    Unreadable notes count as missing."""

    def __init__(self, path: str, common_dir: str = "") -> None:
        self.path = path
        self.common_dir = common_dir
        self.at = 0.0
        self.refs: list[SharedRef] = []
        self.losses: list[Loss] = []
        self.owners: dict[str, list[str]] = {}
        self._stamp: list[int] = []
        try:
            self._load(unsealed(read_whole(path, LARGEST_NOTES)))
        except (OSError, ValueError, TypeError):
            self.at, self.refs, self.losses, self.owners, self._stamp = 0.0, [], [], {}, []

    def is_current(self) -> bool:
        """Check with four `stat` calls that nothing changed since the notes were made."""
        return bool(self.at) and shared_stamp(self.common_dir) == self._stamp

    def update(self, now: float, claims: Mapping[str, str]) -> None:
        """Note the refs, the losses, and the sessions that own refs.

        `claims` has new owners by the keys of the refs. The lock must be held. Raises OSError."""
        before = self._dump()
        stamp = shared_stamp(self.common_dir)
        refs = shared_refs(self.common_dir)
        if self.at:
            self._add_losses(refs, now)
        at, self.refs, self._stamp = self.at, refs, stamp
        for key, session in claims.items():
            owners = [owner for owner in self.owners.pop(key, ()) if owner != session]
            self.owners[key] = [*owners, session][-MOST_OWNERS:]
        known = {ref.key for ref in refs} | {loss.ref.key for loss in self.losses}
        self.owners = {key: owners for key, owners in self.owners.items() if key in known}
        if self._dump() != before or not at:
            self.at = now
            write_atomically(self.path, sealed(self._dump()))

    def _add_losses(self, refs: list[SharedRef], now: float) -> None:
        there = {ref.key: ref for ref in refs}
        known = {loss.key for loss in self.losses}
        for ref in self.refs:
            later = there.get(ref.key)
            if later is None or self._differs(ref, later):
                loss = Loss(ref, self.at, now, _place_of(later))
                if loss.key not in known:
                    self.losses.append(loss)
        kept = [loss for loss in self.losses if loss.missed > now - KEPT_SECONDS]
        # a ref that came back is not lost any more
        kept = [loss for loss in kept if loss.now or loss.ref.key not in there]
        self.losses = kept[-MOST_LOSSES:]

    def _differs(self, ref: SharedRef, later: SharedRef) -> bool:
        """Check if a branch has lost commits, or a worktree was replaced or moved."""
        if ref.kind == WORKTREE:
            return ref.time != later.time or ref.text != later.text
        return (
            ref.kind == BRANCH
            and ref.commit != later.commit
            and not went_on(self.common_dir, ref.name, ref.commit, later.commit)
        )

    def forget(self, names: set[str]) -> None:
        """Delete the sessions with these keys. Raises OSError."""
        owners = {
            key: [owner for owner in known if not names & {owner, owner.rpartition(":")[2]}]
            for key, known in self.owners.items()
        }
        if owners != self.owners:
            self.owners = owners
            write_atomically(self.path, sealed(self._dump()))

    def _load(self, content: list[Any]) -> None:
        common_dir, at, stamp, refs, losses, owners = content
        self.common_dir = self.common_dir or str(common_dir)
        self.refs = [SharedRef(*fields) for fields in refs]
        self.losses = [Loss(SharedRef(*fields[:-3]), *fields[-3:]) for fields in losses]
        self.owners = {str(key): [*map(str, known)] for key, known in owners.items()}
        self._stamp = [int(number) for number in stamp]
        self.at = float(at)

    def _dump(self) -> list[object]:
        refs = [ref.dump() for ref in self.refs]
        losses = [loss.dump() for loss in self.losses]
        return [self.common_dir, self.at, self._stamp, refs, losses, dict(self.owners)]


def _place_of(ref: SharedRef | None) -> str:
    """Return where a branch or a worktree is now; '' if it is gone."""
    if ref is None:
        return ""
    return ref.text if ref.kind == WORKTREE else ref.commit


def note(
    home: Home,
    git_dir: str,
    now: float,
    claims: Mapping[str, str] | None = None,
    *,
    is_forced: bool = False,
) -> RefNotes:
    """Note the refs in the repository of a worktree's `git_dir`, and return the notes.

    Unless it `is_forced`, nothing is written if four `stat` results are the same and there are no
    `claims`. Nothing is written either while another process notes the refs. Raises OSError."""
    common_dir = shared_dir(git_dir)
    path = home.ref_notes(common_dir)
    notes = RefNotes(path, common_dir)
    if (notes.is_current() and not claims and not is_forced) or not names_in(common_dir):
        return notes
    try:
        descriptor = lock(path + ".lock", LOCK_WAIT_SECONDS)
    except LockedError:
        return notes
    try:
        notes = RefNotes(path, common_dir)
        notes.update(now, claims or {})
    finally:
        os.close(descriptor)
    return notes


def forget_owners(directory: str, names: set[str]) -> None:
    """Delete sessions with these keys from all notes in a directory. Raises OSError."""
    for name in names_in(directory):
        if name.endswith(_SUFFIX):
            RefNotes(f"{directory}/{name}").forget(names)
