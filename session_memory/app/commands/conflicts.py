"""`session-memory conflicts`: conflicts between the live sessions of this repository."""

from __future__ import annotations

import argparse
import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...common.errors import SessionMemoryError
from ...common.system.git import find_worktree, refusal_at
from ...common.system.terminal import Result, Terminal
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
    """List the conflicts; return 1 if there are any, else 0. Raises SessionMemoryError."""
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
    is_outside = not here and not arguments.all
    terminal.show(FoundConflicts(kept, unjudged, now, is_outside=is_outside))
    return 1 if kept else 0


@dataclass(frozen=True)
class FoundConflicts(Result):
    """The conflicts at a time, and the pairs that git could not judge.

    `is_outside` means that the command was limited to the current repository, but ran outside any.
    """

    conflicts: list[KeptConflict]
    unjudged: list[Unjudged]
    at: float
    is_outside: bool

    def show(self, terminal: Terminal) -> None:
        for root in dict.fromkeys(conflict.root for conflict in self.conflicts):
            terminal.heading(terminal.short(root))
            for conflict in self.conflicts:
                if conflict.root == root:
                    terminal.line(conflict.line(self.at).removeprefix("! "))
        for pair in self.unjudged:
            terminal.line(pair.line)
        terminal.line(self._verdict())

    def _verdict(self) -> str:
        if self.is_outside:
            return (
                "This directory is not in a repository. To look at the repositories of all active "
                "sessions, add --all."
            )
        if self.conflicts:
            number = counted(len(self.conflicts), "conflict")
            return f"{number}, each told to the sessions of its worktree."
        if self.unjudged:
            return "The files that could be judged have no conflicts."
        return "The sessions of the last day have no conflicts."

    def as_json(self) -> dict[str, Any]:
        hidden = ("file", "pair")
        shown = [
            {**conflict.dump(), "at": iso_time(int(conflict.at))} for conflict in self.conflicts
        ]
        shown = [
            {name: value for name, value in conflict.items() if name not in hidden}
            for conflict in shown
        ]
        not_judged = [
            {"sides": pair.names, "paths": list(pair.paths), "reason": pair.reason}
            for pair in self.unjudged
        ]
        return {"conflicts": shown, **({"not_judged": not_judged} if self.unjudged else {})}
