"""A session to push to a team, as values: what is new, and what the team has already."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from hashlib import blake2b
from typing import NamedTuple

from ..values import ITEM_BITS, StoredEntry, StoredSpan

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
