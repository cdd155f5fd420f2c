"""What is new in the sessions that changed: from each one's cursor on, or, where it has none, what happened lately."""

from __future__ import annotations

from ..system.files import open_regular, os
from ..text.sanitize import beginning, for_people
from ..transcripts.cursor import id_checksum, make_cursor, resume_offset
from ..transcripts.entries import Session
from ..transcripts.lines import first_line, last_line_end, windows_backward
from ..transcripts.reader import FIRST_PROMPT_RANK, USER_RANK, TitleOwner, TranscriptHead, TranscriptReader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from ..runtimes import Runtime
    from ..system.deadline import Deadline
    from ..transcripts.cursor import Cursor
    from ..transcripts.entries import Entry
    from .changes import Changed

PROMPT_BYTES = 4 * 1024 * 1024  # that are decoded at most, about half of them of one session
SKIPPED_BYTES = 64 * 1024 * 1024  # that are read at most: most of a transcript is not decoded
BACK_BYTES = 2 * 1024 * 1024  # in which copies are looked for
MOST_UNREAD = 16  # parts of one transcript that are left for the next time
FIRST_SIGHT_BYTES = 1536 * 1024  # what is read of sessions that are seen first, if their last day is that long
TITLE_CHARACTERS = 200
PROMPT_CHARACTERS = 64  # of the first prompt, where it is the title
SECRET_CHARACTERS = 400  # so much more is looked through for secrets, lest one is cut in two unseen
# What a cursor keeps of the beginning of a transcript, and of what it has in common with others.
_OF_THE_START = ("start", "began", "compacted", "kin", "own_title")
RECENT_IDS = 4  # of the last entries, by which they are found again in a rewritten file


class Budget:
    """How many bytes may still be `decoded`, and `read`, of all transcripts; of one at most `of_one` are decoded."""

    __slots__ = ("decoded", "of_one", "read")

    def __init__(self, decoded: int = PROMPT_BYTES, read: int = SKIPPED_BYTES) -> None:
        self.decoded = decoded
        self.of_one = decoded // 2
        self.read = read

    @property
    def is_spent(self) -> bool:
        """Whether nothing more is read."""
        return self.decoded <= 0 or self.read <= 0


class Unseen:
    """What is new in `session`: its `entries` in file order, its `title` with its rank ('' for none), and the `cursor`
    behind them, empty where no line was completed.

    `runtime` is the one that it runs in. What lies before the offset `lowest` was not read now; what lies before
    `titled` was looked through for titles. `is_partial` says that older entries were left unread, of which the cursor
    tells those that are read the next time; `is_first_sight` that there was no cursor, `bytes_read` how much was read,
    `unreadable` how many records could not be decoded.
    """

    __slots__ = (
        "bytes_read", "cursor", "entries", "is_first_sight", "is_partial", "lowest", "runtime", "session", "title",
        "titled", "unreadable",
    )  # fmt: skip

    def __init__(self, session: Session, runtime: Runtime) -> None:
        self.session = session
        self.runtime = runtime
        self.lowest = 0
        self.titled = 0
        self.cursor: Cursor = {}
        self.entries: list[Entry] = []
        self.title: tuple[int, str] = (FIRST_PROMPT_RANK, "")
        self.is_partial = False
        self.is_first_sight = False
        self.bytes_read = 0
        self.unreadable = 0


def read_changed(
    changed: list[Changed],
    cursors: Mapping[str, Cursor],
    runtime: Runtime,
    now: float,
    oldest: float,
    most: int,
    deadline: Deadline,
    budget: Budget | None = None,
) -> tuple[list[Unseen], int]:
    """Return what is new in the first of the sessions, until `most` have something new, PROMPT_BYTES were decoded,
    SKIPPED_BYTES read or no time is left, and how many sessions were not read.

    With a `budget`, that is what is read at most, also of sessions that are seen first."""
    read: list[Unseen] = []
    first_sight_left = FIRST_SIGHT_BYTES if budget is None else budget.read
    budget = budget or Budget()
    with_entries = 0
    for index, (session, _) in enumerate(changed):
        if budget.is_spent or with_entries >= most:
            return read, len(changed) - index
        if deadline.is_over:
            deadline.late.append(session.path)
            return read, len(changed) - index
        first_sight = max(0, first_sight_left) // min(most - with_entries, len(changed) - index)
        of_session = (session, cursors.get(session.key), session.runtime or runtime)
        unseen = deadline.attempt(session.path, _read_session, *of_session, now, oldest, first_sight, budget)
        if unseen is None:
            continue
        first_sight_left -= unseen.bytes_read * unseen.is_first_sight
        with_entries += bool(unseen.entries)
        if unseen.unreadable:
            deadline.notes.append(f"{session.path}: {unseen.unreadable} records could not be read and were skipped")
        if unseen.cursor:
            read.append(unseen)
        else:
            deadline.notes.append(f"{session.path}: a line of more than {SKIPPED_BYTES} bytes is not complete yet")
    return read, 0


def read_own(path: str, cursor: Cursor | None, runtime: Runtime, now: float, oldest: float) -> Unseen:
    """Return what is new in the transcript of the session at hand. Raises OSError."""
    with _Opened(path) as descriptor:
        unseen = Unseen(Session("", path), runtime)
        _read_unseen(unseen, runtime, descriptor, cursor, now, oldest, FIRST_SIGHT_BYTES, Budget())
        return unseen


def cursors_at_end(changed: list[Changed], now: float, deadline: Deadline) -> dict[str, Cursor]:
    """Return a cursor at the end of each of the sessions, by its key."""
    cursors: dict[str, Cursor] = {}

    def take(one: Changed) -> None:
        with _Opened(one[0].path) as descriptor:
            status = os.fstat(descriptor)
            end = last_line_end(descriptor, 0, status.st_size, SKIPPED_BYTES)
            if end is not None:
                cursors[one[0].key] = {**make_cursor(descriptor, status, end, int(now * 1e9)), "seen": now}

    deadline.attempt_each(changed, take, lambda one: one[0].path)
    return cursors


class _Opened:
    """A descriptor of a regular file, closed at the end of the block. Raises OSError."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> int:
        self._descriptor = open_regular(self._path)
        return self._descriptor

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)


def _read_session(
    session: Session, cursor: Cursor | None, runtime: Runtime, now: float, oldest: float, first_sight: int,
    budget: Budget,
) -> Unseen:  # fmt: skip
    with _Opened(session.path) as descriptor:
        unseen = Unseen(session, runtime)
        _read_unseen(unseen, runtime, descriptor, cursor, now, oldest, first_sight, budget)
        if unseen.entries and unseen.cursor and "start" not in unseen.cursor:
            _read_head(runtime, descriptor, unseen)
        name = runtime.given_name(session.path) if unseen.entries else ""
        if name and unseen.cursor:
            unseen.title = kept_title((USER_RANK, name))
            unseen.cursor["title"] = list(unseen.title)
        return unseen


def _read_unseen(
    unseen: Unseen, runtime: Runtime, descriptor: int, cursor: Cursor | None, now: float, oldest: float,
    first_sight: int, budget: Budget,
) -> None:  # fmt: skip
    """Read what the file holds behind `cursor` and what was left unread before; without one, what it holds since
    `oldest` (seconds since the epoch), of that about `first_sight` bytes, or more if there is no dialogue in them.

    A file that is not the one the cursor was made from is read from its end back to the last entry that was seen.
    """
    status = os.fstat(descriptor)
    if cursor and "title" in cursor:
        unseen.title = (cursor["title"][0], cursor["title"][1])
    start = resume_offset(cursor, descriptor, status) if cursor else None
    end = last_line_end(descriptor, start or 0, status.st_size, SKIPPED_BYTES)
    if end is None:
        return
    unread: list[list[float]] = []
    if cursor and start is not None:
        unseen.titled = cursor.get("titled", 0)
        parsed = _read_back(unseen, runtime, descriptor, start, end, 0, budget, unread)
        for low, high, since in reversed(cursor.get("unread", ())):
            older = _read_back(unseen, runtime, descriptor, low, high, since, budget, unread, is_new=False)
            parsed = _not_before(since, older) + parsed
        unseen.entries = parsed
    elif cursor:
        seen, last_seen = cursor.get("seen") or oldest, cursor.get("ids", ())
        parsed = _read_back(unseen, runtime, descriptor, 0, end, seen, budget, unread)
        unseen.entries = _behind(parsed, last_seen, seen)
        if last_seen and not unseen.entries and not any(_is_among(entry, last_seen[-1:]) for entry in parsed):
            # Being written anew and not complete yet (Pi does that to its older files, line by line): what is missing
            # is not new when it is there again.
            at = make_cursor(descriptor, status, end, int(now * 1e9))
            unseen.cursor = {**cursor, **{key: at[key] for key in ("size", "inode", "mtime")}}
            return
    else:
        unseen.is_first_sight = True
        parsed = _read_back(unseen, runtime, descriptor, 0, end, oldest, budget, unread, first_sight)
        unseen.entries = _not_before(oldest, parsed)
    unseen.is_partial = unseen.is_partial and len(unseen.entries) == len(parsed)
    unseen.cursor = make_cursor(descriptor, status, end, int(now * 1e9))
    if unread:
        unread.sort()
        if len(unread) > MOST_UNREAD:
            unread[:2] = [[unread[0][0], unread[1][1], unread[0][2]]]
        unseen.cursor["unread"] = unread
    _remember(unseen, parsed, cursor or {})


def _read_head(runtime: Runtime, descriptor: int, unseen: Unseen) -> None:
    """Notes in the cursor of `unseen` the first entry's id, the directory that the session was started in, and the
    title: the best known, else the first prompt."""
    head = TranscriptHead(runtime, descriptor, runtime.session_id_of(unseen.session.path))
    unseen.title = kept_title(head.best_title(unseen.title))
    unseen.cursor["first"] = head.first_id
    unseen.cursor["began"] = head.first_time
    if head.begins_compacted:
        unseen.cursor["compacted"] = True
    unseen.cursor["start"] = for_people(head.cwd or unseen.entries[0].cwd)
    unseen.cursor["title"] = list(unseen.title)


def take_unread_titles(unseen: Unseen) -> None:
    """Look for a title in what was read neither now nor before, once: a rule may name a session by it. Raises
    OSError."""
    if unseen.entries and unseen.titled < unseen.lowest:
        with _Opened(unseen.session.path) as descriptor:
            owner = TitleOwner(unseen.runtime.session_id_of(unseen.session.path), descriptor)
            reader = TranscriptReader(unseen.runtime, first_line(descriptor), owner=owner)
            reader.take_titles(descriptor, unseen.titled, unseen.lowest)
        if reader.title[0] > unseen.title[0]:
            unseen.title = kept_title(reader.title)
            unseen.cursor["title"] = list(unseen.title)
        unseen.titled = unseen.cursor["offset"]
    unseen.cursor["titled"] = unseen.titled


def entries_back_to(runtime: Runtime, path: str, oldest: float) -> list[Entry]:
    """Return the last entries of a transcript, back to the time `oldest`, as far as BACK_BYTES go. Raises OSError."""
    with _Opened(path) as descriptor:
        unseen = Unseen(Session("", path), runtime)
        end = last_line_end(descriptor, 0, os.fstat(descriptor).st_size, SKIPPED_BYTES)
        return _read_back(unseen, runtime, descriptor, 0, end or 0, oldest, Budget(read=BACK_BYTES), [])


def _read_back(
    unseen: Unseen, runtime: Runtime, descriptor: int, start: int, end: int, since: float, budget: Budget,
    unread: list[list[float]], enough: int | None = None, *, is_new: bool = True,
) -> list[Entry]:  # fmt: skip
    """Return the entries in `[start, end)`, read from its end back to the time `since` (0 for all), or, if it is given,
    until about `enough` bytes, 0 for the first dialogue. What the `budget` does not reach is added to `unread`, with
    that time. One that is not `is_new` was left unread before."""
    owner = TitleOwner(runtime.session_id_of(unseen.session.path), descriptor)
    reader = TranscriptReader(runtime, first_line(descriptor), owner=owner)
    entries: list[Entry] = []
    lowest, is_enough = end, False
    if not budget.is_spent:
        for lines in windows_backward(descriptor, start, end, budget.read, reader.may_matter):
            entries = list(reader.backward(reversed(lines)))[::-1] + entries
            lowest = lines[0][0]
            is_enough = _reach(entries, since) or (enough is not None and _is_much(entries, end - lowest, enough))
            if is_enough or reader.decoded >= min(budget.decoded, budget.of_one):
                break
    budget.decoded -= reader.decoded
    budget.read -= end - lowest
    unseen.bytes_read += end - lowest
    if is_new:
        unseen.lowest = lowest
    unseen.unreadable += reader.unreadable
    if lowest > start:
        unseen.is_partial = True
        if not is_enough:
            unread.append([start, lowest, since])
    if reader.title[0] >= unseen.title[0] + (not is_new):
        unseen.title = kept_title(reader.title)
    return entries


def kept_title(title: tuple[int, str]) -> tuple[int, str]:
    """`title` as a cursor keeps it: not too long, and without secrets, since the file is stored."""
    rank, text = title
    longest = TITLE_CHARACTERS if rank > FIRST_PROMPT_RANK else PROMPT_CHARACTERS
    return rank, for_people(beginning(text, longest + SECRET_CHARACTERS))[:longest]


def _remember(unseen: Unseen, parsed: list[Entry], before: Cursor) -> None:
    """Notes in the new cursor what a rewritten file will be compared with, and the title."""
    cursor = unseen.cursor
    ids = [id_checksum(entry.id) if entry.id else _content_checksum(entry) for entry in parsed[-RECENT_IDS:]]
    cursor["ids"] = [*before.get("ids", ()), *ids][-RECENT_IDS:]
    cursor["seen"] = max([entry.timestamp or 0 for entry in parsed] + [before.get("seen", 0)])
    if unseen.title[1]:
        cursor["title"] = list(unseen.title)
        if "first" in before:  # else the head is read again, for the prompt that names a session without a title
            cursor["first"] = before["first"]
            cursor.update({key: before[key] for key in _OF_THE_START if key in before})


def _reach(entries: list[Entry], oldest: float) -> bool:
    """Whether `entries` go back beyond the time `oldest`."""
    return any(entry.timestamp is not None and entry.timestamp < oldest for entry in entries)


def _not_before(oldest: float, entries: list[Entry]) -> list[Entry]:
    """Return those of `entries` that are not older than the time `oldest`."""
    return [entry for entry in entries if entry.timestamp is None or entry.timestamp >= oldest]


def _is_much(entries: list[Entry], read: int, most: int) -> bool:
    """Check if `entries`, in the last `read` bytes, are a dialogue, and one more window, twice as large as all before
    it, would go beyond `most` bytes."""
    if 3 * read < most:
        return False
    return any(e.role == "user" for e in entries) and any(e.role == "assistant" and e.text for e in entries)


def _behind(entries: list[Entry], last_seen: Collection[int], seen: float) -> list[Entry]:
    """What of a rewritten file was not seen: the entries behind the last of those in `last_seen`, else those that are
    not older than `seen`."""
    for index in range(len(entries) - 1, -1, -1):
        if _is_among(entries[index], last_seen):
            return entries[index + 1 :]
    return _not_before(seen, entries)


def _is_among(entry: Entry, checksums: Collection[int]) -> bool:
    """By its id or by its content: an entry without an id may be given one (Pi does that to its oldest files)."""
    return (bool(entry.id) and id_checksum(entry.id) in checksums) or _content_checksum(entry) in checksums


def _content_checksum(entry: Entry) -> int:
    return id_checksum(f"{entry.role} {entry.timestamp} {entry.text}")
