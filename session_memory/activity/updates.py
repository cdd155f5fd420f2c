"""Reading what is new in the sessions that changed, and composing what is told of it."""

from __future__ import annotations

from ..system.files import open_regular, os
from ..text.format import one_line, shorten
from ..transcripts.cursor import id_checksum, make_cursor
from ..transcripts.lines import last_line_end
from .report import Report, compose, most_lines, summarize
from .unseen import FILE_BYTES, FIRST_PROMPT_RANK, News, entries_back_to, read_head, read_news

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..runtimes import Runtime
    from ..transcripts.entries import Session
    from .changes import Changed, Look

    Found = tuple[Session, News]

PROMPT_BYTES = 4 * 1024 * 1024  # no further session is read once this much was: the rest only counts until then
NAME_CHARACTERS = 24  # of a first prompt that has to name a session


def tell(look: Look, changed: list[Changed], runtime: Runtime, limit: int, own_path: str) -> str | None:
    """What is new in `changed`, in at most `limit` characters; None if nothing is.

    Moves the cursors of the sessions that the text tells of and of those that have nothing to tell.
    """
    found, unread = _read(look, changed, runtime, most_lines(limit) + 1)
    _drop_copies(look, found, runtime, own_path)
    reports: list[tuple[Report, Session, News]] = []
    for session, news in found:
        report = _report(look, session, news)
        if report is not None:
            reports.append((report, session, news))
        elif news.cursor is not None:
            look.keep(session, news.cursor)
    reports.sort(key=lambda item: -item[0].last_active)
    text, told = compose([report for report, _, _ in reports], look.now, limit, unread)
    for _, session, news in reports[:told]:
        if news.cursor is not None:
            look.keep(session, news.cursor)
    return text or None


def skip(look: Look, changed: list[Changed]) -> None:
    """Moves the cursors of `changed` to the end of what is there, telling nothing."""
    for session, _ in changed:
        try:
            with _Opened(session.path) as descriptor:
                status = os.fstat(descriptor)
                end = last_line_end(descriptor, 0, status.st_size, FILE_BYTES)
                if end is not None:
                    cursor = make_cursor(descriptor, status, end, int(look.now * 1e9))
                    look.keep(session, {**cursor, "seen": look.now})
        except OSError as error:
            look.note(session, error.strerror or str(error))


def is_fresh_fork(path: str, runtime: Runtime, now: float) -> bool:
    """Whether a transcript holds nothing yet but what a fork copied into it, so that no prompt of its own is in it."""
    try:
        with _Opened(path) as descriptor:
            entries = entries_back_to(runtime, descriptor, now + 1)
    except OSError:
        return False
    return bool(entries) and entries[-1].is_copy


def _read(look: Look, changed: list[Changed], runtime: Runtime, most: int) -> tuple[list[Found], int]:
    """What is new in the first sessions, until `most` of them have something to tell, and how many were not read."""
    found: list[Found] = []
    bytes_left = PROMPT_BYTES
    with_entries = 0
    for index, (session, _) in enumerate(changed):
        if bytes_left <= 0 or with_entries >= most:
            return found, len(changed) - index
        try:
            with _Opened(session.path) as descriptor:
                cursor = look.cursors.get(session.key)
                status = os.fstat(descriptor)
                news = read_news(runtime, descriptor, status, cursor, now=look.now, oldest=look.oldest)
                if news.entries and news.cursor is not None and "first" not in news.cursor:
                    read_head(runtime, descriptor, news)
        except OSError as error:
            look.note(session, error.strerror or str(error))
            continue
        bytes_left -= news.bytes_read
        with_entries += bool(news.entries)
        if news.unreadable:
            look.note(session, f"{news.unreadable} records could not be read and were skipped")
        if news.cursor is None:
            look.note(session, f"a line of more than {FILE_BYTES} bytes is not complete yet")
        else:
            found.append((session, news))
    return found, 0


def _drop_copies(look: Look, found: list[Found], runtime: Runtime, own_path: str) -> None:
    """Leaves out what a session that is seen first copied from the one at hand or from one that is known: a fork
    begins as a copy."""
    first_seen = [news for _, news in found if news.is_first_sight and news.entries]
    times = [entry.timestamp for news in first_seen for entry in news.entries if entry.timestamp is not None]
    oldest = min(times, default=0.0)
    seen = _ids(runtime, own_path, oldest) if first_seen and own_path else set()
    for session, news in reversed(found):  # the one written to last is the copy
        if news.is_first_sight and news.entries:
            known = seen.union(*[_ids(runtime, path, oldest) for path in _kin(look, session, news)])
            own = [entry for entry in news.entries if entry.id not in known and not entry.is_copy]
            news.is_partial = news.is_partial and len(own) == len(news.entries)  # what lies before copies are copies
            news.entries = own
        seen.update([entry.id for entry in news.entries if entry.id])


def _kin(look: Look, session: Session, news: News) -> list[str]:
    """The transcripts that `session` may have copied from: they begin as it does, or, where it was forked after a
    compaction and begins there, the last entries that were seen of them are among its own."""
    first = news.cursor.get("first") if news.cursor else None
    checksums = {id_checksum(entry.id) for entry in news.entries if entry.id}
    kin = []
    for other in look.sessions:
        cursor = look.cursors.get(other.key, {})
        begins_alike = bool(first) and cursor.get("first") == first
        if other is not session and (begins_alike or not checksums.isdisjoint(cursor.get("ids", ()))):
            kin.append(other.path)
    return kin


def _ids(runtime: Runtime, path: str, oldest: float) -> set[str]:
    """The ids of the last entries in a transcript, back to the time `oldest`; none where there is no transcript."""
    try:
        with _Opened(path) as descriptor:
            return {entry.id for entry in entries_back_to(runtime, descriptor, oldest) if entry.id}
    except OSError:
        return set()


def _report(look: Look, session: Session, news: News) -> Report | None:
    summary = summarize(news.entries)
    rank, title = news.title
    rule = look.settings.rule(session.name or session.key, title)
    if summary is None or rule.ignore:
        return None
    name = session.name
    if not name and rank > FIRST_PROMPT_RANK:
        name = title
    elif not name and rule.text:
        name = shorten(one_line(title), NAME_CHARACTERS)
    name = name or session.key
    if session.is_elsewhere:
        directory = news.entries[-1].cwd.replace("\\", "/").rstrip("/").rpartition("/")[2]
        name = f"{shorten(name, NAME_CHARACTERS)} in {directory}" if directory else name
    return Report(
        name,
        summary,
        last_active=summary.last_timestamp or look.now,
        with_text=rule.text,
        is_partial=news.is_partial,
    )


class _Opened:
    """A descriptor of a regular file, closed at the end of the block."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> int:
        self._descriptor = open_regular(self._path)
        return self._descriptor

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)
