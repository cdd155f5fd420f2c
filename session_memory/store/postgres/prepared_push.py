"""A batch on its way to a team, made ready before the server is asked, which meanwhile writes the one before. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import NamedTuple

from ..values import ITEM_BITS, TOOL_ROLE, StoredEntry
from .postings import NewPostings, PostingRows
from .rows import NUMBERS
from .session_push import SessionPush, mark_of, mark_of_result, sum_of

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
    """Return a row of `item` without the session, whose directory is `cwd`."""
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
    """Return the numbers of the tool uses whose result has still not come."""
    ended = {item.id & NUMBERS for item in one.ended}
    before = [number for number in (one.before.open_calls if one.before else ()) if number not in ended]
    return before + [item.id & NUMBERS for item in one.items if item.role == TOOL_ROLE and not item.outcome]
