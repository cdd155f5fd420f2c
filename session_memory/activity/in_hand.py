"""What a session has in hand: its own transcript is read on, and what is checked out where it works is noted, before
both are compared with what the others did."""

from __future__ import annotations

from ..system.files import is_file
from ..system.git import find_worktree, head_of
from .changes import head_stamp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..transcripts.cursor import Cursor
    from .changes import OwnSession
    from .collision_file import CollisionFile
    from .report import Report
    from .unseen import Unseen


class Collisions:
    """What there is to tell: `lines`, and in `not_told` the keys of the sessions of which something did not fit.
    `cursor` is that of the session's own transcript, with what is checked out, and `file` what has to be kept, None for
    nothing."""

    def __init__(self, cursor: Cursor) -> None:
        self.cursor = cursor
        self.file: CollisionFile | None = None
        self.lines: list[str] = []
        self.not_told: set[str] = set()


def find_collisions(
    own: OwnSession,
    cursor: Cursor | None,
    others: list[tuple[Report, Unseen]],
    now: float,
    oldest: float,
    room: int,
) -> Collisions:
    """The collisions with the sessions `others`, in lines of at most `room` characters in all, each with a line feed.

    `cursor` is the one that was made of this session before. `oldest` says how far back its transcript is read at
    first. Raises OSError where that cannot be read.
    """
    before = cursor or {}
    worktree = find_worktree(own.directory, own.user_dir)
    git_dir = worktree.git_dir if worktree else ""
    stamp = head_stamp(git_dir) if git_dir else []  # before HEAD is read: what moves it in between is seen next
    head = head_of(git_dir) if git_dir else ""
    known = before.get("branch", "") if before.get("git") == git_dir else ""
    checked_out = {"directory": own.directory, "git": git_dir, "stamp": stamp, "branch": head, "at": now}
    found = Collisions({"offset": 0, **before, **checked_out})
    if not (others or known) or not is_file(own.path):  # at first it has not said anything yet
        return found
    from .collision_file import CollisionFile
    from .collision_search import search
    from .unseen import read_own

    read = read_own(own.path, before if "tail" in before else None, own.runtime, now, oldest)
    found.cursor.update(read.cursor)
    file = CollisionFile(own.cursor_file, before.get("at", 0.0), own.collision_file)
    heads = (known, head) if known and before.get("stamp") != stamp else None
    found.lines, found.not_told = search(own, read.entries, file, others, worktree, heads, now, oldest, room)
    found.file = file if file.is_changed else None
    found.cursor["open"] = bool(file.open_touches)  # calls that had no result yet
    return found
