"""Collisions: what this session and another have in hand at once. Values in, facts out."""

from __future__ import annotations

from .touches import EDIT, READ, REMOVE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Protocol

    from ..system.git import HeadMove
    from .touches import Touch

    class Evidence(Protocol):
        """What is asked of the transcripts, of the files and of git, where a collision is suspected."""

        def end(self, session: str, touch: Touch) -> tuple[float | None, bool]:
            """When the result of a call came, None where it has not, and whether the call failed."""

        def began(self, session: str, touch: Touch) -> float:
            """Return when a call was made."""

        def modified(self, path: str, *, is_moved: bool = ...) -> float | None:
            """When the file was last modified (or moved there, if it was); None where there is none, 0 for what is no
            file."""

        def may_have_gone(self, path: str, since: float) -> bool:
            """Whether a file that is not there may have been removed since a time."""

        def is_as_written(self, path: str, touch: Touch) -> bool:
            """Whether a file of this session has the content that its own call gave it."""

        def is_in_worktree(self, directory: str) -> bool:
            """Check if a directory is in the worktree of this session, or, if that is in none, in none either."""

        def staged(self, paths: list[str]) -> dict[str, str]:
            """Those of the files that the index has as they are, with the names of their objects."""

        def moves(self) -> list[HeadMove]:
            """How HEAD of this worktree moved lately."""

        def object_after(self, move: HeadMove, path: str) -> str | None:
            """The name of the object that a file is in the commit that HEAD moved to; None where it cannot be told."""

        def has_changed(self, move: HeadMove, path: str) -> bool | None:
            """Whether a file is another one in the commit that HEAD moved to; None where that cannot be told."""


EDITED, TAKEN, HEAD, MOVED, BRANCH = "edited", "taken", "head", "moved", "branch"
SHORT_COMMIT = 7  # characters
ACTIVE_SECONDS = 3600  # a session that was active since then may still have an edit in hand
KEPT_TOUCHES = 4  # of one path: the last ones may have been refused
# What runtimes note of a call holds what it wrote, from the line of the call to that of its result, within this at each
# end: measured with six of them.
SLACK_SECONDS = 0.005


class Fact:
    """One collision. `kind` is EDITED, TAKEN (what this session has not committed was taken in or away by git), HEAD
    (another branch or commit is checked out), MOVED (the branch is at another commit, not by a plain commit) or BRANCH
    (another machine works on the branch `path` too).

    `session` is the key of the other session, '' where it does not show who it was; `time` when it happened; `own_time`
    when this session touched the file, by which the fact is told once. `is_after` tells that the edit came after what
    this session did, which `own_kind` says; `is_removed` that the file is gone; `words` are those of the git command;
    `before` and `now` are what was checked out. One that `is_elsewhere` is about two machines' copies of the file.
    """

    __slots__ = (
        "before", "is_after", "is_elsewhere", "is_removed", "kind", "now", "own_kind", "own_time", "path", "session",
        "time", "words",
    )  # fmt: skip

    def __init__(
        self, kind: str, session: str, time: float, *, path: str = "", own_kind: str = "", own_time: float = 0.0,
        is_after: bool = True, is_removed: bool = False, words: tuple[str, ...] = (), before: str = "", now: str = "",
        is_elsewhere: bool = False,
    ) -> None:  # fmt: skip
        self.kind = kind
        self.session = session
        self.time = time
        self.path = path
        self.own_kind = own_kind
        self.own_time = own_time
        self.is_after = is_after
        self.is_removed = is_removed
        self.words = words
        self.before = before
        self.now = now
        self.is_elsewhere = is_elsewhere

    @property
    def key(self) -> str:
        """By which it is known whether the fact was told."""
        return f"{self.kind} {self.session} {self.path}" if self.path else self.kind


class InHand:
    """What this session has in hand: of each path its last touches, and its `commands` since it was last told
    something, which was at the time `heard`."""

    def __init__(self, heard: float = 0.0) -> None:
        self.heard = heard
        self.touched: dict[str, list[Touch]] = {}
        self.commands: list[Touch] = []

    def take(self, touches: Iterable[Touch]) -> None:
        """Adds what was done since."""
        for touch in touches:
            if touch.is_doubtful and touch.kind in (EDIT, REMOVE):
                continue
            if touch.kind in (EDIT, READ):
                before = self.touched.pop(touch.path, [])
                if len(before) >= KEPT_TOUCHES:  # an edit rather than what was read before it
                    del before[before[0].kind == EDIT and before[1].kind == READ]
                self.touched[touch.path] = [*before, touch]
            elif touch.kind == REMOVE:
                for path in paths_reached(self, touch):
                    del self.touched[path]
            else:
                self.commands.append(touch)

    def last(self, path: str, evidence: Evidence, kinds: tuple[str, ...] = (EDIT, READ)) -> Touch | None:
        """The last touch of a path that was not refused; None where there is none."""
        for touch in reversed(self.touched.get(path, ())):
            if touch.kind in kinds and is_done("", touch, evidence):
                return touch
        return None


def edit_facts(
    own: InHand, session: str, touches: list[Touch], evidence: Evidence, told: dict[str, float], is_active: bool
) -> tuple[list[Fact], list[Touch]]:
    """Return the files of this session that `session` edited, removed or moved, after this one read or edited them, or,
    if it `is_active`, before and has not committed; and its touches whose call has no result yet, to be asked again."""
    facts: list[Fact] = []
    open_touches: list[Touch] = []
    by_path: dict[str, list[Touch]] = {}
    for touch in touches:
        if touch.kind in (EDIT, REMOVE):
            for path in paths_reached(own, touch):
                by_path.setdefault(path, []).append(touch)
    for path, done in by_path.items():
        mine = own.last(path, evidence)
        if mine is None or told.get(f"{EDITED} {session} {path}", -1.0) >= mine.time:
            continue
        for touch in reversed(done):
            fact = _edit_fact(own, mine, session, touch, evidence, is_active)
            if fact is not None:
                facts.append(fact)
                break
            if not touch.is_elsewhere and evidence.end(session, touch)[0] is None:
                open_touches.append(touch)
    return facts, open_touches


def _edit_fact(
    own: InHand, mine: Touch, session: str, touch: Touch, evidence: Evidence, is_active: bool
) -> Fact | None:  # fmt: skip
    path = mine.path
    if touch.is_elsewhere:  # the file here says nothing of it: each has a copy of its own
        has_edited = own.last(path, evidence, (EDIT,)) is not None
        fact = Fact(EDITED, session, touch.time, path=path, own_kind=EDIT, own_time=mine.time, is_elsewhere=True)
        return fact if has_edited else None
    if not is_done(session, touch, evidence):
        return None
    if touch.kind == REMOVE and evidence.modified(path) is not None:
        return None  # it was made again, or never gone
    end, _ = evidence.end(session, touch)
    began = evidence.began(session, touch) - SLACK_SECONDS
    own_end = ended("", mine, evidence)
    modified = evidence.modified(path, is_moved=bool(touch.words))
    if modified is not None and modified < began:
        return None  # nothing has changed it since: the command did not get that far
    if touch.is_doubtful and (modified is None or end is None or modified > end + SLACK_SECONDS):
        return None
    when = touch.time if end is None else end
    if modified is not None and (began <= modified <= when or end is None):
        when = modified
    if when > own_end + SLACK_SECONDS or (modified is None and when > mine.time):
        if modified is not None and modified <= own_end + SLACK_SECONDS:
            return None  # as this session left it
        if modified is None and touch.kind == EDIT and end is None:
            return None
        if modified is not None and mine.kind == EDIT and evidence.is_as_written(path, mine):
            return None
        is_removed = touch.kind == REMOVE and modified is None
        return Fact(
            EDITED, session, when, path=path, own_kind=mine.kind, own_time=mine.time, is_removed=is_removed
        )  # fmt: skip
    edit = own.last(path, evidence, (EDIT,)) if is_active and touch.kind == EDIT else None
    if edit is None or not own.heard <= edit.time or touch.time >= edit.time:
        return None
    if not evidence.is_in_worktree(path.rpartition("/")[0]) or is_committed(path, when, evidence):
        return None
    return Fact(EDITED, session, when, path=path, own_kind=EDIT, own_time=mine.time, is_after=False)


def is_committed(path: str, since: float, evidence: Evidence) -> bool:
    """Check if a commit may have taken in what was edited at a time."""
    commits = [move for move in evidence.moves() if move.message.startswith("commit") and move.time >= int(since)]
    taking = [move for move in commits if evidence.has_changed(move, path) is not False]
    modified = evidence.modified(path)
    if taking and modified is not None and modified <= since + SLACK_SECONDS:
        # The log has whole seconds, but the file is as it was left: the index tells.
        staged = evidence.staged([path]).get(path)
        return staged is not None and staged in [evidence.object_after(move, path) for move in taking]
    return bool(taking)


def paths_reached(own: InHand, touch: Touch) -> list[str]:
    """The paths in hand that a touch reaches: the one, or, where a directory goes, all below it."""
    if touch.path in own.touched:
        return [touch.path]
    if touch.kind == REMOVE:
        return [path for path in own.touched if path.startswith(touch.path + "/")]
    return []


def is_done(session: str, touch: Touch, evidence: Evidence) -> bool:
    """Whether a call may have done what it was to do: a command that failed may have done so before."""
    return touch.is_command or not evidence.end(session, touch)[1]


def ended(session: str, touch: Touch, evidence: Evidence) -> float:
    """When a call ended, as far as is known."""
    end, _ = evidence.end(session, touch)
    return touch.time if end is None else end
