"""Facts about one collision each: two sessions on the same file, branch or worktree."""

from __future__ import annotations

from ..actions import EDIT, REMOVE
from ..call_log import EDITED, edited_key

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..actions import FileAction
    from .evidence import Evidence
    from .working_set import WorkingSet

TAKEN, HEAD, MOVED, BRANCH = "taken", "head", "moved", "branch"
SHORT_COMMIT = 7  # characters
ACTIVE_SECONDS = 3600  # a session that was active since then may still be working on its edit
# The mtime of a file lies between the times of the call's record and its result, within this at each end: measured with
# six runtimes.
SLACK_SECONDS = 0.005


class Fact:
    """One collision. `kind` is EDITED, TAKEN (git committed or overwrote this session's uncommitted work), HEAD
    (another branch or commit is checked out), MOVED (the branch is at another commit, not by a plain commit) or BRANCH
    (another machine works on the branch `path` too).

    `session` is the key of the other session, '' if unknown; `time` when it happened; `own_time` the time of this
    session's own action, by which the fact is reported once. `is_after` says that the edit came after the own action,
    whose kind is `own_kind`; `is_removed` that the file is gone; `words` are those of the git command; `before` and
    `now` the branch or commit checked out. `is_elsewhere` marks two machines' copies of a file.
    """

    def __init__(
        self, kind: str, session: str, time: float, *, path: str = "", own_time: float = 0.0, own_kind: str = "",
        words: tuple[str, ...] = (), heads: tuple[str, str] = ("", ""),
    ) -> None:  # fmt: skip
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

    @property
    def key(self) -> str:
        """Identify the fact among those that were reported."""
        return f"{self.kind} {self.session} {self.path}" if self.path else self.kind


def edit_facts(
    own: WorkingSet, session: str, actions: list[FileAction], evidence: Evidence, settled: Mapping[str, float],
    reported: Mapping[str, float], *, is_active: bool,
) -> tuple[list[Fact], list[FileAction]]:  # fmt: skip
    """Return the edits, removals and moves of files of this session by `session`, after this one read or edited them;
    if it `is_active`, also before, unless committed. Return too its actions without a result yet, to ask again.

    `settled` says by key up to when such actions need no report, `reported` which facts were reported.
    """
    facts: list[Fact] = []
    open_actions: list[FileAction] = []
    by_path: dict[str, list[FileAction]] = {}
    for action in actions:
        if action.kind in (EDIT, REMOVE):
            for path in own.reached_by(action):
                if action.time > settled.get(edited_key(session, path), 0.0):
                    by_path.setdefault(path, []).append(action)
    for path, found in by_path.items():
        mine = own.last(path, evidence)
        if mine is None or reported.get(edited_key(session, path), -1.0) >= mine.time:
            continue
        for action in reversed(found):
            fact = _edit_fact(own, mine, session, action, evidence, is_active)
            if fact is not None:
                facts.append(fact)
                break
            if not action.is_elsewhere and evidence.end(session, action)[0] is None:
                open_actions.append(action)
    return facts, open_actions


def _edit_fact(
    own: WorkingSet, mine: FileAction, session: str, action: FileAction, evidence: Evidence, is_active: bool
) -> Fact | None:
    path = mine.path
    if action.is_elsewhere:  # the file here proves nothing: each machine has its own copy
        fact = Fact(EDITED, session, action.time, path=path, own_kind=EDIT, own_time=mine.time)
        fact.is_elsewhere = True
        return fact if own.last(path, evidence, (EDIT,)) is not None else None
    if not evidence.is_done(session, action):
        return None
    if action.kind == REMOVE and evidence.modified(path) is not None:
        return None  # it was made again, or never gone
    end, _ = evidence.end(session, action)
    began = evidence.began(session, action) - SLACK_SECONDS
    own_end = evidence.ended("", mine)
    modified = evidence.modified(path, is_moved=bool(action.words))
    if modified is not None and modified < began:
        return None  # nothing has changed it since: the command did not get that far
    if action.is_doubtful and (modified is None or end is None or modified > end + SLACK_SECONDS):
        return None
    when = action.time if end is None else end
    if modified is not None and (began <= modified <= when or end is None):
        when = modified
    if when > own_end + SLACK_SECONDS or (modified is None and when > mine.time):
        if modified is not None and modified <= own_end + SLACK_SECONDS:
            return None  # as this session left it
        if modified is None and action.kind == EDIT and end is None:
            return None
        if modified is not None and mine.kind == EDIT and evidence.is_as_written(path, mine):
            return None
        fact = Fact(EDITED, session, when, path=path, own_kind=mine.kind, own_time=mine.time)
        fact.is_removed = action.kind == REMOVE and modified is None
        return fact
    edit = own.last(path, evidence, (EDIT,)) if is_active and action.kind == EDIT else None
    if edit is None or not own.updated <= edit.time or action.time >= edit.time:
        return None
    if not evidence.is_in_worktree(path.rpartition("/")[0]) or _is_committed(path, when, evidence):
        return None
    fact = Fact(EDITED, session, when, path=path, own_kind=EDIT, own_time=mine.time)
    fact.is_after = False
    return fact


def _is_committed(path: str, since: float, evidence: Evidence) -> bool:
    """Check if a commit may hold an edit made at the time `since`."""
    commits = [move for move in evidence.moves() if move.message.startswith("commit") and move.time >= int(since)]
    taking = [move for move in commits if evidence.has_changed(move, path) is not False]
    modified = evidence.modified(path)
    if taking and modified is not None and modified <= since + SLACK_SECONDS:
        # The log has whole seconds, but the file is as it was left: compare the index.
        staged = evidence.staged([path]).get(path)
        return staged is not None and staged in [evidence.object_after(move, path) for move in taking]
    return bool(taking)
