"""A session on its way to a team, as values: what of it is new, and what the team has of it already."""

from __future__ import annotations

from typing import NamedTuple
from zlib import crc32

from ..values import ITEM_BITS, StoredEntry, StoredSpan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_NUMBERS = (1 << ITEM_BITS) - 1
SHARES = ("mine", "team")  # who may read a session: its owner on all machines, or the team too


class SharedSession(NamedTuple):
    """A session as the team is to know it. `home` and `file_path` are its transcript's in the machine's own store,
    which knows it by `local_id`; `project` is the same on all machines; `cwd` is the project with the directory in its
    repository. `rules` says what secrets were looked for in its texts; times are in milliseconds since the epoch."""

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
    local_id: int
    rules: str

    @property
    def key(self) -> tuple[str, str]:
        """By which it is known among those of its machine."""
        return self.home, self.file_path


class PushedSession(NamedTuple):
    """What the team has of a session: its number there and its segment's, itself, and how far it was pushed. `mark` is
    that of all its items (`mark_of`), `open_calls` are the numbers of tool uses whose result had not come, `item_count`
    says how many items there are."""

    id: int
    segment: int
    session: SharedSession
    next_number: int
    mark: int
    open_calls: tuple[int, ...]
    item_count: int


class SessionPush(NamedTuple):
    """What is to be pushed of a session that the team knows as `before` (None: not at all): its new `items` in order,
    of which those in `copies` are a fork's and are not to be found; `ended` are tool uses whose result has come since,
    `spans` the conversations that are new or have grown. `next_number` is up to where the items go."""

    before: PushedSession | None
    session: SharedSession
    items: tuple[StoredEntry, ...] = ()
    copies: frozenset[int] = frozenset()
    ended: tuple[StoredEntry, ...] = ()
    spans: tuple[StoredSpan, ...] = ()
    next_number: int = 0


def mark_of(items: Iterable[StoredEntry], before: int = 0) -> int:
    """A checksum of a session's items, by which they are known again in a transcript that was read anew; of those that
    follow on others whose checksum is `before`."""
    for item in items:
        before = crc32(f"{item.id & _NUMBERS} {item.role} {item.text}".encode("utf-8", "replace"), before)
    return before
