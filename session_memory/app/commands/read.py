"""`session-memory read`: the last messages of a session, a conversation from the store, or a memory.

scripts/session_reader.py, which the skills name, combines this command with `sessions`.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from ...common.system.terminal import Result, Terminal, exit_code
from ...common.text.format import counted
from ...common.text.timestamps import iso_time
from ...sessions.runtimes.detection import is_started_by_agent
from ...sessions.settings.homes import drop_set_by_project
from ...sessions.transcripts.entries import Entry
from ...sessions.transcripts.log import LogBlock, render
from ...sessions.transcripts.sessions import (
    AmbiguousSessionError,
    FoundSession,
    UnknownSessionError,
)
from ._messages_view import print_log
from ._picker import picked_session
from .arguments import AROUND, MESSAGE_CHARACTERS, OnlyForPeopleError, add_common, positive
from .sessions import ListedSessions, SessionChoice, add_all, is_own, known_sessions

SUMMARY = "read a session, a conversation, a memory, or the messages around a search result"
LINES = 50
SCRIPT = "Show the messages and tool calls of another session of this home, or list the sessions."
NAME_HELP = (
    "a session: its id, the beginning of its id, words of its title, its archive's file name, or a "
    "runtime's name for that runtime's latest session; or the number of a conversation, or the id "
    "of a memory"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", nargs="?", default="", help=NAME_HELP)
    _add_options(parser)


def _add_options(parser: argparse.ArgumentParser) -> None:
    lines = (
        f"the last N messages of a session ({LINES}) or of a conversation (all); with --around, N "
        f"before and N after it ({AROUND})"
    )
    parser.add_argument("--lines", type=positive, metavar="N", help=lines)
    parser.add_argument(
        "--tools", action="store_true", help="show each tool use on a line, counted by --lines"
    )
    parser.add_argument(
        "--around",
        metavar="MESSAGE",
        type=positive,
        help="only the messages of a conversation around this one",
    )
    parser.add_argument(
        "--conversation",
        action="store_true",
        help="of a session, read its whole last conversation from the store",
    )
    full = (
        f"show whole messages of a conversation, not only their first {MESSAGE_CHARACTERS:,} "
        f"characters"
    )
    parser.add_argument("--full", action="store_true", help=full)
    add_all(parser, "choose among the sessions of all projects, not only this one's")
    # for people, as --include-private
    parser.add_argument("--raw", action="store_true", help=argparse.SUPPRESS)
    add_common(parser, shared=True, private=True)


def run(arguments: argparse.Namespace) -> int:
    arguments.name = arguments.name or picked_session(arguments)
    if arguments.name.endswith(".md"):
        arguments.name = _session_of_archive(arguments) or arguments.name
    if arguments.conversation or arguments.around or arguments.shared:
        from ._stored_text import read_conversation

        return read_conversation(arguments)
    terminal = Terminal(os.environ, is_json=arguments.json)
    # An agent may see all of its own session. The rules that this option bypasses concern others.
    is_agent_s = (arguments.include_private or arguments.raw) and is_started_by_agent(os.environ)
    with_private = arguments.include_private and not is_agent_s
    chosen = _chosen(arguments, with_private=with_private)
    if isinstance(chosen, Result):
        terminal.show_paged(chosen)
        return 0
    if is_agent_s and not is_own(chosen, os.environ):
        raise OnlyForPeopleError("--include-private and --raw")
    # in JSON each entry counts, with its tools
    with_tools = arguments.tools or terminal.is_json
    count = arguments.lines or LINES
    entries, unreadable = chosen.last_entries(count, counts_said=not with_tools)
    with terminal.paged():
        terminal.show(LastEntries(chosen, entries, unreadable, arguments.raw, with_tools))
    return 0


def _session_of_archive(arguments: argparse.Namespace) -> str:
    """Return the id of the session whose archive has the given file name; '' if there is none.

    Raises SessionMemoryError, OSError."""
    from ...history.archives.list import list_archives  # imported late: few names are of files
    from ...history.store.location import find_location

    name = os.path.basename(arguments.name)
    for archives in find_location(arguments.home, os.environ).archives:
        for path, facts in list_archives(archives.directory):
            if os.path.basename(path) == name:
                return str(facts["session"])
    return ""


def _chosen(arguments: argparse.Namespace, *, with_private: bool) -> FoundSession | Result:
    """Return the session that the name means, or what the store has by this name.

    That is a conversation, a memory, or the last conversation of a session whose transcript is
    gone. Raises SessionMemoryError, OSError."""
    choice = SessionChoice(arguments.name, arguments, os.environ, with_private=with_private)
    if arguments.raw:  # the store has no raw text
        return choice.session()
    session = None if arguments.name.isdecimal() else choice.here()
    if session:
        return session
    from . import _stored_text as stored  # imported late: most sessions need no store

    named = stored.find(stored.numbered, arguments) or choice.here()
    named = named or stored.find(stored.memory, arguments)
    if named:
        return named
    try:
        return choice.anywhere()
    except AmbiguousSessionError:
        raise
    except UnknownSessionError:
        conversation = stored.find(stored.last, arguments)
        if conversation is None:
            raise
        return conversation


@dataclass(frozen=True)
class LastEntries(Result):
    """The last entries of a session, and the number of unreadable ones.

    If `is_raw`, they are printed as stored. `with_tools` adds a line for each tool use."""

    session: FoundSession
    entries: list[Entry]
    unreadable: int
    is_raw: bool
    with_tools: bool

    @property
    def verbatim(self) -> Collection[str]:
        return ("entries",) if self.is_raw else ()

    def show(self, terminal: Terminal) -> None:
        session, entries, folds = self.session, self.entries, not self.with_tools
        if not entries:
            terminal.line(f"{session.name}: it has no messages yet.")
            return
        said = sum([bool(entry.text) for entry in entries])
        shown = counted(said, "message") if folds else counted(len(entries), "entry", "entries")
        terminal.line(
            f"Session {session.name} ({session.id}, {session.runtime.TITLE}, {session.project}), the last "
            f"{shown}:\n"
        )
        if self.is_raw:
            terminal.verbatim(render(entries, self.unreadable, raw=True, folds=folds) + "\n")
            return
        print_log(terminal, LogBlock.all_of(entries, folds=folds))
        if self.unreadable:
            terminal.line(f"\n({counted(self.unreadable, 'record')} could not be read)")

    def as_json(self) -> dict[str, Any]:
        entries = [
            {
                "role": entry.role,
                "text": entry.text,
                "timestamp": None if entry.timestamp is None else iso_time(entry.timestamp),
                "tools": [{"name": tool.name, "argument": tool.argument} for tool in entry.tools],
            }
            for entry in self.entries
        ]
        return {
            "name": self.session.name,
            "id": self.session.id,
            "unreadable": self.unreadable,
            "entries": entries,
        }


def main(words: list[str] | None = None) -> int:
    """Run the command and return the exit code: 1 if there is nothing to show.

    The reason is printed to stderr."""
    drop_set_by_project(os.environ)
    parser = argparse.ArgumentParser(prog="session_reader", description=SCRIPT)
    parser.add_argument("name", nargs="?", help=NAME_HELP)
    parser.add_argument(
        "--list",
        action="store_true",
        help="list the sessions, latest first (the default if no session is named)",
    )
    _add_options(parser)
    options = parser.parse_args(words)
    return exit_code(lambda: _list(options) if options.list or not options.name else run(options))


def _list(options: argparse.Namespace) -> int:
    if (options.include_private or options.raw) and is_started_by_agent(os.environ):
        raise OnlyForPeopleError("--include-private and --raw")
    listed = known_sessions(options, os.environ, with_private=options.include_private)
    Terminal(os.environ, is_json=options.json).show(ListedSessions(listed, os.environ))
    return 0
