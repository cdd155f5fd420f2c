"""The command `session-memory`: one module of `commands` a subcommand."""

from __future__ import annotations

import argparse
import importlib
import sys
from types import ModuleType

from . import NAME, __version__
from .system.terminal import columns, exit_code, print_error

# Each module offers SUMMARY (what the subcommand does, in a few words), add_arguments(parser) and run(arguments), which
# returns the exit code.
COMMANDS = {
    "search": "search",
    "show": "show",
    "conversations": "conversations",
    "ingest": "ingest",
    "watch": "watch",
    "health-check": "health",
    "status": "status",
    "memories": "memories",
    "process": "process",
    "export": "export",
    "forget": "forget",
    "costs": "costs",
    "patterns": "patterns",
    "errors": "errors",
    "filter": "filter",
    "told": "told",
    "graph": "graph",
    "archive": "archive",
    "config": "config",
    "host": "host",
    "mcp": "mcp",
    "doctor": "doctor",
    "new": "new",
    "install": "install",
    "uninstall": "uninstall",
}


def main(words: list[str] | None = None) -> int:
    """Runs the subcommand that the arguments name; returns the exit code."""
    words = sys.argv[1:] if words is None else words
    return exit_code(lambda: _run(words))


def main_of_package() -> int:
    """`main` for the script of a plugin or package, with the packages that the plugin has set up for itself, or that an
    install has, where they are for this Python; returns the exit code."""
    import os

    from .settings.plugin_data import add_all_packages

    add_all_packages(os.environ)
    return main()


def _run(words: list[str]) -> int:
    if words and words[0] not in COMMANDS and not words[0].startswith("-"):
        return _unknown(words[0])
    if not words:
        _parser_of_all().print_help()
        return 2
    if words[0] not in COMMANDS:
        _parser_of_all().parse_args(words)  # prints help, or what is wrong, and exits
        return 2
    name, *rest = words
    command = _module(name)
    parser = argparse.ArgumentParser(
        prog=f"{NAME} {name}", description=command.SUMMARY, formatter_class=_help_formatter
    )
    command.add_arguments(parser)
    return int(command.run(parser.parse_args(rest)))


def _unknown(name: str) -> int:
    """Says that there is no such subcommand, and which may have been meant; returns the exit code of a wrong call."""
    from .settings.rules_check import closest

    meant = closest(name, COMMANDS)
    hint = f"did you mean {NAME} {meant}?" if meant else f"{NAME} --help lists them"
    print_error(f"there is no command {name!r}", hint)
    return 2


def _module(name: str) -> ModuleType:
    """The module of a subcommand. Only that of the one that is called is loaded: loading all takes 0.15 s."""
    return importlib.import_module(f"{__package__}.commands.{COMMANDS[name]}")


def _help_formatter(prog: str) -> argparse.HelpFormatter:
    """As argparse's own, which is made for every argument; without a width it would import shutil, and a search would
    take a fifth of a bare start longer."""
    return argparse.HelpFormatter(prog, width=columns() - 2)


def _parser_of_all() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=NAME, description="A memory of all its sessions for an agent's home.", epilog=_list_of_commands(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--version", action="version", version=f"{NAME} {__version__}")
    parser.add_argument("command", metavar="COMMAND", nargs="?", help=f"see below; {NAME} COMMAND --help tells more")
    return parser


def _list_of_commands() -> str:
    """A line for each subcommand: argparse would put the longer names on lines of their own."""
    import textwrap

    width = max(map(len, COMMANDS)) + 4
    lines = [
        textwrap.fill(
            _module(name).SUMMARY, columns() - 2, initial_indent=f"  {name:<{width - 2}}", subsequent_indent=" " * width
        )
        for name in COMMANDS
    ]
    return "\n".join(["commands:", *lines])
