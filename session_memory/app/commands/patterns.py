"""`session-memory patterns`: advice for agents, failures with fixes, files changed together."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ...common.system.terminal import Result, Terminal, called_as
from ...common.text.format import counted, one_line
from ...common.text.sanitize import for_prompt
from ...history.patterns.habits import FailingCommand, Habits, find_habits
from ...history.store.sqlite.tool_uses import conversation_steps
from ...history.store.values import Filter
from .arguments import NO_LIMIT, add_common
from .opened_store import OpenStore, check_names, on_store, refresh, wanted_of
from .output import brief

SUMMARY = "show which commands fail, what helps, and which instructions you keep repeating"
LIMIT = 8
TEXT_CHARACTERS = 110
_brief = partial(brief, limit=TEXT_CHARACTERS)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_common(parser, filter_limit=LIMIT)


@on_store
def run(opened: OpenStore, arguments: argparse.Namespace) -> int:
    refresh(opened)
    wanted = wanted_of(opened, arguments)._replace(limit=NO_LIMIT)
    habits = find_habits(conversation_steps(opened.store, wanted))
    result = FoundHabits(habits, arguments.limit, wanted != Filter(limit=NO_LIMIT))
    if result.is_empty:
        check_names(opened, wanted)
    opened.terminal.show(result)
    return int(result.is_empty and result.is_limited)


@dataclass(frozen=True)
class FoundHabits(Result):
    """The habits of the sessions; at most `limit` of each kind are shown.

    `is_limited` means that a filter applies."""

    habits: Habits
    limit: int
    is_limited: bool

    @property
    def is_empty(self) -> bool:
        """Check if there is nothing to show; instructions need no tool use."""
        return not (self.habits.tool_uses or self.habits.instructions)

    def show(self, terminal: Terminal) -> None:
        habits = self.habits
        if self.is_empty:
            terminal.line(
                "No tool use matches. Try fewer options."
                if self.is_limited
                else "No tool was used yet."
            )
            return
        with terminal.paged():
            terminal.line(
                f"{counted(habits.tool_uses, 'tool use')} in "
                f"{counted(habits.conversations, 'conversation')}."
            )
            self._show_advice(terminal)
            _show_commands(terminal, habits.commands[: self.limit])
            _show_lines(
                terminal, "Files changed together (number of changes of each)", self._together()
            )

    def _show_advice(self, terminal: Terminal) -> None:
        advice = self.habits.advice()[: self.limit]
        if advice:
            terminal.heading("Worth telling your agents, each with the command that does")
        for each in advice:
            sentence = one_line(for_prompt(each.sentence))
            terminal.line(f"  {sentence} ({each.counts})")
            terminal.line(f"      {called_as()} remember {shlex.quote(sentence)}")

    def _together(self) -> list[str]:
        names = {path: _brief(name) for path, name in self.habits.short_names().items()}
        return [
            f"{pair.times:>4} times  {names[pair.first]} ({pair.first_times})  with  "
            f"{names[pair.second]} ({pair.second_times})"
            for pair in self.habits.together[: self.limit]
        ]

    def as_json(self) -> dict[str, Any]:
        habits, limit = self.habits, self.limit
        return {
            "conversations": habits.conversations,
            "tool_uses": habits.tool_uses,
            "advice": [each._asdict() for each in habits.advice()[:limit]],
            "commands": [
                {
                    **command._asdict(),
                    "errors": [{"error": error, "times": times} for error, times in command.errors],
                    "then_worked": [
                        {"what": what, "times": times} for what, times in command.then_worked
                    ],
                }
                for command in habits.commands[:limit]
            ],
            "together": [pair._asdict() for pair in habits.together[:limit]],
            "tools": [tool._asdict() for tool in habits.tools[:limit]],
            "orders": [order._asdict() for order in habits.orders[:limit]],
        }


def _show_commands(terminal: Terminal, commands: Sequence[FailingCommand]) -> None:
    if commands:
        terminal.heading("Commands that fail")
    for command in commands:
        share = f"{command.failures} of {counted(command.runs, 'run')} failed ({command.failures / command.runs:.0%})"
        terminal.line(f"  {_brief(command.command)}: {share}")
        for error, times in command.errors:
            terminal.line(f"      {times}x  {_brief(error) or 'no output'}")
        for followed, times in command.then_worked:
            terminal.line(
                f"      worked {_brief(followed)}" + (f" ({times} times)" if times > 1 else "")
            )


def _show_lines(terminal: Terminal, title: str, lines: Sequence[str]) -> None:
    if lines:
        terminal.heading(title)
    for line in lines:
        terminal.line(f"  {line}")
