"""Charts as inline SVG, made of plain values. Colours come from the style sheet, by class; titles contain the numbers,
and each chart has a label for screen readers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, timedelta

from markupsafe import Markup, escape

_CELL, _GAP = 11, 3
_NAME_ROOM = timedelta(weeks=2)  # width of a month's name
_DAYS = (("Mon", 0), ("Wed", 2), ("Fri", 4))  # labelled rows of the year
_DAYS_ROOM = 26
_LEVELS = 4
_BUSY = 0.95  # this share of the days with activity stays below the strongest colour
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def bars(values: Sequence[tuple[str, float]], label: str) -> Markup:
    """Return a bar chart of (label, value) pairs, side by side. The style sheet sets its size, so it contains no
    text."""
    width, height = 960, 100
    top = max((value for _, value in values), default=0) or 1
    step = width / max(len(values), 1)
    shapes = []
    for index, (name, value) in enumerate(values):
        tall = max(value / top * height, 1 if value else 0)
        shapes.append(
            f'<rect class="bar" x="{(index + 0.06) * step:.1f}" y="{height - tall:.1f}" '
            f'width="{0.88 * step:.1f}" height="{tall:.1f}">'
            f"<title>{escape(name)}: {amount(value)}</title></rect>"
        )
    return _svg(width, height, label, shapes, "bars", ' preserveAspectRatio="none"')


def heat(days: Mapping[str, float], until: float, label: str, shown: str = "", weeks: int = 53) -> Markup:
    """Return a heat map of a year of days (`2026-02-21`), a column per week from Monday, up to the day of `until`
    (seconds since 1970); the day `shown` is marked."""
    top = _busy(days.values())
    last = date.fromtimestamp(until)
    first = last.toordinal() - last.weekday() - 7 * (weeks - 1)
    shapes = [
        f'<text class="axis day" x="0" y="{23 + row * (_CELL + _GAP)}">{name}</text>' for name, row in _DAYS
    ]  # fmt: skip
    month = 0
    for index in range(last.toordinal() - first + 1):
        day = date.fromordinal(first + index)
        column, row = divmod(index, 7)
        x = _DAYS_ROOM + column * (_CELL + _GAP)
        if row == 0 and day.month != month and (day + _NAME_ROOM).month == day.month:
            month = day.month
            shapes.append(f'<text class="axis" x="{x}" y="9">{_MONTHS[month - 1]}</text>')
        name = day.isoformat()
        value = days.get(name, 0)
        shapes.append(
            f'<rect class="heat-{level(value, top)}{" shown" if name == shown else ""}" x="{x}" '
            f'y="{14 + row * (_CELL + _GAP)}" width="{_CELL}" '
            f'height="{_CELL}" rx="2" data-day="{name}"><title>{name}: {amount(value)}</title></rect>'
        )
    return _svg(_DAYS_ROOM + weeks * (_CELL + _GAP), 14 + 7 * (_CELL + _GAP), label, shapes, "heat")


def grid(rows: Sequence[tuple[str, Sequence[float]]], columns: Sequence[str], label: str) -> Markup:
    """Return a grid of squares: a row per name, a column for each of `columns`, such as weekdays by hours."""
    top = _busy([value for _, values in rows for value in values])
    left, step = 34, 15
    shapes = [
        f'<text class="axis" x="{left + index * step}" y="9">{escape(name)}</text>'
        for index, name in enumerate(columns) if name
    ]  # fmt: skip
    for row, (name, values) in enumerate(rows):
        y = 14 + row * step
        safe = escape(name)
        shapes.append(f'<text class="axis" x="0" y="{y + 9}">{safe}</text>')
        for index, value in enumerate(values):
            shapes.append(
                f'<rect class="heat-{level(value, top)}" x="{left + index * step}" y="{y}" width="12" height="12" '
                f'rx="2"><title>{safe} {escape(columns[index] or index)}: {amount(value)}</title></rect>'
            )
    return _svg(left + len(columns) * step, 14 + len(rows) * step, label, shapes, "grid")


def meter(value: float, top: float, label: str, width: int = 120) -> Markup:
    """Return a line filled to the share `value` of `top`."""
    share = min(max(value / top, 0), 1) if top else 0
    shapes = [
        f'<rect class="track" width="{width}" height="6" rx="3"/>',
        f'<rect class="bar" width="{share * width:.1f}" height="6" rx="3"/>',
    ]
    return _svg(width, 6, f"{label}: {share:.0%}", shapes, "meter")


def level(value: float, top: float) -> int:
    """Return the strength of a colour from 0 for nothing to 4, by the square root, so that few differs from none."""
    return 0 if value <= 0 else min(_LEVELS, 1 + int((value / top) ** 0.5 * _LEVELS * 0.999))


def _busy(values: Iterable[float]) -> float:
    """Return the value of the strongest colour: a single outlier does not pale the rest."""
    found = sorted(value for value in values if value > 0)
    return found[int(len(found) * _BUSY)] if found else 1


def amount(value: float) -> str:
    """Format a number for people."""
    return f"{value:,}" if isinstance(value, int) else f"{value:,.0f}" if value == int(value) else f"{value:,.2f}"


def _svg(width: float, height: float, label: str, shapes: list[str], kind: str, attributes: str = "") -> Markup:
    """Return the SVG of shapes whose texts are already escaped: building it with Markup takes three times as long."""
    return Markup(
        f'<svg class="chart {kind}" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" '
        f'aria-label="{escape(label)}"{attributes}>{"".join(shapes)}</svg>'
    )
