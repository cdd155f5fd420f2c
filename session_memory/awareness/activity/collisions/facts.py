"""Facts about one collision each: two sessions on the same file, branch or worktree."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .ref_notes import Loss

TAKEN, HEAD, MOVED, BRANCH, LOST = "taken", "head", "moved", "branch", "lost"
SHORT_COMMIT = 7  # characters
ACTIVE_SECONDS = 3600  # a session active since then may still be working on its edit
# edits of sessions without later activity leave half of the room to others
IDLE_SECONDS = 900
# A file's mtime is between the times of the call's record and of its result, with this margin at
# each end. It was measured with six runtimes.
SLACK_SECONDS = 0.005
PATH_CHARACTERS = 60


class Fact:
    """One collision.

    `kind` is EDITED; TAKEN (git committed or overwrote this session's uncommitted work); HEAD
    (another branch or commit is checked out); MOVED (the branch is at another commit, and not by a
    plain commit); BRANCH (another machine also works on the branch `path`); or LOST (a stash,
    branch or worktree is gone). A LOST fact has the `loss`, its key as `path`, and the uncommitted
    `files` lost with it; `is_after` is false if this session took it from the other.

    `session` is the key of the other session, '' if unknown; `time` is when it happened. `own_time`
    is the time of this session's action, by which the fact is reported once. `is_after` means that
    the edit came after this session's action, whose kind is `own_kind`; `is_removed` that the file
    is gone; `is_overwritten` that git discarded this session's edit. `words` are the git command's.
    `before` and `now` are the branch or commit checked out, or `now` is the commit with the edit.
    `is_elsewhere` marks two machines' copies of a file; `worktree` names the repository's worktree
    with the edited copy. `is_doubtful` means that only the file's time shows it."""

    def __init__(
        self,
        kind: str,
        session: str,
        time: float,
        *,
        path: str = "",
        own_time: float = 0.0,
        own_kind: str = "",
        words: tuple[str, ...] = (),
        heads: tuple[str, str] = ("", ""),
    ) -> None:
        self.kind = kind
        self.session = session
        self.time = time
        self.path = path
        self.own_time = own_time
        self.own_kind = own_kind
        self.words = words
        self.before, self.now = heads
        self.is_after = True
        self.is_removed = False
        self.is_overwritten = False
        self.is_elsewhere = False
        self.is_doubtful = False
        self.worktree = ""
        self.loss: Loss | None = None
        self.files: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """Return a key that identifies the fact among reported ones."""
        if self.kind == LOST:
            return f"{LOST} {self.path}"
        if self.is_overwritten:  # whichever session did it: an edit is lost once
            return f"{TAKEN} {self.path}"
        return f"{self.kind} {self.session} {self.path}" if self.path else self.kind
