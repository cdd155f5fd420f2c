"""`session-memory costs`: tokens and dollars by day, project, session, model or runtime, and the
cost of memories."""

from __future__ import annotations

import argparse
import os
from typing import Any

from ...common.system.terminal import Terminal
from ...common.text.format import counted, enumerated, share_of
from ...history.costs import BY, CostSum, SessionFiles, expenses, of_memories, sums_of
from ...history.prices import SOURCE, all_prices, update_prices
from ...history.store.sqlite.queue_file import UnreadableQueueError
from ...history.told import told_tokens
from ...memory.runner import settings_of
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
        help="a line for each day (the default), project, session, model or runtime",
    )
    parser.add_argument(
        "--update-prices",
        metavar="URL",
        nargs="?",
        const=SOURCE,
        default="",
        help="get the prices of models from LiteLLM's list, or from a file like it at URL, and "
        "show nothing",
    )
    add_common(parser, filter_limit=LIMIT, private=True)


def run(arguments: argparse.Namespace) -> int:
    if not arguments.update_prices:
        return _show(arguments)
    terminal = Terminal(os.environ, is_json=arguments.json)
    number = update_prices(arguments.update_prices)
    terminal.line(f"{number:,} prices of models from {arguments.update_prices}")
    terminal.result({"prices": number, "from": arguments.update_prices})
    return 0


@on_store
def _show(opened: OpenStore, arguments: argparse.Namespace) -> int:
    refresh(opened)
    wanted = wanted_of(opened, arguments)
    prices = all_prices(settings_of(opened.location).prices)
    sessions = SessionFiles(opened.location.watched, opened.store, wanted)
    if not sessions.conversations:
        check_names(opened, wanted)
    files = sessions.recent
    size = sum(file.size for file, _ in files)
    with shown(opened.terminal, lambda: (len(files), size)) as advance:
        found = (one for one in expenses(files, prices, advance) if sessions.shows(one))
        total, [rows] = sums_of(found, arguments.by)
    told = told_tokens(sessions.shown, wanted.since, wanted.until) if rows else 0
    is_of_all = opened.location.visible is None and not (
        wanted.project or wanted.directories or wanted.session
    )
    memories = []
    try:
        memories = of_memories(opened.location, wanted, prices) if is_of_all else []
    except UnreadableQueueError as error:
        opened.terminal.note(f"what memories cost is not known: {error}")
    opened.terminal.result(
        {
            "by": arguments.by,
            "rows": [
                {arguments.by: one.name, "title": one.title, **_as_json(one)}
                for one in rows[: wanted.limit]
            ],
            "more": len(rows) > wanted.limit,
            "total": _as_json(total),
            "told_tokens": told,
            "missing_transcripts": sessions.missing,
            "memories": [{"model": one.name, **_as_json(one)} for one in memories],
        }
    )
    _print(opened, arguments.by, rows, total, wanted.limit)
    if told:
        share = share_of(told, total.input + total.output + total.cached + total.written)
        opened.terminal.line(
            f"Updates told: {counted(told, 'token')}, {share} of these; session-memory proof "
            f"says what came of them."
        )
    if memories:
        opened.terminal.heading("Spent on memories, by model")
        _table(
            opened,
            [_cells(one, brief(one.name, NAME_CHARACTERS) or _NO_NAME) for one in memories],
            "MODEL",
        )
    if sessions.missing:
        opened.terminal.note(
            f"{counted(sessions.missing, 'session')} without a transcript: their costs are unknown"
        )
    return 0 if rows or is_of_all else 1


def _print(opened: OpenStore, by: str, rows: list[CostSum], total: CostSum, limit: int) -> None:
    if not rows:
        opened.terminal.line("No transcript contains costs: not every runtime records tokens.")
        return
    names = [
        opened.terminal.short(one.name) if by == "project" else one.name for one in rows[:limit]
    ]
    lines = [
        _cells(one, brief(name, NAME_CHARACTERS) or _NO_NAME) for one, name in zip(rows, names)
    ]
    _table(opened, [*lines, _cells(total, "all")], by.upper())
    if len(rows) > limit:
        opened.terminal.line(
            f"These are {limit} of {len(rows)}: --limit N shows more. All are in the last line."
        )
    if total.unpriced:
        models = enumerated(
            brief(model, NAME_CHARACTERS) or _NO_NAME for model in sorted(total.unpriced)
        )
        opened.terminal.note(
            f"no price is known of {models}: session-memory costs --update-prices may know it"
        )


def _table(opened: OpenStore, rows: list[tuple[str, ...]], first: str) -> None:
    headings = first, "READ", "WRITTEN", "FROM CACHE", "INTO CACHE", "DOLLARS", ""
    opened.terminal.table([headings, *rows], range(1, 6))


def _cells(one: CostSum, name: str) -> tuple[str, ...]:
    """Its row in a table, the title last."""
    tokens = (one.input, one.output, one.cached, one.written)
    dollars = (
        "unknown" if one.dollars is None else f"{one.dollars:,.2f}{'+' if one.unpriced else ''}"
    )
    return (name, *(f"{number:,}" for number in tokens), dollars, brief(one.title, NAME_CHARACTERS))


def _as_json(one: CostSum) -> dict[str, Any]:
    return {
        "input_tokens": one.input,
        "output_tokens": one.output,
        "cache_read_tokens": one.cached,
        "cache_written_tokens": one.written,
        "cache_hits": one.cache_hits,
        "dollars": one.dollars,
        "unpriced": sorted(one.unpriced),
    }
