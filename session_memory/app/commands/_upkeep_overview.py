"""Upkeep's pending work for a store, and the strategies' spending, as values."""

import time
from contextlib import closing
from itertools import groupby
from typing import NamedTuple

from ...common.text.format import counted
from ...common.text.sanitize import for_prompt
from ...common.text.timestamps import now_milliseconds
from ...history.prices import all_prices, cost
from ...history.store.ingest.sources import FOREIGN
from ...history.store.location import StoreLocation
from ...history.store.sqlite.engine import SqliteStore
from ...history.store.sqlite.queue import Retry, StoredQueue
from ...history.store.sqlite.queue_database import day_of
from ...history.store.sqlite.queue_file import UnreadableQueueError
from ...history.store.sqlite.unchanged import count_unchanged

WEEK_DAYS = 7
_DAY_MILLISECONDS = 24 * 3600 * 1000


class Waiting(NamedTuple):
    """Pending work of upkeep.

    It has the number of files with new content and their bytes; the number of pending conversations
    by strategy; the strategies whose conversations wait for a retry, each with the reason; and the
    files that cannot be ingested, each with the reason."""

    files: int
    bytes: int
    conversations: dict[str, int]
    retries: list[str]
    unread: dict[str, str]


class Spent(NamedTuple):
    """The strategies' spending: tokens today (UTC), and tokens and dollars in the last seven days.

    Dollars include only models with a known price; `unpriced` are the others."""

    tokens_today: int
    tokens: int
    dollars: float
    dollars_today: float
    unpriced: list[str]


def waiting(store: SqliteStore, location: StoreLocation) -> tuple[Waiting, Spent | None, list[str]]:
    """Return the pending work, the spending, and why the queue cannot be read, if it cannot.

    Raises DatabaseError."""
    with store.explained():
        unchanged = count_unchanged(store.connection, location, now_milliseconds())
    files, size = (0, 0) if unchanged is not None else _pending(store, location)
    unread = {
        f"{file.root}/{key}": file.problem
        for home in sorted({directory.home for directory in location.watched})
        for key, file in store.unread_files(home).items()
        if file.problem != FOREIGN
    }
    try:
        each, retries, spent = _in_queue(location)
    except UnreadableQueueError as error:
        return Waiting(files, size, {}, [], unread), None, [f"{error}; {error.hint}"]
    return Waiting(files, size, each, retries, unread), spent, []


def _pending(store: SqliteStore, location: StoreLocation) -> tuple[int, int]:
    """Return the number of files with new content, and their bytes."""
    from ...history.store.ingest.intake import pending  # imported late: usually nothing is new

    expected = [directory for directory in location.watched if directory.is_expected()]
    new = pending(store, expected)
    return new.files, new.bytes


def _in_queue(location: StoreLocation) -> tuple[dict[str, int], list[str], Spent]:
    now = now_milliseconds()
    with closing(StoredQueue(location.database, location.rules, location.visible)) as queue:
        strategies = location.memory_settings.strategies
        each = {id: queue.count_waiting(id, now) for id in strategies}
        retries = [line for id in strategies for line in retry_lines(queue.retries(id, now))]
        week = queue.accounts.by_model(day_of(now - (WEEK_DAYS - 1) * _DAY_MILLISECONDS))
        today = queue.accounts.by_model(day_of(now))
    prices = all_prices(location.memory_settings.prices) if week else {}
    costs = {usage.model: cost(usage, prices) for usage in week}
    spent = Spent(
        sum(usage.tokens for usage in today),
        sum(usage.tokens for usage in week),
        sum(dollars or 0.0 for dollars in costs.values()),
        sum(cost(usage, prices) or 0.0 for usage in today),
        sorted(model for model, dollars in costs.items() if dollars is None),
    )
    return each, retries, spent


def retry_lines(retries: list[Retry]) -> list[str]:
    """Return a line for each strategy with conversations to retry: how many, when next, and why."""
    lines = []
    for strategy, waiting in groupby(retries, key=lambda retry: retry.strategy):
        first, *others = waiting
        wait = counted(len(others) + 1, "conversation waits", "conversations wait")
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(first.at / 1000))
        lines.append(
            f"{strategy}: {wait} for a retry, the next at {when}: {for_prompt(first.problem)}"
        )
    return lines
