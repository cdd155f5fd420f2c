"""`session-memory` without a command: the state, and possible next steps."""

from __future__ import annotations

import argparse
import os

from ..settings.program import program_paths
from ..store.location import find_location
from ..system.terminal import Terminal, called_as
from . import status

_ALWAYS = (
    ("page", "see in the browser what all agents do and did"),
    ("search WORDS", "find what was said in any session"),
    ("sessions", "which sessions there are; `read NAME` shows what was said in one"),
    ("told", "what sessions were told of each other"),
    ("memories", "what is remembered of finished conversations"),
    ("--help", "all commands"),
)


def show_state_and_next_steps() -> int:
    """Print `status`, and then commands; return the exit code of status. Raises SessionMemoryError."""
    code = status.run(argparse.Namespace(home=None, json=False))
    terminal = Terminal(os.environ)
    steps = [*_not_done_yet(terminal), *_ALWAYS]
    if code:
        steps.insert(0, ("doctor", "check that the hook works, and how to fix it if not"))
    program = called_as()
    width = max(len(words) for words, _ in steps)
    terminal.heading("What you can do next")
    for words, what in steps:
        terminal.line(f"  {program} {words:<{width}}  {what}")
    return code


def _not_done_yet(terminal: Terminal) -> list[tuple[str, str]]:
    """Return the commands that begin the work, if they were never run."""
    location = find_location(None, os.environ)
    found = []
    if not program_paths(os.environ).ledger_file.exists() and not os.path.exists(location.home.state_dir):
        found.append(("install", "let your agents know what their other sessions do"))
    if not os.path.exists(location.database):
        found.append(("ingest", f"take what was said so far into {terminal.short(os.path.dirname(location.database))}"))
    return found
