"""Upkeep's pending work for a store, and the strategies' spending, as values."""

from __future__ import annotations

from contextlib import closing
from typing import NamedTuple

from ..memories.budget import all_prices, cost
from ..memories.runner import settings_of
from ..store.ingest.intake import pending
from ..store.ingest.sources import FOREIGN
from ..store.location import StoreLocation
from ..store.sqlite.engine import SqliteStore
from ..store.sqlite.queue import StoredQueue
from ..store.sqlite.queue_database import day_of
from ..text.timestamps import now_milliseconds

WEEK_DAYS = 7
_DAY_MILLISECONDS = 24 * 3600 * 1000


class Waiting(NamedTuple):
    """Pending work: the files with new content and its bytes; the number of pending conversations by strategy; the
    files that cannot be ingested, each with the reason."""

    files: int
    bytes: int
    conversations: dict[str, int]
    unread: dict[str, str]


class Spent(NamedTuple):
    """The strategies' spending: tokens today (UTC) and in the last seven days, and dollars for the latter as far as
    prices are known; `unpriced` are the models without a price."""

    tokens_today: int
    tokens: int
    dollars: float
    dollars_today: float
    unpriced: list[str]


def waiting(store: SqliteStore, location: StoreLocation, conversations: dict[str, int]) -> Waiting:
    """Return what is not done yet, with the `conversations` of `in_queue`. Raises DatabaseError."""
    files, size = pending(store, [one for one in location.watched if one.is_expected()])
    unread = {
        f"{one.root}/{key}": one.problem
        for home in sorted({one.home for one in location.watched})
        for key, one in store.unread_files(home).items()
        if one.problem != FOREIGN
    }
    return Waiting(files, size, conversations, unread)


def in_queue(location: StoreLocation) -> tuple[dict[str, int], Spent]:
    """Return how many conversations wait for each strategy, and what was spent. Raises DatabaseError."""
    now = now_milliseconds()
    with closing(StoredQueue(location.database, location.rules)) as queue:
        each = {id: len(queue.waiting(id, now, location.homes)) for id in settings_of(location).strategies}
        week = queue.accounts.by_model(day_of(now - (WEEK_DAYS - 1) * _DAY_MILLISECONDS))
        today = queue.accounts.by_model(day_of(now))
    prices = all_prices(settings_of(location).prices)
    costs = {usage.model: cost(usage, prices) for usage in week}
    return each, Spent(
        sum(usage.tokens for usage in today),
        sum(usage.tokens for usage in week),
        sum(dollars or 0.0 for dollars in costs.values()),
        sum(cost(usage, prices) or 0.0 for usage in today),
        sorted(model for model, dollars in costs.items() if dollars is None),
    )
