"""Collisions for a prompt: reads the own transcript on, notes what is checked out, and compares with the others."""

from __future__ import annotations

from ..system.files import is_file
from ..system.git import find_worktree, head_of
from .changes import head_stamp
from .state import COLLISIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..system.git import Worktree
    from ..transcripts.cursor import Cursor
    from .changes import OwnSession
    from .collisions import Known
    from .new_entries import NewEntries
    from .report import Report
    from .state import Cursors


class PromptCollisions:
    """Collisions for one prompt: the `lines` about them, and in `withheld` the keys of the sessions of which something
    did not fit. `moved` are the own cursor, with what is checked out, and the state to keep."""

    def __init__(self, own: OwnSession, cursor: Cursor) -> None:
        self.moved: Cursors = {own.key: cursor}
        self.lines: list[str] = []
        self.withheld: set[str] = set()


def prompt_collisions(
    own: OwnSession, cursors: Cursors, others: list[tuple[Report, NewEntries]], now: float, oldest: float, room: int
) -> PromptCollisions:
    """Return the collisions with the sessions `others`, in lines of at most `room` characters in all, each with a line
    feed. `cursors` are those of the session; `oldest` says how far back its transcript is read at first. Raises OSError
    if that cannot be read."""
    before = cursors.get(own.key, {})
    worktree = find_worktree(own.directory, own.user_dir)
    git_dir = worktree.git_dir if worktree else ""
    stamp = head_stamp(git_dir) if git_dir else []  # before HEAD is read: a later move is seen next time
    head = head_of(git_dir) if git_dir else ""
    known_head = before.get("branch", "") if before.get("git") == git_dir else ""
    checked_out = {"directory": own.directory, "git": git_dir, "stamp": stamp, "branch": head, "at": now}
    found = PromptCollisions(own, {"offset": 0, **before, **checked_out})
    if not (others or known_head) or not is_file(own.path):  # at first it has not said anything yet
        return found
    from .actions import actions_of, sub_agent_actions
    from .collisions import Known
    from .collisions.working_set import CollisionState, resolve_symlinks
    from .new_entries import read_own

    content = cursors.get(COLLISIONS, "")
    state = CollisionState(content, before.get("at", 0.0))
    offsets = dict(state.sub_agents)
    new = read_own(own, before if "tail" in before else None, now, oldest)
    actions = actions_of(new.entries)
    actions += sub_agent_actions(own.sub_agents(), own.runtime, state.sub_agents, oldest)
    resolve_symlinks(actions)
    state.working_set.add(sorted(actions, key=lambda action: action.time))
    known = Known(own, state, worktree, None, now, oldest)
    if known_head and before.get("stamp") != stamp:
        known.heads = (known_head, head)
    _report(known, others, found, room)
    for _, unseen in others:
        if unseen.session.key in found.withheld:
            state.sub_agents.update({path: offsets.get(path, 0) for path in own.sub_agents_of(unseen.session)})
    kept = state.content()
    if kept != content:
        found.moved[COLLISIONS] = kept
    found.moved[own.key].update(new.cursor)
    found.moved[own.key]["open"] = bool(state.open_actions)  # calls that had no result yet
    return found


def _report(known: Known, others: list[tuple[Report, NewEntries]], found: PromptCollisions, room: int) -> None:
    """Search, and add the lines about what was found."""
    from .collisions import find

    state = known.state
    findings = find(known, others)
    state.open_actions.update({key: actions for key, actions in findings.open_actions.items() if actions})
    found.withheld = findings.failed
    if findings.facts:
        from .collisions.lines import lines_of, others_of

        directory = _directory(known.worktree, known.own)
        found.lines, reported = lines_of(findings.facts, others_of(others), directory, known.now, room)
        for fact in reported:
            state.reported.pop(fact.key, None)
            state.reported[fact.key] = fact.own_time
        found.withheld |= {fact.session for fact in findings.facts if fact not in reported}


def _directory(worktree: Worktree | None, own: OwnSession) -> str:
    return worktree.root if worktree and worktree.root else own.directory
