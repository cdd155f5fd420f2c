"""An update on its way to a session: made from what changed, handed over, and only then counted as told.

Every prompt loads this. What reads transcripts and writes the text is loaded where a transcript changed.
"""

from __future__ import annotations

from ..system.files import is_file
from .changes import is_head_known
from .cursor_file import LAST, CursorFile, KnownCursors, is_whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..settings.compiled import Settings
    from ..system.deadline import Deadline
    from ..transcripts.cursor import Cursor
    from ..transcripts.entries import Session
    from .acknowledgement import Settled
    from .changes import Changed, Observation, OwnSession
    from .collision_file import CollisionFile
    from .in_hand import Collisions
    from .report import Report
    from .unseen import Unseen

    Cursors = dict[str, Cursor]  # by the key of the session that was read


class Delivery:
    """What there is to tell: `text`, None for nothing. `unmoved` is the session's own cursor where nothing has changed
    since the last prompt, else None. To be used in a `with` block.

    The new cursors are written beside the old ones when the block begins, and put in their place when it ends without
    an exception: what is killed in between is told again. Where the transcript is going to show what was told,
    `commit_first` puts them there before it is: then the transcript tells whether they count.
    """

    def __init__(self, file: CursorFile, draft: _Draft, pending_path: str = "", is_shown: bool = False) -> None:
        """`pending_path` is where the file of collisions waits until the transcript shows what is told. `is_shown` says
        that there is one."""
        self.text = draft.text
        self.unmoved = draft.unmoved
        self._file = file
        self._is_changed = draft.cursors is not None or file.was_corrupt
        self._collision_file = draft.collision_file
        self._pending_path = pending_path
        self._is_shown = is_shown

    def __enter__(self) -> Delivery:
        """Raises OSError where the cursors cannot be written."""
        try:
            if self._is_changed:
                if self._collision_file:
                    self._collision_file.prepare()
                self._file.prepare()
        except BaseException:
            self._file.close()
            raise
        return self

    def is_first_to_answer(self, prompt: str) -> bool:
        """Whether this prompt was not answered by another copy of our hook, as of a plugin beside an install: else
        nothing is to be told now, and nothing counts as told. Raises OSError."""
        is_first = self._file.is_first_to_answer(prompt)
        self._is_changed = self._is_changed and is_first
        return is_first

    def commit_first(self) -> None:
        """Puts the cursors in place before the text is handed over, if the transcript is going to show it."""
        if self._is_changed and self._is_shown:
            self._commit()
            self._is_changed = False

    def __exit__(self, error_type: type[BaseException] | None, *_: object) -> None:
        try:
            if self._is_changed and error_type is None:
                self._commit()
        finally:
            self._file.close()

    def _commit(self) -> None:
        if self._collision_file:  # before the cursors: what is read again is known to be told
            self._collision_file.commit(self._pending_path)
        self._file.commit()


class _Draft:
    """What there is to tell a session, before anything is written: the `text`, None for nothing; the `cursors` behind
    it, None where they stay as they are, and those `before` it; what is to be kept of collisions; and `unmoved`, as a
    delivery has it."""

    def __init__(self, cursors: Cursors | None = None) -> None:
        self.text: str | None = None
        self.cursors = cursors
        self.before: Cursors = {}
        self.collision_file: CollisionFile | None = None
        self.unmoved: Cursor | None = None


def open_update(
    own: OwnSession, observed: Observation, *, settings: Settings, now: float, limit: int, introduction: str = ""
) -> Delivery:
    """What the sessions did that were `observed` for the session `own`, and it has not been told, in at most `limit`
    characters behind the `introduction`, which counts. No other process is told it as long as the delivery is open.

    What a fork copied from its transcript is nothing new. Collisions are looked for where its directory is known.
    `settings` are those of its home; without that, their rules alone count. `now` is in seconds since the epoch. What
    was told last and is not in its transcript is told again. Where the cursor file cannot be read, what was there when
    it was written last counts as told; where the session is a fork at its first prompt, what is there now. Raises
    LockedError where another delivery has the same cursors, OSError where they cannot be had.
    """
    file = CursorFile(own.cursor_file)
    try:
        settled = _settled(file, own)
        if settled and settled.takes_collisions:
            from .acknowledgement import take_collisions

            take_collisions(own.cursor_file)
        draft = _draft(own, file, settled, observed, settings, now, limit, introduction)
        pending = ""
        if draft.text and draft.cursors is not None and _may_be_shown(own):
            from .acknowledgement import pending_path, with_last

            has_collisions = draft.collision_file is not None
            draft.cursors = with_last(draft.before, draft.cursors, draft.text, own, now, has_collisions=has_collisions)
            pending = pending_path(own.cursor_file) if "cursors" in draft.cursors[LAST] else ""
        if draft.cursors is not None:
            file.cursors[own.key] = draft.cursors
        # What a hook without a transcript has not printed yet, nothing would show to be lost.
        return Delivery(file, draft, pending, bool(pending) and (own.keeps_transcript is True or is_file(own.path)))
    except BaseException:
        file.close()
        raise


def waiting_text(
    own: OwnSession, observed: Observation, *, settings: Settings, now: float, limit: int, introduction: str = ""
) -> str:
    """What `open_update` would tell, '' for nothing; without a lock, and nothing is written. Raises OSError."""
    known = KnownCursors(own.cursor_file)
    settled = _settled(known, own)
    if settled and settled.takes_collisions:
        from .acknowledgement import pending_path

        own.collision_file = pending_path(own.cursor_file)
    return _draft(own, known, settled, observed, settings, now, limit, introduction).text or ""


def _may_be_shown(own: OwnSession) -> bool:
    """Whether a transcript is going to show what is told, if there will be one."""
    return bool(own.path) and own.runtime.SHOWS_WHAT_WAS_TOLD and own.keeps_transcript is not False


def _settled(known: KnownCursors, own: OwnSession) -> Settled | None:
    """What became of what was told last, where that is not settled."""
    last = known.cursors.get(own.key, {}).get(LAST)
    if last is None or "acknowledged" in last or not own.path:
        return None
    from .acknowledgement import settle

    return settle(known.cursors[own.key], own)


def _draft(
    own: OwnSession,
    known: KnownCursors,
    settled: Settled | None,
    observed: Observation,
    settings: Settings,
    now: float,
    limit: int,
    introduction: str,
) -> _Draft:
    """What there is to tell the session `own`, whose `known` cursors are those that were `settled`, if they were."""
    if settled and settled.is_open:
        return _Draft()
    cursors = settled.cursors if settled else known.cursors.get(own.key, {})
    changed = observed.changed(cursors, now - settings.first_sight_seconds)
    draft, notes = _Draft(cursors if settled else None), own.deadline.notes
    if settled:
        notes += settled.notes
    since = known.written if known.was_corrupt else None
    if since is not None:
        notes.append(f"{own.cursor_file}: could not be read, set aside as .corrupt; going on from its last change")
    elif not changed and (not own.directory or is_head_known(cursors.get(own.key), own.directory)):
        if settled is None:
            draft.unmoved = cursors.get(own.key, {})
        return draft
    elif own.key not in known.cursors:
        since = _forked_before(own, now - settings.first_sight_seconds, now)
    if since is not None:
        cursors = _cursors_from(since, changed, now, own.deadline)
        changed = [pair for pair in changed if pair[1].st_mtime > since]
    read_on = {own.key, *[session.key for session, _ in changed]}
    cursors = {key: cursor for key, cursor in cursors.items() if key not in read_on or is_whole(cursor)}
    room = limit - len(introduction)
    text, moved, collisions = _update(own, changed, observed.sessions, cursors, settings, now, room)
    both = {**cursors, **moved}
    # Sessions that are no more go, so that the file does not grow with the years; unless some could not be listed now.
    keys = [LAST, own.key, *[session.key for session in observed.sessions], *(both if own.deadline.failed else ())]
    draft.before = {key: cursors[key] for key in keys if key in cursors}
    if text or settled or since is not None or any(cursors.get(key) != cursor for key, cursor in moved.items()):
        draft.cursors = {key: both[key] for key in keys if key in both}
    draft.collision_file = collisions.file if collisions is not None else None
    draft.text = introduction + text if text else None
    return draft


def begin_here(own: OwnSession, observed: Observation, *, settings: Settings, now: float) -> None:
    """Counts everything that is there now as told to the session `own`, unless it was told something before. Raises as
    `open_update` does."""
    file = CursorFile(own.cursor_file)
    try:
        if own.key not in file.cursors:
            changed = observed.changed({}, now - settings.first_sight_seconds)
            file.cursors[own.key] = _cursors_at_end(changed, now, own.deadline)
            file.prepare()
            file.commit()
    finally:
        file.close()


def _update(
    own: OwnSession,
    changed: list[Changed],
    sessions: list[Session],
    cursors: Cursors,
    settings: Settings,
    now: float,
    limit: int,
) -> tuple[str, Cursors, Collisions | None]:
    """The text about `changed` in at most `limit` characters, '' if nothing is new in them, the cursors behind what it
    tells of and behind what held nothing to tell, and the collisions, None where there can be none."""
    from .forks import drop_copies
    from .report import may_hide, reports_of
    from .unseen import read_changed
    from .updates import HEADER, most_lines, text_of

    deadline = own.deadline
    oldest = now - settings.first_sight_seconds
    read, unread = read_changed(changed, cursors, own.runtime, now, oldest, most_lines(limit) + 1, deadline)
    read = drop_copies(read, sessions, cursors, own)
    left = [session for session, _ in changed[-unread:]] if unread else []
    if left and (may_hide(settings, own.home) or any([session.is_elsewhere for session in left])):
        from .unread import count_told

        unread = deadline.attempt("sessions that were not read", count_told, left, cursors, settings, own) or 0
    found = reports_of(read, own, settings, now)
    reports = [(report, unseen) for report, unseen in found if report is not None]
    moved: Cursors = {unseen.session.key: unseen.cursor for report, unseen in found if report is None}
    collisions = None
    lines: list[str] = []
    if own.directory and _may_collide(own, cursors.get(own.key), reports):
        from .in_hand import find_collisions

        room = limit - len(HEADER)
        asked = (own, cursors.get(own.key), reports, now, oldest, room)
        collisions = deadline.attempt("collisions", find_collisions, *asked)
    if collisions is not None:
        lines, moved[own.key] = collisions.lines, collisions.cursor
        # What is told of a session is told together: what did not fit comes next, with all else that it did.
        reports = [pair for pair in reports if pair[1].session.key not in collisions.not_told]
    moved.update({unseen.session.key: unseen.cursor for report, unseen in reports if report.is_empty})
    reports = [pair for pair in reports if not pair[0].is_empty]
    reports.sort(key=lambda pair: -pair[0].last_active)
    text, told = text_of([report for report, _ in reports], now, limit, unread, lines)
    for _, unseen in reports[:told]:
        moved[unseen.session.key] = unseen.cursor
    return text, moved, collisions


def _may_collide(own: OwnSession, cursor: Cursor | None, reports: list[tuple[Report, Unseen]]) -> bool:
    """Whether another session may have changed a file, or HEAD was moved, or a call of before may be done."""
    if cursor is None or not is_head_known(cursor, own.directory) or cursor.get("open"):
        return True
    entries = [entry for report, _ in reports for entry in report.entries if entry.tools]
    if any([tool.kind in ("edit", "command") for entry in entries for tool in entry.tools]):
        return True
    return any([own.sub_agents_of(one.session) for _, one in reports])


def _cursors_at_end(changed: list[Changed], now: float, deadline: Deadline) -> Cursors:
    from .unseen import cursors_at_end

    return cursors_at_end(changed, now, deadline)


def _cursors_from(since: float, changed: list[Changed], now: float, deadline: Deadline) -> Cursors:
    """Cursors in place of those that were lost: what the sessions wrote since the time `since` is behind them."""
    seen = int(since * 1000) / 1000  # in whole milliseconds, as transcripts have their times
    lost: Cursors = {session.key: {"offset": 0, "tail": 0, "seen": seen} for session, _ in changed}
    told = [(session, status) for session, status in changed if status.st_mtime <= since]
    return {**lost, **_cursors_at_end(told, now, deadline)}


def _forked_before(own: OwnSession, oldest: float, now: float) -> float | None:
    from .forks import forked_before

    return own.deadline.attempt(own.path, forked_before, own.path, own.runtime, oldest, now) if own.path else None
