"""New entries of changed sessions: after each cursor, or at first sight from the last hours."""

from __future__ import annotations

from ...common.system.files import Closing, Opened, open_regular, os, unfinished
from ...common.text.format import one_line, shorten
from ...common.text.sanitize import beginning, for_people
from ...sessions.transcripts.entries import Entry, Session
from ...sessions.transcripts.lines import (
    first_line,
    id_checksum,
    last_line_end,
    windows_backward,
)
from ...sessions.transcripts.read_cursor import ReadCursor, ReadCursors
from ...sessions.transcripts.reader import (
    BRIEF_OWNER_BYTES,
    FIRST_PROMPT_RANK,
    USER_RANK,
    TitleOwner,
    TranscriptHead,
    TranscriptReader,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

    from ...common.system.deadline import Deadline
    from ...sessions.runtimes.base import Runtime
    from ...sessions.transcripts.read_cursor import UnreadPart
    from .changes import Changed, OwnSession

PROMPT_BYTES = 4 * 1024 * 1024  # decoded at most, of which about half for one session
SKIPPED_BYTES = 64 * 1024 * 1024  # read at most: most of a transcript is not decoded
BACK_BYTES = 2 * 1024 * 1024  # searched for copies
MOST_UNREAD = 16  # parts of one transcript that are left for the next time
# read at most this much of all sessions at first sight
FIRST_SIGHT_BYTES = 1536 * 1024
TITLE_CHARACTERS = 200
PROMPT_CHARACTERS = 100  # of a request if it is the title
SECRET_CHARACTERS = 400  # read beyond that, so no secret is cut in two and missed
RECENT_IDS = 4  # the number of last entries whose ids locate them in a rewritten file


class Budget:
    """Bytes that may still be `decoded` and `read`, over all transcripts.

    At most `of_one` bytes are decoded per transcript. `first_sight` limits how much is read of
    sessions at first sight."""

    def __init__(
        self, decoded: int = PROMPT_BYTES, read: int = SKIPPED_BYTES, first_sight: int | None = None
    ) -> None:
        self.decoded = decoded
        self.of_one = decoded // 2
        self.read = read
        self.first_sight = read if first_sight is None else first_sight

    @property
    def is_spent(self) -> bool:
        """Check if nothing more is read."""
        return self.decoded <= 0 or self.read <= 0


class NewEntries:
    """New `entries` of `session` in file order.

    `parsed` has them too, and older entries in the bytes that were read. `title` is a pair of rank
    and text ('' if there is none). `cursor` is after the entries if a whole line was read
    (`is_read`). `runtime` is the session's. Bytes before the offset `lowest` were not read now;
    bytes before `titled` were searched for titles. `is_partial` means that older entries were left
    unread, which the cursor notes for the next time; `is_first_sight` means that there was no
    cursor. `bytes_read` counts the bytes read, `unreadable` the records that could not be
    decoded. `parts` have the reader and the beginning of each part that was read."""

    def __init__(self, session: Session, runtime: Runtime) -> None:
        self.session = session
        self.runtime = runtime
        self.lowest = 0
        self.titled = 0
        self.cursor = ReadCursor()
        self.is_read = False
        self.entries: list[Entry] = []
        self.parsed: list[Entry] = []
        self.title: tuple[int, str] = (FIRST_PROMPT_RANK, "")
        self.is_partial = False
        self.is_first_sight = False
        self.bytes_read = 0
        self.unreadable = 0
        self.parts: list[tuple[TranscriptReader, int]] = []

    def find_directories(self) -> None:
        """Give the entries the directory that an earlier line names. Raises OSError."""
        if self.parts:
            with Opened(self.session.path) as descriptor:
                for reader, offset in self.parts:
                    reader.begin_at(descriptor, offset)


def read_changed(
    own_session: OwnSession,
    changed: list[Changed],
    cursors: ReadCursors,
    now: float,
    oldest: float,
    most: int,
    budget: Budget | None = None,
    *,
    all_of: Collection[str] = (),
) -> tuple[list[NewEntries], int]:
    """Return the new entries of the first sessions, and the number of sessions not read.

    Reading stops when `most` sessions have entries, when PROMPT_BYTES were decoded or SKIPPED_BYTES
    read, or when no time is left; a `budget` sets other limits. Sessions with the keys `all_of` are
    read as far back as the budget permits, other sessions at first sight less far."""
    sessions_read: list[NewEntries] = []
    deadline = own_session.deadline
    budget = budget or Budget(first_sight=FIRST_SIGHT_BYTES)
    with_entries = 0
    for index, (session, _) in enumerate(changed):
        if budget.is_spent or with_entries >= most:
            return sessions_read, len(changed) - index
        if deadline.is_over:
            deadline.late.append(session.path)
            return sessions_read, len(changed) - index
        first_sight = max(0, budget.first_sight) // min(most - with_entries, len(changed) - index)
        new = NewEntries(session, own_session.runtime_of(session))
        back = None if session.key in all_of else first_sight
        inputs = (new, cursors.get(session.key), now, oldest, back, budget)
        if deadline.attempt(session.path, _read_session, *inputs) is None:
            continue
        budget.first_sight -= new.bytes_read * new.is_first_sight
        with_entries += bool(new.entries)
        if new.is_read:
            sessions_read.append(new)
        _note_faults(new, deadline)
    return sessions_read, 0


def _note_faults(new: NewEntries, deadline: Deadline) -> None:
    """Note unreadable records and an incomplete line of a transcript for the log."""
    path = new.session.path
    if new.unreadable:
        deadline.notes.append(
            f"{path}: {new.unreadable} records could not be read and were skipped"
        )
    if not new.is_read:
        deadline.notes.append(
            f"{path}: a line of more than {SKIPPED_BYTES} bytes is not complete yet"
        )


def may_have_news(
    own_session: OwnSession, session: Session, cursor: ReadCursor | None, oldest: float
) -> bool:
    """Check if a transcript has an entry after `cursor`, or without a cursor since `oldest`.

    Only the end is read. Return True if one window does not decide it. Raises OSError."""
    unwritten = unfinished(session.path)
    with Closing(open_regular(session.path)) as descriptor:
        status, runtime = os.fstat(descriptor), own_session.runtime_of(session)
        start = (cursor.resume_offset(descriptor, status) if cursor else None) or 0
        end = last_line_end(descriptor, start, status.st_size, SKIPPED_BYTES) or start
        reader = TranscriptReader(runtime, first_line(descriptor))
        later = [(end, line) for line in unwritten.content.split(b"\n")] if unwritten else []
        for entry in reader.backward(reversed(later)):
            return (entry.timestamp or oldest) >= oldest
        for lines in windows_backward(descriptor, start, end, SKIPPED_BYTES, reader.may_matter):
            for entry in reader.backward(reversed(lines)):
                return (entry.timestamp or oldest) >= oldest
            if lines[0][0] > start:
                return True
        return False


def read_own(
    own_session: OwnSession, cursor: ReadCursor | None, now: float, oldest: float
) -> NewEntries:
    """Return the new entries of the own transcript. Raises OSError."""
    with Opened(own_session.path) as descriptor:
        new = NewEntries(Session("", own_session.path), own_session.runtime)
        _Reader(new, descriptor, Budget()).read(cursor, now, oldest, FIRST_SIGHT_BYTES)
        return new


def entries_back_to(runtime: Runtime, path: str, oldest: float) -> list[Entry]:
    """Return a transcript's last entries back to the time `oldest`, within BACK_BYTES.

    Raises OSError."""
    with Opened(path) as descriptor:
        reader = _Reader(
            NewEntries(Session("", path), runtime), descriptor, Budget(read=BACK_BYTES)
        )
        end = last_line_end(descriptor, 0, os.fstat(descriptor).st_size, SKIPPED_BYTES)
        return reader.read_back(0, end or 0, oldest)


def cursors_at_end(changed: list[Changed], now: float, deadline: Deadline) -> ReadCursors:
    """Return a cursor at the end of each session's transcript, by the session's key."""
    cursors = ReadCursors()

    def take(session_and_status: Changed) -> None:
        with Opened(session_and_status[0].path) as descriptor:
            status = os.fstat(descriptor)
            end = last_line_end(descriptor, 0, status.st_size, SKIPPED_BYTES)
            if end is not None:
                cursor = ReadCursor.behind(descriptor, status, end, int(now * 1e9))
                cursor.seen = now
                cursors.set(session_and_status[0].key, cursor)

    deadline.attempt_each(changed, take, lambda pair: pair[0].path)
    return cursors


def read_other_titles(new: NewEntries) -> None:
    """Search once for a title in bytes that were never read, because a rule may name the title.

    Raises OSError."""
    end = new.cursor.offset
    # otherwise all bytes were read, but not searched for some owners
    if new.lowest or end <= BRIEF_OWNER_BYTES:
        end = new.lowest
    if new.entries and new.titled < end:
        with Opened(new.session.path) as descriptor:
            owner = TitleOwner(new.runtime.session_id_of(new.session.path), descriptor)
            reader = TranscriptReader(new.runtime, first_line(descriptor), owner=owner)
            reader.take_titles(descriptor, new.titled, end)
        if reader.title[0] > new.title[0]:
            new.title = kept_title(reader.title)
            new.cursor.title = new.title
        new.titled = new.cursor.offset
    new.cursor.titled = new.titled


def kept_title(title: tuple[int, str]) -> tuple[int, str]:
    """Return `title` in the form that cursors store: short, on one line, and without secrets."""
    rank, text = title
    longest = TITLE_CHARACTERS if rank > FIRST_PROMPT_RANK else PROMPT_CHARACTERS
    return rank, shorten(
        one_line(for_people(beginning(text, longest + SECRET_CHARACTERS))), longest
    )


def _read_session(
    new: NewEntries,
    cursor: ReadCursor | None,
    now: float,
    oldest: float,
    first_sight: int | None,
    budget: Budget,
) -> bool:
    with Opened(new.session.path) as descriptor:
        reader = _Reader(new, descriptor, budget)
        reader.read(cursor, now, oldest, first_sight)
        if new.session.sub_agent_bytes and new.is_read:
            new.cursor.sub_agents = new.session.sub_agent_bytes
        if (new.entries or new.session.sub_agent_bytes) and new.is_read:
            if new.cursor.start is None:
                reader.read_head()
            if name := new.runtime.given_name(new.session.path):
                new.title = kept_title((USER_RANK, name))
                new.cursor.title = new.title
    return True


class _Reader:
    """Reads the open transcript of `new` within a budget."""

    def __init__(self, new: NewEntries, descriptor: int, budget: Budget) -> None:
        self._new = new
        self._descriptor = descriptor
        self._budget = budget
        self._owner = TitleOwner(
            new.runtime.session_id_of(new.session.path), descriptor, BRIEF_OWNER_BYTES
        )
        self._unread: list[UnreadPart] = []

    def read(
        self, cursor: ReadCursor | None, now: float, oldest: float, first_sight: int | None
    ) -> None:
        """Read after `cursor`, and the parts left unread earlier.

        Without a cursor, read the entries written since `oldest` (seconds since 1970). If
        `first_sight` is given, read about that many bytes, or more until they contain a dialogue.
        If the file is not the cursor's, read it from its end back to the last entry already seen.
        """
        new, descriptor = self._new, self._descriptor
        status = os.fstat(descriptor)
        if cursor and cursor.title:
            new.title = cursor.title
        start = cursor.resume_offset(descriptor, status) if cursor else None
        end = last_line_end(descriptor, start or 0, status.st_size, SKIPPED_BYTES)
        if end is None:
            return
        new.is_read = True
        behind = ReadCursor.behind(descriptor, status, end, int(now * 1e9))
        if cursor and start is not None:
            parsed = new.entries = self._read_on(cursor, start, end)
        elif cursor:
            seen = cursor.seen or oldest
            parsed = self.read_back(0, end, seen)
            new.entries = _behind(parsed, cursor.ids, seen)
            is_known = any(_is_among(entry, cursor.ids[-1:]) for entry in parsed)
            if cursor.ids and not new.entries and not is_known:
                # The file is still being rewritten (Pi does that to its older files, line by line),
                # so entries that are missing now are not new when they return.
                new.cursor = cursor.copy()
                new.cursor.take_stamp(behind)
                return
        else:
            new.is_first_sight = True
            parsed = self.read_back(0, end, oldest, first_sight)
            new.entries = _not_before(oldest, parsed)
        new.is_partial = new.is_partial and len(new.entries) == len(parsed)
        new.parsed = parsed
        new.cursor = behind
        new.cursor.unread = self._few_unread()
        self._remember(parsed, cursor or ReadCursor())

    def _read_on(self, cursor: ReadCursor, start: int, end: int) -> list[Entry]:
        """Return the entries in `[start, end)`, after the entries that were left unread earlier."""
        self._new.titled = cursor.titled or 0
        entries = self.read_back(start, end, 0)
        for low, high, since in reversed(cursor.unread):
            older = self.read_back(low, high, since, is_new=False)
            entries = _not_before(since, older) + entries
        return entries

    def _few_unread(self) -> list[UnreadPart]:
        """Return the parts left unread; if there are too many, the first two become one."""
        unread = sorted(self._unread)
        if len(unread) > MOST_UNREAD:
            unread[:2] = [(unread[0][0], unread[1][1], unread[0][2])]
        return unread

    def read_back(
        self, start: int, end: int, since: float, enough: int | None = None, *, is_new: bool = True
    ) -> list[Entry]:
        """Return the entries in `[start, end)`, read backward.

        Reading stops at the time `since` (0 for all) or, if given, after about `enough` bytes (0
        for the first dialogue). The rest is noted as unread. `is_new` is false for a part left
        unread earlier."""
        new, descriptor, budget = self._new, self._descriptor, self._budget
        reader = TranscriptReader(new.runtime, first_line(descriptor), owner=self._owner)
        entries: list[Entry] = []
        lowest, is_enough = end, False
        if not budget.is_spent:
            for lines in windows_backward(descriptor, start, end, budget.read, reader.may_matter):
                entries = list(reader.backward(reversed(lines)))[::-1] + entries
                lowest = lines[0][0]
                is_enough = any([since > (e.timestamp or since) for e in entries]) or (
                    enough is not None and _is_much(entries, end - lowest, enough)
                )
                if is_enough or reader.decoded >= min(budget.decoded, budget.of_one):
                    break
        if entries and lowest:
            new.parts.append((reader, lowest))
        budget.decoded -= reader.decoded
        budget.read -= end - lowest
        new.bytes_read += end - lowest
        if is_new:
            new.lowest = lowest
        new.unreadable += reader.unreadable
        if lowest > start:
            new.is_partial = True
            if not is_enough:
                self._unread.append((start, lowest, since))
        if reader.title[0] >= new.title[0] + (not is_new):
            new.title = kept_title(reader.title)
        return entries

    def read_head(self) -> None:
        """Note the transcript's beginning in the cursor.

        It consists of the first entry's id, the start directory, and the best known title, else the
        first prompt."""
        new = self._new
        head = TranscriptHead(new.runtime, self._descriptor, self._owner)
        new.title = kept_title(head.best_title(new.title))
        new.cursor.first = head.first_id
        new.cursor.compacted = head.begins_compacted
        new.cursor.start = for_people(head.cwd or (new.entries[0].cwd if new.entries else ""))
        new.cursor.title = new.title

    def _remember(self, parsed: list[Entry], before: ReadCursor) -> None:
        """Note the title and the last ids in the new cursor.

        The ids locate the cursor in a rewritten file."""
        new, cursor = self._new, self._new.cursor
        ids = [
            id_checksum(entry.id) if entry.id else _content_checksum(entry)
            for entry in parsed[-RECENT_IDS:]
        ]
        cursor.ids = [*before.ids, *ids][-RECENT_IDS:]
        cursor.seen = max([entry.timestamp or 0 for entry in parsed] + [before.seen])
        if new.title[1]:
            cursor.title = new.title
            # otherwise the head is read again, to find the prompt that names a session without a
            # title
            if before.first is not None:
                cursor.take_beginning(before)


def _not_before(oldest: float, entries: list[Entry]) -> list[Entry]:
    """Return the `entries` that are not older than the time `oldest`."""
    return [entry for entry in entries if entry.timestamp is None or entry.timestamp >= oldest]


def _is_much(entries: list[Entry], read: int, most: int) -> bool:
    """Check if `entries`, from the last `read` bytes, are a dialogue and enough was read.

    Enough was read if another window, twice as large as all before it, would exceed `most` bytes.
    """
    if 3 * read < most:
        return False
    return any(e.role == "user" for e in entries) and any(
        e.role == "assistant" and e.text for e in entries
    )


def _behind(entries: list[Entry], last_seen: Collection[int], seen: float) -> list[Entry]:
    """Return a rewritten file's entries after the last id in `last_seen`, else after `seen`."""
    for index in range(len(entries) - 1, -1, -1):
        if _is_among(entries[index], last_seen):
            return entries[index + 1 :]
    return _not_before(seen, entries)


def _is_among(entry: Entry, checksums: Collection[int]) -> bool:
    """Compare by id and by content, because Pi adds ids to the entries of its oldest files."""
    return (bool(entry.id) and id_checksum(entry.id) in checksums) or _content_checksum(
        entry
    ) in checksums


def _content_checksum(entry: Entry) -> int:
    return id_checksum(f"{entry.role} {entry.timestamp} {entry.text}")
