"""scripts/session_reader.py: `sessions` and `read` as one script, which skills name and which loads next to nothing."""

from __future__ import annotations

import argparse
import os

from ..runtimes.detection import is_started_by_agent
from ..settings.homes import drop_set_by_project
from ..system.terminal import Terminal, exit_code
from . import read
from .arguments import HOME, OnlyForPeopleError
from .sessions import add_all, known_sessions, show_sessions

DESCRIPTION = "Shows what another session of this home did, or lists the sessions."


def main(words: list[str] | None = None) -> int:
    """Run the command; return the exit code, which is 1 if there is nothing to show (with the reason on stderr)."""
    drop_set_by_project(os.environ)
    parser = argparse.ArgumentParser(prog="session_reader", description=DESCRIPTION)
    parser.add_argument("name", nargs="?", help=read.NAME_HELP)
    read.add_lines(parser)
    parser.add_argument("--list", action="store_true", help="list the sessions, the latest first (as without a name)")
    add_all(parser)
    parser.add_argument("--home", metavar="PATH", help=HOME)
    parser.add_argument(
        "--include-private",
        action="store_true",
        help="for people: also sessions that the settings exclude or show without text",
    )
    parser.add_argument("--raw", action="store_true", help="for people: text as it is, secrets and all")
    parser.add_argument("--json", action="store_true", help="for programs")
    options = parser.parse_args(words)
    return exit_code(lambda: _list(options) if options.list or not options.name else read.run(options))


def _list(options: argparse.Namespace) -> int:
    if (options.include_private or options.raw) and is_started_by_agent(os.environ):
        raise OnlyForPeopleError("--include-private and --raw")
    listed = known_sessions(options, os.environ, with_private=options.include_private)
    show_sessions(listed, Terminal(os.environ, is_json=options.json))
    return 0
