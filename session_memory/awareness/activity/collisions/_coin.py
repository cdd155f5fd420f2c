"""Coin: holds back some lines about edits until the next prompt, so that `proof` can compare
(setting proof.withhold).

Not held back is anything that uncommitted work hangs on: a line about a file in the session's own
worktree, unless git has it as it is on disk; about git commands; about a conflict; and what the
user is asked. What another session did is told as a whole, so all of its report comes with the next
prompt. The draw follows from session, file and action, so a repeated prompt draws the same. Each is
kept in the state of the session."""

from __future__ import annotations

from ....sessions.transcripts.lines import LARGE_PRIME, id_checksum
from ..call_log import EDITED
from ._working_set import Draw

TYPE_CHECKING = False
if TYPE_CHECKING:
    from . import Known
    from ._evidence import Evidence
    from ._working_set import CollisionState
    from .facts import Fact

TOLD, HELD, RELEASED = 0, 1, 2
_MIXED = 2654435761  # so that ids that differ in one character are far apart


def told_now(known: Known, facts: list[Fact], evidence: Evidence) -> list[Fact]:
    """Return the facts that a prompt tells; note in the state of its session what was drawn."""
    own, state, told = known.own, known.state, []
    for fact in facts:
        last = _last(state, fact)
        if last is not None and last.outcome == HELD:
            last.outcome = RELEASED
        elif (
            known.withhold
            and may_hold(fact, evidence)
            and not (last is not None and last.own_time == fact.own_time)
        ):
            drawn = (
                id_checksum(f"{own.key} {fact.key} {fact.own_time}")
                * _MIXED
                % LARGE_PRIME
                / LARGE_PRIME
            )
            outcome = HELD if drawn < known.withhold else TOLD
            state.draws.append(Draw(fact.session, fact.path, fact.own_time, known.now, outcome))
            if outcome == HELD:
                continue
        told.append(fact)
    return told


def is_held(fact: Fact, state: CollisionState, evidence: Evidence) -> bool:
    """Check if a fact waits for the next prompt, and still may."""
    last = _last(state, fact)
    return last is not None and last.outcome == HELD and may_hold(fact, evidence)


def may_hold(fact: Fact, evidence: Evidence) -> bool:
    """Check that no uncommitted work hangs on a fact."""
    if fact.kind != EDITED or fact.is_removed:
        return False
    if fact.worktree or fact.is_elsewhere:
        return True
    staged, moves = evidence.staged([fact.path]).get(fact.path), evidence.moves()
    return bool(staged and moves) and evidence.object_after(moves[-1], fact.path) == staged


def _last(state: CollisionState, fact: Fact) -> Draw | None:
    found = (
        [one for one in state.draws if (one.session, one.path) == (fact.session, fact.path)]
        if fact.kind == EDITED
        else []
    )
    return found[-1] if found else None
