"""What is new in one session: from its cursor on, or, where there is none, what happened lately."""

from __future__ import annotations

from ..system.files import open_regular, os, read_at
from ..system.json import decode_line
from ..text.sanitize import for_people
from ..transcripts.cursor import id_checksum, make_cursor, resume_offset
from ..transcripts.entry_reader import NO_TITLE, EntryReader, first_line
from ..transcripts.lines import last_line_end, windows_backward

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from os import stat_result

    from ..runtimes import Runtime
    from ..transcripts.entries import Entry
    from .cursor_file import Cursor

FILE_BYTES = 2 * 1024 * 1024  # what is read of one session at most
FIRST_SIGHT_BYTES = 96 * 1024  # what is read of a session that is seen first, if its last day is that long
HEAD_BYTES = 64 * 1024
TITLE_CHARACTERS = 200
PROMPT_CHARACTERS = 64  # of the first prompt, where it is the title
SECRET_CHARACTERS = 400  # so much more is looked through for secrets, lest one is cut in two unseen
RECENT_IDS = 4  # of the last entries, by which they are found again in a rewritten file
FIRST_PROMPT_RANK = 0  # a session's first prompt names it where it has no title of any higher rank


class News:
    """`entries` in file order, `cursor` as it will be once they have been told, `title` with its rank ('' for none).

    `is_partial` says that older entries were left unread, `is_first_sight` that there was no cursor, `bytes_read`
    what it cost. `unreadable` counts records that could not be decoded.
    """

    __slots__ = ("bytes_read", "cursor", "entries", "is_first_sight", "is_partial", "title", "unreadable")

    def __init__(self) -> None:
        self.cursor: Cursor | None = None
        self.entries: list[Entry] = []
        self.title: tuple[int, str] = (FIRST_PROMPT_RANK, "")
        self.is_partial = False
        self.is_first_sight = False
        self.bytes_read = 0
        self.unreadable = 0


def read_news(
    runtime: Runtime, descriptor: int, status: stat_result, cursor: Cursor | None, *, now: float, oldest: float
) -> News:
    """What the file holds behind `cursor`; without one, what it holds since `oldest` (seconds since the epoch).

    A file that is not the one the cursor was made from is read from its end back to the last entry that was seen.
    `cursor` of the result is None where no line has been completed since.
    """
    news = News()
    if cursor and "title" in cursor:
        news.title = (cursor["title"][0], cursor["title"][1])
    start = resume_offset(cursor, descriptor, status) if cursor else None
    end = last_line_end(descriptor, start or 0, status.st_size, FILE_BYTES)
    if end is None:
        return news
    if start is not None:
        _read_back(news, runtime, descriptor, start, end, lambda entries: False)
        parsed = news.entries
    elif cursor:
        seen, last_seen = cursor.get("seen") or oldest, cursor.get("ids", ())
        _read_back(news, runtime, descriptor, 0, end, lambda entries: _reach(entries, seen))
        parsed, news.entries = news.entries, _unseen(news.entries, last_seen, seen)
        if last_seen and not news.entries and not any(_is_among(entry, last_seen[-1:]) for entry in parsed):
            # Being written anew and not complete yet (Pi does that to its older files, line by line): what is missing
            # is not new when it is there again.
            at = make_cursor(descriptor, status, end, int(now * 1e9))
            news.cursor = {**cursor, **{key: at[key] for key in ("size", "inode", "mtime")}}
            return news
    else:
        news.is_first_sight = True
        _read_back(news, runtime, descriptor, 0, end, lambda entries: _reach(entries, oldest) or _is_much(entries, end))
        parsed = news.entries
        news.entries = [e for e in parsed if e.timestamp is None or e.timestamp >= oldest]
        news.is_partial = news.is_partial and len(news.entries) == len(parsed)
    news.cursor = make_cursor(descriptor, status, end, int(now * 1e9))
    _remember(news, parsed, cursor or {})
    return news


def read_head(runtime: Runtime, descriptor: int, news: News) -> None:
    """Notes in the cursor of `news` the first entry's id, and the title: the best known, else the first prompt."""
    cursor = news.cursor
    assert cursor is not None
    first_id = ""
    first_prompt = ""
    title = NO_TITLE
    block = read_at(descriptor, 0, HEAD_BYTES)
    for line in block.split(b"\n")[:-1]:
        if not runtime.may_matter(line):
            continue
        for record in decode_line(line)[0]:
            if not isinstance(record, dict):
                continue
            found = runtime.title(record)
            if found is not None and found[0] >= title[0]:
                title = found
            entry = runtime.entry(record, 0)
            if entry is not None:
                first_id = first_id or entry.id
                first_prompt = first_prompt or (entry.text if entry.role == "user" else "")
        if first_id and first_prompt:
            break
    if title[0] > news.title[0]:  # what is known already was met further on, and is newer
        news.title = _kept(title)
    if not news.title[1]:
        news.title = _kept((FIRST_PROMPT_RANK, first_prompt))
    cursor["first"] = first_id
    cursor["title"] = list(news.title)


def title_of(runtime: Runtime, path: str) -> str:
    """The title of the session in a transcript, else its first prompt; '' if it has neither. Raises OSError."""
    descriptor = open_regular(path)
    try:
        news = News()
        news.cursor = {}
        end = last_line_end(descriptor, 0, os.fstat(descriptor).st_size, HEAD_BYTES) or 0
        _read_back(news, runtime, descriptor, 0, end, lambda entries: False, HEAD_BYTES)
        read_head(runtime, descriptor, news)
        return news.title[1]
    finally:
        os.close(descriptor)


def entries_back_to(runtime: Runtime, descriptor: int, oldest: float) -> list[Entry]:
    """The last entries of a file, back to the time `oldest`, as far as FILE_BYTES reach."""
    news = News()
    end = last_line_end(descriptor, 0, os.fstat(descriptor).st_size, FILE_BYTES)
    _read_back(news, runtime, descriptor, 0, end or 0, lambda entries: _reach(entries, oldest))
    return news.entries


def _read_back(
    news: News,
    runtime: Runtime,
    descriptor: int,
    start: int,
    end: int,
    is_enough: Callable[[list[Entry]], bool],
    limit: int = FILE_BYTES,
) -> None:
    """Reads `[start, end)` from its end until `is_enough`, at most `limit` bytes, into `news`."""
    reader = EntryReader(runtime, first_line(descriptor))
    lowest = end
    for lines in windows_backward(descriptor, start, end, limit):
        news.entries = list(reader.entries(reversed(lines)))[::-1] + news.entries
        if lines:
            lowest = lines[0][0]
        if is_enough(news.entries):
            break
    news.bytes_read = end - lowest
    news.is_partial = lowest > start
    news.unreadable += reader.unreadable
    if reader.title[0] >= news.title[0]:
        news.title = _kept(reader.title)


def _kept(title: tuple[int, str]) -> tuple[int, str]:
    """`title` as a cursor keeps it: not too long, and without secrets, since the file is stored."""
    rank, text = title
    longest = TITLE_CHARACTERS if rank > FIRST_PROMPT_RANK else PROMPT_CHARACTERS
    return rank, for_people(text[: longest + SECRET_CHARACTERS])[:longest]


def _remember(news: News, parsed: list[Entry], before: Cursor) -> None:
    """Notes in the new cursor what a rewritten file will be compared with, and the title."""
    cursor = news.cursor
    assert cursor is not None
    ids = [id_checksum(entry.id) if entry.id else _content_checksum(entry) for entry in parsed[-RECENT_IDS:]]
    cursor["ids"] = [*before.get("ids", ()), *ids][-RECENT_IDS:]
    cursor["seen"] = max([entry.timestamp or 0 for entry in parsed] + [before.get("seen", 0)])
    if news.title[1]:
        cursor["title"] = list(news.title)
        if "first" in before:  # else the head is read again, for the prompt that names a session without a title
            cursor["first"] = before["first"]


def _reach(entries: list[Entry], oldest: float) -> bool:
    """Whether `entries` go back beyond the time `oldest`."""
    return any(entry.timestamp is not None and entry.timestamp < oldest for entry in entries)


def _is_much(entries: list[Entry], end: int) -> bool:
    """Whether `entries`, the last ones before `end`, are a dialogue and more of the file than a short session has."""
    if not entries or end - entries[0].offset < FIRST_SIGHT_BYTES:
        return False
    return any(e.role == "user" for e in entries) and any(e.role == "assistant" and e.text for e in entries)


def _unseen(entries: list[Entry], last_seen: Collection[int], seen: float) -> list[Entry]:
    """What of a rewritten file was not seen: the entries behind the last of those in `last_seen`, else those that are
    not older than `seen`."""
    for index in range(len(entries) - 1, -1, -1):
        if _is_among(entries[index], last_seen):
            return entries[index + 1 :]
    return [entry for entry in entries if entry.timestamp is None or entry.timestamp >= seen]


def _is_among(entry: Entry, checksums: Collection[int]) -> bool:
    """By its id or by its content: an entry without an id may be given one (Pi does that to its oldest files)."""
    return (bool(entry.id) and id_checksum(entry.id) in checksums) or _content_checksum(entry) in checksums


def _content_checksum(entry: Entry) -> int:
    return id_checksum(f"{entry.role} {entry.timestamp} {entry.text}")
