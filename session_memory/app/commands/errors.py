"""`session-memory errors TEXT`: earlier occurrences of an error and its solutions."""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from typing import Any

from ...common.errors import WrongCallError
from ...common.system.terminal import Result, Terminal, called_as
from ...common.text.format import counted
from ...common.text.sanitize import name_for_people
from ...history.patterns.failures import ErrorQuery
from ...history.patterns.habits import ErrorMatch, matching_errors
from ...history.store.sqlite.tool_uses import conversation_steps
from ...history.store.values import Filter
from .arguments import NO_LIMIT, add_common
from .opened_store import OpenStore, check_names, refresh, wanted_of, with_store
from .output import brief, iso, moment

SUMMARY = "find where an error occurred before, and what solved it"
LIMIT = 5
ERROR_CHARACTERS = 200
COMMAND_CHARACTERS = 120
TITLE_CHARACTERS = 60


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "text", metavar="TEXT", help="the error, or some lines of it; - reads it from stdin"
    )
    add_common(parser, filter_limit=LIMIT)


def run(arguments: argparse.Namespace) -> int:
    """Print the occurrences; return 1 if there are none. Raises SessionMemoryError."""
    text = sys.stdin.read() if arguments.text == "-" else arguments.text
    if not text.strip():
        raise WrongCallError(
            "there is nothing to look for", 'name the error: session-memory errors "ECONNREFUSED"'
        )
    return with_store(arguments, lambda opened: _find(opened, text, wanted_of(opened, arguments)))


def _find(opened: OpenStore, text: str, wanted: Filter) -> int:
    refresh(opened)
    query = ErrorQuery(text)
    everywhere = conversation_steps(
        opened.store, wanted._replace(limit=NO_LIMIT), failing=query.similarity
    )
    found = matching_errors(query, everywhere)
    shown = found[: wanted.limit]
    if not found:
        check_names(opened, wanted)
    opened.terminal.show(SeenErrors(shown, len(found)))
    return 0 if found else 1


@dataclass(frozen=True)
class SeenErrors(Result):
    """The earlier occurrences that are shown, and the number of all."""

    seen: list[ErrorMatch]
    number: int

    def show(self, terminal: Terminal) -> None:
        for index, one in enumerate(self.seen):
            if index:
                terminal.line()
            _show(terminal, one)
        if self.number > len(self.seen):
            terminal.line(f"\n{self.number - len(self.seen)} more like it: --limit N shows them.")
        if not self.number:
            terminal.line(
                f"No tool call failed with these words. To search the conversations: {called_as()} "
                "search WORDS"
            )

    def as_json(self) -> dict[str, Any]:
        return {"seen": [_as_json(one) for one in self.seen], "all": self.number}


def _show(terminal: Terminal, one: ErrorMatch) -> None:
    tool, conversation = one.failure.tool, one.conversation
    times = f" ({counted(one.failure.times, 'time')})" if one.failure.times > 1 else ""
    terminal.line(
        terminal.paint("bold", brief(tool.error, ERROR_CHARACTERS) or "(no output)") + times
    )
    terminal.line(f"  of      {brief(f'{tool.tool}: {tool.text}', COMMAND_CHARACTERS)}")
    title = brief(conversation.title, TITLE_CHARACTERS) or "-"
    session = name_for_people(conversation.session_id)
    terminal.line(
        f"  seen    {moment(tool.timestamp)}, conversation {conversation.id} (session {session})"
    )
    terminal.line(
        f"          {title}, in "
        f"{brief(terminal.short(conversation.cwd), COMMAND_CHARACTERS) or '-'}"
    )
    terminal.line(
        f"  solved  "
        f"{'it worked ' + brief(one.solved, ERROR_CHARACTERS) if one.solved else 'none recorded'}"
    )


def _as_json(one: ErrorMatch) -> dict[str, Any]:
    tool, conversation, fixed = one.failure.tool, one.conversation, one.failure.fixed
    return {
        "error": tool.error,
        "tool": tool.tool,
        "argument": tool.text,
        "times": one.failure.times,
        "at": iso(tool.timestamp),
        "conversation": conversation.id,
        "session": conversation.session_id,
        "title": conversation.title,
        "directory": conversation.cwd,
        "similarity": round(one.similarity, 3),
        "solved": one.solved,
        "worked": fixed.text if fixed else "",
        "changed": [step.text for step in one.failure.steps if step.kind == "edit"],
    }
