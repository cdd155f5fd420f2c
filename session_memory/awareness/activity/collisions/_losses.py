"""Losses: stashes, branches and worktrees of this session that another session took away.

Each comes with the command that restores it. A ref's owner, and the session that took it away, are
known from commands and their results, never guessed. If this session may have done it itself,
nothing is reported.
"""

from __future__ import annotations

from ....common.system.files import Opened, status_at
from ....common.system.git import BRANCH_REFS, find_worktree, head_moves, head_of
from ....common.system.git_refs import BRANCH, STASH, STASH_REF, WORKTREE
from ..actions import EDIT, GIT, REMOVE, FileAction
from ._git import overwrites
from ._loss_text import STASH_VERBS
from .facts import ACTIVE_SECONDS, HEAD, LOST, MOVED, Fact

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .ref_notes import Loss, RefNotes
    from .search import Findings, Known

# commands that may take commits from a branch
_BRANCH_VERBS = ("branch", "checkout", "fetch", "pull", "push", "reset", "switch", "update-ref")
_COMMITS = ("am", "cherry-pick", "commit", "merge", "pull", "rebase", "revert")
_NEW_BRANCH = ("-b", "-B", "-c", "-C", "--create", "--force-create", "--orphan")
_SLACK_SECONDS = 0.05
_WORK = "work on"  # prefix of keys of `reported`: the time since which this session works on a ref


class LossSearch:
    """A search for losses in the `notes` of the repository.

    `findings` has the actions of this session and the others. `git_dir` is git's directory of this
    session's worktree, which may be gone."""

    def __init__(self, known: Known, findings: Findings, notes: RefNotes, git_dir: str) -> None:
        self._known = known
        self._findings = findings
        self._notes = notes
        self._git_dir = git_dir
        self._places: dict[str, bool] = {}
        self._actions = [
            (session, action)
            for session, actions in [
                ("", known.state.working_set.commands),
                *findings.actions.items(),
            ]
            for action in actions
            if action.kind in (GIT, REMOVE) and self._is_here(action)
        ]

    def claims(self) -> dict[str, str]:
        """Return, by ref, the sessions that made a stash or branch, or committed to it."""
        claims = {}
        for session, action in self._actions:
            if action.kind == GIT and action.words and self._is_done(session, action):
                refs = self._made_by(session, action)
                claims.update(dict.fromkeys(refs, session or self._known.own.key))
                if not session:
                    self._note_work(refs, self._findings.evidence.began("", action))
        owners = self._notes.owners
        return {key: owner for key, owner in claims.items() if owners.get(key, [""])[-1] != owner}

    def facts(self) -> list[Fact]:
        """Return the losses that are new to this session; its own actions count as reported."""
        facts = []
        for loss in self._notes.losses:
            key = f"{LOST} {loss.key}"
            if key in self._known.state.reported:
                continue
            owners = self._notes.owners.get(loss.ref.key, [])
            is_own = self._known.own.key in owners or self._is_own_worktree(loss)
            if is_own and loss.missed < self._work_began(loss):
                self._known.state.reported[key] = loss.missed
                continue
            culprit = self._culprit(loss)
            if not is_own:
                fact = self._taken_from(loss, owners, culprit)
            elif (culprit and culprit[0] == "") or not self._is_lost(loss):
                self._known.state.reported[key] = loss.missed
                continue
            else:
                fact = self._fact(loss, *(culprit or (None, None)))
            if fact is not None:
                facts.append(fact)
        return facts

    def _note_work(self, refs: list[str], began: float) -> None:
        """Keep when this session first worked on each of these refs."""
        reported = self._known.state.reported
        for ref in refs:
            since = reported.pop(f"{_WORK} {ref}", began)
            reported[f"{_WORK} {ref}"] = min(since, began)

    def _work_began(self, loss: Loss) -> float:
        """Return when this session began to work on a ref, else when the session began, else 0.

        A branch that was lost before then was not this session's, even if it now works on one of
        the same name."""
        known = self._known
        since = known.state.reported.get(f"{_WORK} {loss.ref.key}")
        if since is None or loss.ref.kind == WORKTREE:
            from ....sessions.transcripts.reader import first_entry

            try:
                with Opened(known.own.path) as descriptor:
                    entry = first_entry(known.own.runtime, descriptor)
            except OSError:
                entry = None
            since = entry.timestamp if entry else None
        return since or 0.0

    def _fact(self, loss: Loss, session: str | None, action: FileAction | None) -> Fact:
        time = self._ended(session or "", action) if action else self._time_of(loss) or loss.missed
        words = action.words if action else ()
        fact = Fact(LOST, session or "", time, path=loss.key, own_time=loss.missed, words=words)
        fact.loss = loss
        if loss.ref.kind == WORKTREE:
            fact.files = self._uncommitted_in(loss)
        return fact

    def _taken_from(
        self, loss: Loss, owners: list[str], culprit: tuple[str, FileAction] | None
    ) -> Fact | None:
        """Return the fact that this session popped or dropped another active session's stash."""
        if loss.ref.kind != STASH or culprit is None or culprit[0] != "" or not owners:
            return None
        if not culprit[1].words or loss.ref.time < self._known.now - ACTIVE_SECONDS:
            return None
        fact = self._fact(loss, "", culprit[1])
        fact.session, fact.is_after = owners[-1], False
        return fact

    def _culprit(self, loss: Loss) -> tuple[str, FileAction] | None:
        """Return the session that caused a loss, and its command; None if unknown.

        The session is '' if it is or may be this one."""
        suspects = [
            (session, action)
            for session, action in self._actions
            if _may_cause(action, loss) and self._was_then(session, action, loss)
        ]
        commit = loss.ref.commit
        named = [
            (session, action)
            for session, action in suspects
            if commit and commit in self._findings.evidence.printed(session, action)
        ]
        if loss.ref.kind == STASH:
            suspects = named or suspects
        mine = [(session, action) for session, action in suspects if session == ""]
        if mine or len({session for session, _ in suspects}) == 1:
            return (mine or suspects)[-1]
        if not suspects and self._may_be_mine(loss):
            return "", FileAction(GIT, "", (loss.missed, 0, ""))
        return None

    def _may_be_mine(self, loss: Loss) -> bool:
        """Check if any command of this session was running at the time of a loss.

        It may have been a script that runs git."""
        time, evidence = self._time_of(loss), self._findings.evidence
        until, since = (time or loss.missed), (time or loss.seen)
        return any(
            [
                evidence.began("", action) - _SLACK_SECONDS <= until
                and since <= self._ended("", action) + _SLACK_SECONDS
                for action in self._known.state.working_set.commands
            ]
        )

    def _time_of(self, loss: Loss) -> float:
        """Return when a ref was lost, by the time of git's files; 0 if they cannot tell."""
        common_dir = self._notes.common_dir
        names = {
            STASH: ("logs/refs/stash", "logs/refs"),
            BRANCH: (BRANCH_REFS + loss.ref.name, BRANCH_REFS.rstrip("/")),
            WORKTREE: ("worktrees", ""),
        }
        statuses = [status_at(f"{common_dir}/{name}") for name in names[loss.ref.kind]]
        times = [status.st_mtime for status in statuses if status is not None]
        return times[0] if times and loss.seen <= times[0] <= loss.missed else 0.0

    def _was_then(self, session: str, action: FileAction, loss: Loss) -> bool:
        began = self._findings.evidence.began(session, action)
        is_then = began <= loss.missed and self._ended(session, action) >= loss.seen
        return is_then and self._is_done(session, action)

    def _ended(self, session: str, action: FileAction) -> float:
        end, _ = self._findings.evidence.end(session, action)
        return self._known.now if end is None else end

    def _is_done(self, session: str, action: FileAction) -> bool:
        return self._findings.evidence.is_done(session, action)

    def _is_lost(self, loss: Loss) -> bool:
        """Check that a loss is real.

        A lost or moved branch is one if no other branch has its commits and no other fact reports
        it."""
        if loss.ref.kind != BRANCH:
            return True
        moved = [fact for fact in self._findings.facts if fact.kind in (HEAD, MOVED)]
        if any([loss.ref.name in (fact.before, fact.now) for fact in moved]):
            return False
        from ....common.system.git_objects import is_reachable

        return is_reachable(self._notes.common_dir, loss.ref.commit) is False

    def _is_own_worktree(self, loss: Loss) -> bool:
        return loss.ref.kind == WORKTREE and self._git_dir.endswith(f"/worktrees/{loss.ref.name}")

    def _is_here(self, action: FileAction) -> bool:
        """Check if an action is in a worktree of the repository, which may be gone."""
        if action.path not in self._places:
            known = [*self._notes.refs, *[loss.ref for loss in self._notes.losses]]
            roots = [ref.text for ref in known if ref.kind == WORKTREE]
            is_here = any([f"{action.path}/".startswith(f"{root}/") for root in roots])
            if not is_here and action.kind == GIT:
                worktree = find_worktree(action.path, self._known.own.user_dir)
                is_here = bool(worktree and worktree.common_dir == self._notes.common_dir)
            self._places[action.path] = is_here
        return self._places[action.path]

    def _made_by(self, session: str, action: FileAction) -> list[str]:
        """Return the keys of the refs that a command made or continued."""
        words, evidence = action.words, self._findings.evidence
        began, end = evidence.began(session, action), self._ended(session, action)
        if words[0] == "stash" and overwrites(words):
            refs = [*self._notes.refs, *[loss.ref for loss in self._notes.losses]]
            return [
                ref.key
                for ref in refs
                if ref.kind == STASH and int(began) <= ref.time <= end + _SLACK_SECONDS
            ]
        names = []
        if words[0] == "branch":
            names += [word for word in words[1:2] if not word.startswith("-")]
        if words[0] in ("checkout", "switch", "worktree"):
            names += [words[at] for at in range(1, len(words)) if words[at - 1] in _NEW_BRANCH]
        worktree = find_worktree(action.path, self._known.own.user_dir)
        if words[0] in _COMMITS and worktree:
            branch = head_of(worktree.git_dir)
            for move in reversed(head_moves(worktree.git_dir, began)):
                if move.branches:
                    branch = move.branches[0]
                elif move.time <= end + _SLACK_SECONDS:
                    names.append(branch)
        return [f"{BRANCH} {name}" for name in names if name]

    def _uncommitted_in(self, loss: Loss) -> tuple[str, ...]:
        """Return this session's files in a lost worktree, edited after its branch's last commit."""
        from ....common.system.git import ref_moves

        working_set, root = self._known.state.working_set, f"{loss.ref.text}/"
        moves = (
            ref_moves(self._notes.common_dir, BRANCH_REFS + loss.ref.branch)
            if loss.ref.branch
            else []
        )
        commits = [move.time for move in moves if move.message.startswith("commit")]
        edits = {}
        for path in working_set.actions:
            edit = working_set.last(path, self._findings.evidence, (EDIT,))
            if edit and path.startswith(root) and edit.time > max(commits, default=0):
                edits[path[len(root) :]] = edit.time
        return tuple(sorted(edits, key=lambda path: -edits[path]))


def _may_cause(action: FileAction, loss: Loss) -> bool:
    """Check if a command is of a kind that may have caused a loss."""
    ref, words = loss.ref, action.words
    if action.kind == REMOVE or not words:
        return ref.kind == WORKTREE and f"{ref.text}/".startswith(f"{action.path}/")
    if ref.kind == STASH:
        is_ref = words[0] == "update-ref" and STASH_REF in words
        return is_ref or (words[0] == "stash" and words[1:2] != () and words[1] in STASH_VERBS)
    if ref.kind == WORKTREE:
        return words[0] == "worktree" and words[1:2] != ("list",)
    return words[0] in (*_BRANCH_VERBS, *_COMMITS, "worktree", "stash")
