"""Rows as aligned columns."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from ..text.format import THEN, shorten, shorten_both
from ._wrapping import width_of as width_of
from ._wrapping import words_wrapped
from .plain_output import plain_text

_SPACE = "  "  # between two columns
_LEAST_OF_TWO = 30  # columns: less would show only a word or two of each text
WHOLE = 12  # columns: a cell of so few is not cut, and a longer one keeps them
_ID = "ID"  # the heading of a column that is typed into commands, so it stays whole
LastCell = Callable[[int], str]  # for so many columns


class HeadedRows:
    """Rows in columns, the headings first; the columns in `numbers` are on the right."""

    def __init__(self, rows: Sequence[Sequence[str]], numbers: Collection[int] = ()) -> None:
        self._cells = [[plain_text(cell).replace("\n", " ") for cell in row] for row in rows]
        self._numbers = numbers

    def lines(self, room: int | None, least: int = WHOLE) -> list[str]:
        """Return the rows as lines.

        With `room`, the columns of the terminal, wide characters count twice, and the widest cells
        end after a word with an ellipsis if a line would not fit; of a path, the end is left. Ids,
        numbers and cells of up to `least` columns stay whole. Without `room`, a character is a column."""
        cells = self._cells
        measure: Callable[[str], int] = len
        widths = [max(map(len, column)) for column in zip(*cells)]
        if room is not None:
            measure = width_of
            widths = _widths(cells, room, self._numbers, least)
            cells = [
                [_fitted(cell, width, _cut) for cell, width in zip(row, widths)] for row in cells
            ]
        return [line.rstrip() for line in _padded(cells, widths, self._numbers, measure)]


class AlignedRows:
    """Rows of cells in columns, without empty columns; the cells in `numbers` are on the right.

    Each row ends with a cell that is made for the columns that are left."""

    def __init__(
        self, rows: Sequence[tuple[Sequence[str], LastCell]], numbers: Collection[int] = ()
    ) -> None:
        cells = [row for row, _ in rows]
        widths = [max(map(width_of, column)) for column in zip(*cells)]
        self._begun = [
            f"{line}{_SPACE}" if line else "" for line in _padded(cells, widths, numbers, width_of)
        ]
        self._last = [last for _, last in rows]

    def lines(self, room: int) -> list[str]:
        """Return the rows as lines of at most `room` columns."""
        return [
            f"{line}{last(max(1, room - width_of(line)))}".rstrip()
            for line, last in zip(self._begun, self._last)
        ]


def fitted(text: str, room: int) -> str:
    """Return a text in at most `room` columns.

    Of two texts with THEN between them, a part of both is left, in little room only of the second.
    """
    return _fitted(text, room, _shortened)


def _fitted(text: str, room: int, cut: Callable[[str, int], str]) -> str:
    """Return a text in at most `room` columns; `cut` shortens one without THEN."""
    if width_of(text) <= room:
        return text
    first, _, then = text.partition(THEN)
    if not then:
        return cut(text, room)
    if room < _LEAST_OF_TWO:
        return _shortened(then, room)
    return shorten_both(first, then, room, _shortened, width_of)


def _shortened(text: str, room: int) -> str:
    """Return a text without THEN in at most `room` columns; a long word is cut too."""
    limit = room
    while width_of(shown := shorten(text, limit)) > room and limit > 1:
        limit -= max(1, (width_of(shown) - room) // 2)
    return shown


def _cut(cell: str, width: int) -> str:
    """Return a cell without THEN in at most `width` columns, after a word or in a long one."""
    if width_of(cell) <= width:
        return cell
    if cell.startswith(("/", "~/")):
        return f"…{_shortened(cell[::-1], width)[-2::-1]}"
    shown = f"{words_wrapped(cell, width - 1)[0]}…"
    return shown if width_of(shown) <= width else _shortened(cell, width)


def _padded(
    cells: Sequence[Sequence[str]],
    widths: Sequence[int],
    numbers: Collection[int],
    measure: Callable[[str], int],
) -> list[str]:
    """Return rows of cells as lines of the same width, without the columns of no width."""
    lines = []
    for row in cells:
        padded = []
        for at, (cell, width) in enumerate(zip(row, widths)):
            space = " " * (width - measure(cell))
            padded += [space + cell if at in numbers else cell + space] if width else []
        lines.append(_SPACE.join(padded))
    return lines


def _widths(
    cells: Sequence[Sequence[str]], room: int, numbers: Collection[int], least: int
) -> list[int]:
    """Return the widths of the columns: the widest ones give way until all fit.

    None is narrower than its heading, and those that stay whole do not give way."""
    widths = [max(map(width_of, column)) for column in zip(*cells)]
    lowest = [
        width if at in numbers or heading == _ID else max(width_of(heading), min(width, least))
        for at, (heading, width) in enumerate(zip(cells[0], widths))
    ]
    for _ in range(sum(widths) + len(_SPACE) * (len(widths) - 1) - room):
        spare = [(width, at) for at, width in enumerate(widths) if width > lowest[at]]
        if not spare:
            break
        widths[max(spare)[1]] -= 1
    return widths
