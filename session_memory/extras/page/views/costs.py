"""Costs: dollars over time by model, project or runtime, tokens, cache hits, and memories."""

from __future__ import annotations

from calendar import monthrange
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import date, timedelta
from functools import lru_cache
from typing import Any, NamedTuple

from ....app.labels import project_of
from ....common.text.sanitize import for_people
from ....history.costs import (
    BY,
    CostSum,
    Expense,
    SessionFiles,
    expenses,
    name_of,
    of_memories,
    sums_of,
)
from ....history.prices import all_prices
from ....history.store.sqlite.counted_files import CountedFiles
from ....history.store.sqlite.queue_file import UnreadableQueueError
from ....history.store.values import Conversation, Filter
from ....history.titles import Titles
from .._choices import chosen_of, filters, period, places
from .._labels import shown_runtime
from .._page_request import PageRequest
from .._view import View

SHOWN = 12
DEFAULT_PERIOD = "7d"
# for so many days, and the length of its name
UNITS = ((366, "day", 10), (3660, "month", 7), (10**9, "year", 4))
MOST_BARS = 400


SPLITS = (("model", "By model"), ("project", "By project"), ("runtime", "By runtime"))
PARTS = 6  # with a colour of their own; the rest is one
REST = "others"
UNKNOWN = "(unknown)"


class CostBar(NamedTuple):
    """The dollars of a day, month or year, by the name of each part.

    `is_unknown` means that some answers have no price."""

    name: str
    parts: dict[str, float]
    is_unknown: bool

    @property
    def dollars(self) -> float:
        return sum(self.parts.values())

    @property
    def last_day(self) -> str:
        """The last day of a bar for a day or month, '' of one for a year."""
        if len(self.name) != len("2026-02"):
            return self.name if _date_of(self.name) else ""
        year, month = map(int, self.name.split("-"))
        return f"{self.name}-{monthrange(year, month)[1]}"


def values(request: PageRequest) -> dict[str, Any]:
    """Return only the filters, because reading transcripts is too slow for a page."""
    filter_values = filters(request, default=DEFAULT_PERIOD)
    split = request.one("by", SPLITS[0][0])
    return {
        **filter_values,
        "splits": chosen_of(SPLITS, split),
        "asked": {**filter_values["asked"], "by": split},
    }


def _counted(request: PageRequest) -> dict[str, Any]:
    """Return the costs of the chosen period and project.

    `chart` has a CostBar for every day, or for every month or year if the period is longer than a
    year; `unit` names which. `parts` are the names in it, the most expensive first."""
    _, since = period(request, DEFAULT_PERIOD)
    prices = all_prices(request.location.memory_settings.prices)
    directories = places(request).directories
    wanted = Filter(directories=directories, since=since, runtime=request.one("runtime"))
    sessions = SessionFiles(request.location.watched, request.store, wanted)
    all_expenses = expenses(sessions.recent, prices, lambda *_: None, CountedFiles(request.store))
    answers = map(_shown, filter(sessions.shows, request.while_wanted(all_expenses)))
    split = request.one("by")
    split = split if split in dict(SPLITS) else SPLITS[0][0]
    spent: dict[str, dict[str, float]] = {}
    total, sums = sums_of(_noted(answers, split, spent), *BY)
    by = dict(zip(BY, sums))
    unit, chart, parts = _chart(by["day"], spent, request.now)
    memories, fault = [], ""
    try:
        if request.location.visible is None and not (directories or wanted.runtime):
            memories = of_memories(request.location, wanted, prices)
    except UnreadableQueueError as error:
        fault = f"{error}; {error.hint}"
    return {
        "total": total,
        "unit": unit,
        "chart": chart,
        "parts": parts,
        "tables": [
            ("Model", by["model"]),
            ("Project", by["project"][:SHOWN]),
            ("Runtime", by["runtime"]),
            ("Use", by["use"] if len(by["use"]) > 1 else []),
            ("Session", _titled(request, sessions.conversations, by["session"][:SHOWN])),
            ("Day", by["day"]),
        ],
        "memories": memories,
        "fault": fault,
        "unpriced": sorted(model or UNKNOWN for model in total.unpriced),
        "missing": sessions.missing,
        "runtimes": {shown_runtime(name).title: name for name in sorted(_runtimes(sessions))},
        "asked": {name: request.one(name) for name in ("since", "project", "runtime", "by")},
    }


def _titled(
    request: PageRequest, conversations: list[Conversation], sums: list[CostSum]
) -> list[CostSum]:
    """Return the sums of sessions with titles; `conversations` begin with the latest."""
    titles = Titles.of_sessions(request.store, conversations, {each.name for each in sums})
    return [replace(each, title=titles.get(each.name, each.title)) for each in sums]


def _runtimes(sessions: SessionFiles) -> set[str]:
    return {conversation.runtime for _, conversation in sessions.files}


def _shown(expense: Expense) -> Expense:
    """Return an answer with the page's names: a project's instead of a directory's."""
    model = _shown_model(expense.usage.model)
    return expense._replace(
        session=_shown_session(expense.session), usage=expense.usage._replace(model=model)
    )


@lru_cache(maxsize=1000)
def _shown_session(session: Conversation) -> Conversation:
    runtime, project = shown_runtime(session.runtime).title, project_of(for_people(session.cwd))
    return session._replace(runtime=runtime, cwd=project, title=for_people(session.title))


@lru_cache(maxsize=100)
def _shown_model(model: str) -> str:
    return for_people(model)


def _noted(
    all_expenses: Iterable[Expense], split: str, spent: dict[str, dict[str, float]]
) -> Iterator[Expense]:
    """Yield the expenses, and add the dollars of each to its day and part in `spent`."""
    for expense in all_expenses:
        if expense.dollars:
            name, parts = (
                name_of(expense, split) or UNKNOWN,
                spent.setdefault(name_of(expense, "day"), {}),
            )
            parts[name] = parts.get(name, 0.0) + expense.dollars
        yield expense


def _chart(
    by_day: list[CostSum], spent: dict[str, dict[str, float]], now: float
) -> tuple[str, list[CostBar], list[str]]:
    """Return the unit (day, month or year), the dollars of each unit, and the names of the parts.

    The units extend from the first one to today; only the last MOST_BARS are returned."""
    sums: Counter[str] = Counter()
    for parts in spent.values():
        sums.update(parts)
    first = [name for name, _ in sums.most_common()]
    first = first[:PARTS] if len(first) > PARTS + 1 else first
    unknown = {day_costs.name for day_costs in by_day if day_costs.unpriced}
    dates = {day: day_costs.name for day_costs in by_day if (day := _date_of(day_costs.name))}
    today = date.fromtimestamp(now)
    days = (today - min(dates, default=today)).days
    unit, length = next((unit, length) for most, unit, length in UNITS if days <= most)
    bars: dict[str, CostBar] = {}
    for before in range(days, -1, -1) if dates else ():
        day = today - timedelta(before)
        key = day.isoformat()[:length]
        bar = bars.get(key) or CostBar(key, {}, False)
        name = dates.get(day, "")
        for part, dollars in spent.get(name, {}).items():
            shown = part if part in first else REST
            bar.parts[shown] = bar.parts.get(shown, 0.0) + dollars
        bars[key] = bar._replace(is_unknown=bar.is_unknown or name in unknown)
    return (
        unit,
        list(bars.values())[-MOST_BARS:],
        first + ([REST] if len(first) < len(sums) else []),
    )


def _date_of(name: str) -> date | None:
    """Return the date of a day; None without a time, or for a year of fewer than four digits."""
    try:
        return date.fromisoformat(name)
    except ValueError:
        return None


VIEWS = (
    View("costs", "/costs", values, "Costs", "c"),
    View("costs_counted", "/costs/counted", _counted),
)
