"""`session-memory costs`: tokens and dollars by day, project, session or model, and what memories cost."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

from ..memories.runner import settings_of
from ..memories.tokens import all_prices, cost
from ..store.sqlite.queue import StoredQueue
from ..store.sqlite.token_accounts import day_of
from ..text.format import counted, enumerated
from ..text.sanitize import for_prompt
from ..text.timestamps import local_time
from ..upkeep.costs import SessionFiles, expenses
from .arguments import NO_LIMIT, add_common, add_filter, add_private, filter_of
from .nearest import check_names
from .opened_store import refresh, with_store
from .output import brief
from .progress import shown_of

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable

    from ..memories.tokens import Prices
    from ..store.values import Filter
    from ..upkeep.costs import Expense
    from .opened_store import OpenStore

SUMMARY = "say what sessions cost, in tokens and dollars, by what their transcripts say"
LIMIT = 20
NAME_CHARACTERS = 48
BY = ("day", "project", "session", "model")
_NO_NAME = "(unknown)"


class Sum:
    """What several answers took together. `unpriced` are the models among them that have no price."""

    def __init__(self, name: str = "", title: str = "") -> None:
        self.name = name
        self.title = title
        self.input = self.output = self.cached = self.written = 0
        self.dollars: float | None = None
        self.unpriced: set[str] = set()

    def add(self, expense: Expense) -> None:
        """Adds an answer."""
        usage = expense.usage
        self.input += usage.input
        self.output += usage.output
        self.cached += usage.cached
        self.written += usage.written + usage.written_for_an_hour
        if expense.dollars is None:
            self.unpriced.add(usage.model)
        else:
            self.dollars = (self.dollars or 0.0) + expense.dollars

    def cells(self, name: str) -> tuple[str, ...]:
        """Its row in a table, the title last."""
        tokens = (self.input, self.output, self.cached, self.written)
        return (name, *(f"{number:,}" for number in tokens), _dollars(self.dollars), brief(self.title, NAME_CHARACTERS))

    def as_json(self) -> dict[str, Any]:
        """Its tokens and dollars."""
        return {
            "input_tokens": self.input,
            "output_tokens": self.output,
            "cache_read_tokens": self.cached,
            "cache_written_tokens": self.written,
            "dollars": self.dollars,
            "unpriced": sorted(for_prompt(model) for model in self.unpriced),
        }


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of costs."""
    parser.add_argument(
        "--by", choices=BY, default="day", help="a line for each day (the default), project, session or model"
    )
    add_filter(parser, LIMIT)
    add_private(parser)
    add_common(parser)


def run(arguments: argparse.Namespace) -> int:
    """Shows them. Raises SessionMemoryError."""
    return with_store(arguments, lambda opened: _show(opened, arguments))


def _show(opened: OpenStore, arguments: argparse.Namespace) -> int:
    refresh(opened)
    wanted = filter_of(arguments, opened.location)
    prices = all_prices(settings_of(opened.location).prices)
    conversations = opened.store.conversations(wanted._replace(since=None, until=None, limit=NO_LIMIT))
    if not conversations:
        check_names(opened, wanted)
    sessions = SessionFiles(opened.location.watched, conversations)
    files = sessions.written_since(wanted.since)
    size = sum(file.size for file, _ in files)
    with shown_of(opened.terminal, lambda: (len(files), size)) as advance:
        found = [one for one in expenses(files, prices, advance) if _is_within(one, wanted)]
    rows, total = _sums(found, arguments.by)
    is_of_all = wanted.homes is None and not (wanted.project or wanted.directories or wanted.session)
    memories = _of_memories(opened, wanted, prices) if is_of_all else []
    opened.terminal.result(
        {
            "by": arguments.by,
            "rows": [
                {arguments.by: for_prompt(one.name), "title": for_prompt(one.title), **one.as_json()}
                for one in rows[: wanted.limit]
            ],
            "more": len(rows) > wanted.limit,
            "total": total.as_json(),
            "missing_transcripts": sessions.missing,
            "memories": [{"model": one.name, **one.as_json()} for one in memories],
        }
    )
    _print(opened, arguments.by, rows, total, wanted.limit)
    if memories:
        opened.terminal.heading("Spent on memories, by model")
        _table(opened, [one.cells(brief(one.name, NAME_CHARACTERS) or _NO_NAME) for one in memories], "MODEL")
    if sessions.missing:
        opened.terminal.note(
            f"{counted(sessions.missing, 'session')} without a transcript: what is gone tells no costs"
        )
    return 0 if rows or is_of_all else 1


def _is_within(expense: Expense, wanted: Filter) -> bool:
    if wanted.since is None and wanted.until is None:
        return True
    at = expense.at
    return at is not None and (wanted.since or 0) <= at and (wanted.until is None or at <= wanted.until)


def _sums(found: Iterable[Expense], by: str) -> tuple[list[Sum], Sum]:
    """What was spent by each, days in their order from the latest, all else from the dearest; and by all together."""
    sums: dict[str, Sum] = {}
    total = Sum()
    for one in found:
        name = {
            "day": local_time(one.at / 1000)[:10] if one.at is not None else "",
            "project": one.session.cwd,
            "session": one.session.session_id,
            "model": one.usage.model,
        }[by]
        if name not in sums:
            sums[name] = Sum(name, one.session.title if by == "session" else "")
        sums[name].add(one)
        total.add(one)
    if by == "day":
        return sorted(sums.values(), key=lambda one: one.name, reverse=True), total
    return sorted(sums.values(), key=lambda one: (-(one.dollars or 0.0), -one.input - one.output, one.name)), total


def _of_memories(opened: OpenStore, wanted: Filter, prices: Prices) -> list[Sum]:
    """What our strategies spent in the days (UTC) that are asked for, by model."""
    since = day_of(wanted.since) if wanted.since is not None else ""
    until = day_of(wanted.until) if wanted.until is not None else "9"
    with closing(StoredQueue(opened.location.database)) as queue:
        spent = queue.accounts.by_model(since, until)
    found = []
    for usage in spent:
        one = Sum(for_prompt(usage.model))
        one.input, one.output, one.cached = usage.input_tokens, usage.output_tokens, usage.cached_tokens
        one.dollars = cost(usage, prices)
        one.unpriced = {usage.model} if one.dollars is None else set()
        found.append(one)
    return found


def _print(opened: OpenStore, by: str, rows: list[Sum], total: Sum, limit: int) -> None:
    if not rows:
        opened.terminal.line("No transcript says what anything cost.")
        return
    lines = [one.cells(_name(opened, by, one)) for one in rows[:limit]]
    _table(opened, [*lines, total.cells("all")], by.upper())
    if len(rows) > limit:
        opened.terminal.line(f"These are {limit} of {len(rows)}: --limit N shows more. All are in the last line.")
    if total.unpriced:
        models = enumerated(brief(model, NAME_CHARACTERS) or _NO_NAME for model in sorted(total.unpriced))
        opened.terminal.note(f"no price is known of {models}: memories.prices in config.yaml says yours")


def _name(opened: OpenStore, by: str, one: Sum) -> str:
    name = opened.terminal.short(one.name) if by == "project" else one.name
    return brief(name, NAME_CHARACTERS) or _NO_NAME


def _table(opened: OpenStore, rows: list[tuple[str, ...]], first: str) -> None:
    table = [(first, "READ", "WRITTEN", "FROM CACHE", "INTO CACHE", "DOLLARS", ""), *rows]
    widths = [max(map(len, column)) for column in zip(*table)]
    for index, (name, *cells, title) in enumerate(table):
        numbers = [cell.rjust(width) for cell, width in zip(cells, widths[1:])]
        line = "  ".join([name.ljust(widths[0]), *numbers, title]).rstrip()
        opened.terminal.line(line if index else opened.terminal.paint("bold", line))


def _dollars(amount: float | None) -> str:
    return "-" if amount is None else f"{amount:,.2f}"
