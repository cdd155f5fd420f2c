"""The command `session-memory`: one function a subcommand, one line each in the table."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import NamedTuple

from . import __version__, archive_command, doctor
from .setup import command, new_command
from .setup.places import NAME


class Command(NamedTuple):
    """A subcommand: what it does, in a few words; what adds its arguments; what runs it and returns its exit code."""

    summary: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


COMMANDS = {
    "archive": Command(archive_command.SUMMARY, archive_command.add_arguments, archive_command.run),
    "doctor": Command(doctor.SUMMARY, doctor.add_arguments, doctor.run),
    "new": Command(new_command.SUMMARY, new_command.add_new_arguments, new_command.run_new),
    "install": Command(command.INSTALL_SUMMARY, command.add_install_arguments, command.run_install),
    "uninstall": Command(command.UNINSTALL_SUMMARY, command.add_uninstall_arguments, command.run_uninstall),
}


def main(words: list[str] | None = None) -> int:
    """Runs the subcommand that the arguments name; returns the exit code."""
    parser = argparse.ArgumentParser(prog=NAME, description="A memory of all its sessions for an agent's home.")
    parser.add_argument("--version", action="version", version=f"{NAME} {__version__}")
    subcommands = parser.add_subparsers(dest="subcommand", metavar="COMMAND", required=True)
    for name, entry in COMMANDS.items():
        entry.add_arguments(subcommands.add_parser(name, help=entry.summary, description=entry.summary))
    arguments = parser.parse_args(words)
    return command.answer(lambda: COMMANDS[arguments.subcommand].run(arguments))
