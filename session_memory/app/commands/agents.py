"""`session-memory agents`: which of the agents on this machine work, wait, or ask for approval."""

from __future__ import annotations

import argparse
import os
import time
from typing import TYPE_CHECKING

from ...common.system.terminal import Terminal
from ..session_counts import SessionCounts
from .arguments import add_common

if TYPE_CHECKING:
    from ._team_reader import TeamReader

SUMMARY = "list your agents: who works, who waits for you"
LIMIT = 20
DELIVERY_SECONDS = 1.5  # of a core, for what endangers the sessions
WATCH_SHARE = 0.006  # of a core, for everything but the states


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--here", action="store_true", help="only this directory's project")
    parser.add_argument("--all", action="store_true", help="also sessions that ended today")
    parser.add_argument(
        "--team",
        action="store_true",
        help="also today's sessions of the team; --short counts only your own",
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument(
        "--watch", action="store_true", help="stay, and show each change until you stop it"
    )
    form.add_argument(
        "--short", action="store_true", help="only how many wait, ask and work, for a status bar"
    )
    add_common(parser, limit=LIMIT)


def run(arguments: argparse.Namespace) -> int:
    terminal = Terminal(os.environ, is_json=arguments.json)
    if arguments.short:
        now, all_projects = time.time(), not arguments.here
        terminal.show(SessionCounts.read(arguments.home, now, all_projects=all_projects))
        return 0
    from ..session_reader import SessionReader  # three times the counts' time
    from ._agents_view import AgentsView

    reader = SessionReader(
        arguments.home,
        os.environ,
        all_projects=not arguments.here,
        share=WATCH_SHARE if arguments.watch else 0.0,
        delivery_seconds=DELIVERY_SECONDS,
    )
    team = _team(arguments) if arguments.team else None
    view = AgentsView(arguments.limit, with_ended=arguments.all, team=team)
    if arguments.watch:
        from ._agents_watch import watch  # it loads the store

        return watch(reader, view, terminal)
    now = time.time()
    terminal.show(view.of(reader.read(now), now))
    return 0


def _team(arguments: argparse.Namespace) -> TeamReader:
    """Ask the team's store. Raises SessionMemoryError, OSError."""
    from ._team_reader import TeamReader  # it loads the store

    return TeamReader(
        arguments.home,
        os.environ,
        all_projects=not arguments.here,
        repeats=arguments.watch,
    )
