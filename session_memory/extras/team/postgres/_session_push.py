"""A session to push to a team, as values.

It has the new content, the content that the team already has, and the rows to write."""

from __future__ import annotations

import sys
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from hashlib import blake2b
from itertools import accumulate, chain, pairwise
from typing import NamedTuple
from zlib import crc32

from ....history.store.values import ITEM_BITS, NUMBERS, TOOL_ROLE, StoredEntry, StoredSpan

_LARGEST = (1 << 63) - 1  # of a bigint


class SharedSession(NamedTuple):
    """A session for the team.

    `home` and `file_path` are its transcript's in the machine's own store. `project` is the same on
    all machines; `cwd` is the project with the directory in its repository. `shape` is a checksum
    of which items are shared, `rules` a checksum of the rules for redaction with the version of
    terms. Times are in milliseconds since the epoch."""

    home: str
    file_path: str
    session_id: str
    runtime: str
    project: str
    share: str
    title: str
    cwd: str
    branch: str
    first_at: int | None
    last_at: int | None
    shape: int
    rules: str

    @property
    def key(self) -> tuple[str, str]:
        return self.home, self.file_path


class PushedSession(NamedTuple):
    """A session in the team's store.

    It has its number and its segment's, itself, and how far it was pushed. `mark` is the mark of
    all its items (`mark_of`); `open_calls` are the numbers of tool uses without a result yet."""

    id: int
    segment: int
    session: SharedSession
    next_number: int
    mark: int
    open_calls: tuple[int, ...]


class SessionPush(NamedTuple):
    """The changes to push for a session, whose present state in the team is `before` (None: new).

    They are its new `items` in order (items in `copies` are a fork's and not searchable), tool uses
    that have `ended` since, and the `spans` of new or grown conversations. Items end before
    `next_number`."""

    before: PushedSession | None
    session: SharedSession
    items: tuple[StoredEntry, ...] = ()
    copies: frozenset[int] = frozenset()
    ended: tuple[StoredEntry, ...] = ()
    spans: tuple[StoredSpan, ...] = ()
    next_number: int = 0


def mark_of(
    items: Iterable[StoredEntry], copies: Collection[int], open_calls: Collection[int] = ()
) -> int:
    """Return a checksum of everything that others can read of items.

    It identifies them after a transcript was ingested again. It is a sum: the mark of further items
    is added to it (`sum_of`). The tool uses with the numbers `open_calls` count as unfinished."""
    marks = []
    for item in items:
        number = item.id & NUMBERS
        marks.append(
            checksum(
                number,
                number in copies,
                item.role,
                item.timestamp,
                item.cwd,
                item.tool,
                item.kind,
                item.text,
            )
        )
        if item.outcome and number not in open_calls:
            marks.append(mark_of_result(item))
    return sum_of(marks)


def mark_of_result(item: StoredEntry) -> int:
    return checksum(
        item.id & NUMBERS, item.outcome, item.error, item.result_size, item.result_lines
    )


def sum_of(marks: Iterable[int]) -> int:
    """Return the sum of checksums, cut to the bits of a single checksum."""
    return sum(marks) & _LARGEST


def checksum(*values: object) -> int:
    """Return a number that a bigint holds and that other values do not have."""
    digest = blake2b("\0".join(map(str, values)).encode("utf-8", "replace"), digest_size=8).digest()
    return int.from_bytes(digest, "big") & _LARGEST


LONGEST_TERM = 500
ID_BYTES = 8
_UPPER = slice(1 if sys.byteorder == "little" else 0, None, 2)  # of an id in two halves


def clipped(term: str) -> str:
    """Return a term in its stored form: longer ones than an index takes end with a checksum."""
    return (
        term if len(term) <= LONGEST_TERM else term[:LONGEST_TERM] + f"{crc32(term.encode()):08x}"
    )


def packed(items: list[int]) -> bytes:
    return _swapped(array("Q", items)).tobytes()


def unpacked(items: bytes, sessions: frozenset[int]) -> list[int]:
    """Return the ids in a row that belong to these sessions.

    A member's own program may have written other ids."""
    items = items[: len(items) - len(items) % ID_BYTES]
    if len(items) == ID_BYTES:
        id = int.from_bytes(items, "big")
        return [id] if id >> ITEM_BITS in sessions else []
    ids = _swapped(array("Q", items)).tolist()
    # the upper halves: in a quarter of the time
    if sessions.issuperset(_swapped(array("I", items))[::2]):
        return ids
    return [id for id in ids if id >> ITEM_BITS in sessions]


def _swapped(values: array[int]) -> array[int]:
    """Convert big-endian numbers to this machine's byte order, or back."""
    if sys.byteorder == "little":
        values.byteswap()
    return values


Row = tuple[str | int | None, ...]

_NO_TOOL = (None,) * 6


class PreparedSession(NamedTuple):
    """A session ready to be written.

    `push` lacks its items, which `rows` has as rows of `item` (from the second field on). `mark`
    and `open_calls` are the session's new totals. `text_count` is its number of searchable items,
    `term_count` the number of their terms."""

    push: SessionPush
    rows: list[Row]
    mark: int
    open_calls: list[int]
    text_count: int
    term_count: int

    @property
    def item_count(self) -> int:
        return len(self.rows)


class SegmentRows(NamedTuple):
    """The additions to a segment.

    They have the number of items, and the rows of `posting` for them, in the order of the table's
    key, which halves the writing time, without the numbers that the server assigns. `counts` is the
    number of items of each of `terms`; `items` are the items of all terms, with a session's index
    in the batch instead of its number."""

    item_count: int
    terms: list[str]
    counts: list[int]
    items: array[int]

    def copied(self, segment: int, sessions: Sequence[int]) -> Iterator[tuple[int, str, bytes]]:
        """Yield the rows with the numbers of their segment and sessions, given by place."""
        halves = array("I", self.items.tobytes())
        halves[_UPPER] = array("I", map(sessions.__getitem__, halves[_UPPER]))
        ids = _swapped(array("Q", halves.tobytes())).tobytes()
        ends = accumulate(self.counts, initial=0)
        for term, (first, end) in zip(self.terms, pairwise(ends)):
            yield segment, term, ids[ID_BYTES * first : ID_BYTES * end]


Postings = defaultdict[str, list[int]]  # items by term


class PreparedBatch(NamedTuple):
    """Sessions, and the additions to their segments.

    Segments of known sessions are by number, segments of new sessions by whom they are shared with.
    Postings name a session by its index in `sessions`."""

    sessions: list[PreparedSession]
    segments: dict[int | str, SegmentRows]


def prepared(batch: Iterable[SessionPush], terms_in: Callable[[str], list[str]]) -> PreparedBatch:
    """Return a batch ready to be written; `terms_in` finds the terms in texts."""
    sessions: list[PreparedSession] = []
    postings: defaultdict[int | str, Postings] = defaultdict(lambda: defaultdict(list))
    item_counts: Counter[int | str] = Counter()
    for place, push in enumerate(batch):
        segment = push.before.segment if push.before else push.session.share
        item_counts[segment] += len(push.items)
        sessions.append(_prepared_session(push, place, postings[segment], terms_in))
    return PreparedBatch(
        sessions,
        {segment: _rows(item_counts[segment], rows) for segment, rows in postings.items()},
    )


def _prepared_session(
    push: SessionPush, place: int, postings: Postings, terms_in: Callable[[str], list[str]]
) -> PreparedSession:
    """Return the session at `place` of its batch, ready, and add the terms of its texts."""
    before = push.before
    items_of = postings.__getitem__
    text_count = term_count = 0
    for item in push.items:
        if item.text and item.id & NUMBERS not in push.copies:
            terms = terms_in(item.text)
            text_count, term_count = text_count + 1, term_count + len(terms)
            for items in map(items_of, set(terms)):
                items.append(place << ITEM_BITS | item.id & NUMBERS)
    marks = (
        before.mark if before else 0,
        mark_of(push.items, push.copies),
        *map(mark_of_result, push.ended),
    )
    return PreparedSession(
        push._replace(items=()),
        [_item_row(item, push.session.cwd) for item in push.items],
        sum_of(marks),
        _open_calls(push),
        text_count,
        term_count,
    )


def _open_calls(push: SessionPush) -> list[int]:
    """Return the calls of a session that have not ended: earlier ones, then new ones."""
    ended = {item.id & NUMBERS for item in push.ended}
    before = push.before.open_calls if push.before else ()
    begun = [item for item in push.items if item.role == TOOL_ROLE and not item.outcome]
    still_open = [number for number in before if number not in ended]
    return still_open + [item.id & NUMBERS for item in begun]


def _rows(item_count: int, items_of: dict[str, list[int]]) -> SegmentRows:
    for term in [term for term in items_of if len(term) > LONGEST_TERM]:
        items_of.setdefault(clipped(term), []).extend(items_of.pop(term))
    terms = sorted(items_of)
    lists = [items_of[term] for term in terms]
    return SegmentRows(
        item_count, terms, [len(items) for items in lists], array("Q", chain.from_iterable(lists))
    )


def _item_row(item: StoredEntry, cwd: str) -> Row:
    used: Row = _NO_TOOL
    if item.role == TOOL_ROLE:
        ended = (item.outcome, storable(item.error)) if item.outcome else (None, None)
        used = storable(item.tool), storable(item.kind), *ended, item.result_size, item.result_lines
    elsewhere = None if item.cwd == cwd else storable(item.cwd)
    place = item.timestamp, elsewhere, item.message, item.offset
    return item.id & NUMBERS, item.role, *place, *used, storable(item.text)


def storable(value: str) -> str:
    """Return a text without NUL, which PostgreSQL does not take."""
    return value.replace("\0", "\ufffd")
