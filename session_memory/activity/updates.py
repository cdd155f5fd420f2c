"""Updates: from what changed in the other sessions to the text for this one, in one pass.

Changes, entries, reports and collisions, text: each is made once and passed on. Every prompt with news loads this; what
reads transcripts is loaded only if one changed.
"""

from __future__ import annotations

from ..system.files import is_file
from .changes import is_head_known, standstill
from .delivery import Delivery
from .state import COLLISIONS, LAST, MEMORIES, KnownState, StateFile, is_whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..settings.compiled import Settings
    from ..system.deadline import Deadline
    from .acknowledgement import DeliveryOutcome
    from .changes import Changed, Observation, OwnSession
    from .new_entries import NewEntries
    from .report import Report
    from .state import Cursors


class Update:
    """An update: its `text`, None for nothing; the `cursors` after it, None if they stay; `is_shown` if the own
    transcript will show it; and the `standstill` to keep if nothing changed since the last prompt, else None."""

    def __init__(self, cursors: Cursors | None = None) -> None:
        self.text: str | None = None
        self.cursors = cursors
        self.is_shown = False
        self.standstill: list[object] | None = None


def open_update(
    own: OwnSession, observed: Observation, *, settings: Settings, now: float, limit: int, introduction: str = ""
) -> Delivery:
    """Return the delivery of what the `observed` sessions did since the last update of the session `own`, in at most
    `limit` characters with the `introduction`. While it is open, no other process delivers it.

    Entries that a fork copied from its transcript are not new. Collisions are searched if its directory is known.
    `settings` are those of its home; without a home only their rules count. `now` is in seconds since the epoch. If the
    last update is not in its transcript, it is repeated. If the state cannot be read, everything up to its last write
    counts as reported; for a fork at its first prompt, everything up to now. Raises LockedError if another delivery
    has the same state, OSError if the state is not accessible.
    """
    file = StateFile(own.cursor_file)
    try:
        return Delivery(own, file, _make(own, file, observed, settings, now, limit, introduction))
    except BaseException:
        file.close()
        raise


def waiting_text(
    own: OwnSession, observed: Observation, *, settings: Settings, now: float, limit: int, introduction: str = ""
) -> str:
    """Return the text that `open_update` would deliver, '' for nothing; without a lock, nothing is written. Raises
    OSError."""
    return _make(own, KnownState(own.cursor_file), observed, settings, now, limit, introduction).text or ""


def begin_here(own: OwnSession, observed: Observation, *, settings: Settings, now: float) -> None:
    """Count everything up to now as reported to the session `own`, unless it had an update before. Raises what
    `open_update` does."""
    file = StateFile(own.cursor_file)
    try:
        if file.is_new(own.key):
            from .new_entries import cursors_at_end

            changed = observed.changed({}, now - settings.first_sight_seconds)
            file.cursors[own.key] = {**file.of(own.key), **cursors_at_end(changed, now, own.deadline)}
            file.prepare()
            file.commit()
    finally:
        file.close()


def _make(
    own: OwnSession, known: KnownState, observed: Observation, settings: Settings, now: float, limit: int,
    introduction: str,
) -> Update:  # fmt: skip
    """Return the update, after the last one is resolved."""
    before = known.of(own.key, with_old=bool(own.path))
    outcome = _outcome(before, own)
    if outcome and outcome.is_open:
        return Update()
    cursors, notes = outcome.cursors if outcome else before, own.deadline.notes
    notes += outcome.notes if outcome else ()
    oldest = now - settings.first_sight_seconds
    changed = observed.changed(cursors, oldest)
    update = Update(cursors if outcome else None)
    since = known.written if known.was_corrupt else None
    if since is not None:
        notes.append(f"{own.cursor_file}: could not be read, renamed to .corrupt; continuing from its last change")
    elif not changed and (not own.directory or is_head_known(cursors.get(own.key), own.directory)):
        if outcome is None:
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
    text, moved = _report(own, changed, observed, cursors, settings, now, limit - len(introduction))
    after = {**cursors, **moved}
    # Sessions that are gone are dropped, so that the state does not grow with the years; unless some were not listed.
    keys = [LAST, COLLISIONS, MEMORIES, own.key, *[session.key for session in observed.sessions]]
    keys += after if own.deadline.failed else ()
    if text or outcome or since is not None or any(cursors.get(key) != cursor for key, cursor in moved.items()):
        update.cursors = {key: after[key] for key in keys if key in after}
    if text:
        update.text = introduction + text
        if own.path and own.runtime.SHOWS_WHAT_WAS_TOLD and own.keeps_transcript is not False:
            from .acknowledgement import with_last

            before = {key: cursors[key] for key in keys if key in cursors}
            update.cursors = with_last(before, update.cursors or {}, update.text, own, now)
            # Without a transcript, nothing would show that an update was lost which was not printed yet.
            update.is_shown = own.keeps_transcript is True or is_file(own.path)
    return update


def _outcome(cursors: Cursors, own: OwnSession) -> DeliveryOutcome | None:
    """Return the outcome of the last delivery if it is not resolved."""
    last = cursors.get(LAST)
    if last is None or "acknowledged" in last or not own.path:
        return None
    from .acknowledgement import resolve_delivery

    return resolve_delivery(cursors, own)


def _report(
    own: OwnSession, changed: list[Changed], observed: Observation, cursors: Cursors, settings: Settings, now: float,
    limit: int,
) -> tuple[str, Cursors]:  # fmt: skip
    """Return the text about `changed` in at most `limit` characters, '' if nothing is new in them, and the cursors
    behind what it reports and behind what held nothing to report."""
    from .forks import drop_copies
    from .new_entries import read_changed
    from .report import count_visible, may_hide, reports_of
    from .update_text import HEADER, most_lines, text_of

    oldest = now - settings.first_sight_seconds
    read, unread = read_changed(own, changed, cursors, now, oldest, most_lines(limit) + 1)
    read = drop_copies(read, observed.sessions, cursors, own)
    left = [session for session, _ in changed[-unread:]] if unread else []
    if left and (may_hide(settings, own.home) or any([session.is_elsewhere for session in left])):
        unread = own.deadline.attempt("unread sessions", count_visible, left, cursors, settings, own) or 0
    found = reports_of(read, own, settings, now)
    reports = [(report, new) for report, new in found if report is not None]
    moved: Cursors = {new.session.key: new.cursor for report, new in found if report is None}
    lines: list[str] = []
    if own.directory and _may_collide(own, cursors.get(own.key), reports):
        from .prompt_collisions import prompt_collisions

        asked = (own, cursors, reports, now, oldest, limit - len(HEADER))
        collisions = own.deadline.attempt("collisions", prompt_collisions, *asked)
        if collisions is not None:
            lines = collisions.lines
            moved.update(collisions.moved)
            # A session is reported as a whole: with something that did not fit, all of it comes next time.
            reports = [pair for pair in reports if pair[1].session.key not in collisions.withheld]
    moved.update({new.session.key: new.cursor for report, new in reports if report.is_empty})
    reports = [pair for pair in reports if not pair[0].is_empty]
    reports.sort(key=lambda pair: -pair[0].last_active)
    text, shown = text_of([report for report, _ in reports], now, limit, unread, lines)
    moved.update({new.session.key: new.cursor for _, new in reports[:shown]})
    return text, moved


def _may_collide(own: OwnSession, cursor: Cursors | None, reports: list[tuple[Report, NewEntries]]) -> bool:
    """Check if another session may have changed a file, HEAD was moved, or a call without a result may be over."""
    if cursor is None or not is_head_known(cursor, own.directory) or cursor.get("open"):
        return True
    entries = [entry for report, _ in reports for entry in report.entries if entry.tools]
    if any([tool.kind in ("edit", "command") for entry in entries for tool in entry.tools]):
        return True
    return any([own.sub_agents_of(new.session) for _, new in reports])


def _cursors_from(since: float, changed: list[Changed], now: float, deadline: Deadline) -> Cursors:
    """Return cursors in place of lost ones: new is what the sessions wrote since the time `since`."""
    from .new_entries import cursors_at_end

    # In whole milliseconds, as transcripts have their times. Files written within one tick of the clock have one time.
    seen = int(since * 1000) / 1000
    lost: Cursors = {session.key: {"offset": 0, "tail": 0, "seen": seen} for session, _ in changed}
    reported = [(session, status) for session, status in changed if status.st_mtime < since]
    return {**lost, **cursors_at_end(reported, now, deadline)}
