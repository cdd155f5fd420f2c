"""`session-memory conflicts`: conflicts between the live sessions of this repository."""

from __future__ import annotations

import argparse
import os
import time
from typing import TYPE_CHECKING

from ...common.errors import SessionMemoryError
from ...common.system.git import find_worktree, refusal_at
from ...common.system.terminal import Terminal
from ...common.text.format import counted
from ...common.text.timestamps import iso_time
from ...history.conflicts import Unjudged, find_conflicts, live_sessions, sides_of
from ...sessions.settings.homes import user_dir
from .arguments import add_common

if TYPE_CHECKING:
    from ...awareness.activity.conflicts import KeptConflict

SUMMARY = "show conflicts between the worktrees and branches of active sessions"
SECONDS = 20.0  # a person waits longer than upkeep


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = "The exit code is 1 if anything conflicts, as with diff."
    parser.add_argument(
        "--all", action="store_true", help="look at all repositories, not only this one"
    )
    add_common(parser)


def run(arguments: argparse.Namespace) -> int:
    """Return 1 if there are conflicts, else 0. Raises SessionMemoryError."""
    terminal, now, home = (
        Terminal(os.environ, is_json=arguments.json),
        time.time(),
        user_dir(os.environ),
    )
    here = find_worktree(os.getcwd(), home)
    if not arguments.all and (refused := refusal_at(os.getcwd(), home)):
        raise SessionMemoryError(f"git cannot tell: {refused}")
    sides = sides_of(live_sessions(arguments.home, os.environ, now), home)
    wanted = [
        side for side in sides if arguments.all or (here and side.common_dir == here.common_dir)
    ]
    unjudged: list[Unjudged] = []
    # each while its repository is at hand
    kept = [clash.as_kept(now) for clash in find_conflicts(wanted, SECONDS, unjudged)]
    _show(terminal, kept, unjudged, now)
    if not here and not arguments.all:
        terminal.line(
            "This directory is not in a repository; --all looks at the repositories of all "
            "active sessions."
        )
    elif kept:
        terminal.line(
            f"{counted(len(kept), 'conflict')}, each told to the sessions of its worktree."
        )
    elif unjudged:
        terminal.line("Nothing conflicts in the files that could be judged.")
    else:
        terminal.line("Nothing conflicts between the sessions of the last day.")
    return 1 if kept else 0


def _show(
    terminal: Terminal, kept: list[KeptConflict], unjudged: list[Unjudged], now: float
) -> None:
    hidden = ("file", "pair")
    shown = [{**conflict.dump(), "at": iso_time(int(conflict.at))} for conflict in kept]
    shown = [
        {name: value for name, value in conflict.items() if name not in hidden}
        for conflict in shown
    ]
    not_judged = [
        {"sides": pair.names, "paths": list(pair.paths), "reason": pair.reason} for pair in unjudged
    ]
    terminal.result({"conflicts": shown, **({"not_judged": not_judged} if unjudged else {})})
    for root in dict.fromkeys(conflict.root for conflict in kept):
        terminal.heading(terminal.short(root))
        for conflict in kept:
            if conflict.root == root:
                terminal.line(conflict.line(now).removeprefix("! "))
    for pair in unjudged:
        terminal.line(pair.line)
