"""`session-memory conflicts`: what would not merge between the live sessions of this repository."""

from __future__ import annotations

import argparse
import os
import time

from ..activity.conflicts import line_of
from ..settings.homes import user_dir
from ..system.git import find_worktree
from ..system.terminal import Terminal
from ..text.format import counted
from ..text.timestamps import iso_time
from ..upkeep.conflicts import find_conflicts, live_sessions, sides_of
from .arguments import add_common

SUMMARY = "show what would not merge between the worktrees and branches of live sessions"
SECONDS = 20.0  # a person waits longer than upkeep


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--all", action="store_true", help="of all repositories, not only of this one")
    add_common(parser)


def run(arguments: argparse.Namespace) -> int:
    """Return 1 if there are conflicts, else 0."""
    terminal, now, home = Terminal(os.environ, is_json=arguments.json), time.time(), user_dir(os.environ)
    here = find_worktree(os.getcwd(), home)
    kept = [  # each while its repository is at hand
        clash.as_kept(now)
        for clash in find_conflicts(sides_of(live_sessions(arguments.home, os.environ, now), home), SECONDS)
        if arguments.all or (here and clash.own.common_dir == here.common_dir)
    ]
    shown = [{name: value for name, value in one.items() if name not in ("file", "pair")} for one in kept]
    terminal.result({"conflicts": [{**one, "at": iso_time(int(one["at"]))} for one in shown]})
    for root in dict.fromkeys(one["root"] for one in kept):
        terminal.heading(terminal.short(root))
        for one in kept:
            if one["root"] == root:
                terminal.line(line_of(one, now).removeprefix("! "))
    if not here and not arguments.all:
        terminal.line("This directory is in no repository; --all looks at those of all live sessions.")
    elif not kept:
        terminal.line("Nothing conflicts between the sessions of the last day.")
    else:
        terminal.line(f"{counted(len(kept), 'conflict')}, each told to the sessions of its worktree.")
    return 1 if kept else 0
