"""Edits of one file by two sessions.

They collide or not, depending on when each edit was made and when the file was written.
"""

from __future__ import annotations

from ..actions import COMMAND, EDIT, READ, REMOVE, FileAction
from ..call_log import EDITED, edited_key
from .facts import SLACK_SECONDS, Fact

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ._evidence import Evidence
    from ._working_set import WorkingSet


class OthersActions:
    """The `actions` of a session by its key; `is_active` means that it may still be working."""

    __slots__ = ("actions", "is_active", "session")

    def __init__(self, session: str, actions: list[FileAction], *, is_active: bool) -> None:
        self.session = session
        self.actions = actions
        self.is_active = is_active


def edit_facts(
    working_set: WorkingSet,
    others: OthersActions,
    evidence: Evidence,
    settled: Mapping[str, float],
    reported: Mapping[str, float],
) -> tuple[list[Fact], list[FileAction]]:
    """Return another session's collisions with this one over files, and its open actions.

    A collision is an edit, removal or move of a file after this session read or edited it. If the
    other session is active, earlier ones count too, unless the edit was committed or read since.
    Open actions have no result yet and are checked again. `settled` has, by key, the time up to
    which such actions need no report; `reported` has the reported facts."""
    facts: list[Fact] = []
    open_actions: list[FileAction] = []
    for path, actions in _by_path(working_set, others, settled).items():
        mine = working_set.last(path, evidence)
        if mine is None or reported.get(edited_key(others.session, path), -1.0) >= mine.time:
            continue
        for action in reversed(actions):
            if action.is_doubtful and _is_reported(path, mine.time, reported):
                continue
            fact = _Pair(working_set, mine, others, action, evidence).fact()
            if fact is not None:
                facts.append(fact)
                break
            if not action.is_elsewhere and evidence.end(others.session, action)[0] is None:
                open_actions.append(action)
    return facts, open_actions


def _by_path(
    working_set: WorkingSet, others: OthersActions, settled: Mapping[str, float]
) -> dict[str, list[FileAction]]:
    """Return the other session's unsettled edits and removals, by this session's files."""
    by_path: dict[str, list[FileAction]] = {}
    for action in others.actions:
        if action.kind in (EDIT, REMOVE):
            for path in working_set.reached_by(action):
                if action.time > settled.get(edited_key(others.session, path), 0.0):
                    by_path.setdefault(path, []).append(action)
    return by_path


class _Pair:
    """Two sessions' actions on one file.

    `mine` is this session's last action; `action` is the other session's write or removal."""

    __slots__ = ("action", "evidence", "is_active", "mine", "own", "path", "session")

    def __init__(
        self,
        working_set: WorkingSet,
        mine: FileAction,
        others: OthersActions,
        action: FileAction,
        evidence: Evidence,
    ) -> None:
        self.own = working_set
        self.mine = mine
        self.session = others.session
        self.is_active = others.is_active
        self.action = action
        self.evidence = evidence
        self.path = mine.path

    def fact(self) -> Fact | None:
        """Return the collision of the two; None if there is none."""
        action, evidence = self.action, self.evidence
        if action.is_elsewhere:
            return self._elsewhere()
        if not evidence.is_done(self.session, action):
            return None
        if action.copy:
            return self._of_copy()
        if action.kind == REMOVE and evidence.modified(self.path) is not None:
            return None  # it was made again, or never gone
        times = _Times(self)
        if not times.has_written(self) or not times.is_proved(self):
            return None
        when = times.when(self)
        if times.is_after(self.mine, when):
            return None if self._is_harmless(times) else self._after(times, when)
        if self.is_active and action.kind == EDIT:
            return self._before(when)
        return None

    def _fact(self, when: float, own_kind: str = EDIT) -> Fact:
        return Fact(
            EDITED, self.session, when, path=self.path, own_kind=own_kind, own_time=self.mine.time
        )

    def _elsewhere(self) -> Fact | None:
        """Return the fact that both sessions edited a file, each on its own machine.

        The local file proves nothing about this."""
        if self.own.last(self.path, self.evidence, (EDIT,)) is None:
            return None
        fact = self._fact(self.action.time)
        fact.is_elsewhere = True
        return fact

    def _of_copy(self) -> Fact | None:
        """Return the fact that the other session edited this file's copy in another worktree.

        The copy must still be as the other session left it."""
        action, evidence = self.action, self.evidence
        end, _ = evidence.end(self.session, action)
        modified = evidence.modified(action.copy)
        if end is None or not modified or self.own.last(self.path, evidence, (EDIT,)) is None:
            return None
        began = evidence.began(self.session, action)
        until = evidence.modified_until(action.copy)
        if until < began - SLACK_SECONDS or modified > end + SLACK_SECONDS:
            return None
        fact = self._fact(modified)
        fact.worktree = action.worktree
        return fact

    def _is_harmless(self, times: _Times) -> bool:
        """Check if the file is as this session left it, although the other action came later."""
        action, mine, evidence = self.action, self.mine, self.evidence
        if times.modified is None:
            return action.kind == EDIT and times.end is None
        if times.until <= times.own_end + SLACK_SECONDS:
            return True
        if mine.kind == EDIT and evidence.is_as_written(self.path, mine):
            return True
        is_last = times.end is None or times.modified <= times.end + SLACK_SECONDS
        return is_last and action.is_command and _is_untouched(mine, action, times.began, evidence)

    def _after(self, times: _Times, when: float) -> Fact:
        fact = self._fact(when, self.mine.kind)
        fact.is_removed = self.action.kind == REMOVE and times.modified is None
        fact.is_doubtful = self.action.is_doubtful
        return fact

    def _before(self, when: float) -> Fact | None:
        """Return the fact that the other session edited the file first, unknown to this session.

        Return None if this session has read that edit, or if it was committed."""
        working_set, path, evidence = self.own, self.path, self.evidence
        edit = working_set.last(path, evidence, (EDIT,))
        if edit is None or not working_set.updated <= edit.time or self.action.time >= edit.time:
            return None
        if working_set.has_read(path, when, evidence):
            return None
        if not evidence.is_in_worktree(path.rpartition("/")[0]):
            return None
        if _is_committed(path, when, evidence, evidence.began(self.session, self.action)):
            return None
        fact = self._fact(when)
        fact.is_after = False
        return fact


class _Times:
    """The times of two sessions' actions.

    The other session's action `began` and ended (`end`, None if it has no result). This session's
    action ended at `own_end`. The file was last modified between `modified` (None if it is gone)
    and `until`."""

    __slots__ = ("began", "end", "modified", "own_end", "until")

    def __init__(self, pair: _Pair) -> None:
        action, evidence = pair.action, pair.evidence
        self.end, _ = evidence.end(pair.session, action)
        self.began = evidence.began(pair.session, action) - SLACK_SECONDS
        self.own_end = evidence.ended("", pair.mine)
        self.modified = evidence.modified(pair.path, is_moved=bool(action.words))
        self.until = evidence.modified_until(pair.path, is_moved=bool(action.words))

    def has_written(self, pair: _Pair) -> bool:
        """Check if the action may have written the file.

        If a tool reports that it did although the file system's clock is behind, correct the times.
        """
        if self.modified is None or self.until >= self.began:
            return True
        if pair.action.is_command or self.end is None:
            return False  # the file has not changed since, so the command ended before its write
        if not pair.evidence.is_older(pair.path, self.began):
            return False
        self.modified = self.until = self.end
        return True

    def is_proved(self, pair: _Pair) -> bool:
        """Check that a doubtful action ran.

        The file's time must show it, and no command of this session may have written the file at
        that time."""
        if not pair.action.is_doubtful:
            return True
        modified, end = self.modified, self.end
        if modified is None or end is None or not self.began <= modified <= end + SLACK_SECONDS:
            return False
        times = modified, self.until
        return not modified or not _may_have_written(pair.own, pair.path, times, pair.evidence)

    def when(self, pair: _Pair) -> float:
        """Return when the action wrote the file, as precisely as is known."""
        when = pair.action.time if self.end is None else self.end
        if self.modified is None:
            return when
        if self.end is None:
            is_others = not self._is_own(pair, self.modified)
        else:
            is_others = self.began <= self.until and self.modified <= when
        if is_others:
            return max(self.modified, min(self.until, self.began + SLACK_SECONDS))
        return when

    def _is_own(self, pair: _Pair, modified: float) -> bool:
        """Check if this session's own call may have written the file."""
        if not pair.mine.call_id:  # a planned edit has no call yet
            return False
        own_began = pair.evidence.began("", pair.mine) - SLACK_SECONDS
        return own_began <= self.until and modified <= self.own_end + SLACK_SECONDS

    def is_after(self, mine: FileAction, when: float) -> bool:
        """Check if the action came after this session's own one."""
        if when > self.own_end + SLACK_SECONDS:
            return True
        return self.modified is None and when > mine.time


def _is_reported(path: str, since: float, reported: Mapping[str, float]) -> bool:
    """Check if an edit of a file by any session was reported since a time."""
    return any(
        [
            time >= since and key.startswith(EDITED) and key.endswith(f" {path}")
            for key, time in reported.items()
        ]
    )


def _may_have_written(
    working_set: WorkingSet, path: str, times: tuple[float, float], evidence: Evidence
) -> bool:
    """Check if a command of this session that names a file may have been running during its write.

    `times` are the earliest and the latest possible time of the write."""
    name = path.rpartition("/")[2]
    commands = [
        action
        for action in working_set.commands
        if action.kind == COMMAND and name in action.words[0]
    ]
    ends = [evidence.ended("", action) for action in commands if action.time <= times[1]]
    return any([end + SLACK_SECONDS >= times[0] for end in ends])


def _is_untouched(mine: FileAction, action: FileAction, began: float, evidence: Evidence) -> bool:
    """Check if the last command on a file, which began at `began`, left its bytes unchanged.

    For example, a `sed -i` matched nothing, so its replacement is not in the file. Or the file is
    as committed, and this session has read that version or its own edit was committed before."""
    path = mine.path
    if evidence.lacks_replacement(path, action.command):
        return True
    later = [
        move
        for move in evidence.moves_since(mine.time, evidence.began("", mine))
        if evidence.has_changed(move, path) is not False
    ]
    # A commit after the command may have taken its change along.
    is_known = (
        not later if mine.kind == READ else later and all([move.time <= began for move in later])
    )
    return bool(is_known) and evidence.is_as_committed(path) is True


def _is_committed(path: str, since: float, evidence: Evidence, began: float) -> bool:
    """Check if a commit may contain an edit of a call that `began` and had written by `since`."""
    taking = [
        move
        for move in evidence.moves_since(began)
        if move.message.startswith("commit") and evidence.has_changed(move, path) is not False
    ]
    modified = evidence.modified(path)
    if taking and modified is not None and modified <= since + SLACK_SECONDS:
        # The log has whole seconds. The file has not changed since, so compare it with the index.
        staged = evidence.staged([path]).get(path)
        return staged is not None and staged in [
            evidence.object_after(move, path) for move in taking
        ]
    return bool(taking)
