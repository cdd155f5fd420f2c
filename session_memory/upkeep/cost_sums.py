"""Sums of costs: sessions by day, project, session or model, and memories."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from typing import TYPE_CHECKING

from ..memories.budget import cost
from ..store.location import StoreLocation
from ..store.sqlite.queue import StoredQueue
from ..store.sqlite.token_accounts import day_of
from ..store.values import Filter
from ..text.sanitize import for_prompt
from ..text.timestamps import local_time
from .costs import Expense

if TYPE_CHECKING:
    from ..memories.budget import Prices

BY = ("day", "project", "session", "model")


class CostSum:
    """The sum of several answers. `dollars` is None if none of them has a price; `unpriced` are their models without a
    price."""

    def __init__(self, name: str = "", title: str = "") -> None:
        self.name = name
        self.title = title
        self.input = self.output = self.cached = self.written = 0
        self.dollars: float | None = None
        self.unpriced: set[str] = set()

    def add(self, expense: Expense) -> None:
        """Add an answer."""
        usage = expense.usage
        self.input += usage.input
        self.output += usage.output
        self.cached += usage.cached
        self.written += usage.written + usage.written_for_an_hour
        if expense.dollars is None:
            self.unpriced.add(usage.model)
        else:
            self.dollars = (self.dollars or 0.0) + expense.dollars


def is_within(expense: Expense, wanted: Filter) -> bool:
    """Return whether an answer is within the queried time."""
    if wanted.since is None and wanted.until is None:
        return True
    at = expense.at
    return at is not None and (wanted.since or 0) <= at and (wanted.until is None or at <= wanted.until)


def sums_of(found: Iterable[Expense], *by: str) -> tuple[CostSum, list[list[CostSum]]]:
    """Return the total, and the sums by each requested key of BY: days (local time) from the latest, everything else
    from the most expensive. Does not keep the expenses in memory."""
    total = CostSum()
    sums: list[dict[str, CostSum]] = [{} for _ in by]
    for expense in found:
        total.add(expense)
        for kind, known in zip(by, sums):
            name = _name_of(expense, kind)
            if name not in known:
                known[name] = CostSum(name, expense.session.title if kind == "session" else "")
            known[name].add(expense)
    return total, [_in_order(known.values(), kind) for kind, known in zip(by, sums)]


def _name_of(expense: Expense, kind: str) -> str:
    """Return the key by which an expense is counted."""
    if kind == "day":
        return local_time(expense.at / 1000)[:10] if expense.at is not None else ""
    if kind == "model":
        return expense.usage.model
    return expense.session.cwd if kind == "project" else expense.session.session_id


def _in_order(sums: Iterable[CostSum], kind: str) -> list[CostSum]:
    if kind == "day":
        return sorted(sums, key=lambda one: one.name, reverse=True)
    return sorted(sums, key=lambda one: (-(one.dollars or 0.0), -one.input - one.output, one.name))


def of_memories(location: StoreLocation, wanted: Filter, prices: Prices) -> list[CostSum]:
    """Return our strategies' expenses in the queried days (UTC), by model."""
    since = day_of(wanted.since) if wanted.since is not None else ""
    until = day_of(wanted.until) if wanted.until is not None else "9"
    with closing(StoredQueue(location.database)) as queue:
        spent = queue.accounts.by_model(since, until)
    found = []
    for usage in spent:
        one = CostSum(for_prompt(usage.model))
        one.input, one.output, one.cached = usage.input_tokens, usage.output_tokens, usage.cached_tokens
        one.dollars = cost(usage, prices)
        one.unpriced = {usage.model} if one.dollars is None else set()
        found.append(one)
    return found
