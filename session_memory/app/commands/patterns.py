"""`session-memory patterns`: failures and their fixes, tools in their order, files that change
together."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial
from typing import Any

from ...common.text.format import counted
from ...common.text.sanitize import for_prompt
from ...history.patterns.habits import FailingCommand, Habits, find_habits, short_names
from ...history.store.sqlite.tool_uses import conversation_steps
from .arguments import NO_LIMIT, add_common
from .opened_store import OpenStore, check_names, on_store, refresh, wanted_of
from .output import brief

SUMMARY = "show which commands fail, what helps, and other habits"
LIMIT = 8
TEXT_CHARACTERS = 110
_brief = partial(brief, limit=TEXT_CHARACTERS)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_common(parser, filter_limit=LIMIT)


@on_store
def run(opened: OpenStore, arguments: argparse.Namespace) -> int:
    refresh(opened)
    wanted = wanted_of(opened, arguments)._replace(limit=NO_LIMIT)
    found = find_habits(conversation_steps(opened.store, wanted))
    if not found.tool_uses:
        check_names(opened, wanted)
    opened.terminal.result(_as_json(found, arguments.limit))
    if not found.tool_uses:
        opened.terminal.line("No tool was used yet.")
        return 0
    with opened.terminal.paged():
        _show(opened, found, arguments)
    return 0


def _show(opened: OpenStore, habits: Habits, arguments: argparse.Namespace) -> None:
    opened.terminal.line(
        f"{counted(habits.tool_uses, 'tool use')} in "
        f"{counted(habits.conversations, 'conversation')}."
    )
    _show_commands(opened, habits.commands[: arguments.limit])
    orders = [
        f"{one.times:>4} times  {for_prompt(' → '.join(one.tools))}: "
        f"the last succeeds {(one.times - one.failures) / one.times:.0%}"
        for one in habits.orders[: arguments.limit]
    ]
    _show_lines(opened, "In which order (✗ failed)", orders)
    names = {path: _brief(name) for path, name in short_names(habits).items()}
    together = [
        f"{one.times:>4} times  {names[one.first]} ({one.first_times})  with  "
        f"{names[one.second]} ({one.second_times})"
        for one in habits.together[: arguments.limit]
    ]
    _show_lines(opened, "Changed together (how often at all)", together)


def _show_commands(opened: OpenStore, commands: Sequence[FailingCommand]) -> None:
    if commands:
        opened.terminal.heading("Commands that fail")
    for one in commands:
        share = (
            f"{one.failures} of {counted(one.runs, 'run')} failed ({one.failures / one.runs:.0%})"
        )
        opened.terminal.line(f"  {_brief(one.command)}: {share}")
        for error, times in one.errors:
            opened.terminal.line(f"      {times}x  {_brief(error) or 'no output'}")
        for followed, times in one.then_worked:
            opened.terminal.line(
                f"      worked {_brief(followed)}" + (f" ({times} times)" if times > 1 else "")
            )


def _show_lines(opened: OpenStore, title: str, lines: Sequence[str]) -> None:
    if lines:
        opened.terminal.heading(title)
    for line in lines:
        opened.terminal.line(f"  {line}")


def _as_json(found: Habits, limit: int) -> dict[str, Any]:
    return {
        "conversations": found.conversations,
        "tool_uses": found.tool_uses,
        "commands": [
            {
                **one._asdict(),
                "errors": [{"error": error, "times": times} for error, times in one.errors],
                "then_worked": [{"what": what, "times": times} for what, times in one.then_worked],
            }
            for one in found.commands[:limit]
        ],
        "together": [one._asdict() for one in found.together[:limit]],
        "tools": [one._asdict() for one in found.tools[:limit]],
        "orders": [one._asdict() for one in found.orders[:limit]],
    }
