"""Updates: from the changes in the other sessions to the text for this one, in one pass.

The steps are resolve, changed, entries, reports, collisions, selection and text. Each takes an
UpdateContext and the results of earlier steps. Every prompt with news loads this module; the code
that reads transcripts is loaded only if one changed. For collisions, this session's own transcript
is read on, and its branch or commit is noted.
"""

from __future__ import annotations

from ...common.system.files import UNFINISHED, is_file
from ...sessions.transcripts.read_cursor import ReadCursor, ReadCursors
from .changes import (
    OLD_SECONDS,
    inbox_stamp,
    is_head_known,
    seen_until,
    standstill,
)
from .delivery import Delivery, resolved, with_last
from .session_state import KnownState, OwnState, SessionState, StateFile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from os import stat_result

    from ...common.system.deadline import Deadline
    from ...sessions.transcripts.entries import Entry, Session
    from ._concerned import WorkSearch
    from ._new_entries import Budget, NewEntries
    from ._own_work import OwnWork
    from ._relevance import PromptWords
    from .changes import Changed, Observation, OwnSession
    from .collisions.search import Known
    from .report import Report
    from .status_line import Edit
    from .update_text import Reports, Selection, UpdateForm

MOST_LEFT_OUT = 20  # sessions that are noted
MOST_WITHOUT_ROOM = 200  # sessions that are noted
MOST_NAMED = 64  # files named to a session that are noted
SHORT_BYTES = 64 * 1024  # of a session that is seen first so many are read in any case


class Update:
    """The result of preparing an update.

    `text` is None if there is none. `state` is the state after the update, None if it does not
    change. `is_shown` means that this session's transcript will show the text. If nothing changed
    since the last prompt, `standstill` is the fingerprint to store, else None. `edit` is the newest
    edit in the text for a status line, or None."""

    def __init__(self, state: SessionState | None = None) -> None:
        self.text: str | None = None
        self.state = state
        self.is_shown = False
        self.standstill: list[object] | None = None
        self.edit: Edit | None = None


def open_update(
    observed: Observation,
    *,
    now: float,
    limit: int,
    introduction: str = "",
    form: UpdateForm | None = None,
) -> Delivery:
    """Return the delivery of the `observed` sessions' activity since the last update.

    The update is for the session that observes them, in at most `limit` characters with the
    `introduction`. While the delivery is open, no other process delivers the update.

    Entries that a fork copied from the session's transcript are not new. Collisions are searched if
    its directory is known. `now` is in seconds since 1970. If the last update is not in its
    transcript, it is repeated. If the state cannot be read, everything up to its last write counts
    as reported; for a fork at its first prompt, everything up to now. Raises LockedError if another
    delivery has the same state, OSError if the state is not accessible."""
    own_session = observed.own
    file = StateFile(own_session.cursor_file)
    try:
        context = UpdateContext(observed, file.of(own_session.key), now, limit, form)
        return Delivery(own_session, file, _make(context, file, introduction))
    except BaseException:
        file.close()
        raise


def waiting_text(observed: Observation, *, now: float, limit: int, introduction: str = "") -> str:
    """Return the text that `open_update` would deliver, or ''; nothing is locked or written.

    Raises OSError."""
    known = KnownState(observed.own.cursor_file)
    context = UpdateContext(observed, known.of(observed.own.key), now, limit)
    return _make(context, known, introduction).text or ""


def begin_here(
    observed: Observation, *, now: float, original: str = "", state: KnownState | None = None
) -> None:
    """Count everything up to now as reported to the observing session, unless it had an update.

    If it is a fork of the session `original`, which has the `state`, only that session's updates and
    its own work count. Raises as `open_update`."""
    own_session = observed.own
    with StateFile(own_session.cursor_file) as file:
        if file.is_new(own_session.key):
            from ._new_entries import cursors_at_end

            changed = observed.changed(ReadCursors(), now - observed.settings.first_sight_seconds)
            if original:
                changed = [pair for pair in changed if pair[0].key == original]
            read = SessionState(cursors_at_end(changed, now, own_session.deadline))
            before = state.of(original) if state else file.of(own_session.key)
            file.put(own_session.key, before.merged(read))
            file.prepare()
            file.commit()


class UpdateContext:
    """The inputs of an update for the session `reader`.

    These are the `observed` sessions, the `state` before it, the time `now` and the `limit` in
    characters. Entries from before `oldest` were `seen` or are too old. Sessions that are not
    `recent` are reported only if it `is_start` of the work: the first prompt, or one after a long
    pause. `waiting` sessions could not be compared with this session's work at the last prompt;
    each has how often that was late. `own_read` are this session's entries if they were read at its
    first prompt, and `own_ids` the ids of its last entries, else None."""

    def __init__(
        self,
        observed: Observation,
        state: SessionState,
        now: float,
        limit: int,
        form: UpdateForm | None = None,
    ) -> None:
        self.observed = observed
        self.reader = observed.own
        self.state = state
        self.now = now
        self.limit = limit
        self._form = form
        self.work: OwnWork | None = None
        self.own_read: NewEntries | None = None
        self.own_ids: set[str] | None = None
        self._words: PromptWords | None = None
        self.seen = seen_until(state.own, now)
        self.recent = now - OLD_SECONDS
        self.is_start = now - self.seen >= 2 * OLD_SECONDS
        self.oldest = max(now - observed.settings.first_sight_seconds, self.seen)
        self.waiting = state.own.pending if state.own else {}

    def after(self, state: SessionState, limit: int | None = None) -> UpdateContext:
        """Return the context with another state, and another limit if given."""
        limit = self.limit if limit is None else limit
        context = UpdateContext(self.observed, state, self.now, limit, self._form)
        context.own_read, context.own_ids = self.own_read, self.own_ids
        return context

    @property
    def form(self) -> UpdateForm:
        """The form of the update."""
        if self._form is None:
            from .update_text import UpdateForm

            self._form = UpdateForm()
        return self._form

    @property
    def words(self) -> PromptWords:
        """The words of this session's prompt."""
        if self._words is None:
            from ._relevance import PromptWords

            self._words = PromptWords(self.reader.prompt)
        return self._words

    def is_leftover(self, changed: Changed) -> bool:
        """Check if a session had no room in the last update and wrote nothing since."""
        session, status = changed
        if self.state.own is None or self.is_start or session.key in self.waiting:
            return False
        known = self.state.own.no_room.get(session.key)
        return known is not None and known == _extent(session, status, is_version=known < 0)

    def own_work(self) -> OwnWork | None:
        """Return this session's side of the collisions, read once; None if it is unreadable."""
        if self.work is None:
            from ._own_work import OwnWork

            inputs = (self.reader, self.state, self.now, self.oldest, self.own_read)
            self.work = self.reader.deadline.attempt("collisions", OwnWork, *inputs)
        return self.work


def _make(context: UpdateContext, known: KnownState, introduction: str) -> Update:
    """Return the update, after the last one is resolved."""
    reader, before = context.reader, context.state
    state = resolved(before, reader)
    if state is None:
        return Update()
    is_resolved = state is not before
    context = context.after(state, context.limit - len(introduction))
    changed = _changed_since(context)
    update = Update(state if is_resolved else None)
    if not known.was_corrupt and not changed and _is_at_rest(context):
        if not is_resolved:
            update.standstill = standstill(context.observed, state.own)
        return update
    since = _reported_until(context, known)
    if since is not None:
        lost = _cursors_from(since, changed, context.now, reader.deadline)
        context = context.after(SessionState(lost))
        changed = [pair for pair in changed if pair[1].st_mtime >= since]
    parts, kept = _compose(context, changed), _kept(context)
    update.edit = parts.edit
    if is_resolved or since is not None or parts.has_moved:
        update.state = kept.merged(parts.moved)
    if parts.text:
        update.text = introduction + parts.text
        if (
            reader.path
            and reader.runtime.SHOWS_WHAT_WAS_TOLD
            and reader.keeps_transcript is not False
        ):
            update.state = with_last(kept, parts.moved, update.text, reader, context.now)
            # Without a transcript, nothing would show the loss of an update that has not been
            # printed yet.
            update.is_shown = reader.keeps_transcript is True or is_file(reader.path)
    return update


def _kept(context: UpdateContext) -> SessionState:
    """Return the state before the update, without deleted sessions.

    The state must not grow over the years. If some sessions were not listed, all stay."""
    if context.reader.deadline.failed:
        return context.state
    return context.state.limited([session.key for session in context.observed.sessions])


def _changed_since(context: UpdateContext) -> list[Changed]:
    """Return the sessions with possible news, the last written first, and the waiting ones."""
    return [
        pair
        for pair in context.observed.changed(context.state.cursors, context.oldest)
        if pair[1].st_mtime >= context.seen or pair[0].key in context.waiting
    ]


def _is_at_rest(context: UpdateContext) -> bool:
    """Check that all notes were told, HEAD has not moved, and the prompt names no file."""
    reader, state = context.reader, context.state.own
    if context.form.RECALLS and reader.may_name_file():
        return False
    if _has_notes(reader, state):
        return False
    return not reader.directory or is_head_known(state, reader.directory)


def _reported_until(context: UpdateContext, known: KnownState) -> float | None:
    """Return the time up to which everything counts as reported, if no state can be trusted.

    It is the last write of a corrupt state, or the beginning of a fork. Return None if the state is
    valid."""
    reader = context.reader
    if known.was_corrupt:
        reader.deadline.notes.append(
            f"{reader.cursor_file}: could not be read, renamed to .corrupt; continuing from its "
            f"last change"
        )
        return known.written
    if known.is_new(reader.key) and reader.path:
        return reader.deadline.attempt(reader.path, _fork_time, context)
    return None


def _fork_time(context: UpdateContext) -> float | None:
    """Return when a fork continued on its own, after reading this session for the first time."""
    from ._forks import forked_before
    from ._new_entries import read_own

    reader, oldest = context.reader, context.oldest
    try:
        read = read_own(reader, None, context.now, oldest)
        since, context.own_ids = forked_before(read, oldest, context.now)
    except OSError:
        context.own_ids = set()
        return None
    context.own_read = read
    return since


class UpdateParts:
    """The parts of an update.

    They are the `text`, '' if there is none, the newest `edit` in it, and the parts of the state
    that `moved` with it. If it `has_moved`, these are stored even without a text."""

    def __init__(self, text: str, edit: Edit | None, moved: SessionState) -> None:
        self.text = text
        self.edit = edit
        self.moved = moved
        self.has_moved = False


def _compose(context: UpdateContext, changed: list[Changed]) -> UpdateParts:
    """Return the update about the `changed` sessions; its text is '' if they have no news."""
    from .update_text import text_of

    first, limit = _start_notes(context), context.limit
    if first:
        context = context.after(context.state, limit - sum([len(line) + 1 for line in first]))
    news = _read_news(context, changed)
    pairs = news.pairs
    reports = [(report, new) for report, new in pairs if report is not None]
    collisions = _find_collisions(context, reports, news.pending)
    _add_notes(context, collisions)
    _add_same_task(context, collisions)
    choice = _select(context, collisions.reports, news)
    if context.observed.settings.only_warns:
        choice.empty()
    lines = [*first, *collisions.lines]
    text, shown = text_of(choice.selection, context.now, limit, lines, context.form)
    moved = SessionState()
    silent = [new for report, new in pairs if report is None]
    for new in [*silent, *choice.reported(shown)]:
        moved.cursors.set(new.session.key, new.cursor)
    if news.dropped:
        moved.cursors = _dropped(context, news.dropped).merged(moved.cursors)
    left_out = [*news.left_out, *choice.left_out(shown)]
    parts = UpdateParts(text, collisions.edit, moved.merged(collisions.moved))
    has_postponed = bool(left_out) or collisions.pending != context.waiting
    parts.has_moved = bool(text) or has_postponed or _has_moved(context, parts.moved)
    own_state = (collisions.moved.own or context.state.own or OwnState()).copy()
    own_state.asked, own_state.pending = context.now, collisions.pending
    own_state.left_out = left_out[:MOST_LEFT_OUT]
    own_state.no_room = _without_room(context, changed, parts.moved)
    own_state.searched = ReadCursors()
    if news.search:
        own_state.searched = news.search.searched.limited(own_state.no_room)
        own_state.searched_for = news.search.searched_for
    own_state.files_named = [*own_state.files_named, *choice.files_named(shown)][-MOST_NAMED:]
    parts.moved.own = own_state
    return parts


def _without_room(
    context: UpdateContext, changed: list[Changed], moved: SessionState
) -> dict[str, int]:
    """Return the sizes of the transcripts whose news had no room, by session.

    There are none if some could not be read in time."""
    deadline = context.reader.deadline
    if context.form.KEEPS_LEFTOVERS or deadline.failed or deadline.is_over:
        return {}
    left = [pair for pair in changed if moved.cursors.get(pair[0].key) is None]
    return {
        session.key: _extent(session, status, is_version=session.path in UNFINISHED)
        for session, status in left[:MOST_WITHOUT_ROOM]
    }


def _extent(session: Session, status: stat_result, *, is_version: bool) -> int:
    """Return a number that changes when a session writes something.

    It is the transcript's size. An unfinished transcript's size is unknown, so its version
    is used, as a negative number."""
    if not is_version:
        return status.st_size
    file = UNFINISHED.get(session.path)
    if file is None:
        from ...common.system.json import encode
        from ...sessions.transcripts.lines import id_checksum
        from ...sessions.transcripts.mirror import mark_of

        return -1 - id_checksum(encode(mark_of(session.path)))
    return -1 - file.version


def _dropped(context: UpdateContext, dropped: list[Changed]) -> ReadCursors:
    """Return cursors at the end of the sessions that are dropped."""
    from ._new_entries import cursors_at_end

    cursors = cursors_at_end(dropped, context.now, context.reader.deadline)
    for session, _ in dropped:
        cursor, before = cursors.get(session.key), context.state.cursors.get(session.key)
        if cursor is not None:
            cursor.sub_agents = session.sub_agent_bytes
            if before is not None:
                cursor.title = before.title
                cursor.take_beginning(before)
    return cursors


def _has_moved(context: UpdateContext, moved: SessionState) -> bool:
    """Check if a part of the state differs from before the update."""
    own_state, cursors = context.state.own, context.state.cursors
    if moved.collisions is not None:
        return True
    if moved.own is not None and (own_state is None or moved.own.dump() != own_state.dump()):
        return True
    return any([cursors.get(key) != cursor for key, cursor in moved.cursors.items()])


class ReadNews:
    """News of the sessions that were `read`.

    `pairs` has each with its report, None if there is nothing to report. Of `further` ones only the
    number is known; if there `are_more`, others may have news. Sessions `left_out` were last active
    before OLD_SECONDS. The `leftovers` had no room in the last update; of these, the `dropped` ones
    do not concern this session. The `recalled` ones have no news, but edited a file that the prompt
    names. The `pending` ones may have done something to this session's work, and could not be
    compared with it; each has how often that was late. `search` is the search for sessions that
    concern this one's work; None if all are read anyway."""

    def __init__(self) -> None:
        self.read: list[NewEntries] = []
        self.pairs: list[tuple[Report | None, NewEntries]] = []
        self.left_out: list[str] = []
        self.dropped: list[Changed] = []
        self.leftovers: set[str] = set()
        self.recalled: Reports = []
        self.pending: dict[str, int] = {}
        self.search: WorkSearch | None = None
        self.further = 0
        self.are_more = False


def _read_news(context: UpdateContext, changed: list[Changed]) -> ReadNews:
    """Return the new entries of the sessions to report.

    Sessions that may concern this session's work come first, however old and many, then those that
    concern the prompt, then the most recent ones. Of the others, sessions that were last active
    before OLD_SECONDS are left out, and sessions that had no room in the last update are dropped,
    unless this is the first prompt, or the first one after such a pause, and there is room."""
    news = ReadNews()
    most = context.form.most_with_room(context.limit) + 1
    concerned, active = _concerned_sessions(context, changed, most, news)
    edits, alike = _named_edits(context), _alike_sessions(context, changed, most)
    if not context.is_start:
        news.leftovers = {pair[0].key for pair in changed if context.is_leftover(pair)}
        wanted = {*concerned, *edits, *alike, *news.pending}
        young = [
            pair
            for pair in changed
            if pair[0].key in wanted
            or (pair[1].st_mtime >= context.recent and pair[0].key not in news.leftovers)
        ]
        others = _without(changed, young)
        news.left_out = [pair[0].key for pair in others if pair[0].key not in news.leftovers]
        news.dropped = [pair for pair in others if pair[0].key in news.leftovers]
        changed = young
    if concerned or edits or alike:
        changed = sorted(
            changed,
            key=lambda pair: (
                pair[0].key not in concerned,
                pair[0].key not in edits,
                -alike.get(pair[0].key, 0),
            ),
        )
    unread = _read_enough(context, changed, concerned, most + len(concerned), news, edits)
    if edits:
        _recall(context, edits, news)
    if unread:
        _count_unread(context, changed[-unread:], active, news)
        left = [session.key for session, _ in changed[-unread:] if session.key in concerned]
        news.pending.update(dict.fromkeys(left, 0))
    return news


def _named_edits(context: UpdateContext) -> dict[str, list[Entry]]:
    """Return the entries of all sessions that edit a file which the prompt names, by session."""
    if not (context.form.RECALLS and context.words.files):
        return {}
    from ._named_edits import named_edits

    observed = context.observed
    since = context.now - observed.settings.first_sight_seconds
    return named_edits(context.reader, observed.statuses, context.words, since)


def _alike_sessions(context: UpdateContext, changed: list[Changed], most: int) -> dict[str, int]:
    """Return how many words sessions share with the prompt, for those that are about its subject.

    They are judged by their titles. If all can be read anyway, return {}."""
    is_decided = len(changed) <= most and not any(map(context.is_leftover, changed))
    if is_decided or not context.form.RECALLS:
        return {}
    from ._relevance import ALIKE_WORDS, titles_of

    if len(context.words.stems) < ALIKE_WORDS:
        return {}
    titles = titles_of(context.reader, changed, context.state.cursors)
    counts = zip(changed, context.words.shared_words(titles))
    return {pair[0].key: count for pair, count in counts if count >= ALIKE_WORDS}


def _recall(context: UpdateContext, edits: dict[str, list[Entry]], news: ReadNews) -> None:
    """Add sessions without news that edited a file which the prompt names, unless this session was
    told so, or has read or edited the file since."""
    from ._named_edits import MOST_RECALLED, unknown_edits
    from ._new_entries import FIRST_SIGHT_BYTES, Budget

    keys = {new.session.key for new in news.read if new.entries}
    work = context.own_work() if edits.keys() - keys else None
    in_hand = work.actions if work else {}
    edits = {
        key: unknown
        for key, entries in edits.items()
        if key not in keys and (unknown := unknown_edits(entries, in_hand))
    }
    left = [pair for pair in context.observed.statuses if pair[0].key in edits]
    left.sort(key=lambda pair: -pair[1].st_mtime)
    if left:
        oldest = context.now - context.observed.settings.first_sight_seconds
        until = (context.now, oldest, MOST_RECALLED, Budget(first_sight=FIRST_SIGHT_BYTES))
        recalled, _ = _read_reports(context, left[:MOST_RECALLED], ReadCursors(), until, edits)
        news.recalled = [(report, new) for report, new in recalled.pairs if report is not None]


def _read_enough(
    context: UpdateContext,
    changed: list[Changed],
    concerned: set[str],
    most: int,
    news: ReadNews,
    edits: dict[str, list[Entry]],
) -> int:
    """Read the new entries of the first `most` sessions that have some into `news`, except those
    that forks copied. If none has something to say, read the next: sessions with nothing but copies
    or a "yes" would keep the news of others waiting. Return how many were not read."""
    from ._new_entries import FIRST_SIGHT_BYTES, Budget

    until = (context.now, context.oldest, most, Budget(first_sight=FIRST_SIGHT_BYTES))
    left = changed
    while left and not (news.pairs and context.reader.deadline.is_over):
        cursors = context.state.cursors
        more, unread = _read_reports(context, left, cursors, until, edits, concerned)
        if unread == len(left):
            break
        left = left[len(left) - unread :]
        news.read += more.read
        news.pairs += more.pairs
        if any([report and report.says_something for report, _ in more.pairs]):
            break
    return len(left)


def _read_reports(
    context: UpdateContext,
    sessions: list[Changed],
    cursors: ReadCursors,
    until: tuple[float, float, int, Budget],
    edits: dict[str, list[Entry]],
    all_of: Collection[str] = (),
) -> tuple[ReadNews, int]:
    """Return the news of the first sessions, with their `edits`, and how many were not read.

    `until` says how far to read: see `read_changed`."""
    from ._forks import drop_copies
    from ._new_entries import read_changed
    from .report import reports_of

    reader, news = context.reader, ReadNews()
    read, unread = read_changed(reader, sessions, cursors, *until, all_of=all_of)
    if edits:
        from ._named_edits import add_entries

        for new in read:
            if new.entries:
                add_entries(new, edits.get(new.session.key, []))
    if unread < len(sessions):
        news.read = drop_copies(read, context.observed.sessions, cursors, reader, context.own_ids)
        news.pairs = reports_of(news.read, reader, context.observed.settings, context.now)
    return news, unread


def _without(changed: list[Changed], kept: list[Changed]) -> list[Changed]:
    """Return the changed sessions that are not kept."""
    if len(kept) == len(changed):
        return []
    keys = {session.key for session, _ in kept}
    return [pair for pair in changed if pair[0].key not in keys]


def _concerned_sessions(
    context: UpdateContext, changed: list[Changed], most: int, news: ReadNews
) -> tuple[set[str], set[str]]:
    """Return the keys of unread sessions that may concern the work or have certain news.

    Without further care, a prompt would not read these sessions, or not back to where they were
    last read. Sessions that an earlier prompt could not search come first. Sessions that are missed
    become pending in the `news`."""
    if not context.reader.directory or context.state.own is None:
        return set(), set()
    waiting, cursors = context.waiting, context.state.cursors
    searched = [pair for pair in changed if pair[0].key in waiting] + [
        pair
        for at, pair in enumerate(changed)
        if pair[0].key not in waiting
        and (at >= most or pair[1].st_mtime < context.recent or _may_be_cut(pair, cursors))
    ]
    work = context.own_work() if searched else None
    if work is None or work.state is None:
        return set(), set()
    from ._concerned import WorkSearch

    search = news.search = WorkSearch(context.reader, work, cursors, context.oldest)
    concerned, missed = search.concerned(searched)
    news.pending.update(dict.fromkeys(missed, 0))
    return concerned, search.active


def _may_be_cut(changed: Changed, cursors: ReadCursors) -> bool:
    """Check if a session at first sight has more than will be read of it."""
    session, status = changed
    return cursors.get(session.key) is None and status.st_size > SHORT_BYTES


def _count_unread(
    context: UpdateContext, unread: list[Changed], active: set[str], news: ReadNews
) -> None:
    """Count the unread sessions with news that may be reported; `active` sessions have news.

    Beyond MOST_COUNTED no session is checked."""
    left = [session for session, status in unread if status.st_mtime >= context.recent]
    news.left_out += [session.key for session, status in unread if status.st_mtime < context.recent]
    if not left:
        return
    from .report import count_visible, may_hide

    reader, settings = context.reader, context.observed.settings
    sessions, are_more = _with_news(context, left, active)
    visible = len(sessions)
    if may_hide(settings, reader.home) or any([session.is_elsewhere for session in sessions]):
        inputs = (sessions, context.state.cursors, settings, reader)
        visible = reader.deadline.attempt("unread sessions", count_visible, *inputs) or 0
    news.further, news.are_more = visible, visible > 0 and are_more


def _with_news(
    context: UpdateContext, left: list[Session], active: set[str]
) -> tuple[list[Session], bool]:
    """Return the first sessions with news, and whether there may be more."""
    from ._new_entries import may_have_news
    from .report import MOST_COUNTED, is_elsewhere

    reader, looked_at = context.reader, 0
    sessions: list[Session] = []
    for session in left:
        cursor = context.state.cursors.get(session.key)
        if is_elsewhere(session, cursor, reader):
            continue
        if len(sessions) == MOST_COUNTED or looked_at == 2 * MOST_COUNTED:
            return sessions, True
        looked_at += 1
        inputs = (reader, session, cursor, context.oldest)
        if session.key in active or reader.deadline.attempt(session.path, may_have_news, *inputs):
            sessions.append(session)
    return sessions, False


class PromptCollisions:
    """Collisions for one prompt.

    They have the `lines` about them, the newest `edit` in these, and in `withheld` the keys of
    sessions with something that did not fit. `moved` has the session's own state, with the branch
    or commit, and the collisions to store. The `reports` are of all sessions except the `pending`
    ones: a session is reported as a whole, so all of it comes next time."""

    def __init__(self, reports: Reports) -> None:
        self.reports = reports
        self.pending: dict[str, int] = {}
        self.moved = SessionState()
        self.lines: list[str] = []
        self.edit: Edit | None = None
        self.withheld: set[str] = set()

    def room(self, limit: int) -> int:
        """Return the characters that the lines leave."""
        from .update_text import HEADER

        return limit - len(HEADER) - sum([len(line) + 1 for line in self.lines])

    def postpone(self, keys: Iterable[str], late: int = 0) -> None:
        """Leave the comparison and report of sessions to the next prompt."""
        self.pending.update(dict.fromkeys(keys, late))
        self.reports = [pair for pair in self.reports if pair[1].session.key not in self.pending]


def _find_collisions(
    context: UpdateContext, reports: Reports, pending: dict[str, int]
) -> PromptCollisions:
    """Return the collisions with the sessions of the `reports`.

    The next prompt gets the `pending` sessions, and sessions that cannot be compared in time or
    have no room."""
    reader, late = context.reader, max(context.waiting.values(), default=0)
    collisions = PromptCollisions(reports)
    collisions.pending = dict(pending)
    if not reader.directory or not (context.work or _may_collide(context, reports)):
        return collisions
    suspects = [new.session.key for report, new in reports if _may_have_edited(reader, report, new)]
    if late:  # the fewer sessions are compared, the sooner that is done
        collisions.postpone(suspects[max(1, len(suspects) >> late) :], late)
    before, work = len(reader.deadline.late), context.own_work()
    compared = (
        reader.deadline.attempt("collisions", _compare, context, work, collisions.reports)
        if work
        else None
    )
    if compared is not None:
        compared.pending, compared.reports = collisions.pending, collisions.reports
        compared.postpone(sorted(compared.withheld - {""}))
        return compared
    has_failed_late = len(reader.deadline.late) > before
    collisions.postpone(suspects if has_failed_late else (), late + 1)
    return collisions


def _may_collide(context: UpdateContext, reports: Reports) -> bool:
    """Check if a collision is possible.

    It is if another session may have changed a file, HEAD has moved, or a call without a result may
    have ended."""
    reader, state = context.reader, context.state.own
    if state is None or not is_head_known(state, reader.directory) or state.has_open_calls:
        return True
    return any(_may_have_edited(reader, *pair) for pair in reports)


def _may_have_edited(own_session: OwnSession, report: Report, new: NewEntries) -> bool:
    """Check if another session edited something, ran a command or has sub-agents."""
    tools = [tool for entry in report.entries if entry.tools for tool in entry.tools]
    return any([tool.kind in ("edit", "command") for tool in tools]) or bool(
        own_session.sub_agents_of(new.session)
    )


def _compare(context: UpdateContext, work: OwnWork, others: Reports) -> PromptCollisions:
    """Return the collisions of the `work` with the sessions `others`, as lines that have room."""
    reader, state = context.reader, work.state
    collisions = PromptCollisions(others)
    if state is not None and (others or work.heads or state.open_actions or work.may_share):
        from .collisions.search import Known

        known = Known(reader, state, work.worktree, None, context.now, context.oldest)
        known.heads, known.work = work.heads, work
        _add_lines(known, collisions, collisions.room(context.limit))
        for _, unseen in others:
            if unseen.session.key in collisions.withheld:
                before = work.sub_agents
                state.sub_agents.update(
                    {path: before.get(path, 0) for path in reader.sub_agents_of(unseen.session)}
                )
    collisions.moved = work.moved()
    return collisions


def _add_lines(known: Known, collisions: PromptCollisions, room: int) -> None:
    """Search for collisions, and add lines about them."""
    from .collisions.search import find

    state, others = known.state, collisions.reports
    findings = find(known, others)
    known.own.may_conflict = bool(known.heads) or any([fact.worktree for fact in findings.facts])
    state.open_actions.update(
        {key: actions for key, actions in findings.open_actions.items() if actions}
    )
    collisions.withheld = findings.failed
    if findings.facts:
        from .collisions._lines import lines_of, newest_edit, reports_by_key
        from .viewpoint import Viewpoint

        facts = findings.facts
        reports = reports_by_key(others)
        viewpoint = Viewpoint(known.own.directory, known.own.user_dir, known.worktree)
        collisions.lines, reported = lines_of(facts, reports, viewpoint, known.now, room)
        collisions.edit = newest_edit(reported, reports, viewpoint)
        for fact in reported:
            state.reported.pop(fact.key, None)
            state.reported[fact.key] = fact.own_time
        collisions.withheld |= {fact.session for fact in findings.facts if fact not in reported}


def _start_notes(context: UpdateContext) -> list[str]:
    """Return the lines from the inbox for the first update of a session, such as a handoff."""
    reader, limit = context.reader, context.limit
    if context.state.own is not None or not inbox_stamp(reader):
        return []
    from .inbox import start_lines
    from .update_text import HEADER

    inputs = (reader, context.now, limit - len(HEADER))
    return reader.deadline.attempt("inbox", start_lines, *inputs) or []


def _add_notes(context: UpdateContext, collisions: PromptCollisions) -> None:
    """Add the lines about new notes in the inbox, such as conflicts with other branches."""
    reader = context.reader
    if _has_notes(reader, context.state.own):
        from .inbox import new_lines

        state = (collisions.moved.own or context.state.own or OwnState()).copy()
        inputs = (reader, state, context.now, collisions.room(context.limit))
        collisions.lines += reader.deadline.attempt("inbox", new_lines, *inputs) or ()
        collisions.moved.own = state


def _has_notes(own_session: OwnSession, state: OwnState | None) -> bool:
    """Check if the inbox has changed since all its notes were told."""
    return inbox_stamp(own_session) != (state.inbox if state else [])


def _add_same_task(context: UpdateContext, collisions: PromptCollisions) -> None:
    """Add lines about sessions on the task of the first prompt, or with the same prompt here.

    The latter just got the same prompt in this directory."""
    reader, now, is_first = context.reader, context.now, context.state.own is None
    if not reader.directory or not reader.prompt:
        return
    from .report import is_same_prompt

    is_same = any([is_same_prompt(reader.prompt, report, now) for report, _ in collisions.reports])
    if is_same or (is_first and _may_share_task(reader, collisions.reports)):
        from ._same_task import lines_about

        about = (reader, collisions.reports, now, is_first)
        lines = reader.deadline.attempt("same task", lines_about, *about)
        for line in lines or ():
            if len(line) < collisions.room(context.limit):
                collisions.lines.append(line)


def _may_share_task(reader: OwnSession, reports: Reports) -> bool:
    """Check that a prompt may name an issue, or that a session is in another worktree."""
    names_issue = any(map(str.isdigit, reader.prompt))
    return names_issue or any([new.session.worktree for _, new in reports])


class ChosenSessions:
    """The sessions for the text, in their order of importance.

    `selection` is chosen from all `reports`. `new` sessions are reported now or later, `old` ones
    now or never."""

    def __init__(self, reports: Reports, new: Reports, old: Reports) -> None:
        self.reports = reports
        self.new = new
        self.old = old
        self.listed: Reports = []
        self.selection: Selection

    def reported(self, shown: int) -> list[NewEntries]:
        """Return the sessions that need not wait after the first `shown` of the selection had room.

        They include sessions with nothing to report, and the old ones."""
        waiting = {new.session.key for _, new in self.new} - self._shown(shown)
        return [new for _, new in self.reports if new.session.key not in waiting]

    def left_out(self, shown: int) -> list[str]:
        """Return the keys of the old sessions that had no room."""
        keys = self._shown(shown)
        return [new.session.key for _, new in self.old if new.session.key not in keys]

    def empty(self) -> None:
        """Choose no session, and count none."""
        from .update_text import Selection

        self.new, self.old, self.listed = [], [], []
        self.selection = Selection([])

    def files_named(self, shown: int) -> list[int]:
        """Return checksums of the files that were named because they concern the prompt."""
        from .update_text import MOST_FILES

        return [
            _file_checksum(new.session.key, path)
            for report, new in self.listed[:shown]
            for path in report.preferred[:MOST_FILES]
        ]

    def _shown(self, shown: int) -> set[str]:
        return {new.session.key for _, new in self.listed[:shown]}


def _file_checksum(key: str, path: str) -> int:
    """Return a checksum of a session and a file that it edited."""
    from ...sessions.transcripts.lines import id_checksum

    return id_checksum(f"{key} {path}")


def _select(context: UpdateContext, reports: Reports, news: ReadNews) -> ChosenSessions:
    """Return the sessions for the text.

    Sessions that concern the prompt come first, then the last active. Old ones are listed at the
    start; otherwise sessions without news since the last prompt only if they concern this one."""
    from .update_text import Selection

    recalled, ranks = _rank(context, [*reports, *news.recalled], news)

    def order(pair: tuple[Report, NewEntries]) -> tuple[float, ...]:
        return *ranks[pair[1].session.key], pair[0].last_active

    ranked = sorted(reports, key=order, reverse=True)
    spoken = _spoken(context, ranked)
    named = [pair for pair in spoken if not pair[0].is_nameless]
    new = [pair for pair in named if pair[0].last_active >= context.recent]
    old = [pair for pair in named if pair[0].last_active < context.recent]
    new = [
        pair
        for pair in new
        if pair[1].session.key not in news.leftovers or ranks[pair[1].session.key][0]
    ]
    choice = ChosenSessions(ranked, new, old)
    form, most = context.form, context.form.most_with_room(context.limit)
    candidates = sorted([*new, *recalled], key=order, reverse=True) if recalled else new
    reader = context.reader
    listed = form.worth_a_line(reader, _worthy(context, candidates, ranks), most)
    old = _worthy(context, choice.old, ranks) if context.is_start else []
    old = form.worth_a_line(reader, old, most)
    choice.listed = listed + old
    further = news.further + len(spoken) - len(named) + len(candidates) - len(listed)
    choice.selection = Selection(
        [report for report, _ in choice.listed], further, are_more=news.are_more, old=len(old)
    )
    return choice


def _worthy(
    context: UpdateContext, sessions: Reports, ranks: dict[str, tuple[int, int]]
) -> Reports:
    """Return the sessions that concern the prompt or are worth a line anyway.

    A prompt such as "go on" may concern all sessions, except during a task those in another
    worktree. Without a prompt, all are returned."""
    reader = context.reader
    if not (context.form.RECALLS and reader.prompt):
        return sessions
    from ._relevance import AT_WORK_SECONDS, Worth

    since = context.now - AT_WORK_SECONDS if context.words.tell else 0.0
    worth = Worth(reader, since, context.oldest, is_start=context.is_start)
    return [
        (report, new)
        for report, new in sessions
        if ranks[new.session.key][0] or worth.has(report, new.session)
    ]


def _spoken(context: UpdateContext, ranked: Reports) -> Reports:
    """Return the sessions that did or said something.

    Of single prompts by a program that led to no work, only the first one counts."""
    spoken = [pair for pair in ranked if pair[0].summary.messages and not pair[0].is_empty]
    if context.form.KEEPS_LEFTOVERS:
        return spoken
    spoken = [pair for pair in spoken if not pair[0].is_probe]
    automated = [
        new.session.key
        for report, new in spoken
        if report.is_one_shot and _is_automated(context, new)
    ]
    return [pair for pair in spoken if pair[1].session.key not in automated[1:]]


def _is_automated(context: UpdateContext, new: NewEntries) -> bool:
    path, deadline = new.session.path, context.reader.deadline
    return not new.session.is_remote and bool(
        deadline.attempt(path, new.runtime.is_automated, path)
    )


def _rank(
    context: UpdateContext, reports: Reports, news: ReadNews
) -> tuple[Reports, dict[str, tuple[int, int]]]:
    """Return the recalled sessions with a file that the prompt names and no update named yet, and
    the ranks of all sessions by their keys."""
    from ._relevance import NAMED, rank_reports

    work, state = context.work, context.state.own
    in_hand = work.actions if work else ()
    root = work.worktree.root if work and work.worktree else ""
    values = rank_reports(reports, context.words, in_hand, root)
    ranks = {new.session.key: value for (_, new), value in zip(reports, values)}
    known = set(state.files_named if state else ())
    recalled = [
        (report, new)
        for report, new in news.recalled
        if ranks[new.session.key][0] == NAMED
        and not {_file_checksum(new.session.key, path) for path in report.preferred} <= known
    ]
    return recalled, ranks


def _cursors_from(
    since: float, changed: list[Changed], now: float, deadline: Deadline
) -> ReadCursors:
    """Return cursors that replace lost ones; writes since the time `since` are new."""
    from ._new_entries import cursors_at_end

    # Whole milliseconds, like the times in transcripts. Files written within one tick of the clock
    # have the same time.
    seen = int(since * 1000) / 1000
    lost = ReadCursors()
    for session, _ in changed:
        cursor = ReadCursor(tail=0)
        cursor.seen = seen
        lost.set(session.key, cursor)
    reported = [(session, status) for session, status in changed if status.st_mtime < since]
    return lost.merged(cursors_at_end(reported, now, deadline))
