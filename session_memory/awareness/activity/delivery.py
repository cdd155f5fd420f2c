"""Delivery of an update: prepare, print, commit, and later acknowledge it by the transcript.

The new state is written beside the old one before the update is printed, and replaces it
afterwards. So if the hook is killed in between, the update is repeated. If the runtime records
injected text in the session's transcript, the state is replaced before printing, because the
transcript will prove what arrived. The parts of the state that moved with the update are kept with
the last delivery (`LastDelivery`), and count once the transcript shows that the agent got the text.
Otherwise the update is repeated as a whole, but not within the same turn, because the record may
come as late as the turn's end.
"""

from __future__ import annotations

from ...common.system.files import Opened, is_file, os, read_at
from ...common.system.json import objects_in
from ...sessions.runtimes.records import CALLS, INJECTED, LINKS, MESSAGES, Injected, ParentLink
from ...sessions.transcripts.entries import Entry
from ...sessions.transcripts.lines import id_checksum
from .session_state import InjectedMemories, LastDelivery

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ...sessions.runtimes.base import Runtime
    from .changes import OwnSession
    from .session_state import SessionState, StateFile
    from .updates import Update

# The record is up to 30 KB after the former end of the transcript. It is up to 70 KB after it if a
# prompt was typed while the agent worked, plus the results of tools before it (one may have 350
# KB), and some MB if images were pasted. So the search continues until an answer shows that the
# record will not come. A record is nearly always in the first window, and without one the file soon
# ends, so neither case reads far. If MOST_BYTES (20 ms) end the search, the update is repeated and
# the reason is logged.
WINDOW_BYTES = 256 * 1024
MOST_BYTES = 16 * 1024 * 1024
# If a transcript shows a prompt and its answer but nothing of hooks, this version of the runtime
# does not record hooks. After so many such prompts in a row, the cursors count at once. They also
# do so without a transcript, or from the first prompt on if the same process continues.
MOST_MISSES = 3
# The kinds to search for in a line, before and after the text of an update was found
_BEFORE_TEXT = INJECTED | MESSAGES | CALLS
_AFTER_TEXT = INJECTED | LINKS
_IN_RECORD = MESSAGES | INJECTED | LINKS
# The agent got the text if its record exists and the conversation continues from it. A prompt that
# is cancelled before the answer leaves its record beside the conversation. If nothing follows the
# record yet, the process decides: the same process has cancelled the prompt, another process has
# resumed the conversation.
ARRIVED = "arrived"
UNANSWERED = "unanswered"  # its record exists, but nothing follows it
LOST = "lost"
UNRECORDED = "unrecorded"
NO_TRANSCRIPT = "no transcript"
UNSHOWN = "unshown"  # the process continues, and writes no transcript


class Delivery:
    """An update on its way to the session `own`, under the lock of its state.

    Use it in a `with` block: the update counts as delivered at its end, unless an exception is
    raised. `text` is None if there is none; `edit` is as in Update."""

    def __init__(self, own_session: OwnSession, file: StateFile, update: Update) -> None:
        self.text = update.text
        self.edit = update.edit
        self._own = own_session
        self._file = file
        self._update = update
        self._is_prepared = self._is_over = False

    def __enter__(self) -> Delivery:
        return self

    @property
    def state(self) -> SessionState:
        """The state of the session after the update."""
        return self._update.state or self._file.of(self._own.key)

    def is_first_to_answer(self, prompt: str) -> bool:
        """Check that no other copy of our hook has answered this prompt.

        Another copy may be a plugin besides an install. If one has answered, this one delivers
        nothing. Raises OSError."""
        is_first = self._file.is_first_to_answer(prompt)
        self._is_over = not is_first
        return is_first

    def prepare(self, memories: Iterable[str] = ()) -> None:
        """Write the new state beside the old one, with the ids of the injected `memories`.

        Raises OSError."""
        update, file, key = self._update, self._file, self._own.key
        is_changed = update.state is not None or file.was_corrupt
        is_changed = is_changed or update.standstill not in (None, file.standstill)
        if update.state is not None:
            file.put(key, update.state)
        if memories:
            state = file.of(key)
            before = state.memories.keys if state.memories else ()
            state.memories = InjectedMemories([*before, *memories])
            file.put(key, state)
        if is_changed or memories:
            file.prepare(update.standstill)
            self._is_prepared = True

    def commit_first(self) -> None:
        """Commit before printing if the transcript will show the update. Raises OSError."""
        last = self._update.state.last if self._update.state else None
        if last is not None and last.after is not None and self._update.is_shown:
            self._commit()

    def __exit__(self, error_type: type[BaseException] | None, *_: object) -> None:
        try:
            if error_type is None and not self._is_over:
                self._commit()
        finally:
            self._file.close()

    def _commit(self) -> None:
        if not self._is_prepared:
            self.prepare()
        if self._is_prepared:
            self._file.commit()
        self._is_over = True


class Delivered:
    """The last delivery.

    It has its time in seconds since 1970, and its `text`, None if the transcript does not show it.
    `acknowledged` is None if unknown."""

    def __init__(self, at: float, text: str | None, acknowledged: bool | None) -> None:
        self.at = at
        self.text = text
        self.acknowledged = acknowledged


def kind_of_delivery(runtime: Runtime) -> str:
    """Return the guarantee of delivery for sessions of a runtime, for people."""
    if runtime.SHOWS_WHAT_WAS_TOLD:
        return "confirmed by the transcript: an update that is missing there is sent again"
    return "at least once: the transcript does not show the text that a hook adds"


def with_last(
    before: SessionState, changes: SessionState, text: str, own_session: OwnSession, now: float
) -> SessionState:
    """Return the state `before` with a note that `text` was delivered.

    The `changes` apply once it has arrived."""
    misses = before.last.misses if before.last else 0
    name = own_session.path.rpartition("/")[2]
    last = LastDelivery(_size(own_session.path), name, id_checksum(text), now, misses)
    last.prompt, last.process = own_session.prompt_id, own_session.process
    state = before.merged(changes) if misses >= MOST_MISSES else before.copy()
    last.after = None if misses >= MOST_MISSES else changes
    state.last = last
    return state


def resolved(state: SessionState, own_session: OwnSession) -> SessionState | None:
    """Return the current state of the session `own_session`, after judging its last delivery.

    It is the same state if that is already resolved, None if its outcome is unknown. If an update
    is repeated without proof, this is logged."""
    last = state.last
    if last is None or last.acknowledged is not None or not own_session.path:
        return state
    search = _searched(last, own_session)
    outcome = _judged(search, last, own_session)
    if not outcome:
        return None
    after, misses = last.after, last.misses
    if outcome == ARRIVED:
        misses = 0
    elif outcome in (UNRECORDED, NO_TRANSCRIPT) and after is not None:
        misses += 1
    if search.is_cut and after is not None and outcome not in (ARRIVED, UNSHOWN):
        said = (
            f"the last update is sent again: the {MOST_BYTES >> 20} MB after it do not contain it"
        )
        own_session.deadline.notes.append(f"{own_session.path}: {said}")
    has_moved = after is not None and outcome in (ARRIVED, UNSHOWN)
    now = state.merged(after) if after is not None and has_moved else state.copy()
    now.last = last.resolved(misses, is_acknowledged=outcome == ARRIVED)
    return now


def delivered(state: SessionState, own_session: OwnSession) -> Delivered | None:
    """Return the last delivery to the session `own_session`; None if unknown."""
    last = state.last
    if last is None:
        return None
    search = _searched(last, own_session)
    if last.acknowledged is not None:
        return Delivered(last.at, search.text, last.acknowledged)
    is_known = search.outcome != UNANSWERED
    return Delivered(last.at, search.text, search.outcome == ARRIVED if is_known else None)


def _judged(search: DeliverySearch, last: LastDelivery, own_session: OwnSession) -> str:
    """Return the outcome of the last delivery that the transcript shows; '' if still unknown."""
    outcome = search.outcome
    if not search.is_over and own_session.prompt_id and own_session.prompt_id == last.prompt:
        return ""
    is_same_process = bool(own_session.process) and own_session.process == last.process
    if outcome == UNANSWERED:
        return LOST if is_same_process else ARRIVED
    is_unshown = outcome == NO_TRANSCRIPT and is_same_process and not own_session.keeps_transcript
    return UNSHOWN if is_unshown else outcome


class DeliverySearch:
    """A search for the text with a checksum, in the transcript after its former end.

    It has the `outcome` so far, and the `text` if found. `is_cut` means that lines were left
    unread."""

    def __init__(self, checksum: int, runtime: Runtime) -> None:
        self.outcome = LOST
        self.text: str | None = None
        self.is_over = self.is_cut = False
        self._checksum = checksum
        self._records = runtime.records
        # the ids of the record that shows the text, and of records that continue it
        self._ids: set[str] = set()
        self._has_prompt = self._has_failed = False

    def read(self, line: bytes) -> None:
        """Read the next line."""
        if self._records.prefilter(line, _BEFORE_TEXT if self.text is None else _AFTER_TEXT):
            for record in objects_in(line):
                if not self.is_over:
                    self._read_record(record)

    def _read_record(self, record: dict[str, object]) -> None:
        link, entry, has_text = None, None, False
        for event in self._records.events(record, 0, _IN_RECORD):
            if isinstance(event, Injected):
                self._has_failed = self._has_failed or not event.texts
                has_text = has_text or self._is_in(event.texts)
            elif isinstance(event, ParentLink):
                link = event
            elif isinstance(event, Entry):
                entry = event
        if has_text:
            self.outcome = UNANSWERED
            self._ids.add(link.id if link is not None else "")
        elif self.text is not None:
            if link is not None:
                self._follow(link)
        elif entry is not None:
            self._read_entry(entry)

    def _is_in(self, texts: tuple[str, ...]) -> bool:
        for part in [part for text in texts for part in text.split("\n\n")]:
            if id_checksum(part) == self._checksum:
                self.text = part
                return True
        return False

    def _follow(self, link: ParentLink) -> None:
        """Check if the conversation continues from the text, or from a record before it."""
        is_behind = link.parent_id in self._ids or "" in self._ids
        if is_behind:
            self._ids.add(link.id)
        if link.is_message:
            self._end(ARRIVED if is_behind else LOST)

    def _read_entry(self, entry: Entry) -> None:
        """Check if a prompt was answered without the text.

        A failed hook shows that the runtime records hooks."""
        if entry.role == "user":
            self._has_prompt = True
        elif self._has_prompt:
            self._end(LOST if self._has_failed else UNRECORDED)

    def _end(self, outcome: str) -> None:
        self.outcome, self.is_over = outcome, True


def _searched(last: LastDelivery, own_session: OwnSession) -> DeliverySearch:
    """Return the outcome of the last delivery, from the transcript in use at that time.

    After a fork the session continues in another transcript. An unreadable transcript counts as
    missing."""
    search = DeliverySearch(last.text, own_session.runtime)
    path = f"{own_session.path.rpartition('/')[0]}/{last.file}"
    if (
        not is_file(path)
        or own_session.deadline.attempt(path, _look_through, path, last.offset, search) is None
    ):
        search.outcome = NO_TRANSCRIPT
    return search


def _look_through(path: str, offset: int, search: DeliverySearch) -> bool:
    """Search the lines of a transcript from `offset` on, within MOST_BYTES. Raises OSError."""
    with Opened(path) as descriptor:
        size = os.fstat(descriptor).st_size
        # Some runtimes rewrite the file as they open it.
        start = offset if offset <= size else max(0, size - WINDOW_BYTES)
        end = min(size, start + MOST_BYTES)
        pieces: list[bytes] = []  # of a line longer than a window
        while start < end and not search.is_over:
            stop = min(end, start + WINDOW_BYTES)
            whole, line_end, line_begin = read_at(descriptor, start, stop).rpartition(b"\n")
            if line_end:
                for line in b"".join([*pieces, whole]).split(b"\n"):
                    search.read(line)
                pieces = []
            pieces.append(line_begin)
            start = stop
        if end == size:
            search.read(b"".join(pieces))
        search.is_cut = end < size and not search.is_over
        return True


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0
