"""Values for the charts in templates/charts.html: the squares of a year, the strength of a colour, an axis."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, timedelta
from math import floor, log10
from typing import NamedTuple

WEEKS = 53
_STEP = 14  # from one square to the next
_LEFT, _TOP = 26, 14  # of the first square
_NAME_ROOM = timedelta(weeks=2)  # width of a month's name
_LEVELS = 4
_BUSY = 0.95  # this share of the days with activity stays below the strongest colour
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


class Calendar(NamedTuple):
    """The squares of a year: the days (`2026-02-21`) and the names of the months, each with its place."""

    days: list[tuple[str, int, int]]
    months: list[tuple[str, int]]
    width: int = _LEFT + WEEKS * _STEP


def calendar(until: float) -> Calendar:
    """Return the squares up to the day of `until` (seconds since 1970), a column per week from Monday."""
    last = date.fromtimestamp(until)
    first = last.toordinal() - last.weekday() - 7 * (WEEKS - 1)
    found = Calendar([], [])
    month = 0
    for index in range(last.toordinal() - first + 1):
        day = date.fromordinal(first + index)
        column, row = divmod(index, 7)
        x = _LEFT + column * _STEP
        if row == 0 and day.month != month and (day + _NAME_ROOM).month == day.month:
            month = day.month
            found.months.append((_MONTHS[month - 1], x))
        found.days.append((day.isoformat(), x, _TOP + row * _STEP))
    return found


def level(value: float, top: float) -> int:
    """Return the strength of a colour from 0 for nothing to 4, by the square root, so that few differs from none."""
    return 0 if value <= 0 else min(_LEVELS, 1 + int((value / top) ** 0.5 * _LEVELS * 0.999))


def busy(values: Iterable[float]) -> float:
    """Return the value of the strongest colour: a single outlier does not pale the rest."""
    found = sorted(value for value in values if value > 0)
    return found[int(len(found) * _BUSY)] if found else 1


def axis(top: float) -> float:
    """Return the end of an axis for values up to `top`: 1, 2, 4 or 5 times a power of ten."""
    unit = 10.0 ** floor(log10(top)) if top > 0 else 1.0
    return next(unit * times for times in (1, 2, 4, 5, 10) if top <= unit * times * (1 + 1e-9))
