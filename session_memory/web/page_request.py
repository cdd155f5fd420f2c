"""What a view is asked for, as a value: with what it may look at."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ..errors import SessionMemoryError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import TypeVar

    from ..store.location import StoreLocation
    from ..store.postgres.pool import TeamPool
    from ..store.sqlite.engine import SqliteStore
    from .active_sessions import ActiveSession
    from .alarms import Alarm

    Found = TypeVar("Found")


class NotFoundError(SessionMemoryError):
    """There is no such session, entry or page; or a rule excludes it."""


class VisitorGoneError(Exception):
    """Nobody waits for the answer any more."""


class PageRequest(NamedTuple):
    """One request. `path` holds what stands for the {names} in the view's path, `query` what stands behind the `?`,
    each with all its values; `teams` opens the store of the team; `now` is in seconds since the epoch; `root` begins
    every link; `active` are the sessions of today, `alarms` what somebody has to mend; `is_gone` says whether the
    visitor has left."""

    store: SqliteStore
    teams: TeamPool
    location: StoreLocation
    environ: Mapping[str, str]
    active: list[ActiveSession]
    alarms: list[Alarm]
    root: str
    now: float
    path: Mapping[str, str] = {}
    query: Mapping[str, list[str]] = {}
    is_gone: Callable[[], bool] = lambda: False

    def while_wanted(self, found: Iterable[Found]) -> Iterator[Found]:
        """The same, as long as somebody waits for the answer. Raises VisitorGoneError."""
        for one in found:
            if self.is_gone():
                raise VisitorGoneError
            yield one

    def one(self, name: str, default: str = "") -> str:
        """The first value of `name` in the query."""
        return next(iter(self.query.get(name, ())), default)

    def number(self, name: str, default: int, most: int) -> int:
        """The same as a number from 0 to `most`; what is none is the default."""
        text = self.one(name)
        return min(int(text), most) if text.isascii() and text.isdecimal() and len(text) < 20 else default
