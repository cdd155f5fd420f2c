"""The command `session-memory`: one module of `commands` a subcommand."""

from __future__ import annotations

import argparse
import importlib
import sys

from . import NAME, __version__
from .system.terminal import columns, exit_code, print_error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import ModuleType
    from typing import NoReturn

# Each module offers SUMMARY (what the subcommand does, in a few words), add_arguments(parser) and run(arguments), which
# returns the exit code.
COMMANDS = {
    "search": "search",
    "show": "show",
    "sessions": "sessions",
    "read": "read",
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
    "page": "page",
    "graph": "graph",
    "archive": "archive",
    "config": "config",
    "team": "team",
    "host": "host",
    "mcp": "mcp",
    "doctor": "doctor",
    "new": "new",
    "install": "install",
    "uninstall": "uninstall",
    "completion": "completion",
}


def main(words: list[str] | None = None) -> int:
    """Run the subcommand that the arguments name, without any `status`; return the exit code."""
    words = sys.argv[1:] if words is None else words
    return exit_code(lambda: _run(words), _how_to_add)


def main_of_package() -> int:
    """Run `main` for the script of a plugin or package, with the packages that the plugin or an install has set up for
    this Python; return the exit code."""
    import os

    from .settings.plugin_packages import add_all_packages

    add_all_packages(os.environ)
    return main()


def _run(words: list[str]) -> int:
    import os

    from .settings.homes import drop_set_by_project

    drop_set_by_project(os.environ)
    if words and words[0] not in COMMANDS and not words[0].startswith("-"):
        return _unknown(words[0])
    if not words:
        from .commands.next_steps import show_state_and_next_steps

        return show_state_and_next_steps()
    if words[0] not in COMMANDS:
        _parser_of_all().parse_args(words)  # prints help, or what is wrong, and exits
        return 2
    name, *rest = words
    parser = parser_of(name)
    arguments, unknown = parser.parse_known_args(rest)
    if unknown:
        from .commands.completion import words_of

        meant = _closest(unknown[0].partition("=")[0], words_of(parser).options)
        parser.error(f"unrecognized arguments: {' '.join(unknown)}{f' (did you mean {meant}?)' if meant else ''}")
    if name == "completion":
        arguments.parsers = {each: parser_of(each) for each in COMMANDS}
    return int(_module(name).run(arguments))


class _Parser(argparse.ArgumentParser):
    """One that answers a mistyped word of several with the nearest; those of its actions do so too."""

    def error(self, message: str) -> NoReturn:
        before, is_choice, rest = message.partition("invalid choice: ")
        if is_choice and "(choose from " in rest:
            given, _, choices = rest.partition(" (choose from ")
            meant = _closest(given.strip("'"), [word.strip(" ')") for word in choices.split(",")])
            message = f"{before}{is_choice}{given} ({f'did you mean {meant}? ' if meant else ''}choose from {choices}"
        super().error(message)


def parser_of(name: str) -> argparse.ArgumentParser:
    """Return the parser of a subcommand's arguments."""
    command = _module(name)
    parser = _Parser(prog=f"{NAME} {name}", description=command.SUMMARY, formatter_class=_help_formatter)
    command.add_arguments(parser)
    return parser


def _how_to_add(module: str) -> str:
    from .settings.program import how_to_add_module  # loads pathlib

    return how_to_add_module(module)


def _unknown(name: str) -> int:
    """Report an unknown subcommand and suggest similar ones; return the exit code of a wrong call."""
    meant = _closest(name, COMMANDS)
    hint = f"did you mean {NAME} {meant}?" if meant else f"{NAME} --help lists them"
    print_error(f"there is no command {name!r}", hint)
    return 2


def _closest(name: str, words: Iterable[str]) -> str:
    from .settings.rules_check import closest  # only where something was mistyped

    return closest(name, words)


def _module(name: str) -> ModuleType:
    """Import the module of one subcommand. Loading all takes 0.15 s."""
    return importlib.import_module(f"{__package__}.commands.{COMMANDS[name]}")


def _help_formatter(prog: str) -> argparse.HelpFormatter:
    """Return argparse's own formatter with a fixed width: without one, argparse imports shutil, which makes a search
    slower by a fifth of a bare start."""
    return argparse.HelpFormatter(prog, width=columns() - 2)


def _parser_of_all() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=NAME, epilog=_list_of_commands(),
        description="Each of your agents' sessions knows what the others did.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--version", action="version", version=f"{NAME} {__version__}")
    about = f"see below; {NAME} COMMAND --help tells more; without one: status, and what to do next"
    parser.add_argument("command", metavar="COMMAND", nargs="?", help=about)
    return parser


def _list_of_commands() -> str:
    """Return a line for each subcommand: argparse would put the longer names on lines of their own."""
    import textwrap

    width = max(map(len, COMMANDS)) + 4
    lines = [
        textwrap.fill(
            _module(name).SUMMARY, columns() - 2, initial_indent=f"  {name:<{width - 2}}", subsequent_indent=" " * width
        )
        for name in COMMANDS
    ]
    return "\n".join(["commands:", *lines])
