"""The command `session-memory`: one module a subcommand, one line each in the table."""

from __future__ import annotations

import sys

from . import __version__
from .system.failure import NAME, answer

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable
    from typing import Any


class Command:
    """A subcommand: the module that serves it, which offers `SUMMARY` (what it does, in a few words), `add_arguments`
    and `run` (its exit code), or the same by other names where it serves several. Where it has `OPTIONS` too, the usual
    calls are understood without `argparse`."""

    def __init__(
        self, module: str, summary: str = "SUMMARY", add_arguments: str = "add_arguments", run: str = "run"
    ) -> None:
        self._module = module
        self._summary = summary
        self._add_arguments = add_arguments
        self._run = run

    @property
    def summary(self) -> str:
        return str(getattr(self._loaded(), self._summary))

    @property
    def add_arguments(self) -> Callable[[argparse.ArgumentParser], None]:
        found: Callable[[argparse.ArgumentParser], None] = getattr(self._loaded(), self._add_arguments)
        return found

    @property
    def run(self) -> Callable[[Any], int]:
        found: Callable[[Any], int] = getattr(self._loaded(), self._run)
        return found

    def arguments(self, prog: str, words: list[str]) -> Any:
        """What the words say. Prints help, or what is wrong with them, and exits."""
        options = getattr(self._loaded(), "OPTIONS", None)
        if options is not None:
            from .commands.options import parse

            arguments = parse(words, options)
            if arguments is not None:
                return arguments
        import argparse

        parser = argparse.ArgumentParser(prog=prog, description=self.summary)
        self.add_arguments(parser)
        return parser.parse_args(words)

    def _loaded(self) -> Any:
        name = f"session_memory.{self._module}"
        __import__(name)
        return sys.modules[name]


# Only the module of the subcommand that is called is loaded: most take longer to load than the quick ones to run.
COMMANDS = {
    "search": Command("commands.search"),
    "show": Command("commands.show"),
    "conversations": Command("commands.conversations"),
    "ingest": Command("commands.ingest"),
    "watch": Command("commands.watch"),
    "health-check": Command("commands.health"),
    "memories": Command("commands.memories"),
    "process": Command("commands.process"),
    "patterns": Command("commands.patterns"),
    "errors": Command("commands.errors"),
    "filter": Command("commands.filter"),
    "graph": Command("commands.graph"),
    "archive": Command("commands.archive"),
    "host": Command("commands.host"),
    "mcp": Command("commands.mcp"),
    "doctor": Command("commands.doctor"),
    "new": Command("install.command", "NEW_SUMMARY", "add_new_arguments", "run_new"),
    "install": Command("install.command", "INSTALL_SUMMARY", "add_install_arguments", "run_install"),
    "uninstall": Command("install.command", "UNINSTALL_SUMMARY", "add_uninstall_arguments", "run_uninstall"),
}


def main(words: list[str] | None = None) -> int:
    """Runs the subcommand that the arguments name; returns the exit code."""
    words = sys.argv[1:] if words is None else words
    command = COMMANDS.get(words[0]) if words else None
    if command is None:
        _whole_parser().parse_args(words)  # says what there is, or what is wrong
        return 2
    arguments = command.arguments(f"{NAME} {words[0]}", words[1:])
    return answer(lambda: command.run(arguments))


def _whole_parser() -> argparse.ArgumentParser:
    import argparse

    parser = argparse.ArgumentParser(prog=NAME, description="A memory of all its sessions for an agent's home.")
    parser.add_argument("--version", action="version", version=f"{NAME} {__version__}")
    subcommands = parser.add_subparsers(dest="subcommand", metavar="COMMAND", required=True)
    for name, entry in COMMANDS.items():
        subcommands.add_parser(name, help=entry.summary)
    return parser
