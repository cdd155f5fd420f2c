"""A line chart as SVG, with both axes in powers: what doubles is as far apart wherever it stands."""

from __future__ import annotations

from html import escape
from math import log
from typing import NamedTuple

WIDTH, HEIGHT = 760, 420
LEFT, RIGHT, TOP, BOTTOM = 60, 220, 50, 50
COLOURS = ("#0b6e99", "#c4542d", "#4c8c2b", "#7a4fa3", "#8a6d1d", "#444444")
LABEL_HEIGHT = 18


class Line(NamedTuple):
    """What belongs together: pairs of x and y, both over 0."""

    title: str
    points: list[tuple[float, float]]


def as_svg(title: str, x_title: str, lines: list[Line]) -> str:
    """The lines, each with its title and last value at its end."""
    xs = sorted({x for line in lines for x, _ in line.points})
    ys = [y for line in lines for _, y in line.points]
    lowest, highest = min(0.5, *ys), max(2.0, *ys)

    def at(x: float, y: float) -> tuple[float, float]:
        across = log(x / xs[0]) / (log(xs[-1] / xs[0]) or 1.0)
        up = log(y / lowest) / log(highest / lowest)
        return LEFT + across * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - up * (HEIGHT - TOP - BOTTOM)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
        f'font-size="12"><rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        _text(LEFT, TOP - 25, title, size=15),
        _text(LEFT, HEIGHT - 10, x_title),
    ]
    for x in xs:
        left, bottom = at(x, lowest)
        parts.append(_text(left, bottom + 18, f"{x:,.0f}", anchor="middle"))
    for y in [value for value in (0.5, 1, 2, 4, 8, 16, 32, 64) if lowest <= value <= highest]:
        _, height = at(xs[0], y)
        parts.append(f'<path d="M{LEFT} {height:.1f}H{WIDTH - RIGHT}" stroke="#dddddd"/>')
        parts.append(_text(LEFT - 8, height + 4, f"{y:g} x", anchor="end"))
    free = float(HEIGHT)
    for line, colour in sorted(zip(lines, COLOURS), key=lambda pair: pair[0].points[-1][1]):
        path = " ".join(f"{left:.1f},{top:.1f}" for left, top in (at(x, y) for x, y in line.points))
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        value = line.points[-1][1]
        free = min(free - LABEL_HEIGHT, at(xs[-1], value)[1] + 4)  # labels do not lie on each other
        parts.append(_text(WIDTH - RIGHT + 8, free, f"{line.title}: {value:.2f} x", colour))
    return "\n".join([*parts, "</svg>\n"])


def _text(x: float, y: float, text: str, colour: str = "#222222", anchor: str = "start", size: int = 12) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" fill="{colour}" text-anchor="{anchor}" font-size="{size}">{escape(text)}</text>'
    )
