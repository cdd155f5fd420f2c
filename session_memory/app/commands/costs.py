"""`session-memory costs`: tokens and dollars by day, project, session, model or runtime, and the
cost of memories."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...common.system.garbage import without_collection
from ...common.system.terminal import Result, Terminal
from ...common.text.format import counted, enumerated, share_of, shortened_id
from ...history.costs import BY, CostSum, SessionFiles, expenses, of_memories, sums_of
from ...history.prices import SOURCE, Prices, all_prices, update_prices
from ...history.store.sqlite.counted_files import CountedFiles
from ...history.store.sqlite.queue_file import UnreadableQueueError
from ...history.store.values import Filter
from ...history.titles import TITLE_CHARACTERS, Titles
from ...history.told import told_tokens
from .arguments import add_common
from .opened_store import OpenStore, check_names, on_store, refresh, wanted_of
from .output import brief
from .progress import shown

SUMMARY = "show what sessions cost in tokens and dollars, from their transcripts"
LIMIT = 20
NAME_CHARACTERS = 48
_NO_NAME = "(unknown)"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--by",
        choices=BY,
        default="day",
        help="a line for each day (the default), project, session, model, runtime or use, such as sub-agents",
    )
    parser.add_argument(
        "--update-prices",
        metavar="URL",
        nargs="?",
        const=SOURCE,
        default="",
        help="only update the prices of models from LiteLLM's list, or from a file in its format at URL",
    )
    add_common(parser, filter_limit=LIMIT, private=True)


def run(arguments: argparse.Namespace) -> int:
    if not arguments.update_prices:
        return _show(arguments)
    terminal = Terminal(os.environ, is_json=arguments.json)
    source = arguments.update_prices
    terminal.show(UpdatedPrices(update_prices(source), source))
    return 0


@dataclass(frozen=True)
class UpdatedPrices(Result):
    """The number of prices that were fetched, and the address."""

    prices: int
    source: str

    def show(self, terminal: Terminal) -> None:
        terminal.line(f"{self.prices:,} prices of models from {self.source}")

    def as_json(self) -> dict[str, Any]:
        return {"prices": self.prices, "from": self.source}


@on_store
def _show(opened: OpenStore, arguments: argparse.Namespace) -> int:
    refresh(opened)
    with without_collection():
        return _show_counted(opened, arguments)


def _show_counted(opened: OpenStore, arguments: argparse.Namespace) -> int:
    wanted = wanted_of(opened, arguments)
    prices = all_prices(opened.location.memory_settings.prices)
    sessions = SessionFiles(opened.location.watched, opened.store, wanted)
    if not sessions.conversations:
        check_names(opened, wanted)
    files, counted = sessions.recent, CountedFiles(opened.store)
    size = sum(file.size for file, _ in files)
    with shown(opened.terminal, lambda: (len(files), size)) as advance:
        own_expenses = (
            expense
            for expense in expenses(files, prices, advance, counted)
            if sessions.shows(expense)
        )
        total, [rows, uses] = sums_of(own_expenses, arguments.by, "use")
    tokens = told_tokens(sessions.shown, counted, wanted.since, wanted.until) if rows else 0
    is_of_all = opened.location.visible is None and not (
        wanted.project or wanted.directories or wanted.session
    )
    memories = _memory_costs(opened, wanted, prices) if is_of_all else []
    is_limited = wanted._replace(limit=0) != Filter(limit=0)
    named = {row.name for row in rows[: wanted.limit]} if arguments.by == "session" else set()
    opened.terminal.show(
        Costs(
            by=arguments.by,
            rows=rows,
            titles=Titles.of_sessions(opened.store, sessions.conversations, named),
            uses=uses,
            limit=wanted.limit,
            total=total,
            told=tokens,
            missing=sessions.missing,
            memories=memories,
            is_limited=is_limited,
        )
    )
    return 0 if rows or memories or not is_limited else 1


def _memory_costs(opened: OpenStore, wanted: Filter, prices: Prices) -> list[CostSum]:
    """Return the cost of memories by model; if it cannot be read, none, with a note."""
    try:
        return of_memories(opened.location, wanted, prices)
    except UnreadableQueueError as error:
        opened.terminal.note(f"the cost of memories is unknown: {error}")
        return []


@dataclass(frozen=True)
class Costs(Result):
    """The costs of sessions, by day or another property, at most `limit` of them shown, and by use.

    `titles` are the shown titles of sessions by id. `told` are the tokens of updates, `missing`
    counts sessions without a transcript, `memories` are the costs of memories by model.
    `is_limited` means that a filter applies."""

    by: str
    rows: list[CostSum]
    titles: dict[str, str]
    uses: list[CostSum]
    limit: int
    total: CostSum
    told: int
    missing: int
    memories: list[CostSum]
    is_limited: bool

    def show(self, terminal: Terminal) -> None:
        self._show_rows(terminal)
        if self.told:
            total = self.total
            share = share_of(self.told, total.input + total.output + total.cached + total.written)
            terminal.paragraph(
                f"Updates took {counted(self.told, 'token')}, {share} of these; session-memory "
                "proof shows what agents did after them."
            )
        if self.memories:
            terminal.heading("Spent on memories, by model")
            _show_table(terminal, "MODEL", [(each, each.name) for each in self.memories])
        if self.missing:
            terminal.note(
                f"{counted(self.missing, 'session')} without a transcript: their costs are unknown"
            )

    def _show_rows(self, terminal: Terminal) -> None:
        if not self.rows:
            reason = "try fewer options" if self.is_limited else "not every runtime records tokens"
            terminal.line(f"No transcript contains costs: {reason}.")
            return
        named = [
            (replace(row, title=self.titles.get(row.name, row.title)), self._name(row, terminal))
            for row in self.rows[: self.limit]
        ]
        others = [use for use in self.uses if self.by != "use" and not use.is_by_main_agent]
        _show_table(terminal, self.by.upper(), named, self.total, others)
        if len(self.rows) > self.limit:
            terminal.line(
                f"These are {self.limit} of {len(self.rows)}: --limit N shows more. All are in the "
                "line `all`."
            )
        if self.total.unpriced:
            models = enumerated(
                brief(model, NAME_CHARACTERS) or _NO_NAME for model in sorted(self.total.unpriced)
            )
            terminal.note(
                f"no price is known for {models}: session-memory costs --update-prices may know it"
            )

    def _name(self, row: CostSum, terminal: Terminal) -> str:
        if self.by == "project":
            return terminal.short(row.name)
        if self.by == "session":
            return shortened_id(row.name)
        return row.label if self.by == "use" else row.name

    def as_json(self) -> dict[str, Any]:
        return {
            "by": self.by,
            "rows": [
                {self.by: row.name, "title": row.title, **_as_json(row)}
                for row in self.rows[: self.limit]
            ],
            "more": len(self.rows) > self.limit,
            "total": _as_json(self.total),
            "uses": [{"use": use.name, **_as_json(use)} for use in self.uses],
            "told_tokens": self.told,
            "missing_transcripts": self.missing,
            "memories": [{"model": each.name, **_as_json(each)} for each in self.memories],
        }


def _show_table(
    terminal: Terminal,
    first: str,
    rows: list[tuple[CostSum, str]],
    total: CostSum | None = None,
    others: Sequence[CostSum] = (),
) -> None:
    """Print costs with their names under the heading `first`, their `total`, and uses in it, as
    figures and, on a terminal, as bars."""
    title = "TITLE" if any(costs.title for costs, _ in rows) else ""
    headings = first, "READ", "WRITTEN", "FROM CACHE", "INTO CACHE", "DOLLARS", title
    cells = [_cells(costs, _shown(name) or _NO_NAME) for costs, name in rows]
    if total:
        cells.append(_cells(total, "all"))
    cells += [_cells(use, f"  {use.label}") for use in others]
    terminal.table([headings, *cells], range(1, 6), _shares([costs for costs, _ in rows]))


def _shown(name: str) -> str:
    """Return a name for a table; a path is not shortened, because the table leaves its end."""
    return brief(name, len(name) if name.startswith(("/", "~/")) else NAME_CHARACTERS)


def _shares(rows: list[CostSum]) -> list[float]:
    """Return the dollars of each row as a share of the largest; the tokens if no price is known."""
    amounts: list[float] = [costs.dollars or 0.0 for costs in rows]
    if not any(amounts):
        amounts = [costs.input + costs.output + costs.cached + costs.written for costs in rows]
    largest = max(amounts, default=0) or 1
    return [amount / largest for amount in amounts]


def _cells(costs: CostSum, name: str) -> tuple[str, ...]:
    """Its row in a table, the title last."""
    tokens = (costs.input, costs.output, costs.cached, costs.written)
    dollars = (
        "unknown"
        if costs.dollars is None
        else f"{costs.dollars:,.2f}{'+' if costs.unpriced else ''}"
    )
    return (
        name,
        *(f"{number:,}" for number in tokens),
        dollars,
        brief(costs.title, TITLE_CHARACTERS),
    )


def _as_json(costs: CostSum) -> dict[str, Any]:
    return {
        "input_tokens": costs.input,
        "output_tokens": costs.output,
        "cache_read_tokens": costs.cached,
        "cache_written_tokens": costs.written,
        "cache_hits": costs.cache_hits,
        "web_searches": costs.searches,
        "dollars": costs.dollars,
        "unpriced": sorted(costs.unpriced),
    }
