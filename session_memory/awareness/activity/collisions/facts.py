"""Facts about one collision each: two sessions on the same file, branch or worktree."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .ref_notes import Loss

TAKEN, HEAD, MOVED, BRANCH, LOST = "taken", "head", "moved", "branch", "lost"
SHORT_COMMIT = 7  # characters
ACTIVE_SECONDS = 3600  # a session that was active since then may still be working on its edit
# edits of a session that has done nothing since then leave half of the room to others
IDLE_SECONDS = 900
# The mtime of a file lies between the times of the call's record and its result, within this at
# each end: measured with six runtimes.
SLACK_SECONDS = 0.005
PATH_CHARACTERS = 60


class Fact:
    """One collision. `kind` is EDITED, TAKEN (git committed or overwrote this session's uncommitted
    work), HEAD (another branch or commit is checked out), MOVED (the branch is at another commit,
    not by a plain commit), BRANCH (another machine works on the branch `path` too) or LOST (a stash,
    branch or worktree is gone: `loss`, with the key `path`, and with it uncommitted `files`; not
    `is_after` if this session took it from the other).

    `session` is the key of the other session, '' if unknown; `time` when it happened; `own_time`
    the time of this session's own action, by which the fact is reported once. `is_after` says that
    the edit came after the own action, whose kind is `own_kind`; `is_removed` that the file is
    gone; `words` are those of the git command; `before` and `now` the branch or commit checked out,
    or `now` the commit with the edit. `is_elsewhere` marks two machines' copies of a file,
    `worktree` names that of the repository with the copy that was edited. It `is_doubtful` if only
    the file's time shows it."""

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
        self.is_elsewhere = False
        self.is_doubtful = False
        self.worktree = ""
        self.loss: Loss | None = None
        self.files: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """Identify the fact among those that were reported."""
        if self.kind == LOST:
            return f"{LOST} {self.path}"
        return f"{self.kind} {self.session} {self.path}" if self.path else self.kind
