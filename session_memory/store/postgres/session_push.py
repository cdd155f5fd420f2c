"""A session to push to a team, as values: what is new, and what the team has already."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable
from hashlib import blake2b
from typing import NamedTuple

from ..values import ITEM_BITS, TOOL_ROLE, StoredEntry, StoredSpan
from .postings import NewPostings, PostingRows
from .rows import NUMBERS

_NUMBERS = (1 << ITEM_BITS) - 1
_LARGEST = (1 << 63) - 1  # of a bigint
SHARES = ("mine", "team")  # who may read a session: its owner on all machines, or the team too


class SharedSession(NamedTuple):
    """A session for the team. `home` and `file_path` are its transcript's in the machine's own store; `project` is the
    same on all machines; `cwd` is the project with the directory in its repository. `shape` is a checksum of which
    items are shared; `rules` of the rules for redaction. Times are in milliseconds since the epoch."""

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
        """Return the key of the session among those of its machine."""
        return self.home, self.file_path


class PushedSession(NamedTuple):
    """A session in the team's store: its number and its segment's, itself, and how far it was pushed. `mark` is that of
    all its items (`mark_of`), `open_calls` are the numbers of tool uses without a result yet."""

    id: int
    segment: int
    session: SharedSession
    next_number: int
    mark: int
    open_calls: tuple[int, ...]


class SessionPush(NamedTuple):
    """The changes to push for a session that the team knows as `before` (None: new): its new `items` in order (those in
    `copies` are a fork's and not searchable), tool uses that have `ended` since, and the `spans` of new or grown
    conversations. Items end before `next_number`."""

    before: PushedSession | None
    session: SharedSession
    items: tuple[StoredEntry, ...] = ()
    copies: frozenset[int] = frozenset()
    ended: tuple[StoredEntry, ...] = ()
    spans: tuple[StoredSpan, ...] = ()
    next_number: int = 0


def mark_of(items: Iterable[StoredEntry], copies: Collection[int], open_calls: Collection[int] = ()) -> int:
    """Return a checksum of all that others can read of items, which identifies them after a transcript was ingested
    again. It is a sum: that of more items is added to it (`sum_of`). The tool uses with the numbers `open_calls` count
    as unfinished."""
    marks = []
    for one in items:
        number = one.id & _NUMBERS
        marks.append(checksum(number, number in copies, one.role, one.timestamp, one.cwd, one.tool, one.kind, one.text))
        if one.outcome and number not in open_calls:
            marks.append(mark_of_result(one))
    return sum_of(marks)


def mark_of_result(item: StoredEntry) -> int:
    """Return the part of the checksum for the outcome of a tool use."""
    return checksum(item.id & _NUMBERS, item.outcome, item.error, item.result_size, item.result_lines)


def sum_of(marks: Iterable[int]) -> int:
    """Return the sum of checksums, as large as one of them."""
    return sum(marks) & _LARGEST


def checksum(*values: object) -> int:
    """Return a number that a bigint holds and that other values do not have."""
    digest = blake2b("\0".join(map(str, values)).encode("utf-8", "replace"), digest_size=8).digest()
    return int.from_bytes(digest, "big") & _LARGEST


Row = tuple[str | int | None, ...]

_NO_TOOL = (None,) * 6


class PreparedSession(NamedTuple):
    """A session ready to be written: `push` without its items, which `rows` holds as rows of `item` (from the second
    field on). `mark` and `open_calls` are the session's new totals, `text_count` is its number of searchable items,
    `term_count` the number of their terms."""

    push: SessionPush
    rows: list[Row]
    mark: int
    open_calls: list[int]
    text_count: int
    term_count: int

    @property
    def item_count(self) -> int:
        """Return the number of new items."""
        return len(self.rows)


class SegmentRows(NamedTuple):
    """The additions to a segment: the number of items, and the rows of `posting` for them."""

    item_count: int
    postings: PostingRows


class PreparedBatch(NamedTuple):
    """Sessions, and the additions to their segments: of known sessions by a segment's number, of new ones by whom they
    are shared with. Postings name a session by its index in `sessions`."""

    sessions: list[PreparedSession]
    segments: dict[int | str, SegmentRows]


def prepared(batch: Iterable[SessionPush], terms_in: Callable[[str], list[str]]) -> PreparedBatch:
    """Return a batch as it is written, found by the terms that `terms_in` finds in texts."""
    sessions: list[PreparedSession] = []
    postings: dict[int | str, NewPostings] = {}
    item_counts: Counter[int | str] = Counter()
    for place, one in enumerate(batch):
        before = one.before
        group = before.segment if before else one.session.share
        item_counts[group] += len(one.items)
        first = place << ITEM_BITS
        found = [item for item in one.items if item.text and item.id & NUMBERS not in one.copies]
        texts = [(first | item.id & NUMBERS, item.text) for item in found]
        sessions.append(
            PreparedSession(
                one._replace(items=()),
                [_item_row(item, one.session.cwd) for item in one.items],
                sum_of((before.mark if before else 0, mark_of(one.items, one.copies), *map(mark_of_result, one.ended))),
                _open_calls(one),
                *postings.setdefault(group, NewPostings(terms_in)).add(texts),
            )
        )
    return PreparedBatch(
        sessions, {group: SegmentRows(item_counts[group], of_group.rows()) for group, of_group in postings.items()}
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


def _open_calls(one: SessionPush) -> list[int]:
    ended = {item.id & NUMBERS for item in one.ended}
    before = [number for number in (one.before.open_calls if one.before else ()) if number not in ended]
    return before + [item.id & NUMBERS for item in one.items if item.role == TOOL_ROLE and not item.outcome]
