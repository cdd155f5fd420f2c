"""Rows as aligned columns."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from ._wrapping import width_of, words_wrapped
from .plain_output import plain_text

_SPACE = "  "  # between two columns


def table_lines(
    rows: Sequence[Sequence[str]], numbers: Collection[int], room: int | None
) -> list[str]:
    """Return rows as lines of columns, the headings first; those in `numbers` are on the right.

    With `room`, the columns of the terminal, wide characters count twice, and the widest cells end
    after a word with an ellipsis if a line would not fit. Without, a character is a column."""
    cells = [[plain_text(cell).replace("\n", " ") for cell in row] for row in rows]
    measure: Callable[[str], int] = len
    widths = [max(map(len, column)) for column in zip(*cells)]
    if room is not None:
        measure = width_of
        widths = _widths(cells, room)
        cells = [[_cut(cell, width) for cell, width in zip(row, widths)] for row in cells]
    lines = []
    for row in cells:
        padded = []
        for at, (cell, width) in enumerate(zip(row, widths)):
            space = " " * (width - measure(cell))
            padded.append(space + cell if at in numbers else cell + space)
        lines.append(_SPACE.join(padded).rstrip())
    return lines


def _cut(cell: str, width: int) -> str:
    """Return a cell in at most `width` columns, unless its first word is longer."""
    return cell if width_of(cell) <= width else f"{words_wrapped(cell, width - 1)[0]}…"


def _widths(cells: Sequence[Sequence[str]], room: int) -> list[int]:
    """Return the widths of the columns: the widest ones give way until all fit.

    None is narrower than its heading or the first word of a cell."""
    widths = [max(map(width_of, column)) for column in zip(*cells)]
    least = [
        max(width_of(heading), *[width_of(_cut(cell, 1)) for cell in column])
        for heading, *column in zip(*cells)
    ]
    for _ in range(sum(widths) + len(_SPACE) * (len(widths) - 1) - room):
        spare = [(width, at) for at, width in enumerate(widths) if width > least[at]]
        if not spare:
            break
        widths[max(spare)[1]] -= 1
    return widths
