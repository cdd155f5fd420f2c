"""The table that a run of the benchmark ends in."""

from __future__ import annotations

import json
import platform
from typing import Any, NamedTuple

from .cases import Case
from .stopwatch import Typical

HEADINGS = ("case", "measured", "limit", "", "median", "against")


class Row(NamedTuple):
    """One measured ratio.

    `limit` is None for a row that is only for scale. Times are in seconds, memory as `unit`
    says."""

    title: str
    measured: float
    against: float
    against_title: str
    limit: float | None = None
    unit: str = "s"

    @property
    def ratio(self) -> float:
        return self.measured / self.against

    @property
    def is_over(self) -> bool:
        return self.limit is not None and self.ratio > self.limit


def rows_of(case: Case, measured: Typical, reference: Typical) -> list[Row]:
    """A row for the time, and one for the memory where it has a limit."""
    rows = [Row(case.title, measured.seconds, reference.seconds, case.reference_title, case.limit)]
    if case.memory_limit is not None:
        memory = measured.peak_memory, reference.peak_memory
        rows.append(
            Row(
                f"{case.title}: peak memory", *memory, case.reference_title, case.memory_limit, "KB"
            )
        )
    return rows


def as_table(rows: list[Row], runs: int, times: str = "times") -> str:
    """Return a Markdown table in aligned columns, below a line about the machine and `times`."""
    cells = [HEADINGS, *(_cells(row) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells)]
    lines = [
        f"| {' | '.join([cell.ljust(width) for cell, width in zip(line, widths)])} |"
        for line in cells
    ]
    lines.insert(1, f"|{'|'.join(['-' * (width + 2) for width in widths])}|")
    title = f"Python {platform.python_version()}, {times}, medians of {runs} runs of each, in turn"
    return "\n".join([title, "", *lines])


def as_json(rows: list[Row], runs: int) -> str:
    """The same for programs."""
    fields: list[dict[str, Any]] = [
        {**row._asdict(), "ratio": round(row.ratio, 3), "is_over": row.is_over} for row in rows
    ]
    return json.dumps({"python": platform.python_version(), "runs": runs, "rows": fields}, indent=2)


def _cells(row: Row) -> tuple[str, ...]:
    limit = "" if row.limit is None else f"{row.limit:.2f} x"
    verdict = "" if row.limit is None else "over" if row.is_over else "ok"
    amounts = (
        _amount(row.measured, row.unit),
        f"{row.against_title} {_amount(row.against, row.unit)}",
    )
    return row.title, f"{row.ratio:.2f} x", limit, verdict, *amounts


def _amount(value: float, unit: str) -> str:
    return f"{value * 1000:.1f} ms" if unit == "s" else f"{value / 1024:.1f} MB"
