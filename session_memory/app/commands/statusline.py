"""`session-memory statusline`: the status line of a directory's latest session.

It is for tmux and for shell prompts.
"""

from __future__ import annotations

import argparse
import os
import time

from ...awareness.activity.status_line import EDIT_SECONDS, status_line
from ...common.errors import SessionMemoryError
from ...common.system.terminal import Terminal
from ...common.text.sanitize import name_for_people
from ...sessions.transcripts.sessions import UnknownSessionError, find_sessions

SUMMARY = "print the status line of the latest session here, for tmux or a shell's prompt"
EPILOG = """
in ~/.tmux.conf:
  set -g status-interval 15
  set -g status-right-length 90
  set -g status-right "#(session-memory statusline --format tmux #{q:pane_current_path})"
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EPILOG
    parser.add_argument(
        "directory",
        metavar="DIR",
        nargs="?",
        default=".",
        help="the directory of the session (default: .)",
    )
    parser.add_argument(
        "--format",
        choices=("plain", "tmux"),
        default="plain",
        help="tmux: escape text that tmux would read as a style",
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the status line, if there is one.

    Raises SessionMemoryError if status lines are off, OSError."""
    os.chdir(arguments.directory)
    line = name_for_people(_line())
    if line:
        Terminal(os.environ).line(line.replace("#", "##") if arguments.format == "tmux" else line)
    return 0


def _line() -> str:
    """Return the status line of the current directory's latest session that has one, or ''."""
    try:
        sessions = find_sessions(None, False, os.environ, since=time.time() - EDIT_SECONDS)
    except UnknownSessionError:
        return ""
    here = [each for each in sessions if not each.session.is_elsewhere]
    shown = [each for each in here if each.home.settings().statusline]
    if here and not shown:
        raise SessionMemoryError("the status line is off", "session-memory config statusline on")
    return next(
        filter(None, [status_line(each.home.cursor_file(each.session.key)) for each in shown]), ""
    )
