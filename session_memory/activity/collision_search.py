"""The search for collisions: what this session has in hand, compared with what the others did."""

from __future__ import annotations

from .call_log import edited_key, told_with_calls
from .collisions import ACTIVE_SECONDS, TAKEN, edit_facts, paths_reached
from .known_files import KnownFiles, follow_links
from .touches import COMMAND, EDIT, GIT, LOOKS, READ, REMOVE, touches_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..system.deadline import Deadline
    from ..system.git import Worktree
    from ..transcripts.entries import Entry
    from .changes import OwnSession
    from .collision_file import CollisionFile
    from .collisions import Evidence, Fact, InHand
    from .report import Report
    from .touches import Touch
    from .unseen import Unseen


def search(
    own: OwnSession,
    entries: list[Entry],
    file: CollisionFile,
    others: list[tuple[Report, Unseen]],
    worktree: Worktree | None,
    heads: tuple[str, str] | None,
    now: float,
    oldest: float,
    room: int,
) -> tuple[list[str], set[str]]:
    """The lines that tell of collisions with the sessions `others`, in at most `room` characters in all, and the keys
    of those of which something did not fit. `file` takes what this session did, by its new `entries`, and what is told.

    `heads` are what was checked out when this session was last told something, and what is; None where HEAD was not
    moved since, or was not known. Of sub-agents that are seen first it counts what they did since `oldest`.
    """
    offsets = dict(file.sub_agents)
    own_touches = touches_of(entries, lambda command: True)
    sub_agents = own.sub_agents()
    if sub_agents:
        from .sub_agents import sub_agent_touches

        own_touches += sub_agent_touches(sub_agents, own.runtime, file.sub_agents, oldest, lambda command: True)
    follow_links(own_touches)
    file.in_hand.take(sorted(own_touches, key=lambda touch: touch.time))
    touches = touches_of_others(file, others, own, oldest)
    failed = {unseen.session.key for _, unseen in others if unseen.session.key not in touches}
    if any(touches.values()):
        _drop_told(file, touches)
    on_branch: list[Fact] = []
    if any([unseen.session.team_root for _, unseen in others]):
        from .team_collisions import branch_facts

        on_branch = branch_facts(others, worktree, file.told)
    if heads is None and not any(touches.values()) and not on_branch:
        return [], failed
    from .evidence import TranscriptEvidence

    paths = {"": own.path, **{unseen.session.key: unseen.session.path for _, unseen in others}}
    runtimes = {"": own.runtime, **{one.session.key: own.runtime_of(one.session) for _, one in others}}
    evidence = TranscriptEvidence(runtimes, paths, worktree, own.user_dir)
    active = {unseen.session.key for report, unseen in others if report.last_active >= now - ACTIVE_SECONDS}
    facts = _facts(file, touches, heads, evidence, active, own.deadline) + on_branch
    failed |= {unseen.session.key for _, unseen in others if unseen.session.key not in touches}
    if not facts:
        return [], failed
    from .collision_lines import Other, lines_of

    names = {
        unseen.session.key: Other(report.called + "".join(report.place), report.may_quote) for report, unseen in others
    }
    directory = worktree.root if worktree and worktree.root else own.directory
    lines, told = lines_of(facts, names, directory, now, room)
    for fact in told:
        file.told.pop(fact.key, None)
        file.told[fact.key] = fact.own_time
    not_told = {fact.session for fact in facts if fact not in told} | failed
    for _, unseen in others:
        if unseen.session.key in not_told:
            for path in own.sub_agents_of(unseen.session):
                file.sub_agents[path] = offsets.get(path, 0)
    return lines, not_told


def _drop_told(file: CollisionFile, touches: dict[str, list[Touch]]) -> None:
    """Takes out the edits that were told with the result of a tool call; what git took away was told as in `file`."""
    told = told_with_calls(file.cursor_file)
    if told:
        file.told.update(
            {key: max(time, file.told.get(key, 0.0)) for key, time in told.items() if key.startswith(TAKEN)}
        )
        for session, found in touches.items():
            touches[session] = [one for one in found if not _is_told(file.in_hand, session, one, told)]


def _is_told(in_hand: InHand, session: str, touch: Touch, told: dict[str, float]) -> bool:
    paths = paths_reached(in_hand, touch) if touch.kind in (EDIT, REMOVE) else []
    return bool(paths) and all([told.get(edited_key(session, path), 0.0) >= touch.time for path in paths])


def touches_of_others(
    file: CollisionFile, others: list[tuple[Report, Unseen]], own: OwnSession, oldest: float
) -> dict[str, list[Touch]]:
    """Return what each of the others did that may concern this session, with what was left open before; without those
    of which that cannot be told."""
    in_hand = file.in_hand
    files = KnownFiles(in_hand.touched)

    def may_concern(command: str) -> bool:
        return (
            "git " in command or "rm " in command or "mv " in command or any([name in command for name in files.names])
        )

    found: dict[str, list[Touch]] = {}

    def take(other: tuple[Report, Unseen]) -> None:
        report, unseen = other
        key, root = unseen.session.key, unseen.session.team_root
        places = {entry.cwd for entry in report.entries}  # of another one a rule may say that it is not told of
        if root:
            from .team_collisions import touches_elsewhere

            new = touches_elsewhere(report.entries, root)
        else:
            new = touches_of(report.entries, may_concern)
        runtime = own.runtime_of(unseen.session)
        sub_agents = own.sub_agents_of(unseen.session)
        if sub_agents:
            from .sub_agents import sub_agent_touches

            new += sub_agent_touches(sub_agents, runtime, file.sub_agents, oldest, may_concern, places)
        for touch in new:
            touch.path = files.path_of(touch.path)
        concerning = sorted([touch for touch in new if _concerns(in_hand, touch)], key=lambda touch: touch.time)
        every = [*file.open_touches.pop(key, ()), *concerning]
        found[key] = [touch for touch in every if touch.time > report.since]

    own.deadline.attempt_each(others, take, lambda other: other[1].session.path)
    return found


def _concerns(in_hand: InHand, touch: Touch) -> bool:
    """Whether what another session did is to a file in hand, or a git command that changes something."""
    if touch.kind in (READ, COMMAND):
        return False
    if touch.kind == GIT:
        return bool(touch.words) and touch.words[0] not in LOOKS
    return bool(paths_reached(in_hand, touch))


def _facts(
    file: CollisionFile, others: dict[str, list[Touch]], heads: tuple[str, str] | None, evidence: Evidence,
    active: set[str], deadline: Deadline,
) -> list[Fact]:  # fmt: skip
    """Return the facts about what `others` did, which loses those of which it cannot be told."""
    facts: list[Fact] = []
    for session, touches in list(others.items()):
        asked = (file.in_hand, session, touches, evidence, file.told, session in active)
        found = deadline.attempt(session, edit_facts, *asked)
        if found is None:
            del others[session]
            continue
        edited, unfinished = found
        facts += edited
        if unfinished:
            file.open_touches[session] = unfinished
    if heads is None and not any([touch.kind == GIT for touches in others.values() for touch in touches]):
        return facts
    from .git_collisions import first_to_remove, head_fact, taken_facts

    for session, touches in others.items():
        facts += taken_facts(file.in_hand, session, touches, evidence, file.told)
    facts = first_to_remove(facts, evidence)
    moved = head_fact(file.in_hand, *heads, others, evidence) if heads else None
    if moved is not None and file.told.get(moved.key, -1.0) < moved.own_time:
        facts.append(moved)
    return facts
