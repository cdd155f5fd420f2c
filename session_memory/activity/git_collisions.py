"""Collisions over a worktree: HEAD that another moved, and what is not committed that git took in or away. Values in,
facts out."""

from __future__ import annotations

from .collisions import HEAD, MOVED, SHORT_COMMIT, SLACK_SECONDS, TAKEN, Fact, ended
from .git_commands import is_given_back, may_remove, stages, takes_away, takes_in
from .touches import COMMAND, EDIT, GIT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..system.git import HeadMove
    from .collisions import Evidence, InHand
    from .touches import Touch

GIT_SLACK_SECONDS = 1.5  # the log of HEAD has them in whole seconds
LONGEST_SECONDS = 60  # that a command is taken to run which has no result yet
MOST_FILES = 50  # of this session are looked into for one git command
# What git says in the log of HEAD, with the commands that make it say so.
_MOVED_BY = {
    "checkout": ("switch", "checkout", "rebase", "bisect", "stash"),
    "commit": ("commit",),
    "reset": ("reset", "stash", "checkout"),
    "pull": ("pull",),
    "merge": ("merge", "pull"),
    "rebase": ("rebase", "pull"),
    "cherry-pick": ("cherry-pick",),
    "revert": ("revert",),
    "am": ("am",),
}
_SHIFTS = ("reset", "rebase", "pull", "merge")  # a plain commit is what is expected on a branch


def taken_facts(
    own: InHand, session: str, touches: list[Touch], evidence: Evidence, told: dict[str, float]
) -> list[Fact]:
    """The files that this session has not committed, and that a git command of `session` took in or away."""
    facts: dict[str, Fact] = {}  # by path: of several commands the last one is told
    for touch in touches:
        if touch.kind != GIT or not touch.words:
            continue
        is_in, is_away = takes_in(touch.words), takes_away(touch.words)
        if not (is_in or is_away) or is_given_back(touch, touches) or not evidence.is_in_worktree(touch.path):
            continue
        end, has_failed = evidence.end(session, touch)
        end = touch.time + 3600 if end is None else end
        candidates = _uncommitted(own, touch, end, evidence)
        if is_in:
            taken = _taken_in(own, candidates, touch, end, evidence)
        else:
            gone = not has_failed and may_remove(touch.words)
            began = evidence.began(session, touch)
            taken = [
                path for path, since in candidates if _is_taken_away(path, since, touch, began, end, gone, evidence)
            ]
        for path in taken:
            edit = own.last(path, evidence, (EDIT,))
            own_time = edit.time if edit else 0.0
            fact = Fact(TAKEN, session, touch.time, path=path, own_kind=EDIT, own_time=own_time, words=touch.words)
            if told.get(fact.key, -1.0) < own_time:
                facts[path] = fact
    return list(facts.values())


def first_to_remove(facts: list[Fact], evidence: Evidence) -> list[Fact]:
    """The facts without those by which a file was removed that was gone by then."""
    first: dict[str, float] = {}
    for fact in facts:
        if fact.kind == TAKEN:
            first[fact.path] = min(fact.time, first.get(fact.path, fact.time))
    return [
        fact
        for fact in facts
        if fact.kind != TAKEN or fact.time == first[fact.path] or evidence.modified(fact.path) is not None
    ]


def head_fact(own: InHand, known: str, now: str, others: dict[str, list[Touch]], evidence: Evidence) -> Fact | None:
    """That another branch or commit is checked out than `known`, the one that this session knew when it was last told
    something, and that this session did not do it; or that the branch was set to another commit."""
    before, switched, shifted = known, None, None
    moves = [move for move in evidence.moves() if move.time >= int(own.heard)]
    for move in moves:
        who, words = _who_moved(own, move, others, evidence)
        if move.branches:
            if who == "":
                before, switched = move.branches[1], None  # this session did, and knows
            elif move.branches[0] != move.branches[1]:
                switched = move, who or "", words
        elif move.before != move.after:
            if who == "":
                shifted = None
            elif move.verb in _SHIFTS:
                shifted = move, who or "", words
    if now == before or not switched:
        if not shifted or (now != before and before):
            # Without a log of HEAD nothing but the commands of this session tells that it was not this one.
            is_unknown = now != before and not moves and not own.commands
            return Fact(HEAD, "", own.heard, own_time=own.heard, before=before, now=now) if is_unknown else None
        move, who, words = shifted
        before = move.before[:SHORT_COMMIT]
        return Fact(MOVED, who, move.time, own_time=move.time, words=words, before=before, now=now)
    move, who, words = switched
    return Fact(HEAD, who, move.time, own_time=move.time, words=words, before=before, now=now)


def _uncommitted(own: InHand, touch: Touch, end: float, evidence: Evidence) -> list[tuple[str, float]]:
    """The files that this session had edited before a git command and not committed, each with the end of its edit."""
    commits = [move for move in evidence.moves() if move.message.startswith("commit")]
    found = []
    edited = [path for path, touches in own.touched.items() if any([one.kind == EDIT for one in touches])]
    for path in edited[-MOST_FILES:]:
        edit = own.last(path, evidence, (EDIT,))
        if edit is None or edit.time >= end:
            continue
        modified = evidence.modified(path)
        if modified == 0 or (modified is None and edit.is_command and evidence.end("", edit)[1]):
            continue  # no file, or one that was never there
        since = ended("", edit, evidence)
        between = [move for move in commits if int(since) <= move.time < int(touch.time)]
        if all([evidence.has_changed(move, path) is False for move in between]):
            found.append((path, since))
    return found


def _taken_in(
    own: InHand, candidates: list[tuple[str, float]], touch: Touch, end: float, evidence: Evidence
) -> list[str]:
    """Those of the files that a command staged or committed, as far as this session had not done so itself."""
    is_commit = touch.words[0] == "commit"
    commits = _commits_by(own, touch, end, evidence) if is_commit else []
    candidates = candidates if commits or not is_commit else []
    staged = evidence.staged([path for path, _ in candidates])
    taken = []
    for path, since in candidates:
        modified = evidence.modified(path)
        changing = [one for one in commits if evidence.has_changed(one, path) and evidence.object_after(one, path)]
        if changing:
            is_other_since = modified is None or modified > end
            is_taken = is_other_since or any([evidence.object_after(one, path) == staged.get(path) for one in changing])
        else:
            is_unknown = not is_commit or None in [evidence.has_changed(move, path) for move in commits]
            is_as_left = path in staged and modified is not None and modified <= since + SLACK_SECONDS
            is_taken = is_as_left and is_unknown and stages(touch, path) is not False
            is_taken = is_taken and not _has_staged(own, path, since)
        if is_taken:
            taken.append(path)
    return taken


def _commits_by(own: InHand, touch: Touch, end: float, evidence: Evidence) -> list[HeadMove]:
    """The commits that a command made, without those that may be of this session."""
    own_commits = [one for one in own.commands if one.kind == GIT and one.words[:1] == ("commit",)]
    return [
        move
        for move in evidence.moves()
        if move.message.startswith("commit")
        and int(touch.time) <= move.time <= end + GIT_SLACK_SECONDS
        and not any([_may_have_moved("", one, move, evidence) for one in own_commits])
    ]


def _has_staged(own: InHand, path: str, since: float) -> bool:
    """Whether this session put a file into the index itself since a time."""
    later = [one for one in own.commands if one.kind == GIT and one.time >= since - SLACK_SECONDS]
    return any([stages(one, path) for one in later])


def _is_taken_away(
    path: str, since: float, touch: Touch, began: float, end: float, may_be_gone: bool, evidence: Evidence
) -> bool:  # fmt: skip
    """Check if a command wrote over a file, or, where that `may_be_gone` by it, removed it."""
    modified = evidence.modified(path)
    if modified is None:
        return may_be_gone and evidence.may_have_gone(path, began - SLACK_SECONDS)
    if touch.words[0] == "clean":  # it only removes
        return False
    return modified > since + SLACK_SECONDS and began - SLACK_SECONDS <= modified <= end + SLACK_SECONDS


def _who_moved(
    own: InHand, move: HeadMove, others: dict[str, list[Touch]], evidence: Evidence
) -> tuple[str | None, tuple[str, ...]]:
    """The session that moved HEAD, with the words of its command: '' where this one did, or may have, None where it
    does not show."""
    verbs = _MOVED_BY.get(move.verb, (move.verb,))
    fitting: list[tuple[int, float, str, Touch]] = []
    for session, touches in [("", own.commands), *others.items()]:
        for touch in touches:
            if touch.kind != GIT or touch.words[:1] == () or touch.words[0] not in verbs:
                continue
            if _may_have_moved(session, touch, move, evidence) and evidence.is_in_worktree(touch.path):
                names_it = move.branches is not None and move.branches[1] in touch.words
                fitting.append((-names_it, abs(touch.time - move.time), session, touch))
    if fitting:
        _, _, session, touch = min(fitting, key=lambda one: one[:3])
        return session, touch.words
    for touch in own.commands:
        if touch.kind == COMMAND and _may_have_moved("", touch, move, evidence):
            return "", ()
    return None, ()


def _may_have_moved(session: str, touch: Touch, move: HeadMove, evidence: Evidence) -> bool:
    """Whether a command was running, as far as is known, when HEAD moved."""
    end, _ = evidence.end(session, touch)
    until = touch.time + LONGEST_SECONDS if end is None else end
    return touch.time - GIT_SLACK_SECONDS <= move.time <= until + GIT_SLACK_SECONDS
