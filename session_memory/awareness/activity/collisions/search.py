"""The search for collisions. Prompts and tool calls share it."""

from __future__ import annotations

from ..actions import (
    EDIT,
    GIT,
    FileAction,
    actions_elsewhere,
    actions_of,
    by_time,
    may_concern,
    sub_agent_actions,
)
from ..call_log import reported_with_calls
from ..changes import OwnSession, inbox_stamp
from ._edits import OthersActions, edit_facts
from ._evidence import Evidence
from ._working_set import CollisionState, KnownFiles, WorkingSet
from .facts import ACTIVE_SECONDS, SLACK_SECONDS, TAKEN, Fact

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ....common.system.git import Worktree
    from .._new_entries import NewEntries
    from .._own_work import OwnWork
    from ..report import Report

    Others = list[tuple[Report, NewEntries]]


class Known:
    """The facts about the session `own` that are known before a search.

    The search updates its `state`. `worktree` is its worktree. `settled` has, by the key of a fact,
    the time up to which the result of a tool call reported it; None to read it if needed. `heads`
    are the branch or commit at the last update and now; None if HEAD has not moved. `work` is this
    session's side at a prompt, None for a call. `oldest` limits how far back sub-agents are read at
    first sight. Times are in seconds since 1970."""

    def __init__(
        self,
        own_session: OwnSession,
        state: CollisionState,
        worktree: Worktree | None,
        settled: Mapping[str, float] | None,
        now: float,
        oldest: float,
    ) -> None:
        self.own = own_session
        self.state = state
        self.worktree = worktree
        self.settled = settled
        self.now = now
        self.oldest = oldest
        self.heads: tuple[str, str] | None = None
        self.work: OwnWork | None = None


class Findings:
    """The `facts` of a search, and the `actions` behind them by session.

    `open_actions` have no result yet. Nothing is known about the sessions that `failed`."""

    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence
        self.facts: list[Fact] = []
        self.actions: dict[str, list[FileAction]] = {}
        self.open_actions: dict[str, list[FileAction]] = {}
        self.failed: set[str] = set()


def find(known: Known, entries: Others, paths: Sequence[str] | None = None) -> Findings:
    """Return the collisions of the session with the others, from their reports and new entries.

    With `paths`, return only collisions over these files, which the session is about to edit."""
    own_session = known.own
    findings = Findings(_evidence(known, entries))
    planned = None if paths is None else _planned(known, paths)
    concerned = planned or known.state.working_set
    files = KnownFiles(concerned.actions, own_session.user_dir)
    own_session.deadline.attempt_each(
        entries,
        lambda other: _read_actions(known, concerned, files, findings, *other),
        lambda other: other[1].session.path,
    )
    if any(findings.actions.values()):
        _add_edits(known, planned, findings, entries)
    _drop_conflicts(known, findings, entries)
    _add_git(known, findings, entries, is_call=planned is not None)
    own_session.deadline.attempt("git's refs", _add_losses, known, findings)
    findings.facts = _without_explained(findings.facts)
    findings.failed = {new.session.key for _, new in entries} - findings.actions.keys()
    return findings


def _evidence(known: Known, entries: Others) -> Evidence:
    """Return the evidence of the session's transcript and the others'."""
    own_session = known.own
    transcripts, runtimes = {"": own_session.path}, {"": own_session.runtime}
    for _, new in entries:
        transcripts[new.session.key] = new.session.path
        runtimes[new.session.key] = own_session.runtime_of(new.session)
    return Evidence(runtimes, transcripts, known.worktree, own_session.user_dir)


def _planned(known: Known, paths: Sequence[str]) -> WorkingSet:
    """Return a working set of the planned edits, and limit the session's own set to their files."""
    planned = WorkingSet(known.state.working_set.updated)
    planned.add([FileAction(EDIT, path, (known.now, 0, "")) for path in paths])
    known.state.working_set.limit(paths)
    return planned


def _drop_conflicts(known: Known, findings: Findings, entries: Others) -> None:
    """Drop the facts about copies of a file whose conflict another line reports."""
    own_session = known.own
    is_copied = any([new.session.is_remote for _, new in entries]) or any(
        [fact.worktree for fact in findings.facts]
    )
    if is_copied and inbox_stamp(own_session):
        from ..conflicts import of_copies

        ids = {new.session.key: own_session.id_of(new.session) for _, new in entries}
        covered = (
            own_session.deadline.attempt(
                "conflicts", of_copies, own_session, findings.facts, ids, known.now
            )
            or ()
        )
        findings.facts = [fact for fact in findings.facts if fact not in covered]


def _without_explained(facts: list[Fact]) -> list[Fact]:
    """Return the facts, without doubtful ones that another fact explains."""
    sure = [fact for fact in facts if not fact.is_doubtful]

    def explains(fact: Fact, doubtful: Fact) -> bool:
        is_so = fact.time >= doubtful.time - SLACK_SECONDS or (
            fact.kind == TAKEN and fact.session == doubtful.session
        )
        return is_so and fact.path == doubtful.path

    doubtful = [
        fact
        for fact in facts
        if fact.is_doubtful and not any([explains(other, fact) for other in sure])
    ]
    return sure + doubtful


def _read_actions(
    known: Known,
    concerned: WorkingSet,
    files: KnownFiles,
    findings: Findings,
    report: Report,
    new: NewEntries,
) -> None:
    """Add another session's possible actions on files of the set, and its earlier open actions."""
    own_session, state, key = known.own, known.state, new.session.key

    def is_wanted(command: str) -> bool:
        return may_concern(command, files.names)

    if new.session.is_remote:
        actions = actions_elsewhere(report.entries, new.session.local_root)
    else:
        actions = actions_of(report.entries, is_wanted)
    if transcripts := own_session.sub_agents_of(new.session):
        runtime, offsets = own_session.runtime_of(new.session), state.sub_agents
        actions += sub_agent_actions(
            transcripts, runtime, offsets, known.oldest, is_wanted, report.gate
        )
    for action in list(actions):
        files.recognise(action)
        actions += files.edits_by(action)
    concerning = sorted(
        [action for action in actions if concerned.is_concerned_by(action)], key=by_time
    )
    every = [*state.open_actions.pop(key, ()), *concerning]
    findings.actions[key] = [action for action in every if action.time > report.since]


def _add_edits(
    known: Known, planned: WorkingSet | None, findings: Findings, entries: Others
) -> None:
    """Add the edits of all sessions; drop the actions of sessions for which that fails."""
    reported = known.state.reported
    if known.settled is None:
        known.settled = reported_with_calls(known.own.cursor_file, known.now)
    for key, time in known.settled.items():
        if key.startswith(TAKEN):
            reported[key] = max(time, reported.get(key, 0.0))
    for report, new in entries:
        session = new.session.key
        if session in findings.actions:
            is_active = report.last_active >= known.now - ACTIVE_SECONDS
            others = OthersActions(session, findings.actions[session], is_active=is_active)
            inputs = (known, planned, findings, others)
            if known.own.deadline.attempt(session, _add_edits_of, *inputs) is None:
                del findings.actions[session]


def _add_edits_of(
    known: Known, planned: WorkingSet | None, findings: Findings, others: OthersActions
) -> bool:
    """Add the edits of another session and its open actions."""
    working_set, evidence, settled = known.state.working_set, findings.evidence, known.settled or {}
    facts, open_actions = edit_facts(working_set, others, evidence, settled, known.state.reported)
    if planned is not None:  # the planned edit counts too
        reported = {fact.path for fact in facts}
        more, still_open = edit_facts(planned, others, evidence, settled, {})
        facts += [fact for fact in more if fact.path not in reported]
        open_actions = [*open_actions, *still_open]
    findings.facts += facts
    if open_actions:
        findings.open_actions[others.session] = open_actions
    return True


def _add_git(known: Known, findings: Findings, entries: Others, *, is_call: bool) -> None:
    """Add the facts about HEAD and about uncommitted work."""
    has_git = any(
        [action.kind == GIT for actions in findings.actions.values() for action in actions]
    )
    is_shared = not is_call and any([new.session.is_remote for _, new in entries])
    if known.heads is None and not has_git and not is_shared:
        return
    from ._git import branch_facts, first_to_take, head_fact, taken_facts

    working_set, evidence, reported = (
        known.state.working_set,
        findings.evidence,
        known.state.reported,
    )
    for session, actions in findings.actions.items():
        if is_call:  # a command may still wait for permission
            waiting = [
                action
                for action in actions
                if action.kind == GIT and evidence.end(session, action)[0] is None
            ]
            findings.open_actions.setdefault(session, []).extend(waiting)
            actions = [action for action in actions if action not in waiting]
        findings.facts += taken_facts(working_set, session, actions, evidence, reported)
    findings.facts = first_to_take(findings.facts, findings.actions, working_set, evidence)
    moved = (
        head_fact(working_set, *known.heads, findings.actions, evidence) if known.heads else None
    )
    if moved is not None and reported.get(moved.key, -1.0) < moved.own_time:
        findings.facts.append(moved)
    if is_shared:
        findings.facts += branch_facts(entries, known.worktree, reported)


def _add_losses(known: Known, findings: Findings) -> None:
    """Add the refs that this session lost, and note the other sessions' refs.

    Raises OSError."""
    work, home = known.work, known.own.home
    if work is None or home is None or work.notes is None:
        return
    if not (work.notes.losses or work.notes.refs):
        return
    from ._losses import LossSearch
    from .ref_notes import note

    if any([action.kind == GIT for actions in findings.actions.values() for action in actions]):
        # a branch with a slash in its name may be deleted without a change in the four `stat`
        # results
        work.notes = note(home, work.shared_git_dir, known.now, is_forced=True)
    search = LossSearch(known, findings, work.notes, work.shared_git_dir)
    claims = search.claims()
    if claims:
        work.notes = note(home, work.shared_git_dir, known.now, claims)
        search = LossSearch(known, findings, work.notes, work.shared_git_dir)
    findings.facts += search.facts()
