"""The collisions over one file that is about to be edited. Values in, facts out."""

from __future__ import annotations

from .call_log import edited_key, git_key
from .collisions import SLACK_SECONDS, edit_facts
from .git_collisions import taken_facts
from .touches import EDIT, GIT, REMOVE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from .collisions import Evidence, Fact, InHand
    from .touches import Touch


def facts_of_call(
    path: str,
    before: InHand,
    acting: InHand,
    touches: Mapping[str, list[Touch]],
    evidence: Evidence,
    told: dict[str, float],
    settled: Mapping[str, float],
    active: Collection[str],
) -> tuple[list[Fact], dict[str, float], set[str]]:
    """The facts about the file at `path`, which this session is about to edit; until when they settle what each session
    did to it, by the keys of `settled`; and the keys of those that have calls which are not over.

    `before` is what this session had in hand of it, `acting` the edit that it is about to make, `touches` what the
    others did to it, `told` the facts of prompts, `settled` what was settled with other calls, and `active` the keys of
    the sessions that were active lately.
    """
    facts: list[Fact] = []
    until: dict[str, float] = {}
    waiting: set[str] = set()
    for session, done in touches.items():
        key = edited_key(session, path)
        edits = [one for one in done if one.kind in (EDIT, REMOVE) and one.time > settled.get(key, 0.0)]
        over = [one for one in edits if _is_over(path, session, one, evidence)]
        is_active = session in active
        found, _ = edit_facts(before, session, over, evidence, told, is_active)
        if not found:  # what it is about to edit it has in hand, too
            changed = [one for one in over if _has_changed(path, session, one, evidence)]
            found, _ = edit_facts(acting, session, changed, evidence, {}, is_active)
        until[key] = max([one.time for one in over], default=0.0)
        if len(over) < len(edits):
            waiting.add(key)
        key = git_key(session, path)
        commands = [one for one in done if one.kind == GIT]
        over = [one for one in commands if evidence.end(session, one)[0] is not None]
        facts += found + taken_facts(before, session, over, evidence, {**told, **settled})
        until[key] = max([one.time for one in over], default=0.0)
        if len(over) < len(commands):
            waiting.add(key)
    return facts, until, waiting


def _is_over(path: str, session: str, touch: Touch, evidence: Evidence) -> bool:
    """Whether the call is over, or shows in the file: it may wait for a person to allow it."""
    return (
        touch.is_elsewhere
        or evidence.end(session, touch)[0] is not None
        or _has_changed(path, session, touch, evidence)
    )


def _has_changed(path: str, session: str, touch: Touch, evidence: Evidence) -> bool:
    """Whether the file was changed since a call was made; one that is gone was, by a tool that edits. Another machine's
    copy is taken to have been."""
    if touch.is_elsewhere:
        return True
    modified = evidence.modified(path, is_moved=bool(touch.words))
    return not touch.is_command if modified is None else modified >= evidence.began(session, touch) - SLACK_SECONDS
