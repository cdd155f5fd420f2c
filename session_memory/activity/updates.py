"""Updates: from what changed in the other sessions to the text for this one, in one pass.

Changes, entries, reports and collisions, text: each is made once and passed on. Every prompt with news loads this; what
reads transcripts is loaded only if one changed. For collisions the own transcript is read on, and what is checked out
is noted."""

from __future__ import annotations

from ..system.files import is_file
from .changes import OLD_SECONDS, conflicts_stamp, head_stamp, is_head_known, seen_until, standstill
from .delivery import Delivery, resolved, with_last
from .state import COLLISIONS, LAST, MEMORIES, KnownState, StateFile, is_whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..settings.compiled import Settings
    from ..system.deadline import Deadline
    from ..transcripts.entries import Session
    from ..transcripts.lines import Cursor
    from .changes import Changed, Observation, OwnSession
    from .collisions import Known
    from .new_entries import NewEntries
    from .report import Report
    from .state import Cursors
    from .status_line import Edit

MOST_LEFT_OUT = 20  # sessions that are noted


class Update:
    """An update: its `text`, None for nothing; the `cursors` after it, None if they stay; `is_shown` if the own
    transcript will show it; the `standstill` to keep if nothing changed since the last prompt, else None; and the
    newest `edit` in it for a status line, None for none."""

    def __init__(self, cursors: Cursors | None = None) -> None:
        self.text: str | None = None
        self.cursors = cursors
        self.is_shown = False
        self.standstill: list[object] | None = None
        self.edit: Edit | None = None


def open_update(
    own: OwnSession, observed: Observation, *, settings: Settings, now: float, limit: int, introduction: str = ""
) -> Delivery:
    """Return the delivery of what the `observed` sessions did since the last update of the session `own`, in at most
    `limit` characters with the `introduction`. While it is open, no other process delivers it.

    Entries that a fork copied from its transcript are not new. Collisions are searched if its directory is known.
    `settings` are those of its home; without a home only their rules count. `now` is in seconds since the epoch. If the
    last update is not in its transcript, it is repeated. If the state cannot be read, everything up to its last write
    counts as reported; for a fork at its first prompt, everything up to now. Raises LockedError if another delivery has
    the same state, OSError if the state is not accessible."""
    file = StateFile(own.cursor_file)
    try:
        return Delivery(own, file, _make(own, file, observed, settings, now, limit, introduction))
    except BaseException:
        file.close()
        raise


def waiting_text(
    own: OwnSession, observed: Observation, *, settings: Settings, now: float, limit: int, introduction: str = ""
) -> str:
    """The text that `open_update` would deliver, '' for nothing; nothing is locked or written. Raises OSError."""
    return _make(own, KnownState(own.cursor_file), observed, settings, now, limit, introduction).text or ""


def begin_here(own: OwnSession, observed: Observation, *, settings: Settings, now: float) -> None:
    """Count everything up to now as reported to the session `own`, unless it had an update. Raises as `open_update`."""
    with StateFile(own.cursor_file) as file:
        if file.is_new(own.key):
            from .new_entries import cursors_at_end

            changed = observed.changed({}, now - settings.first_sight_seconds)
            file.cursors[own.key] = {**file.of(own.key), **cursors_at_end(changed, now, own.deadline)}
            file.prepare()
            file.commit()


def _make(
    own: OwnSession, known: KnownState, observed: Observation, settings: Settings, now: float, limit: int,
    introduction: str,
) -> Update:  # fmt: skip
    """Return the update, after the last one is resolved."""
    before = known.of(own.key)
    cursors = resolved(before, own)
    if cursors is None:
        return Update()
    is_resolved = cursors is not before
    seen = seen_until(cursors.get(own.key, {}), now)
    oldest = max(now - settings.first_sight_seconds, seen)
    changed = [pair for pair in observed.changed(cursors, oldest) if pair[1].st_mtime >= seen]
    update = Update(cursors if is_resolved else None)
    since = known.written if known.was_corrupt else None
    if since is not None:
        own.deadline.notes.append(
            f"{own.cursor_file}: could not be read, renamed to .corrupt; continuing from its last change"
        )
    elif not (changed or _has_conflicts(own, cursors)) and (
        not own.directory or is_head_known(cursors.get(own.key), own.directory)
    ):
        if not is_resolved:
            seconds = settings.first_sight_seconds
            update.standstill = standstill(own, observed, seconds, cursors.get(own.key, {}))
        return update
    elif known.is_new(own.key) and own.path:
        from .forks import forked_before

        since = own.deadline.attempt(own.path, forked_before, own.path, own.runtime, oldest, now)
    if since is not None:
        cursors = _cursors_from(since, changed, now, own.deadline)
        changed = [pair for pair in changed if pair[1].st_mtime >= since]
    read_on = {own.key, *[session.key for session, _ in changed]}
    cursors = {key: cursor for key, cursor in cursors.items() if key not in read_on or is_whole(cursor)}
    room = limit - len(introduction)
    text, moved, left_out, update.edit = _report(own, changed, observed, cursors, settings, now, room)
    after = {**cursors, **moved}
    after[own.key] = {"offset": 0, **after.get(own.key, {}), "asked": now, "left_out": left_out}
    # Sessions that are gone are dropped, so that the state does not grow with the years; unless some were not listed.
    keys = [LAST, COLLISIONS, MEMORIES, own.key, *[session.key for session in observed.sessions]]
    keys += after if own.deadline.failed else ()
    if (
        text
        or is_resolved
        or since is not None
        or left_out
        or any(cursors.get(key) != cursor for key, cursor in moved.items())
    ):
        update.cursors = {key: after[key] for key in keys if key in after}
    if text:
        update.text = introduction + text
        if own.path and own.runtime.SHOWS_WHAT_WAS_TOLD and own.keeps_transcript is not False:
            before = {key: cursors[key] for key in keys if key in cursors}
            update.cursors = with_last(before, update.cursors or {}, update.text, own, now)
            # Without a transcript, nothing would show that an update was lost which was not printed yet.
            update.is_shown = own.keeps_transcript is True or is_file(own.path)
    return update


def _report(
    own: OwnSession, changed: list[Changed], observed: Observation, cursors: Cursors, settings: Settings, now: float,
    limit: int,
) -> tuple[str, Cursors, list[str], Edit | None]:  # fmt: skip
    """Return the text about `changed` in at most `limit` characters, '' if nothing is new in them, the cursors behind
    what it reports and behind what held nothing to report, and the keys of the sessions that were left out: those that
    were last active before OLD_SECONDS, unless this is the first prompt, or the first one after so long, and there is
    room; and the newest edit among the collisions."""
    from .forks import drop_copies
    from .new_entries import read_changed
    from .report import reports_of
    from .update_text import HEADER, most_lines, text_of

    seen = seen_until(cursors.get(own.key, {}), now)
    recent, is_start = now - OLD_SECONDS, now - seen >= 2 * OLD_SECONDS
    oldest = max(now - settings.first_sight_seconds, seen)
    left_out = [] if is_start else [session.key for session, status in changed if status.st_mtime < recent]
    if left_out:
        changed = [pair for pair in changed if pair[1].st_mtime >= recent]
    read, unread = read_changed(own, changed, cursors, now, oldest, most_lines(limit) + 1)
    read = drop_copies(read, observed.sessions, cursors, own)
    left = [pair for pair in changed[-unread:] if pair[1].st_mtime >= recent] if unread else []
    left_out += [session.key for session, status in changed[-unread:] if status.st_mtime < recent] if unread else ()
    count, are_more = _count_news([session for session, _ in left], cursors, settings, own, oldest)
    found = reports_of(read, own, settings, now)
    reports = [(report, new) for report, new in found if report is not None]
    moved: Cursors = {new.session.key: new.cursor for report, new in found if report is None}
    lines: list[str] = []
    edit = None
    if own.directory and _may_collide(own, cursors.get(own.key), reports):
        asked = (own, cursors, reports, now, oldest, limit - len(HEADER), settings.withhold)
        collisions = own.deadline.attempt("collisions", _prompt_collisions, *asked)
        if collisions is not None:
            lines, edit = collisions.lines, collisions.edit
            moved.update(collisions.moved)
            # A session is reported as a whole: with something that did not fit, all of it comes next time.
            reports = [pair for pair in reports if pair[1].session.key not in collisions.withheld]
        elif "collisions" in own.deadline.late and not cursors.get(own.key, {}).get("late"):
            # Behind its cursor nobody looks for collisions again: what has some waits, but for one prompt only.
            moved[own.key] = {**cursors.get(own.key, {"offset": 0}), "late": True}
            reports = [pair for pair in reports if not _may_have_edited(own, *pair)]
    if _has_conflicts(own, cursors):
        from .conflicts import new_lines

        cursor = {**(moved.get(own.key) or cursors.get(own.key, {}))}
        taken = sum([len(line) + 1 for line in lines])
        room = limit - len(HEADER) - taken
        lines = [*lines, *(own.deadline.attempt("conflicts", new_lines, own, cursor, now, room) or ())]
        moved[own.key] = cursor
    reports.sort(key=lambda pair: -pair[0].last_active)
    spoken = [pair for pair in reports if pair[0].summary.messages and not pair[0].is_empty]
    told = [pair for pair in spoken if not pair[0].is_nameless]
    count += len(spoken) - len(told)
    new_ones = [pair for pair in told if pair[0].last_active >= recent]
    listed = _worth_a_line(own, new_ones, most_lines(limit))
    count += len(new_ones) - len(listed)
    old = _worth_a_line(own, told[len(new_ones) :] if is_start else [], most_lines(limit))
    text, shown = text_of(
        [report for report, _ in listed + old], now, limit, count, are_more=are_more, old=len(old), first_lines=lines
    )
    told_of = [new.session.key for _, new in (listed + old)[:shown]]
    left_out += [new.session.key for _, new in told[len(new_ones) :] if new.session.key not in told_of]
    waiting = {new.session.key for _, new in new_ones}.difference(told_of)
    moved.update({new.session.key: new.cursor for _, new in reports if new.session.key not in waiting})
    return text, moved, left_out[:MOST_LEFT_OUT], edit


def _has_conflicts(own: OwnSession, cursors: Cursors) -> bool:
    """Check if upkeep keeps other conflicts between branches than at the last prompt."""
    return bool(conflicts_stamp(own) != cursors.get(own.key, {}).get("conflicts", []))


def _worth_a_line(own: OwnSession, told: list[tuple[Report, NewEntries]], most: int) -> list[tuple[Report, NewEntries]]:
    """Return the sessions that get a line, at most so many: those of which something can be named that they did; if
    there is none, all. What they ran is named. In the seed's form, all get one."""
    from .update_text import MOST_LINES

    concrete: list[tuple[Report, NewEntries]] = []
    for report, new in told[:most]:
        report.counts_deeds = own.counts_deeds
        if own.counts_deeds or len(concrete) == MOST_LINES:
            continue
        if report.with_text and report.summary.calls:
            report.ran = own.deadline.attempt("commands", _names_of, report, new)
        if report.is_concrete:
            concrete.append((report, new))
    return concrete or told[:most]


def _names_of(report: Report, new: NewEntries) -> list[str]:
    from .commands import names_of, note_outcomes

    if not new.session.team_root:
        note_outcomes(report.summary, new.runtime, new.session.path)
    return names_of(report.summary.ran)


def _count_news(
    left: list[Session], cursors: Cursors, settings: Settings, own: OwnSession, oldest: float
) -> tuple[int, bool]:
    """Return how many of the changed sessions that were not read have news that may be reported, and if there may be
    more: beyond MOST_COUNTED they are not looked at."""
    if not left:
        return 0, False
    from .new_entries import may_have_news
    from .report import MOST_COUNTED, count_visible, may_hide

    found: list[Session] = []
    looked_at = 0
    for session in left[: 2 * MOST_COUNTED]:
        if len(found) == MOST_COUNTED:
            break
        looked_at += 1
        if own.deadline.attempt(session.path, may_have_news, own, session, cursors.get(session.key), oldest):
            found.append(session)
    visible = len(found)
    if may_hide(settings, own.home) or any([session.is_elsewhere for session in found]):
        visible = own.deadline.attempt("unread sessions", count_visible, found, cursors, settings, own) or 0
    return visible, visible > 0 and looked_at < len(left)


def _may_collide(own: OwnSession, cursor: Cursors | None, reports: list[tuple[Report, NewEntries]]) -> bool:
    """Check if another session may have changed a file, HEAD was moved, or a call without a result may be over."""
    if cursor is None or not is_head_known(cursor, own.directory) or cursor.get("open"):
        return True
    return any(_may_have_edited(own, *pair) for pair in reports)


def _may_have_edited(own: OwnSession, report: Report, new: NewEntries) -> bool:
    """Check if another session edited something, ran a command or has sub-agents."""
    tools = [tool for entry in report.entries if entry.tools for tool in entry.tools]
    return any([tool.kind in ("edit", "command") for tool in tools]) or bool(own.sub_agents_of(new.session))


class PromptCollisions:
    """Collisions for one prompt: the `lines` about them, and in `withheld` the keys of the sessions of which something
    did not fit. `moved` are the own cursor, with what is checked out, and the state to keep."""

    def __init__(self, own: OwnSession, cursor: Cursor) -> None:
        self.moved: Cursors = {own.key: cursor}
        self.lines: list[str] = []
        self.edit: Edit | None = None
        self.withheld: set[str] = set()


def _prompt_collisions(
    own: OwnSession, cursors: Cursors, others: list[tuple[Report, NewEntries]], now: float, oldest: float, room: int,
    withhold: float,
) -> PromptCollisions:  # fmt: skip
    """Return the collisions with the sessions `others`, in lines of at most `room` characters in all, each with a line
    feed. `cursors` are those of the session; `oldest` says how far back its transcript is read at first; `withhold`
    is the share that a coin holds back. Raises OSError if the transcript cannot be read."""
    before = cursors.get(own.key, {})
    from ..system.git import find_worktree, head_of

    worktree = find_worktree(own.directory, own.user_dir)
    git_dir = worktree.git_dir if worktree else ""
    stamp = head_stamp(git_dir) if git_dir else []  # before HEAD is read: a later move is seen next time
    head = head_of(git_dir) if git_dir else ""
    known_head = before.get("branch", "") if before.get("git") == git_dir else ""
    checked_out = {"directory": own.directory, "git": git_dir, "stamp": stamp, "branch": head, "at": now, "late": False}
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
    is_known = "tail" in before and COLLISIONS in cursors  # 0.2.0 kept the collisions elsewhere
    new = read_own(own, before if is_known else None, now, oldest)
    actions = actions_of(new.entries)
    actions += sub_agent_actions(own.sub_agents(), own.runtime, state.sub_agents, oldest)
    resolve_symlinks(actions)
    state.working_set.add(sorted(actions, key=lambda action: action.time))
    known = Known(own, state, worktree, None, now, oldest)
    known.withhold = withhold
    if known_head and before.get("stamp") != stamp:
        known.heads = (known_head, head)
    _add_lines(known, others, found, room)
    for _, unseen in others:
        if unseen.session.key in found.withheld:
            state.sub_agents.update({path: offsets.get(path, 0) for path in own.sub_agents_of(unseen.session)})
    kept = state.content()
    if kept != content:
        found.moved[COLLISIONS] = kept
    found.moved[own.key].update(new.cursor)
    found.moved[own.key]["open"] = bool(state.open_actions)  # calls that had no result yet
    return found


def _add_lines(known: Known, others: list[tuple[Report, NewEntries]], found: PromptCollisions, room: int) -> None:
    """Search, and add the lines about what was found."""
    from .collisions import find

    state = known.state
    findings = find(known, others)
    known.own.may_conflict = bool(known.heads) or any([fact.worktree for fact in findings.facts])
    state.open_actions.update({key: actions for key, actions in findings.open_actions.items() if actions})
    found.withheld = findings.failed
    if findings.facts:
        from .collisions.facts import lines_of, newest_edit, reports_by_key

        facts = findings.facts
        if known.withhold or state.draws:
            from .collisions.coin import told_now

            facts = told_now(known, facts, findings.evidence)
        worktree, reports = known.worktree, reports_by_key(others)
        directory = worktree.root if worktree and worktree.root else known.own.directory
        found.lines, reported = lines_of(facts, reports, directory, known.now, room)
        found.edit = newest_edit(reported, reports, directory)
        for fact in reported:
            state.reported.pop(fact.key, None)
            state.reported[fact.key] = fact.own_time
        found.withheld |= {fact.session for fact in findings.facts if fact not in reported}


def _cursors_from(since: float, changed: list[Changed], now: float, deadline: Deadline) -> Cursors:
    """Return cursors in place of lost ones: new is what the sessions wrote since the time `since`."""
    from .new_entries import cursors_at_end

    # In whole milliseconds, as transcripts have their times. Files written within one tick of the clock have one time.
    seen = int(since * 1000) / 1000
    lost: Cursors = {session.key: {"offset": 0, "tail": 0, "seen": seen} for session, _ in changed}
    reported = [(session, status) for session, status in changed if status.st_mtime < since]
    return {**lost, **cursors_at_end(reported, now, deadline)}
