"""Timeline: the conversations of a day, week or month, with a lane per project; and a year."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any, NamedTuple

from ....app.labels import project_of
from ....common.text.sanitize import for_people
from ....common.text.timestamps import midnight
from ....history.copies.deletions import (
    deletion_lines,
    deletions,
    kept_line,
    kept_or_why_not,
    problems_of,
)
from ....history.store.sqlite.tool_uses import work_hours
from ....history.store.values import Conversation, Filter
from ....history.titles import Titles
from .._choices import chosen_of, places
from .._labels import ShownRuntime, shown_runtime
from .._page_request import PageRequest
from .._view import View

if TYPE_CHECKING:
    from ....history.store.sqlite.tool_uses import WorkHour

SPANS = {"day": 1, "week": 7, "month": 31}  # days
MOST = 1000  # conversations in a span: more would not be legible
YEAR_DAYS = 371  # 53 weeks
LONGEST = 6
LEAST_WIDTH = {"day": 0.4, "week": 0.7, "month": 0.7}  # of a bar, in percent of the span
# minimum room of a bar; a day's bar has its title
ROOM = {"day": 14.0, "week": 0.8, "month": 0.8}
_WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


class Bar(NamedTuple):
    """A conversation.

    `left` and `room` are its reserved space, `row` is its row in the lane. Within its room the bar
    begins at `offset` and is `width` wide; all are percentages of the span. `begin` and `end` are
    in seconds since the epoch."""

    session: str
    conversation: int
    title: str
    runtime: ShownRuntime
    project: str
    messages: int
    begin: float
    end: float
    left: float
    width: float
    room: float
    row: int
    offset: float = 0.0


class Lane(NamedTuple):
    """The conversations of a project, in enough rows that none overlap.

    `above` counts the rows and headings of the lanes before it."""

    project: str
    bars: list[Bar]
    rows: int
    rows_above: int


class Tick(NamedTuple):
    """A labelled line of the scale, in percent of the span."""

    left: float
    label: str


def _drawn(lanes: list[Lane]) -> dict[str, Any]:
    """Return the lanes, and what the page says about their bars."""
    bars = [bar for lane in lanes for bar in lane.bars]
    return {
        "lanes": lanes,
        "bars": sorted(bars, key=lambda bar: bar.begin, reverse=True),
        "longest": sorted(bars, key=lambda bar: -bar.messages)[:LONGEST],
        "runtimes": sorted({bar.runtime for bar in bars}),
        "rows": sum(lane.rows for lane in lanes),
        "messages": sum(bar.messages for bar in bars),
    }


def _days_around(span: str, last: float, *, is_past: bool) -> dict[str, str]:
    """Return the last day of the span, and of the spans before and after it."""
    after = _day_of(midnight(last, SPANS[span]) + 43_200) if is_past else ""
    before = _day_of(midnight(last, -SPANS[span]) + 43_200)
    return {"day": _day_of(last), "before": before, "after": after}


def _values(request: PageRequest) -> dict[str, Any]:
    """Return the lanes of the span that ends with `day`, by default the last day with content.

    `year` has the messages by days, `week` by weekdays and hours."""
    year = round(midnight(request.now, -YEAR_DAYS) * 1000)
    hours = work_hours(request.store, Filter(since=year))
    span = request.one("span") if request.one("span") in SPANS else "day"
    today = _day_of(request.now)
    day = request.one("day") or (min(hours[-1].day, today) if hours else today)
    last = min(filter(None, (_noon_of(day), _noon_of(today))), default=request.now)
    begin, end = midnight(last, 1 - SPANS[span]), midnight(last, 1)
    since, until = round(begin * 1000), round(end * 1000) - 1
    chosen = places(request)
    wanted = Filter(
        directories=chosen.directories,
        runtime=request.one("runtime"),
        since=since,
        until=until,
        limit=MOST,
    )
    conversations = request.store.conversations(wanted)
    bars = _bars(conversations, Titles(request.store, conversations), (begin, end), span)
    here = (request.now - begin) / (end - begin) * 100
    return {
        **_drawn(_lanes_of(bars)),
        "begin": begin,
        "ticks": _ticks(span, begin, end),
        "here": round(here, 2) if 0 < here < 100 else None,
        "span": span,
        "projects": chosen.projects,
        "runtime_choices": chosen.runtimes,
        "asked": {name: request.one(name) for name in ("project", "runtime")},
        "spans": chosen_of(((name, name.title()) for name in SPANS), span),
        "today": today,
        "title": _title(span, begin, last),
        **_days_around(span, last, is_past=end < request.now),
        "is_cut": len(conversations) == MOST,
        "now": request.now,
        **_work_of_year(hours),
        **_deletions(request),
    }


def _work_of_year(hours: Iterable[WorkHour]) -> dict[str, Any]:
    """Return the messages by days (`year`), and by weekdays and `hours` (`week`)."""
    by_day: Counter[str] = Counter()
    by_weekday = [[0] * 24 for _ in range(7)]
    for hour in hours:
        by_day[hour.day] += hour.messages
        by_weekday[date.fromisoformat(hour.day).weekday()][hour.hour] += hour.messages
    return {
        "year": by_day,
        "week": list(zip(_WEEKDAYS, by_weekday)),
        "hours": [str(hour) if hour % 3 == 0 else "" for hour in range(24)],
    }


def _deletions(request: PageRequest) -> dict[str, list[str]]:
    """Return the runtimes that delete sessions, how these are kept, and traps in their settings."""
    deleted = deletions(request.location, request.store.directories())
    how, why_not = kept_or_why_not(request.location, request.location.home.settings())
    lines = [f"Deleted by {line}" for line in deletion_lines(deleted)]
    return {
        "deletions": [*lines, f"Kept: {kept_line(how)}"],
        "traps": [*problems_of(deleted), *why_not],
    }


def _lanes_of(bars: Iterable[Bar]) -> list[Lane]:
    """Return the bars by project, the projects with the most messages first.

    Each bar is in the first row with room."""
    by_project: dict[str, list[Bar]] = {}
    for bar in sorted(bars, key=lambda bar: (bar.left, bar.title)):
        by_project.setdefault(bar.project, []).append(bar)
    lanes = []
    above = 0
    for project, bars_of_project in sorted(
        by_project.items(), key=lambda pair: (-sum(bar.messages for bar in pair[1]), pair[0])
    ):
        ends_of_rows: list[float] = []  # the end of each row so far
        placed = []
        for bar in bars_of_project:
            row = next(
                (row for row, until in enumerate(ends_of_rows) if until <= bar.left),
                len(ends_of_rows),
            )
            ends_of_rows[row : row + 1] = [bar.left + bar.room]
            placed.append(bar._replace(row=row))
        lanes.append(Lane(project, placed, len(ends_of_rows), above))
        above += len(ends_of_rows)
    return lanes


def _bars(
    conversations: Sequence[Conversation], titles: Titles, period: tuple[float, float], span: str
) -> list[Bar]:
    """Return a bar for each conversation with a time in a period, from its begin to its end."""
    begin, end = period
    bars = []
    for conversation in conversations:
        if conversation.first_message_at is None or conversation.last_message_at is None:
            continue
        first, last = conversation.first_message_at / 1000, conversation.last_message_at / 1000
        left = max(0.0, (first - begin) / (end - begin) * 100)
        width = max(LEAST_WIDTH[span], min(100.0, (last - begin) / (end - begin) * 100) - left)
        begins_at = min(left, 100 - width)
        room = max(width, ROOM[span])
        left = min(begins_at, 100 - room)  # in the evening the title begins before its bar
        project = project_of(for_people(conversation.cwd)) or "Without a project"
        title = titles.of(conversation) or "Untitled"
        left, width, room, offset = [
            round(number, 3) for number in (left, width, room, begins_at - left)
        ]
        known = (
            conversation.session_id,
            conversation.id,
            title,
            shown_runtime(conversation.runtime),
            project,
            conversation.entry_count,
            first,
            last,
        )
        bars.append(Bar(*known, left, width, room, 0, offset))
    return bars


def _ticks(span: str, begin: float, end: float) -> list[Tick]:
    """Return the ticks: each third hour, each weekday, or each second day of a month."""
    if span == "day":
        year, month, day, *_ = time.localtime(begin)
        hours = {
            hour: time.mktime((year, month, day, hour, 0, 0, 0, 0, -1)) for hour in range(0, 24, 3)
        }
        return [
            Tick(round((at - begin) / (end - begin) * 100, 2), f"{hour}:00")
            for hour, at in hours.items()
        ]
    days = SPANS[span]
    shown = []
    for number in range(0, days, 1 if span == "week" else 2):
        at = time.localtime(midnight(begin + 43_200, number) + 43_200)
        label = f"{_WEEKDAYS[at.tm_wday]} {at.tm_mday}" if span == "week" else str(at.tm_mday)
        shown.append(
            Tick(round((midnight(begin + 43_200, number) - begin) / (end - begin) * 100, 2), label)
        )
    return shown


def _title(span: str, begin: float, last: float) -> str:
    day = time.strftime("%A, %Y-%m-%d", time.localtime(last))
    return day if span == "day" else f"{_day_of(begin + 43_200)} to {_day_of(last)}"


def _noon_of(day: str) -> float | None:
    """Return noon of `2026-02-21` in seconds since the epoch; None for an invalid day."""
    try:
        date_named = date.fromisoformat(day)
        return time.mktime((date_named.year, date_named.month, date_named.day, 12, 0, 0, 0, 0, -1))
    except (ValueError, OverflowError):
        return None


def _day_of(at: float) -> str:
    return time.strftime("%Y-%m-%d", time.localtime(at))


VIEWS = (View("timeline", "/timeline", _values, "Timeline", "t", "Look back"),)
