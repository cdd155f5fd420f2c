"""`session-memory completion`: prints a script that lets a shell complete the commands and their options."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator

from ..system.terminal import Terminal

SUMMARY = "print a completion script for bash, zsh or fish"
EPILOG = """
save it where your shell looks for it, and open a new shell:
  session-memory completion bash > ~/.local/share/bash-completion/completions/session-memory
  session-memory completion zsh > "${fpath[1]}/_session-memory"
  session-memory completion fish > ~/.config/fish/completions/session-memory.fish
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), help="your shell")
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EPILOG


def run(arguments: argparse.Namespace) -> int:
    import shtab  # an install without a package index lacks it

    paths = {"PATH": shtab.FILE, "FILE": shtab.FILE, "DIR": shtab.DIRECTORY}
    for parser in _parsers(arguments.parser):
        for action in parser._actions:
            if action.metavar in paths:
                action.complete = paths[action.metavar]  # type: ignore[attr-defined]
    Terminal(os.environ).verbatim(shtab.complete(arguments.parser, arguments.shell) + "\n")
    return 0


def _parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """Yield a parser, and those of its actions at any depth."""
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for one in action.choices.values():
                yield from _parsers(one)
