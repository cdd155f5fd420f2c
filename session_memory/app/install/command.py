"""The commands install, uninstall and new, and the arguments of install.py."""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Callable
from typing import NamedTuple

from ... import NAME
from ...awareness.install.ledger import InstallLedger
from ...common.errors import SessionMemoryError
from ...common.system.terminal import Terminal, exit_code
from ...common.text.format import enumerated
from ...sessions.runtimes.base import Runtime
from ...sessions.runtimes.table import all_runtimes
from ...sessions.settings.homes import required_user_dir
from ...sessions.settings.program import EXTRAS, program_paths, source_dir
from ._home_changes import HomePlan
from ._homes import RUNTIME, runtime_called
from ._installation import InstallRequest, install
from ._output import (
    ABOUT,
    InstallReport,
    NewHomeReport,
    UninstallReport,
    command_of,
    show_example,
    show_next,
    show_rules,
    show_title,
)
from ._uninstallation import uninstall
from .example import last_meeting, sample_update
from .templates import TEMPLATES, HomeRequest, make_home

_AGENTS_SKILLS = "also put the skills into .agents/skills, where several runtimes look"
_ALLOW = "let agents look things up without asking: allow all commands and tools that only read"
_WITH = (
    "also install the packages for this feature, which are large; later installs keep the feature"
)
_PURGE = (
    "also delete the stored sessions (archives, store, memories) and the configuration, after "
    "asking"
)
_EPILOG = (
    "--uninstall removes everything again; `new HOME` makes an agent's home from a "
    "template. Add --help to either for its options."
)


def _add_install_arguments(parser: argparse.ArgumentParser) -> None:
    _add_home(
        parser,
        "install into (an agent home, or the directory of a runtime's settings)",
        "install into",
    )
    parser.add_argument("--agents-skills", action="store_true", help=_AGENTS_SKILLS)
    parser.add_argument("--allow", action="store_true", help=_ALLOW)
    parser.add_argument(
        "--with", dest="extras", choices=list(EXTRAS), action="append", default=[], help=_WITH
    )


def _add_uninstall_arguments(parser: argparse.ArgumentParser) -> None:
    what_for = "uninstall from; without --home and --runtime, uninstall from all homes and remove the program"
    _add_home(parser, what_for, "uninstall from")
    parser.add_argument("--purge", action="store_true", help=_PURGE)
    parser.add_argument("--yes", action="store_true", help="with --purge: delete without asking")


def _add_new_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("home", metavar="HOME", help="the directory that becomes the agent's home")
    parser.add_argument(
        "--template",
        choices=list(TEMPLATES),
        required=True,
        help="the runtime of the agent",
    )
    parser.add_argument(
        "--force", action="store_true", help="make the home even if the directory has other content"
    )
    parser.add_argument(
        "--with", dest="extras", choices=list(EXTRAS), action="append", default=[], help=_WITH
    )
    _add_output(parser)


def _run_install(arguments: argparse.Namespace, called_as: str = f"{NAME} install") -> int:
    """Install, and return the exit code. `called_as` is the command that the user typed."""
    environ = _environ()
    terminal = Terminal(environ, is_json=arguments.json)
    is_dry_run, extras = arguments.dry_run, arguments.extras
    request = InstallRequest(
        arguments.home, arguments.runtime, extras, arguments.agents_skills, is_dry_run
    )
    paths = program_paths(environ)
    show_title(terminal, ABOUT, is_dry_run=is_dry_run)
    is_first = not (terminal.is_json or is_dry_run or InstallLedger.read(paths.ledger_file).records)
    done = install(request, paths, environ, terminal, is_allowed=arguments.allow)
    terminal.show(InstallReport(done, called_as))
    if is_first:
        if meeting := last_meeting(environ):
            show_example(meeting, terminal, is_own=True)
        elif sample := sample_update(source_dir()):
            show_example(sample, terminal, is_own=False)
    if not is_dry_run:
        show_next(done, terminal, called_as)
        if not done.is_sample and _ask_for_rules(done.plans, terminal, command_of(done, terminal)):
            show_rules(install(request, paths, environ, terminal, is_allowed=True), terminal)
    return (
        1 if done.refused or done.has_problems or any(trial.problem for trial in done.trials) else 0
    )


def _run_uninstall(arguments: argparse.Namespace) -> int:
    environ = _environ()
    terminal = Terminal(environ, is_json=arguments.json)
    done = uninstall(
        [
            *arguments.home,
            *(runtime.install.settings_dir(environ) for runtime in arguments.runtime),
        ],
        program_paths(environ),
        environ,
        dry_run=arguments.dry_run,
        purge=arguments.purge,
        confirm=lambda purged: None if arguments.yes else _ask_for_purge(purged, terminal),
    )
    terminal.show(UninstallReport(done))
    return 1 if done.refused else 0


def _run_new(arguments: argparse.Namespace) -> int:
    environ = _environ()
    terminal = Terminal(environ, is_json=arguments.json)
    request = HomeRequest(
        arguments.home,
        arguments.template,
        arguments.extras,
        force=arguments.force,
        is_dry_run=arguments.dry_run,
    )
    done = make_home(request, program_paths(environ), terminal)
    terminal.show(NewHomeReport(done))
    return 0


class Subcommand(NamedTuple):
    """The parts of a subcommand that a module of `commands` has."""

    SUMMARY: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


INSTALL = Subcommand(
    "install the hooks into homes, or update an install", _add_install_arguments, _run_install
)
NEW = Subcommand(
    "make a new agent's home from a template, or renew one", _add_new_arguments, _run_new
)
UNINSTALL = Subcommand(
    "remove session-memory again, as a whole or from one home",
    _add_uninstall_arguments,
    _run_uninstall,
)


def main(script: str, words: list[str]) -> int:
    """Run install.py and return the exit code.

    It installs, uninstalls with `--uninstall`, or makes a home with `new`."""
    name, options = "install", [word for word in words if word != "--uninstall"]
    if words[:1] == ["new"]:
        name, options = "new", words[1:]
    elif len(options) < len(words):
        name = "uninstall"
    command, is_install = (
        {"install": INSTALL, "new": NEW, "uninstall": UNINSTALL}[name],
        name == "install",
    )
    prog = (
        os.path.basename(script) + {"install": "", "new": " new", "uninstall": " --uninstall"}[name]
    )
    about, epilog = f"{command.SUMMARY.capitalize()}.", _EPILOG if is_install else ""
    parser = argparse.ArgumentParser(prog, description=about, epilog=epilog)
    command.add_arguments(parser)
    arguments = parser.parse_args(options)
    called_as = f"python3 {shlex.quote(script)}"
    return exit_code(
        lambda: _run_install(arguments, called_as) if is_install else command.run(arguments)
    )


def _add_home(parser: argparse.ArgumentParser, what_for: str, verb: str) -> None:
    parser.add_argument(
        "--home", metavar="PATH", action="append", default=[], help=f"the home to {what_for}"
    )
    names = ", ".join(runtime.name for runtime in all_runtimes() if runtime.PROMPT_EVENT)
    parser.add_argument(
        "--runtime",
        metavar="NAME",
        action="append",
        default=[],
        type=_runtime,
        help=f"{verb} your own settings of this runtime: {names}",
    )
    _add_output(parser)


def _add_output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--dry-run", action="store_true", help="show the exact changes without making them"
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def _runtime(name: str) -> Runtime:
    """The runtime of that name. Raises ArgumentTypeError."""
    runtime_named = runtime_called(name)
    if runtime_named is None or not runtime_named.PROMPT_EVENT:
        names = ", ".join(
            known_runtime.name for known_runtime in all_runtimes() if known_runtime.PROMPT_EVENT
        )
        raise argparse.ArgumentTypeError(f"unknown runtime {name!r}: choose one of {names}")
    return runtime_named


def _ask_for_rules(plans: list[HomePlan], terminal: Terminal, command: str) -> bool:
    """Ask if agents may look things up without asking, in homes where they would have to ask."""
    if not any(plan.hooks and plan.can_allow and not plan.rules for plan in plans):
        return False
    terminal.line()
    if not terminal.can_ask():
        terminal.line("To let agents look up the past without asking you each time:")
        terminal.line(f"  {command} install --allow")
        return False
    return terminal.ask(
        f"May agents look up the past without asking you each time ({RUNTIME.TITLE}: allow rules)?"
    )


def _ask_for_purge(purged: list[str], terminal: Terminal) -> None:
    """Ask to confirm the deletion of these paths. Raises SessionMemoryError."""
    shown = [terminal.short(path) for path in purged]
    if not terminal.can_ask():
        hint = "nothing was changed; add --yes to delete without a question, or --dry-run to see the changes"
        raise SessionMemoryError(f"--purge would delete {enumerated(shown)} for good", hint)
    for path in shown:
        terminal.item("purge", path)
    if not terminal.ask("Delete this for good, and uninstall?"):
        raise SessionMemoryError("nothing was changed")


def _environ() -> dict[str, str]:
    return {**os.environ, "HOME": required_user_dir(os.environ)}
