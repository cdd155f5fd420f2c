"""The commands install and uninstall, and what install.py does with its arguments."""

from __future__ import annotations

import argparse
import os
import shlex
from pathlib import Path

from ..system.failure import NAME, answer
from ..system.screen import Screen
from .installation import install
from .new_command import SUMMARY as NEW_SUMMARY
from .new_command import add_new_arguments, run_new
from .output import show_installed, show_uninstalled
from .places import places
from .removal import uninstall

INSTALL_SUMMARY = "install into homes, or bring what is installed up to date"
_AGENTS_SKILLS = "put the skills into .agents/skills too, where several runtimes look"
_EPILOG = "`install.py new HOME` makes a new agent's home from a template: see `install.py new --help`."
UNINSTALL_SUMMARY = "take everything out again"


def add_install_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of install."""
    _add_common(parser, "install into (an agent home, or a configuration directory of Claude Code)")
    parser.add_argument("--agents-skills", action="store_true", help=_AGENTS_SKILLS)


def add_uninstall_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of uninstall."""
    _add_common(parser, "uninstall from; without it, from all, and the program is removed too")
    parser.add_argument("--purge", action="store_true", help="also delete the homes' configuration and state")


def run_install(arguments: argparse.Namespace, me: str = f"{NAME} install") -> int:
    """Installs; returns the exit code. `me` is how the user called this."""
    screen, environ = _screen(arguments)
    done = install(
        arguments.home, places(environ), environ, screen,
        dry_run=arguments.dry_run, skills_for_all=arguments.agents_skills,
    )  # fmt: skip
    show_installed(done, screen, me)
    return 1 if any(trial.problem for trial in done.trials) else 0


def run_uninstall(arguments: argparse.Namespace) -> int:
    """Uninstalls; returns the exit code."""
    screen, environ = _screen(arguments)
    done = uninstall(arguments.home, places(environ), environ, dry_run=arguments.dry_run, purge=arguments.purge)
    show_uninstalled(done, screen)
    return 0


def main(script: str, words: list[str]) -> int:
    """What install.py does: installs, or with --uninstall the opposite. Returns the exit code."""
    about = "Gives agent runtimes a memory of all their sessions: installs into the agent homes that it finds."
    parser = argparse.ArgumentParser(prog=os.path.basename(script), description=about, epilog=_EPILOG)
    if words[:1] == ["new"]:
        parser = argparse.ArgumentParser(prog=f"{os.path.basename(script)} new", description=NEW_SUMMARY)
        add_new_arguments(parser)
        arguments = parser.parse_args(words[1:])
        return answer(lambda: run_new(arguments))
    add_uninstall_arguments(parser)
    parser.add_argument("--agents-skills", action="store_true", help=_AGENTS_SKILLS)
    parser.add_argument("--uninstall", action="store_true", help="take everything out again")
    arguments = parser.parse_args(words)
    if arguments.purge and not arguments.uninstall:
        parser.error("--purge goes with --uninstall")
    me = f"python3 {shlex.quote(script)}"
    return answer(lambda: run_uninstall(arguments) if arguments.uninstall else run_install(arguments, me))


def _add_common(parser: argparse.ArgumentParser, what_home: str) -> None:
    parser.add_argument("--home", metavar="PATH", action="append", default=[], help=f"the home to {what_home}")
    parser.add_argument("--dry-run", action="store_true", help="show the exact change and make none")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def _screen(arguments: argparse.Namespace) -> tuple[Screen, dict[str, str]]:
    environ = dict(os.environ)
    environ.setdefault("HOME", str(Path.home()))
    return Screen(environ, is_json=arguments.json), environ
