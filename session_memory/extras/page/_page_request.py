"""The request to a view, as a value, with access to its data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple, TypeVar

from ...app.active_sessions import ActiveSession
from ...common.errors import SessionMemoryError
from ...history.store.location import StoreLocation
from ...history.store.sqlite.engine import SqliteStore
from ...history.store.values import Conversation
from ...memory.shared_store import SharedPool
from ._live import Alarm

Found = TypeVar("Found")


class NotFoundError(SessionMemoryError):
    """There is no such session, entry or page; or a rule excludes it."""


class VisitorGoneError(Exception):
    """The client has disconnected."""


class PageRequest(NamedTuple):
    """One request.

    `path` maps the {names} in the view's path, and `query` has the parameters with all their
    values. `teams` opens the store of the team. `now` is in seconds since the epoch. `root` begins
    every link. `active` are the sessions of today, `alarms` the problems for the user to fix.
    `is_gone` tells whether the client has disconnected."""

    store: SqliteStore
    shared_stores: SharedPool
    location: StoreLocation
    environ: Mapping[str, str]
    active: list[ActiveSession]
    alarms: list[Alarm]
    root: str
    now: float
    path: Mapping[str, str] = {}
    query: Mapping[str, list[str]] = {}
    is_gone: Callable[[], bool] = lambda: False

    def while_wanted(self, items: Iterable[Found]) -> Iterator[Found]:
        """Yield the same items until the client disconnects. Raises VisitorGoneError."""
        for item in items:
            if self.is_gone():
                raise VisitorGoneError
            yield item

    def one(self, name: str, default: str = "") -> str:
        return next(iter(self.query.get(name, ())), default)

    def last_at(self, session: Conversation) -> float:
        """Return when a session was last active, as in every other view.

        The time is in seconds since the epoch."""
        active = next(
            (session_card for session_card in self.active if session_card.id == session.session_id),
            None,
        )
        return active.last_at if active else (session.last_message_at or 0) / 1000

    def number(self, name: str, default: int, most: int) -> int:
        """Return a parameter as a number from 0 to `most`, or the default if it is not one."""
        text = self.one(name)
        return (
            min(int(text), most)
            if text.isascii() and text.isdecimal() and len(text) < 20
            else default
        )
