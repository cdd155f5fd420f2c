"""Costs: tokens and dollars by day, model, project and session, and of memories."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from functools import partial
from typing import Any

from ...memories.budget import all_prices
from ...memories.runner import settings_of
from ...store.sqlite.queue_file import UnreadableQueueError
from ...store.values import Filter
from ...text.sanitize import for_people
from ...upkeep.costs import BY, CostSum, KnownAnswers, SessionFiles, expenses, of_memories, sums_of
from ..choices import filters, period, places
from ..labels import project_of
from ..page_request import PageRequest

SHOWN = 12
DEFAULT_PERIOD = "7d"
UNITS = ((366, "day", 10), (3660, "month", 7), (10**9, "year", 4))  # for so many days, and the length of its name
MOST_BARS = 400
_ANSWERS = KnownAnswers()  # for all requests: a gigabyte of transcripts takes seconds to read


values = partial(filters, default=DEFAULT_PERIOD)  # the rest reads transcripts, which is too slow for a page


def counted(request: PageRequest) -> dict[str, Any]:
    """Return the costs of the chosen period and project; `chart` has a pair for every day, `unit` its name;
    over more than a year, for every month or year."""
    _, since = period(request, DEFAULT_PERIOD)
    prices = all_prices(settings_of(request.location).prices)
    directories = places(request).directories
    wanted = Filter(request.location.homes, directories=directories, since=since)
    sessions = SessionFiles(request.location.watched, request.store, wanted)
    answers = request.while_wanted(expenses(sessions.recent, prices, lambda *_: None, _ANSWERS))
    total, sums = sums_of(filter(sessions.shows, answers), *BY)
    by = dict(zip(BY, sums))
    unit, chart = _chart(by["day"], request.now)
    memories, fault = [], ""
    try:
        if request.location.homes is None and not directories:
            memories = of_memories(request.location, wanted, prices)
    except UnreadableQueueError as error:
        fault = f"{error}; {error.hint}"
    return {
        "total": total,
        "unit": unit,
        "chart": chart,
        "tables": [
            ("Model", [replace(one, name=for_people(one.name)) for one in by["model"]]),
            ("Project", _by_project(by["project"])),
            ("Session", [replace(one, title=for_people(one.title)) for one in by["session"][:SHOWN]]),
            ("Day", by["day"]),
        ],
        "memories": memories,
        "fault": fault,
        "unpriced": sorted(for_people(model) or "(unknown)" for model in total.unpriced),
        "missing": sessions.missing,
    }


def _by_project(sums: list[CostSum]) -> list[CostSum]:
    """Sum directories of one project."""
    found: dict[str, CostSum] = {}
    for one in sums:
        name = project_of(for_people(one.name))
        old = found.setdefault(name, CostSum(name))
        old.input, old.output = old.input + one.input, old.output + one.output
        old.cached, old.written = old.cached + one.cached, old.written + one.written
        if one.dollars is not None:
            old.dollars = (old.dollars or 0.0) + one.dollars
    return sorted(found.values(), key=lambda one: -(one.dollars or 0.0))[:SHOWN]


def _chart(by_day: list[CostSum], now: float) -> tuple[str, list[tuple[str, float]]]:
    """Return day, month or year, and the dollars of each from the first one to today: at most the last MOST_BARS."""
    dollars = {day: one.dollars or 0.0 for one in by_day if (day := _date_of(one.name))}
    today = date.fromtimestamp(now)
    days = (today - min(dollars, default=today)).days
    unit, length = next((unit, length) for most, unit, length in UNITS if days <= most)
    found: dict[str, float] = {}
    for before in range(days, -1, -1) if dollars else ():
        day = today - timedelta(before)
        found.setdefault(day.isoformat()[:length], 0.0)
        found[day.isoformat()[:length]] += dollars.get(day, 0.0)
    return unit, list(found.items())[-MOST_BARS:]


def _date_of(name: str) -> date | None:
    """Return the date of a day; None for answers without a time, or of a year that has fewer than four digits."""
    try:
        return date.fromisoformat(name)
    except ValueError:
        return None
