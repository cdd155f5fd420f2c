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
        "text", metavar="TEXT", help="the error, or some of its lines; - reads it from stdin"
    )
    add_common(parser, filter_limit=LIMIT)


def run(arguments: argparse.Namespace) -> int:
    """Print the occurrences; return 1 if there are none. Raises SessionMemoryError."""
    text = sys.stdin.read() if arguments.text == "-" else arguments.text
    if not text.strip():
        raise WrongCallError(
            "the query is empty", 'name the error: session-memory errors "ECONNREFUSED"'
        )
    return with_store(arguments, lambda opened: _find(opened, text, wanted_of(opened, arguments)))


def _find(opened: OpenStore, text: str, wanted: Filter) -> int:
    refresh(opened)
    query = ErrorQuery(text)
    everywhere = conversation_steps(
        opened.store, wanted._replace(limit=NO_LIMIT), failing=query.similarity
    )
    matches = matching_errors(query, everywhere)
    shown = matches[: wanted.limit]
    if not matches:
        check_names(opened, wanted)
    opened.terminal.show(SeenErrors(shown, len(matches)))
    return 0 if matches else 1


@dataclass(frozen=True)
class SeenErrors(Result):
    """The earlier occurrences that are shown, and the number of all."""

    seen: list[ErrorMatch]
    number: int

    def show(self, terminal: Terminal) -> None:
        for index, match in enumerate(self.seen):
            if index:
                terminal.line()
            _show(terminal, match)
        if self.number > len(self.seen):
            terminal.line(
                f"\n{self.number - len(self.seen)} more occurrences: --limit N shows them."
            )
        if not self.number:
            terminal.line(
                f"No tool call failed with these words. To search the conversations: {called_as()} "
                "search WORDS"
            )

    def as_json(self) -> dict[str, Any]:
        return {"seen": [_as_json(match) for match in self.seen], "all": self.number}


def _show(terminal: Terminal, match: ErrorMatch) -> None:
    tool, conversation = match.failure.tool, match.conversation
    times = f" ({counted(match.failure.times, 'time')})" if match.failure.times > 1 else ""
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
        f"{'it worked ' + brief(match.solved, ERROR_CHARACTERS) if match.solved else 'none recorded'}"
    )


def _as_json(match: ErrorMatch) -> dict[str, Any]:
    tool, conversation, fixed = match.failure.tool, match.conversation, match.failure.fixed
    return {
        "error": tool.error,
        "tool": tool.tool,
        "argument": tool.text,
        "times": match.failure.times,
        "at": iso(tool.timestamp),
        "conversation": conversation.id,
        "session": conversation.session_id,
        "title": conversation.title,
        "directory": conversation.cwd,
        "similarity": round(match.similarity, 3),
        "solved": match.solved,
        "worked": fixed.text if fixed else "",
        "changed": [step.text for step in match.failure.steps if step.kind == "edit"],
    }
