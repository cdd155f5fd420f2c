"""The command `session-memory`: its subcommands are rows of `extension_points`."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, NoReturn

from . import NAME, __version__
from .common.errors import SessionMemoryError
from .common.extensions import AbsentFeatureError, load
from .common.system.terminal import Terminal, columns, exit_code, print_error
from .common.system.utf8_mode import ensure_utf8_mode
from .extension_points import COMMANDS as HEADINGS

if TYPE_CHECKING:
    from .app.install.command import Subcommand

_PLACES = {name: place for rows in HEADINGS.values() for name, place in rows.items()}
COMMANDS = tuple(_PLACES)
_OF_COMPLETION = "__complete"  # what the scripts of `completion` call
_ALL = "all"  # after `help`
_VERSION = f"{NAME} {__version__}"
_WITHOUT_END = ("host", "page", "watch")
_LONG_RUNNING = (*_WITHOUT_END, "mcp", "process")
ABOUT = (
    "Each of your sessions knows what the others did. Without a command, it shows "
    "the state, the current work and the next step."
)
# Short and former names, each with the words it replaces.
ALIASES = {
    "status": ("doctor", "status"),
    "health-check": ("doctor", "store"),
    "told": ("deliveries",),
    "filter": ("export", "--format", "filtered"),
    # until 0.7; permission rules, agents and scripts know them
    "show": ("read", "--conversation"),
    "conversations": ("sessions", "--conversations", "--all"),
}


def main(words: list[str] | None = None) -> int:
    """Run the subcommand that the arguments name, by default the overview; return the exit code."""
    if words is None:
        ensure_utf8_mode()
    words = sys.argv[1:] if words is None else words
    run = _offer_candidates if words[:1] == [_OF_COMPLETION] else _run
    return exit_code(lambda: run(words), _how_to_add)


def main_of_package() -> int:
    """Run `main` for the script of a plugin or package; return the exit code.

    It uses the packages that the plugin or an install has set up for this Python."""
    import os

    from .sessions.settings.program import add_all_packages

    add_all_packages(os.environ)
    return main()


def _offer_candidates(words: list[str]) -> int:
    import os

    from .app.commands.candidates import run
    from .sessions.settings.homes import drop_set_by_project

    drop_set_by_project(os.environ)
    return run(words[1:])


def _run(words: list[str]) -> int:
    import os

    from .sessions.settings.homes import drop_set_by_project

    drop_set_by_project(os.environ)
    if not words:
        from .app.commands.status import show_overview

        return show_overview()
    if words[0] in ("-h", "--help", "help"):
        return _help(words[1:] if words[0] == "help" else [])
    if words[0] == "--version":  # the parser of all commands would load their modules
        Terminal(os.environ).line(_VERSION)
        return 0
    name, *command_words = *ALIASES.get(words[0], (words[0],)), *words[1:]
    if name not in COMMANDS:
        if not name.startswith("-"):
            return _unknown(name)
        parser_of_all().parse_args(words)  # prints help or the error, and exits
        return 2
    parser = parser_of(name, words[0])
    parser.words = words[1:]
    return _run_command(name, _parsed(parser, command_words))


def _help(words: list[str]) -> int:
    """Print the everyday commands, all commands (`all`), or the options of one command."""
    import os

    name = words[0] if words else ""
    if name in ("", _ALL):
        Terminal(os.environ).line(help_text(os.environ, is_full=name == _ALL))
        return 0
    return _run([name, "--help"])


def _parsed(parser: _Parser, words: list[str]) -> argparse.Namespace:
    """Return the arguments of a subcommand. Print an error and exit if one is unknown."""
    arguments, unknown = parser.parse_known_args(words)
    if unknown:
        actions = [action for action in parser._actions if action.help != argparse.SUPPRESS]
        options = [option for action in actions for option in action.option_strings]
        meant = _closest(unknown[0].partition("=")[0], options)
        parser.error(
            f"unrecognized arguments: "
            f"{' '.join(unknown)}{f' (did you mean {meant}?)' if meant else ''}"
        )
    return arguments


def _run_command(name: str, arguments: argparse.Namespace) -> int:
    """Run the subcommand with the SIGINT handler that it needs; return its exit code."""
    if name == "completion":
        arguments.parser = parser_of_all()
    if name in _LONG_RUNNING:
        from .sessions.settings.program import load_all_modules, stay_with_version

        stay_with_version()
        if name in _WITHOUT_END:
            load_all_modules()
    before = signal.getsignal(signal.SIGINT)
    if before == signal.SIG_DFL:  # as the launcher starts it
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return int(_module(name).run(arguments))
    finally:
        # what interrupts it from here on ends it without a traceback
        signal.signal(signal.SIGINT, before)


class _Parser(argparse.ArgumentParser):
    """A parser that suggests the closest choice for a mistyped one, also in its subparsers.

    `words` are the words that were typed."""

    words: Sequence[str] = ()

    def error(self, message: str) -> NoReturn:
        if "arguments are required" in message:
            message += f"\n  {self.prog} --help lists them"
        if "arguments are required" in message or (
            "unrecognized arguments" in message and "did you mean" not in message
        ):
            message += self._with_dashes()
        before, is_choice, choices_text = message.partition("invalid choice: ")
        if is_choice and "(choose from " in choices_text:
            given, _, choices = choices_text.partition(" (choose from ")
            meant = _closest(given.strip("'"), [word.strip(" ')") for word in choices.split(",")])
            message = (
                f"{before}{is_choice}{given} "
                f"({f'did you mean {meant}? ' if meant else ''}choose from {choices}"
            )
        super().error(message)

    def _with_dashes(self) -> str:
        """Return a hint on passing words that begin with a dash; '' if it does not apply."""
        known = [option for action in self._actions for option in action.option_strings]
        takes_words = any(
            not action.option_strings and not action.choices for action in self._actions
        )
        places = [
            at
            for at, word in enumerate(self.words)
            if word[:1] == "-" and word.partition("=")[0] not in known
        ]
        if not places or not takes_words or "--" in self.words:
            return ""
        from shlex import join

        first = places[0]
        command = join([*self.prog.split(" "), *self.words[:first], "--", *self.words[first:]])
        return f"\n  to pass it as a word, put -- before it: {command}"


def parser_of(name: str, called: str = "") -> _Parser:
    """Return the parser of a subcommand's arguments. `called` is the alias that was typed."""
    command = _module(name)
    parser = _Parser(
        prog=f"{NAME} {called or name}",
        description=command.SUMMARY,
        formatter_class=_help_formatter,
    )
    command.add_arguments(parser)
    return parser


def parser_of_all() -> argparse.ArgumentParser:
    """Return a parser with every subcommand, for completion."""
    parser = _Parser(prog=NAME, description=ABOUT, formatter_class=_help_formatter)
    parser.add_argument("--version", action="version", version=_VERSION)
    commands = parser.add_subparsers(
        title=f"commands ({NAME} COMMAND --help shows details)", metavar="COMMAND [OPTIONS]"
    )
    for _, name, command in _present():
        command.add_arguments(
            commands.add_parser(name, help=command.SUMMARY, description=command.SUMMARY)
        )
    return parser


def help_text(environ: Mapping[str, str], *, is_full: bool = False) -> str:
    """Return the help of the program: the everyday commands and those that are set up.

    If it `is_full`, it has all commands, by groups."""
    import textwrap

    width = max(map(len, COMMANDS)) + 4
    lines = [f"usage: {NAME} [COMMAND [OPTIONS]]", "", ABOUT]
    indent = " " * (width + 2)
    for heading, name, command in _present() if is_full else _at_hand(environ):
        if f"{heading}:" not in lines:
            lines += ["", f"{heading}:"]
        lines += textwrap.wrap(
            command.SUMMARY,
            columns() - 2,
            initial_indent=f"  {name:<{width}}",
            subsequent_indent=indent,
        )
    if is_full:
        former = ", ".join(f"{name} ({' '.join(words)})" for name, words in ALIASES.items())
        lines += ["", *textwrap.wrap(f"Former names still work: {former}.", columns() - 2)]
    everything = "" if is_full else f"{NAME} help {_ALL} shows all {len(COMMANDS)} commands; "
    ends = (
        f"{NAME} COMMAND --help shows the options of a command; {NAME} --version shows the version."
    )
    return "\n".join([*lines, "", *textwrap.wrap(f"{everything}{ends}", columns() - 2)])


def _at_hand(environ: Mapping[str, str]) -> Iterator[tuple[str, str, ModuleType | Subcommand]]:
    """Yield the everyday commands, and the others that are set up on this machine."""
    everyday = next(iter(HEADINGS))
    for heading, name, command in _present():
        is_set_up: Callable[[Mapping[str, str]], bool] | None
        is_set_up = getattr(command, "is_set_up", None)
        if heading == everyday:
            yield heading, name, command
        elif is_set_up:
            try:
                if is_set_up(environ):
                    yield "Set up on this machine", name, command
            except (SessionMemoryError, OSError):
                pass  # a broken configuration, which `doctor` reports


def _how_to_add(module: str) -> str:
    from .sessions.settings.program import how_to_add_module  # loads pathlib

    return how_to_add_module(module)


def _unknown(name: str) -> int:
    """Report an unknown subcommand, suggest similar ones, and return the exit code."""
    meant = _closest(name, (*COMMANDS, *ALIASES))
    print_error(
        f"unknown command {name!r}",
        f"did you mean {NAME} {meant}?" if meant else f"{NAME} help {_ALL} lists them",
    )
    return 2


def _closest(name: str, words: Iterable[str]) -> str:
    from .sessions.settings.rules_check import closest  # only if something was mistyped

    return closest(name, words)


def _module(name: str) -> ModuleType | Subcommand:
    """Import the module of one subcommand. Raises AbsentFeatureError.

    Importing all modules takes 0.15 s."""
    loaded: ModuleType | Subcommand = load(_PLACES[name])
    return loaded


def _present() -> Iterator[tuple[str, str, ModuleType | Subcommand]]:
    """Yield the heading, name and module of each subcommand that this copy has."""
    for heading, rows in HEADINGS.items():
        for name in rows:
            try:
                yield heading, name, _module(name)
            except AbsentFeatureError:
                pass


def _help_formatter(prog: str) -> argparse.HelpFormatter:
    """Return argparse's own formatter with a fixed width.

    Without a width, argparse imports shutil, which slows down a search by a fifth of a bare start.
    """
    return argparse.HelpFormatter(prog, width=columns() - 2)
