"""`session-memory read`: the last messages of one session of any runtime."""

from __future__ import annotations

import argparse
import os

from ..runtimes.detection import is_started_by_agent
from ..system.terminal import Terminal
from ..text.sanitize import for_people
from ..text.timestamps import iso_time
from ..transcripts.log import render
from ..transcripts.sessions import FoundSession, choose
from .arguments import OnlyForPeopleError, add_common, add_private, positive
from .sessions import add_all, is_own, known_sessions

SUMMARY = "read the last messages of a session"
LINES = 50
NAME_HELP = "the session: its name, its title, its id, or how one of them begins"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help=NAME_HELP)
    add_lines(parser)
    add_all(parser)
    add_private(parser)
    parser.add_argument("--raw", action="store_true", help=argparse.SUPPRESS)  # for people, as --include-private
    add_common(parser)


def add_lines(parser: argparse.ArgumentParser) -> None:
    """Add `--lines`."""
    parser.add_argument("--lines", type=positive, default=LINES, metavar="N", help=f"the last N entries ({LINES})")


def run(arguments: argparse.Namespace) -> int:
    """Show them. Raises SessionMemoryError, OSError."""
    terminal = Terminal(os.environ, is_json=arguments.json)
    # An agent may see all of its own session: the rules that it would get around are about others.
    is_agent_s = (arguments.include_private or arguments.raw) and is_started_by_agent(os.environ)
    listed = known_sessions(arguments, os.environ, with_private=arguments.include_private and not is_agent_s)
    chosen = choose(listed, arguments.name)
    if is_agent_s and not is_own(chosen, os.environ):
        raise OnlyForPeopleError("--include-private and --raw")
    _show(chosen, arguments.lines, terminal, raw=arguments.raw)
    return 0


def _show(one: FoundSession, lines: int, terminal: Terminal, *, raw: bool) -> None:
    entries, unreadable = one.last_entries(lines)
    said = [
        {
            "role": entry.role,
            "text": entry.text if raw else for_people(entry.text),
            "timestamp": None if entry.timestamp is None else iso_time(entry.timestamp),
            "tools": [
                {"name": tool.name, "argument": tool.argument if raw else for_people(tool.argument)}
                for tool in entry.tools
            ],
        }
        for entry in (entries if terminal.is_json else ())
    ]
    terminal.result({"name": one.name, "id": one.id, "unreadable": unreadable, "entries": said})
    if not entries:
        terminal.line(f"{one.name}: nothing was said yet.")
        return
    shown = "entry" if len(entries) == 1 else f"{len(entries)} entries"
    terminal.line(f"Session {one.name} ({one.id}), the last {shown}:\n")
    if not terminal.is_json:
        terminal.line(render(entries, unreadable, raw=raw))
