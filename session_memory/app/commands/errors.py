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
from ...history.patterns.errors import ErrorBlock, error_blocks
from ...history.store.values import Filter
from .arguments import add_common
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
    """Print the occurrences of an error; return 1 if there are none. Raises SessionMemoryError."""
    text = sys.stdin.read() if arguments.text == "-" else arguments.text
    if not text.strip():
        raise WrongCallError(
            "the query is empty", 'name the error: session-memory errors "ECONNREFUSED"'
        )
    return with_store(arguments, lambda opened: _find(opened, text, wanted_of(opened, arguments)))


def _find(opened: OpenStore, text: str, wanted: Filter) -> int:
    refresh(opened)
    blocks = error_blocks(opened.store, opened.location, text, wanted)
    if not blocks:
        check_names(opened, wanted)
    opened.terminal.show_paged(SeenErrors(blocks[: wanted.limit], len(blocks)))
    return 0 if blocks else 1


@dataclass(frozen=True)
class SeenErrors(Result):
    """The different errors that are shown, and the number of all."""

    seen: list[ErrorBlock]
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
        return {"seen": [_as_json(block) for block in self.seen], "all": self.number}


def _show(terminal: Terminal, block: ErrorBlock) -> None:
    match = block.match
    tool, conversation = match.failure.tool, match.conversation
    sessions = len(block.sessions)
    places = f" in {counted(sessions, 'session')}" if sessions > 1 else ""
    times = f" ({counted(block.times, 'time')}{places})" if block.times > 1 else ""
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
    if block.change:
        terminal.line(f"  change  {brief(block.change, ERROR_CHARACTERS)}")
    if block.request:
        terminal.line(f"  asked   {brief(block.request, ERROR_CHARACTERS)}")


def _as_json(block: ErrorBlock) -> dict[str, Any]:
    match = block.match
    tool, conversation, fixed = match.failure.tool, match.conversation, match.failure.fixed
    return {
        "error": tool.error,
        "tool": tool.tool,
        "argument": tool.text,
        "times": block.times,
        "sessions": block.sessions,
        "at": iso(tool.timestamp),
        "conversation": conversation.id,
        "session": conversation.session_id,
        "title": conversation.title,
        "directory": conversation.cwd,
        "similarity": round(match.similarity, 3),
        "solved": match.solved,
        "change": block.change,
        "asked": block.request,
        "worked": fixed.text if fixed else "",
        "changed": [step.text for step in match.failure.steps if step.kind == "edit"],
    }
