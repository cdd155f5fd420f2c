"""Collisions over a worktree: another session moved HEAD, or git took uncommitted work.

Git took work if it committed or overwrote it.
"""

from __future__ import annotations

from ....common.system.git import USUAL_BRANCHES, HeadMove, Worktree, head_of, is_commit
from ....common.text.paths import resolved
from ..actions import COMMAND, EDIT, GIT, FileAction
from .facts import BRANCH, HEAD, MOVED, SHORT_COMMIT, SLACK_SECONDS, TAKEN, Fact

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from .._new_entries import NewEntries
    from ..report import Report
    from ._evidence import Evidence
    from ._working_set import WorkingSet

    Shift = tuple[HeadMove, str, tuple[str, ...]]  # by which session, and the words of its command

GIT_SLACK_SECONDS = 1.5  # the log of HEAD has them in whole seconds
LONGEST_SECONDS = 60  # a command without a result is assumed to run at most so long
UNENDED_SECONDS = 3600  # the same for a command that may have committed or overwritten files
MOST_FILES = 50  # of this session's are checked for one git command
# Verbs in the log of HEAD, with the commands that write them.
_MOVED_BY = {
    "checkout": ("switch", "checkout", "rebase", "bisect", "stash"),
    "commit": ("commit",),
    "reset": ("reset", "stash", "checkout"),
    "branch": ("branch", "checkout", "switch", "update-ref", "worktree"),
    "pull": ("pull",),
    "merge": ("merge", "pull"),
    "rebase": ("rebase", "pull"),
    "cherry-pick": ("cherry-pick",),
    "revert": ("revert",),
    "am": ("am",),
}
# Commands that may move a branch from elsewhere, or change HEAD's branch without a line in its log.
_FROM_ELSEWHERE = (
    *("branch", "fetch", "push", "symbolic-ref", "update-ref", "worktree"),
    *[command for commands in _MOVED_BY.values() for command in commands],
)
_RENAMED = "Branch: renamed "
_STAGES_MORE = ("--all", "--update", "--include")
_COMMIT_VALUES = (
    "--message",
    "--file",
    "--author",
    "--date",
    "--reuse-message",
    "--reedit-message",
    "--template",
)
_NOT_FROM_INDEX = ("--force", "--source", "--staged")
_NO_STASH = ("list", "show", "drop", "pop", "apply", "branch", "clear", "create", "store")
_APPLYING = (("pop",), ("apply",), ("branch",))
MOVES = ("switch", "rebase", "pull", "merge")
_OVERWRITE = (*MOVES, "restore", "checkout")
# moves of a branch that need no mention
_EXPECTED = ("commit", "cherry-pick", "revert", "am", "clone", "Branch")


def taken_facts(
    working_set: WorkingSet,
    session: str,
    actions: list[FileAction],
    evidence: Evidence,
    reported: Mapping[str, float],
) -> list[Fact]:
    """Return this session's uncommitted files that a git command of `session` took.

    The command committed, staged or overwrote them."""
    facts: dict[str, Fact] = {}  # by path; the last of several commands counts
    for action in actions:
        if action.kind != GIT or not action.words:
            continue
        if not (commits_or_stages(action.words) or overwrites(action.words)):
            continue
        if not evidence.is_done(session, action) or is_restored(action, actions):
            continue
        if not evidence.is_in_worktree(action.path):
            continue
        for path, commit in _taken_by(
            _Run(session, action, evidence), working_set, evidence
        ).items():
            edit = working_set.last(path, evidence, (EDIT,))
            own_time = edit.time if edit else 0.0
            is_over = path in facts and facts[path].is_overwritten
            if is_over or reported.get(f"{TAKEN} {path}", -1.0) >= own_time:
                continue
            fact = _taken_fact(session, action, path, own_time)
            fact.now = commit
            if reported.get(fact.key, -1.0) < own_time:
                facts[path] = fact
    return list(facts.values())


def _taken_fact(session: str, action: FileAction, path: str, own_time: float) -> Fact:
    fact = Fact(
        TAKEN,
        session,
        action.time,
        path=path,
        own_kind=EDIT,
        own_time=own_time,
        words=action.words,
    )
    fact.is_overwritten = not commits_or_stages(action.words)
    return fact


def _taken_by(run: _Run, working_set: WorkingSet, evidence: Evidence) -> dict[str, str]:
    """Return the files that a command took, each with the commit that contains it now, or ''."""
    candidates = _uncommitted(working_set, run.action, run.end, evidence)
    if commits_or_stages(run.action.words):
        return _committed_from(working_set, candidates, run, evidence)
    return {
        path: ""
        for path, since in candidates
        if _names(run.action, path)
        and run.has_overwritten(path, since, evidence)
        and not _is_kept(working_set, path, evidence)
    }


def _is_kept(working_set: WorkingSet, path: str, evidence: Evidence) -> bool:
    """Check if a file still has this session's last edit, for example from a stash."""
    edit = working_set.last(path, evidence, (EDIT,))
    return edit is not None and evidence.has_edit(path, edit)


class _Run:
    """Run of a git `action` of another session, up to its `end`.

    It `ended` then, unless that is None."""

    __slots__ = ("action", "began", "end", "ended", "has_failed")

    def __init__(self, session: str, action: FileAction, evidence: Evidence) -> None:
        self.ended, self.has_failed = evidence.end(session, action)
        self.action = action
        self.began = evidence.began(session, action)
        self.end = action.time + UNENDED_SECONDS if self.ended is None else self.ended

    def has_overwritten(self, path: str, since: float, evidence: Evidence) -> bool:
        """Check if the command overwrote or removed a file last edited at `since`."""
        words, modified = self.action.words, evidence.modified(path)
        began = self.began - SLACK_SECONDS
        if modified is None:
            is_removing = not self.has_failed and may_remove(words)
            return is_removing and evidence.may_have_gone(path, began)
        if words[0] == "clean":  # it only removes
            return False
        is_later = evidence.modified_until(path) > max(since + SLACK_SECONDS, began)
        is_last = modified <= self.end + SLACK_SECONDS
        if not is_later or is_last:
            return is_later
        return self._has_checked_out(path, since, evidence) or self._has_stashed(path, evidence)

    def _has_checked_out(self, path: str, since: float, evidence: Evidence) -> bool:
        """Check if the index shows that the command discarded the changes of a file."""
        if self.ended is None or not _discards(self.action, path):
            return False
        since = max(since, self.began) + SLACK_SECONDS
        return evidence.is_checked_out(path, since, self.ended + SLACK_SECONDS)

    def _has_stashed(self, path: str, evidence: Evidence) -> bool:
        """Check if a stash that the command made has this session's edit of a file.

        With `--keep-index`, the file may not have been touched."""
        words, until = self.action.words, self.end + GIT_SLACK_SECONDS
        is_kept = _has_option(words, "k", "--keep-index")
        return words[0] == "stash" and not is_kept and evidence.is_stashed(path, self.began, until)


def branch_facts(
    others: list[tuple[Report, NewEntries]],
    worktree: Worktree | None,
    reported: Mapping[str, float],
) -> list[Fact]:
    """Return facts about sessions on other machines that work on the same branch.

    Default branches do not count."""
    head = head_of(worktree.git_dir) if worktree else ""
    if not head or head in USUAL_BRANCHES:
        return []
    from ....sessions.transcripts.remote_sessions import branch_of

    facts = []
    for report, new in others:
        session = new.session
        if (
            session.local_root
            and any([entry.tools for entry in report.entries])
            and branch_of(session.path) == head
        ):
            fact = Fact(BRANCH, session.key, report.last_active, path=head)
            if fact.key not in reported:
                facts.append(fact)
    return facts


def first_to_take(
    facts: list[Fact],
    others: Mapping[str, list[FileAction]],
    working_set: WorkingSet,
    evidence: Evidence,
) -> list[Fact]:
    """Return the facts, without those about edits that an earlier command had already taken away.

    A fact about an edit names the first command that discarded it, even if later work on the file
    has hidden the proof of that."""
    given_back = _commands_that_give_back(working_set, others)
    facts = [fact for fact in facts if not _may_be_back(fact, given_back, working_set, evidence)]
    first: dict[str, Fact] = {}
    for fact in facts:
        if fact.kind == TAKEN:
            first[fact.path] = min(fact, first.get(fact.path, fact), key=lambda each: each.time)
    discards = _DiscardSearch(others, working_set, evidence, given_back) if first else None
    for path, fact in first.items():
        if discards and not _is_kept(working_set, path, evidence):
            first[path] = discards.before(fact) or fact
    return [
        fact
        for fact in facts
        if fact.kind != TAKEN
        or fact is first[fact.path]
        or not (first[fact.path].is_overwritten or evidence.modified(fact.path) is None)
    ] + [fact for fact in first.values() if not any([fact is known for known in facts])]


def _commands_that_give_back(
    working_set: WorkingSet, others: Mapping[str, list[FileAction]]
) -> list[tuple[str, FileAction]]:
    """Return all sessions' commands that apply a stash, with their sessions."""
    return [
        (session, action)
        for session, actions in [("", working_set.discards), *others.items()]
        for action in actions
        if action.kind == GIT and _gives_back(action)
    ]


def _may_be_back(
    fact: Fact,
    given_back: list[tuple[str, FileAction]],
    working_set: WorkingSet,
    evidence: Evidence,
) -> bool:
    """Check if a stash that took the edit of a command may have been applied since.

    No text in the transcript can show that the file has the edit."""
    edit = working_set.last(fact.path, evidence, (EDIT,)) if fact.words[:1] == ("stash",) else None
    if fact.kind != TAKEN or edit is None or not edit.is_command:
        return False
    modified = evidence.modified_until(fact.path)
    return any(
        fact.time < action.time <= modified + SLACK_SECONDS and evidence.is_done(session, action)
        for session, action in given_back
    )


class _DiscardSearch:
    """A search for the first command of another session that discarded an edit."""

    __slots__ = ("_evidence", "_given_back", "_others", "_working_set")

    def __init__(
        self,
        others: Mapping[str, list[FileAction]],
        working_set: WorkingSet,
        evidence: Evidence,
        given_back: list[tuple[str, FileAction]],
    ) -> None:
        done = [
            (session, action)
            for session, actions in others.items()
            for action in actions
            if evidence.is_done(session, action)
        ]
        self._others = sorted(done, key=lambda pair: pair[1].time)
        self._working_set, self._evidence = working_set, evidence
        self._given_back = given_back

    def before(self, fact: Fact) -> Fact | None:
        """Return the fact that an earlier command than for `fact` had discarded the edit.

        Return None if there is none."""
        for session, action in self._others:
            is_between = fact.own_time < action.time < fact.time
            if not is_between or action.kind != GIT or not action.words or action.is_doubtful:
                continue
            has_failed = self._evidence.end(session, action)[1]
            if not has_failed and self._has_discarded(action, fact):
                return _taken_fact(session, action, fact.path, fact.own_time)
        return None

    def _has_discarded(self, action: FileAction, fact: Fact) -> bool:
        """Check if a git command has discarded the edit, although a later command took the file.

        If a command made the edit, only a later edit shows that the file was clean in between."""
        path, evidence = fact.path, self._evidence
        if not (_discards(action, path) and evidence.is_in_worktree(action.path)):
            return False
        if not evidence.was_committed(path, action.time):
            return False
        if self._is_from_index(action, fact) or self._was_given_back(action, fact):
            return False
        edit = self._working_set.last(path, evidence, (EDIT,))
        return (edit is not None and not edit.is_command) or any(
            later.kind == EDIT
            and later.path == path
            and not later.copy
            and action.time < later.time < fact.time
            for _, later in self._others
        )

    def _is_from_index(self, action: FileAction, fact: Fact) -> bool:
        """Check if a git command may have copied the edit from the index."""
        if action.words[0] not in ("checkout", "restore") or any(
            [has_flag(word, "fsS") or word.startswith(_NOT_FROM_INDEX) for word in action.words]
        ):
            return False
        by_itself = [("", command) for command in self._working_set.commands]
        return any(
            command.kind == GIT
            and fact.own_time <= command.time < action.time
            and stages(command, fact.path)
            and self._evidence.is_done(session, command)
            for session, command in [*by_itself, *self._others]
        )

    def _was_given_back(self, action: FileAction, fact: Fact) -> bool:
        """Check if a stash with the edit may have been applied after a git command."""
        return any(
            action.time <= command.time <= fact.time and self._evidence.is_done(session, command)
            for session, command in self._given_back
        )


def head_fact(
    working_set: WorkingSet,
    known: str,
    now: str,
    others: dict[str, list[FileAction]],
    evidence: Evidence,
) -> Fact | None:
    """Return the fact that HEAD moved without this session, or that its branch did, or None.

    `known` is the branch or commit at this session's last update."""
    moves = evidence.moves_since(working_set.updated)
    before, switched, shifted = _logged(working_set, known, moves, others, evidence)
    if now != before and switched:
        move, who, words = switched
        return Fact(HEAD, who, move.time, own_time=move.time, words=words, heads=(before, now))
    is_logged = bool(moves) and is_commit(now) and moves[-1].after == now
    if now != before and before and not is_logged:
        return _unlogged_head(working_set, (before, now), others, evidence)
    shifted = _from_elsewhere(working_set, now, others, evidence) or shifted
    if not shifted:
        return None
    move, who, words = shifted
    return Fact(
        MOVED,
        who,
        move.time,
        own_time=move.time,
        words=words,
        heads=(move.before[:SHORT_COMMIT], now),
    )


def _logged(
    working_set: WorkingSet,
    known: str,
    moves: list[HeadMove],
    others: dict[str, list[FileAction]],
    evidence: Evidence,
) -> tuple[str, Shift | None, Shift | None]:
    """Return this session's last checkout, and others' last switch and branch move since then.

    They come from the log of HEAD."""
    before, switched, shifted = known, None, None
    for move in moves:
        who, words = _who_moved(working_set, move, others, evidence)
        if move.branches:
            if who == "":
                before, switched = move.branches[1], None  # this session did it, and knows
            elif move.branches[0] != move.branches[1]:
                switched = move, who or "", words
        elif move.before != move.after:
            if who == "":
                shifted = None
            elif move.verb not in _EXPECTED:
                shifted = move, who or "", words
    return before, switched, shifted


def _unlogged_head(
    working_set: WorkingSet,
    heads: tuple[str, str],
    others: dict[str, list[FileAction]],
    evidence: Evidence,
) -> Fact | None:
    """Return the fact that HEAD names another branch without a logged switch.

    The branch was renamed, for example. Return None if this session may have done it."""
    renamed = [move for move in evidence.moves() if move.message.startswith(_RENAMED)]
    time = (
        renamed[-1].time
        if renamed and renamed[-1].time >= int(working_set.updated)
        else evidence.head_written()
    )
    who, words = _who_moved(
        working_set,
        HeadMove("", "", time, ""),  # type: ignore[arg-type]
        others,
        evidence,
        _FROM_ELSEWHERE,
    )
    return (
        None if who == "" else Fact(HEAD, who or "", time, own_time=time, words=words, heads=heads)
    )


def _from_elsewhere(
    working_set: WorkingSet, branch: str, others: dict[str, list[FileAction]], evidence: Evidence
) -> Shift | None:
    """Return the branch's last move outside this worktree, and who made it.

    Return None if there is none, or if this session made it."""
    shifted = None
    for move in evidence.moves_elsewhere(branch, working_set.updated):
        who, words = _who_moved(working_set, move, others, evidence, _FROM_ELSEWHERE)
        shifted = None if who == "" else (move, who or "", words)
    return shifted


def _uncommitted(
    working_set: WorkingSet, action: FileAction, end: float, evidence: Evidence
) -> list[tuple[str, float]]:
    """Return this session's files that were uncommitted before a git command.

    Each has the end of its edit."""
    files = []
    edited = [
        path
        for path, actions in working_set.actions.items()
        if any([action.kind == EDIT for action in actions])
    ]
    for path in edited[-MOST_FILES:]:
        edit = working_set.last(path, evidence, (EDIT,))
        if edit is None or edit.time >= end:
            continue
        modified = (
            evidence.modified(path) if evidence.is_in_worktree(path.rpartition("/")[0]) else 0
        )
        if modified == 0 or (modified is None and edit.is_command and evidence.end("", edit)[1]):
            continue  # no file, one that never existed, or one of another worktree
        if _has_discarded(working_set, edit, action.time, evidence):
            continue
        since = evidence.ended("", edit)
        between = [
            move
            for move in evidence.moves_since(since, evidence.began("", edit))
            if move.time < int(action.time) and move.message.startswith("commit")
        ]
        if all([evidence.has_changed(move, path) is False for move in between]):
            files.append((path, since))
    return files


def _has_discarded(
    working_set: WorkingSet, edit: FileAction, until: float, evidence: Evidence
) -> bool:
    """Check if this session may have discarded its edit before a time, or has it in a stash."""
    is_gone = False
    for action in working_set.discards:
        if not edit.time < action.time < until or not evidence.is_done("", action):
            continue
        if _gives_back(action):
            is_gone = False
        elif _discards(action, edit.path) or _may_take(action, edit.path, evidence):
            is_gone = is_gone or evidence.is_in_worktree(action.path)
    return is_gone


def _may_take(action: FileAction, path: str, evidence: Evidence) -> bool:
    """Check if a git command may stash an uncommitted edit, reverse it or remove its new file."""
    is_usual = action.words[0] in ("stash", "apply") or (
        action.words[0] == "clean" and not evidence.is_tracked(path)
    )
    return is_usual and overwrites(action.words) and _names(action, path)


def _gives_back(action: FileAction) -> bool:
    """Check if a git command applies a stash."""
    return action.words[:1] == ("stash",) and action.words[1:2] in _APPLYING


def _committed_from(
    working_set: WorkingSet,
    candidates: list[tuple[str, float]],
    run: _Run,
    evidence: Evidence,
) -> dict[str, str]:
    """Return the files that a command staged or committed, each with its commit ('' if unknown).

    Files that this session had staged itself are left out."""
    action, end = run.action, run.end
    is_commit = action.words[0] == "commit"
    commits = _commits_by(working_set, run, evidence) if is_commit else []
    candidates = candidates if commits or not is_commit else []
    staged = evidence.staged([path for path, _ in candidates])
    commit_by_path = {}
    for path, since in candidates:
        changing = [
            commit
            for commit in commits
            if evidence.has_changed(commit, path) and evidence.object_after(commit, path)
        ]
        if changing:
            if _is_in_commit(path, changing, staged.get(path), end, evidence):
                commit_by_path[path] = changing[-1].after
            continue
        is_known = is_commit and None not in [
            evidence.has_changed(commit, path) for commit in commits
        ]
        if (
            not is_known
            and path in staged
            and _is_staged_by(working_set, action, path, since, evidence)
        ):
            commit_by_path[path] = ""
    return commit_by_path


def _is_in_commit(
    path: str, commits: list[HeadMove], staged: str | None, end: float, evidence: Evidence
) -> bool:
    """Check if this session's edit is in one of the commits that change a file.

    The file is as committed, or has changed since then."""
    modified = evidence.modified(path)
    if modified is None or modified > end:
        return True
    return any([evidence.object_after(commit, path) == staged for commit in commits])


def _is_staged_by(
    working_set: WorkingSet, action: FileAction, path: str, since: float, evidence: Evidence
) -> bool:
    """Check if the command staged a file, and this session did not.

    The staged file is as this session left it at the time `since`."""
    modified = evidence.modified(path)
    if modified is None or modified > since + SLACK_SECONDS or stages(action, path) is False:
        return False
    later = [
        command
        for command in working_set.commands
        if command.kind == GIT and command.time >= since - SLACK_SECONDS
    ]
    return not any([stages(command, path) for command in later])


def _commits_by(working_set: WorkingSet, run: _Run, evidence: Evidence) -> list[HeadMove]:
    """Return the commits that a command made, except those that this session may have made."""
    own_commits = [
        command
        for command in working_set.commands
        if command.kind == GIT and command.words[:1] == ("commit",)
    ]
    return [
        move
        for move in evidence.moves_since(run.action.time, run.began)
        if move.message.startswith("commit")
        and move.time <= run.end + GIT_SLACK_SECONDS
        and not any([_may_have_moved("", command, move, evidence) for command in own_commits])
    ]


def _who_moved(
    working_set: WorkingSet,
    move: HeadMove,
    others: dict[str, list[FileAction]],
    evidence: Evidence,
    from_elsewhere: tuple[str, ...] = (),
) -> tuple[str | None, tuple[str, ...]]:
    """Return the session that moved HEAD, and the words of its command.

    The session is '' if it is or may be this one, None if unknown. The command ran in this
    worktree. A command that may be `from_elsewhere` can have run in any worktree of the repository.
    """
    verbs = from_elsewhere or _MOVED_BY.get(move.verb, (move.verb, "update-ref"))
    is_there = evidence.is_in_repository if from_elsewhere else evidence.is_in_worktree
    fitting: list[tuple[int, float, str, FileAction]] = []
    for session, actions in [("", working_set.commands), *others.items()]:
        for action in actions:
            if action.kind != GIT or action.words[:1] == () or action.words[0] not in verbs:
                continue
            if _may_have_moved(session, action, move, evidence) and is_there(action.path):
                names_it = move.branches is not None and move.branches[1] in action.words
                fitting.append((-names_it, abs(action.time - move.time), session, action))
    if fitting:
        _, _, session, action = min(fitting, key=lambda candidate: candidate[:3])
        return session, action.words
    for action in working_set.commands:
        if action.kind == COMMAND and _may_have_moved("", action, move, evidence):
            return "", ()
    return None, ()


def _may_have_moved(session: str, action: FileAction, move: HeadMove, evidence: Evidence) -> bool:
    """Check if a command may have been running when HEAD moved."""
    end, _ = evidence.end(session, action)
    if not evidence.is_done(session, action):
        return False
    until = action.time + LONGEST_SECONDS if end is None else end
    return action.time - GIT_SLACK_SECONDS <= move.time <= until + GIT_SLACK_SECONDS


def stages(action: FileAction, path: str) -> bool | None:
    """Check if a git command stages the file at `path`.

    Return None for a commit of previously staged files."""
    if action.words[:1] not in (("add",), ("stage",), ("commit",)):
        return False
    options, named = options_of(action.words)
    letters = "ai" if action.words[0] == "commit" else "aAui"
    if any([word in _STAGES_MORE or has_flag(word, letters) for word in options]):
        return True
    for word in named:
        at = resolved(word, action.path)
        if (
            not word
            or word[0] == ":"
            or set("*?[") & set(word)
            or path == at
            or path.startswith(at.rstrip("/") + "/")
        ):
            return True
    return None if action.words[0] == "commit" and not named else False


def options_of(words: tuple[str, ...]) -> tuple[list[str], list[str]]:
    """Return the options of an add, commit or push to the stash, and its paths.

    Options come without values apart from them."""
    has_values, is_value = words[0] in ("commit", "push"), False
    options: list[str] = []
    named: list[str] = []
    for word in words[1:]:
        if is_value:
            is_value = False
        elif word.startswith("-") and word != "--":
            is_long = word.startswith("--")
            options.append(word)
            is_value = has_values and (
                word in _COMMIT_VALUES or (not is_long and word[-1] in "mFCct")
            )
        elif word != "--":
            named.append(word)
    return options, named


def _names(action: FileAction, path: str) -> bool:
    """Check if an overwriting git command may affect the file at `path`.

    It does not if it names only other files: after `--`, or after `stash push`."""
    words = action.words
    named = words[words.index("--") + 1 :] if "--" in words else ()
    if words[:2] == ("stash", "push"):
        named = tuple(options_of(words[1:])[1])
    places = [
        resolved(word, action.path)
        for word in named
        if word[:1] != ":" and not set("*?[") & set(word)
    ]
    return (
        len(places) < len(named)
        or not named
        or any([f"{path}/".startswith(f"{at.rstrip('/')}/") for at in places])
    )


def has_flag(word: str, letters: str) -> bool:
    """Check if a word is a group of short options with one of `letters`: `-am`, but not `-mam`."""
    if word[:1] != "-" or word[1:2] == "-":
        return False
    for letter in word[1:]:
        if letter in letters:
            return True
        if letter in "mFCctuS":  # its value follows in the same word
            return False
    return False


def _has_option(words: tuple[str, ...], letters: str, name: str) -> bool:
    """Check if a command has an option, by one of its letters or by its name."""
    return any([has_flag(word, letters) or word == name for word in words])


def commits_or_stages(words: tuple[str, ...]) -> bool:
    """Check if a git command stages or commits changes of the worktree."""
    if words[0] == "add":
        return "-n" not in words and "--dry-run" not in words
    return words[0] == "commit" and "--dry-run" not in words


def may_remove(words: tuple[str, ...]) -> bool:
    """Check if an overwriting git command may also remove an uncommitted file."""
    if words[0] == "reset":
        return "--hard" in words
    is_switch = words[0] in ("switch", "checkout") and not {"-b", "-c", "-B", "-C", "--"} & set(
        words
    )
    return is_switch or words[0] in ("stash", "clean", "read-tree", "apply")


def is_restored(action: FileAction, actions: list[FileAction]) -> bool:
    """Check if the same call restored the stash.

    An example is `git stash && git pull && git stash pop`."""
    return action.words[0] == "stash" and any(
        later.kind == GIT and later.call_id == action.call_id and _gives_back(later)
        for later in actions
    )


def _discards(action: FileAction, path: str) -> bool:
    """Check if a git command discards the uncommitted changes of a tracked file at `path`."""
    words = action.words
    if words[0] == "reset":
        return "--hard" in words
    if words[0] == "read-tree":
        return overwrites(words)
    is_forced = _has_option(words, "f", "--force")
    if words[0] == "switch":
        return is_forced or "--discard-changes" in words
    if words[0] not in ("checkout", "restore"):
        return False
    if words[0] == "checkout" and is_forced:
        return True
    if _has_option(words, "p", "--patch"):
        return False  # perhaps only other changes
    if words[0] == "checkout":
        if _has_option(words, "bB", "--orphan"):  # the other words are names of branches
            return False
    elif _has_option(words, "S", "--staged") and not _has_option(words, "W", "--worktree"):
        return False
    named = [resolved(word, action.path) for word in words[1:] if word and word[0] not in "-:"]
    return any([f"{path}/".startswith(f"{at.rstrip('/')}/") for at in named])


def overwrites(words: tuple[str, ...]) -> bool:
    """Check if a git command may overwrite or remove uncommitted work."""
    if words[0] == "stash":
        return words[1:2] == () or words[1] not in _NO_STASH
    if words[0] == "reset":
        return bool({"--hard", "--merge", "--keep"} & set(words))
    if words[0] == "clean":
        is_forced = _has_option(words, "f", "--force")
        return is_forced and not _has_option(words, "n", "--dry-run")
    if words[0] == "read-tree":
        return {"-u", "--reset"} <= set(words)
    if words[0] == "checkout-index":
        return _has_option(words, "f", "--force")
    if words[0] == "apply":  # forwards it only adds
        return _has_option(words, "R", "--reverse")
    return words[0] in _OVERWRITE
