"""Updates: from what changed in the other sessions to the text for this one, in one pass.

Changes, entries, reports and collisions, text: each is made once and passed on. Every prompt with
news loads this; what reads transcripts is loaded only if one changed. For collisions the own
transcript is read on, and what is checked out is noted."""

from __future__ import annotations

from ...common.system.files import is_file
from ...common.text.timestamps import age
from ...sessions.transcripts.read_cursor import ReadCursor, ReadCursors
from .changes import OLD_SECONDS, conflicts_stamp, is_head_known, seen_until, standstill
from .delivery import Delivery, resolved, with_last
from .session_state import KnownState, OwnState, SessionState, StateFile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ...common.system.deadline import Deadline
    from ...sessions.settings.compiled import Settings
    from ...sessions.transcripts.entries import Session
    from ._new_entries import NewEntries
    from ._own_work import OwnWork
    from .changes import Changed, Observation, OwnSession
    from .collisions import Known
    from .report import Report
    from .status_line import Edit

    Reports = list[tuple[Report, NewEntries]]

MOST_LEFT_OUT = 20  # sessions that are noted
SAME_SECONDS = 600  # within which the same prompt is given to two sessions by mistake
PROMPT_CHARACTERS = 4000  # that are searched for names of files
SHORT_BYTES = 64 * 1024  # of a session that is seen first so many are read in any case


class Update:
    """An update: its `text`, None for nothing; the `state` after it, None if it stays;
    `is_shown` if the own transcript will show it; the `standstill` to keep if nothing changed since
    the last prompt, else None; and the newest `edit` in it for a status line, None for none."""

    def __init__(self, state: SessionState | None = None) -> None:
        self.text: str | None = None
        self.state = state
        self.is_shown = False
        self.standstill: list[object] | None = None
        self.edit: Edit | None = None


def open_update(
    own: OwnSession,
    observed: Observation,
    *,
    settings: Settings,
    now: float,
    limit: int,
    introduction: str = "",
) -> Delivery:
    """Return the delivery of what the `observed` sessions did since the last update of the session
    `own`, in at most `limit` characters with the `introduction`. While it is open, no other process
    delivers it.

    Entries that a fork copied from its transcript are not new. Collisions are searched if its
    directory is known. `settings` are those of its home; without a home only their rules count.
    `now` is in seconds since the epoch. If the last update is not in its transcript, it is
    repeated. If the state cannot be read, everything up to its last write counts as reported; for a
    fork at its first prompt, everything up to now. Raises LockedError if another delivery has the
    same state, OSError if the state is not accessible."""
    file = StateFile(own.cursor_file)
    try:
        return Delivery(own, file, _make(own, file, observed, settings, now, limit, introduction))
    except BaseException:
        file.close()
        raise


def waiting_text(
    own: OwnSession,
    observed: Observation,
    *,
    settings: Settings,
    now: float,
    limit: int,
    introduction: str = "",
) -> str:
    """The text that `open_update` would deliver, '' for nothing; nothing is locked or written.
    Raises OSError."""
    return (
        _make(own, KnownState(own.cursor_file), observed, settings, now, limit, introduction).text
        or ""
    )


def begin_here(own: OwnSession, observed: Observation, *, settings: Settings, now: float) -> None:
    """Count everything up to now as reported to the session `own`, unless it had an update. Raises
    as `open_update`."""
    with StateFile(own.cursor_file) as file:
        if file.is_new(own.key):
            from ._new_entries import cursors_at_end

            changed = observed.changed(ReadCursors(), now - settings.first_sight_seconds)
            read = SessionState(cursors_at_end(changed, now, own.deadline))
            file.put(own.key, file.of(own.key).merged(read))
            file.prepare()
            file.commit()


def _make(
    own: OwnSession,
    known: KnownState,
    observed: Observation,
    settings: Settings,
    now: float,
    limit: int,
    introduction: str,
) -> Update:
    """Return the update, after the last one is resolved."""
    before = known.of(own.key)
    state = resolved(before, own)
    if state is None:
        return Update()
    is_resolved = state is not before
    seen, pending = seen_until(state.own, now), state.own.pending if state.own else {}
    oldest = max(now - settings.first_sight_seconds, seen)
    changed = [
        pair
        for pair in observed.changed(state.cursors, oldest)
        if pair[1].st_mtime >= seen or pair[0].key in pending
    ]
    update = Update(state if is_resolved else None)
    since = known.written if known.was_corrupt else None
    if since is not None:
        own.deadline.notes.append(
            f"{own.cursor_file}: could not be read, renamed to .corrupt; continuing from its "
            f"last change"
        )
    elif not (changed or _has_conflicts(own, state.own)) and (
        not own.directory or is_head_known(state.own, own.directory)
    ):
        if not is_resolved:
            seconds = settings.first_sight_seconds
            update.standstill = standstill(own, observed, seconds, state.own)
        return update
    elif known.is_new(own.key) and own.path:
        from ._forks import forked_before

        since = own.deadline.attempt(own.path, forked_before, own.path, own.runtime, oldest, now)
    if since is not None:
        state = SessionState(_cursors_from(since, changed, now, own.deadline))
        changed = [pair for pair in changed if pair[1].st_mtime >= since]
    making = _Pass(own, observed, state, settings, now, limit - len(introduction))
    text, update.edit = making.text(changed), making.edit
    changes = making.changes()
    # Sessions that are gone are dropped, so that the state does not grow with the years; unless
    # some were not listed.
    if not own.deadline.failed:
        state = state.limited([session.key for session in observed.sessions])
    if text or is_resolved or since is not None or making.has_moved:
        update.state = state.merged(changes)
    if text:
        update.text = introduction + text
        if own.path and own.runtime.SHOWS_WHAT_WAS_TOLD and own.keeps_transcript is not False:
            update.state = with_last(state, changes, update.text, own, now)
            # Without a transcript, nothing would show that an update was lost which was not printed
            # yet.
            update.is_shown = own.keeps_transcript is True or is_file(own.path)
    return update


class _Pass:
    """One update for the session `reader` at the time `now`: the parts of its `state` that `moved`, the
    `lines` that come first, and the newest `edit` in these. `count` more sessions have news, and
    perhaps others if there `are_more`. Sessions `left_out` were last active before OLD_SECONDS. The
    `pending` ones may have done something to this session's work, and could not be compared with
    it, as the `waiting` ones at the last prompt: each has how often that was late."""

    def __init__(
        self,
        reader: OwnSession,
        observed: Observation,
        state: SessionState,
        settings: Settings,
        now: float,
        limit: int,
    ) -> None:
        self.reader = reader
        self.observed = observed
        self.state = state
        self.cursors = state.cursors
        self.own = state.own
        self.settings = settings
        self.now = now
        self.limit = limit
        seen = seen_until(self.own, now)
        self.recent = now - OLD_SECONDS
        self.is_start = now - seen >= 2 * OLD_SECONDS
        self.oldest = max(now - settings.first_sight_seconds, seen)
        self.work: OwnWork | None = None
        self.moved = SessionState()
        self.lines: list[str] = []
        self.edit: Edit | None = None
        self.count = 0
        self.are_more = False
        self.active: set[str] = set()  # sessions of which it is known that they have news
        self.left_out: list[str] = []
        self.waiting = self.own.pending if self.own else {}
        self.pending: dict[str, int] = {}

    def text(self, changed: list[Changed]) -> str:
        """Return the text about `changed`, '' if nothing is new in them."""
        from .report import reports_of

        pairs = reports_of(self._read(changed), self.reader, self.settings, self.now)
        reports = [(report, new) for report, new in pairs if report is not None]
        self._move([new for report, new in pairs if report is None])
        reports = self._without_collisions(reports)
        self._add_conflicts()
        self._add_same_request(reports)
        return self._text_of(reports)

    def _move(self, read: Iterable[NewEntries]) -> None:
        """Move the cursors of sessions behind the entries that were read."""
        for new in read:
            self.moved.cursors.set(new.session.key, new.cursor)

    def changes(self) -> SessionState:
        """Return the parts of the state that changed with the update."""
        changes = self.moved.copy()
        changes.own = (self.moved.own or self.own or OwnState()).copy()
        changes.own.asked, changes.own.pending = self.now, self.pending
        changes.own.left_out = self.left_out[:MOST_LEFT_OUT]
        return changes

    @property
    def has_moved(self) -> bool:
        """Check if something is to be kept, even without a text."""
        if self.left_out or self.pending != self.waiting:
            return True
        moved, own = self.moved, self.own
        if moved.collisions is not None:
            return True
        if moved.own is not None and (own is None or moved.own.dump() != own.dump()):
            return True
        return any([self.cursors.get(key) != cursor for key, cursor in moved.cursors.items()])

    def _read(self, changed: list[Changed]) -> list[NewEntries]:
        """Return the new entries of the sessions that are told: first of those that may concern
        this session's work, however old and many, then of the last ones. Sessions that were last
        active before OLD_SECONDS are left out else, unless this is the first prompt, or the first
        one after so long, and there is room."""
        from ._forks import drop_copies
        from ._new_entries import read_changed
        from ._update_text import most_lines

        most = most_lines(self.limit) + 1
        concerned = self._concerned(changed, most)
        if not self.is_start:
            young = [
                pair
                for pair in changed
                if pair[1].st_mtime >= self.recent or pair[0].key in concerned
            ]
            if len(young) < len(changed):
                keys = {session.key for session, _ in young}
                self.left_out = [session.key for session, _ in changed if session.key not in keys]
            changed = young
        if concerned:
            changed = sorted(changed, key=lambda pair: pair[0].key not in concerned)
        until = (self.now, self.oldest, most + len(concerned))
        read, unread = read_changed(self.reader, changed, self.cursors, *until, all_of=concerned)
        if unread:
            left = [
                session for session, status in changed[-unread:] if status.st_mtime >= self.recent
            ]
            self.left_out += [
                session.key
                for session, status in changed[-unread:]
                if status.st_mtime < self.recent
            ]
            self.count, self.are_more = _count_news(left, self)
            self._postpone(
                [session.key for session, _ in changed[-unread:] if session.key in concerned]
            )
        return drop_copies(read, self.observed.sessions, self.cursors, self.reader)

    def _concerned(self, changed: list[Changed], most: int) -> set[str]:
        """Return the keys of the sessions that may concern this session's work, of those that would
        not be read, or not back to where they were read last. Those that an earlier prompt could
        not look through come first."""
        if not self.reader.directory or self.own is None:
            return set()
        first = [pair for pair in changed if pair[0].key in self.waiting]
        searched = first + [
            pair
            for at, pair in enumerate(changed)
            if pair[0].key not in self.waiting
            and (at >= most or pair[1].st_mtime < self.recent or _may_be_cut(pair, self.cursors))
        ]
        if not searched:
            return set()
        work = self._own_work()
        if work is None or work.state is None:
            return set()
        from ._concerned import WorkSearch

        search = WorkSearch(self.reader, work, self.cursors, self.oldest)
        concerned, missed = search.concerned(searched)
        self._postpone(missed)
        self.active = search.active
        return concerned

    def _postpone(self, keys: Iterable[str], late: int = 0) -> None:
        """Leave it to the next prompt to compare sessions with this session's work."""
        self.pending.update(dict.fromkeys(keys, late))

    def _own_work(self) -> OwnWork | None:
        """Return this session's side of the collisions; None if it cannot be read."""
        if self.work is None:
            from ._own_work import OwnWork

            asked_of = (self.reader, self.state, self.now, self.oldest)
            self.work = self.reader.deadline.attempt("collisions", OwnWork, *asked_of)
        return self.work

    def _without_collisions(self, reports: Reports) -> Reports:
        """Add the lines about collisions, and return the reports of all sessions, except those with
        something that did not fit or could not be compared: each is reported as a whole, so all of
        it comes next time."""
        reader, late = self.reader, max(self.waiting.values(), default=0)
        if not reader.directory or not (self.work or _may_collide(reader, self.own, reports)):
            return reports
        suspects = [
            new.session.key for report, new in reports if _may_have_edited(reader, report, new)
        ]
        if late:  # the fewer sessions are compared, the sooner that is done
            self._postpone(suspects[max(1, len(suspects) >> late) :], late)
            reports = [pair for pair in reports if pair[1].session.key not in self.pending]
        before, work = len(reader.deadline.late), self._own_work()
        collisions = (
            reader.deadline.attempt("collisions", _prompt_collisions, self, work, reports)
            if work
            else None
        )
        if collisions is not None:
            self.moved = self.moved.merged(collisions.moved)
            self.lines, self.edit = collisions.lines, collisions.edit
            self._postpone(sorted(collisions.withheld - {""}))
        elif len(reader.deadline.late) > before:
            self._postpone(suspects, late + 1)
        return [pair for pair in reports if pair[1].session.key not in self.pending]

    def _add_conflicts(self) -> None:
        """Add the lines about conflicts with other branches."""
        reader = self.reader
        if _has_conflicts(reader, self.own):
            from .conflicts import new_lines

            own = (self.moved.own or self.own or OwnState()).copy()
            self.lines = [
                *self.lines,
                *(
                    reader.deadline.attempt(
                        "conflicts", new_lines, reader, own, self.now, self.room
                    )
                    or ()
                ),
            ]
            self.moved.own = own

    def _add_same_request(self, reports: Reports) -> None:
        """Add a line about each session that was just asked for the same in this directory."""
        request = self.reader.prompt.strip()
        if not self.reader.directory or self.reader.counts_deeds or not request:
            return
        from ...sessions.transcripts.reader import says_enough

        for report, new in reports if says_enough(request) else ():
            session = new.session
            if (
                not report.with_text
                or session.is_elsewhere
                or session.worktree
                or session.is_remote
            ):
                continue
            times = [
                entry.timestamp or 0.0 for entry in report.entries if entry.text.strip() == request
            ]
            if times and self.now - max(times) <= SAME_SECONDS:
                from .collisions.facts import called

                line = (
                    f"! {called(report)} got the same prompt {age(self.now - max(times))}, in "
                    f"this directory"
                )
                if len(line) < self.room:
                    self.lines = [*self.lines, line]

    @property
    def room(self) -> int:
        """The characters that the lines leave."""
        from ._update_text import HEADER

        return self.limit - len(HEADER) - sum([len(line) + 1 for line in self.lines])

    def _text_of(self, reports: Reports) -> str:
        """Return the text about the sessions that have room, and move the cursors of these and of
        those that did nothing to report."""
        from ._update_text import most_lines, text_of

        names, in_hand = named_files(self.reader.prompt), self.work.paths if self.work else ()
        ranks = {new.session.key: report.prefer(names, in_hand) for report, new in reports}
        reports.sort(key=lambda pair: (-ranks[pair[1].session.key], -pair[0].last_active))
        spoken = [pair for pair in reports if pair[0].summary.messages and not pair[0].is_empty]
        named = [pair for pair in spoken if not pair[0].is_nameless]
        new_ones = [pair for pair in named if pair[0].last_active >= self.recent]
        listed = _worth_a_line(self.reader, new_ones, most_lines(self.limit))
        count = self.count + len(spoken) - len(named) + len(new_ones) - len(listed)
        old = _worth_a_line(
            self.reader, named[len(new_ones) :] if self.is_start else [], most_lines(self.limit)
        )
        text, shown = text_of(
            [report for report, _ in listed + old],
            self.now,
            self.limit,
            count,
            are_more=self.are_more,
            old=len(old),
            first_lines=self.lines,
        )
        shown_keys = [new.session.key for _, new in (listed + old)[:shown]]
        self.left_out += [
            new.session.key
            for _, new in named[len(new_ones) :]
            if new.session.key not in shown_keys
        ]
        waiting = {new.session.key for _, new in new_ones}.difference(shown_keys)
        self._move([new for _, new in reports if new.session.key not in waiting])
        return text


def named_files(prompt: str) -> set[str]:
    """Return the names of the files that a prompt seems to name: its words with a dot inside."""
    words = [
        word.strip("\"'`()[]{}<>,;:!?.@*").rpartition("/")[2]
        for word in prompt[:PROMPT_CHARACTERS].split()
    ]
    return {word for word in words if "." in word[1:-1]}


def _may_be_cut(changed: Changed, cursors: ReadCursors) -> bool:
    """Check if a session is seen first, and has more than is read of such."""
    session, status = changed
    return cursors.get(session.key) is None and status.st_size > SHORT_BYTES


def _has_conflicts(own: OwnSession, state: OwnState | None) -> bool:
    """Check if upkeep keeps other conflicts between branches than at the last prompt."""
    return conflicts_stamp(own) != (state.conflicts if state else [])


def _worth_a_line(own: OwnSession, told: Reports, most: int) -> Reports:
    """Return the sessions that get a line, at most so many: those of which something can be named
    that they did; if there is none, all. What they ran is named. In the seed's form, all get
    one."""
    from ._update_text import MOST_LINES

    concrete: Reports = []
    for report, new in told[:most]:
        report.counts_deeds = own.counts_deeds
        if own.counts_deeds or len(concrete) == MOST_LINES:
            continue
        if report.with_text and report.summary.calls:
            report.ran = own.deadline.attempt("commands", _names_of, report, new)
        if report.with_text and not report.summary.edited_files and own.sub_agents_of(new.session):
            from ._commands import add_sub_agents

            own.deadline.attempt(
                "sub-agents", add_sub_agents, report, new, own.sub_agents_of(new.session)
            )
        if report.is_concrete:
            concrete.append((report, new))
    return concrete or told[:most]


def _names_of(report: Report, new: NewEntries) -> list[str]:
    from ._commands import names_of, note_outcomes

    if not new.session.team_root:
        note_outcomes(report.summary, new.runtime, new.session.path)
    return names_of(report.summary.ran)


def _count_news(left: list[Session], making: _Pass) -> tuple[int, bool]:
    """Return how many of the changed sessions that were not read have news that may be reported,
    and if there may be more: beyond MOST_COUNTED they are not looked at."""
    if not left:
        return 0, False
    from ._new_entries import may_have_news
    from .report import MOST_COUNTED, count_visible, is_elsewhere, may_hide

    own, cursors, oldest = making.reader, making.cursors, making.oldest
    found: list[Session] = []
    looked_at, are_more = 0, False
    for session in left:
        if is_elsewhere(session, cursors.get(session.key), own):
            continue
        if len(found) == MOST_COUNTED or looked_at == 2 * MOST_COUNTED:
            are_more = True
            break
        looked_at += 1
        asked = (own, session, cursors.get(session.key), oldest)
        if session.key in making.active or own.deadline.attempt(
            session.path, may_have_news, *asked
        ):
            found.append(session)
    visible = len(found)
    if may_hide(making.settings, own.home) or any([session.is_elsewhere for session in found]):
        asked_of = (found, cursors, making.settings, own)
        visible = own.deadline.attempt("unread sessions", count_visible, *asked_of) or 0
    return visible, visible > 0 and are_more


def _may_collide(own: OwnSession, state: OwnState | None, reports: Reports) -> bool:
    """Check if another session may have changed a file, HEAD was moved, or a call without a result
    may be over."""
    if state is None or not is_head_known(state, own.directory) or state.has_open_calls:
        return True
    return any(_may_have_edited(own, *pair) for pair in reports)


def _may_have_edited(own: OwnSession, report: Report, new: NewEntries) -> bool:
    """Check if another session edited something, ran a command or has sub-agents."""
    tools = [tool for entry in report.entries if entry.tools for tool in entry.tools]
    return any([tool.kind in ("edit", "command") for tool in tools]) or bool(
        own.sub_agents_of(new.session)
    )


class PromptCollisions:
    """Collisions for one prompt: the `lines` about them, and in `withheld` the keys of the sessions
    of which something did not fit. `moved` is the own state, with what is checked out, and the
    collisions to keep."""

    def __init__(self) -> None:
        self.moved = SessionState()
        self.lines: list[str] = []
        self.edit: Edit | None = None
        self.withheld: set[str] = set()


def _prompt_collisions(making: _Pass, work: OwnWork, others: Reports) -> PromptCollisions:
    """Return the collisions of the `work` with the sessions `others`, in lines that have room."""
    own, state = making.reader, work.state
    found = PromptCollisions()
    if state is not None and (others or work.heads or state.open_actions):
        from .collisions import Known

        known = Known(own, state, work.worktree, None, making.now, making.oldest)
        known.withhold = making.settings.withhold
        known.heads = work.heads
        _add_lines(known, others, found, making.room)
        for _, unseen in others:
            if unseen.session.key in found.withheld:
                before = work.sub_agents
                state.sub_agents.update(
                    {path: before.get(path, 0) for path in own.sub_agents_of(unseen.session)}
                )
    found.moved = work.moved()
    return found


def _add_lines(known: Known, others: Reports, found: PromptCollisions, room: int) -> None:
    """Search, and add the lines about what was found."""
    from .collisions import find

    state = known.state
    findings = find(known, others)
    known.own.may_conflict = bool(known.heads) or any([fact.worktree for fact in findings.facts])
    state.open_actions.update(
        {key: actions for key, actions in findings.open_actions.items() if actions}
    )
    found.withheld = findings.failed
    if findings.facts:
        from .collisions.facts import lines_of, newest_edit, reports_by_key

        facts = findings.facts
        if known.withhold or state.draws:
            from .collisions._coin import told_now

            facts = told_now(known, facts, findings.evidence)
        worktree, reports = known.worktree, reports_by_key(others)
        directory = worktree.root if worktree and worktree.root else known.own.directory
        found.lines, reported = lines_of(facts, reports, directory, known.now, room)
        found.edit = newest_edit(reported, reports, directory)
        for fact in reported:
            state.reported.pop(fact.key, None)
            state.reported[fact.key] = fact.own_time
        found.withheld |= {fact.session for fact in findings.facts if fact not in reported}


def _cursors_from(
    since: float, changed: list[Changed], now: float, deadline: Deadline
) -> ReadCursors:
    """Return cursors in place of lost ones: new is what the sessions wrote since the time
    `since`."""
    from ._new_entries import cursors_at_end

    # In whole milliseconds, as transcripts have their times. Files written within one tick of the
    # clock have one time.
    seen = int(since * 1000) / 1000
    lost = ReadCursors()
    for session, _ in changed:
        cursor = ReadCursor(tail=0)
        cursor.seen = seen
        lost.set(session.key, cursor)
    reported = [(session, status) for session, status in changed if status.st_mtime < since]
    return lost.merged(cursors_at_end(reported, now, deadline))
