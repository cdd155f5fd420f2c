"""`session-memory doctor`: checks upkeep, store and hooks, and shows remedies."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from ...common.errors import SessionMemoryError, described
from ...common.extensions import load
from ...common.system.terminal import Terminal
from ...extension_points import DOCTOR_SECTIONS
from ...history.store.location import find_location
from ...sessions.settings.homes import required_user_dir
from ...sessions.settings.program import program_paths
from .arguments import add_common
from .output import CheckResult

if TYPE_CHECKING:
    from .hooks_check import HooksCheck

SUMMARY = "check upkeep, store and hooks, and show how to fix problems"
_SECTIONS = ("all", *DOCTOR_SECTIONS, "hooks")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    what = (
        "status: upkeep, queue, costs, paths; store: integrity, contents; hooks: program, "
        "homes; or all (default)"
    )
    parser.add_argument(
        "section", metavar="SECTION", nargs="?", choices=_SECTIONS, default="all", help=what
    )
    add_common(parser)


def run(arguments: argparse.Namespace) -> int:
    """Check one section, or all of them; return 1 if something is wrong.

    Raises SessionMemoryError."""
    terminal = Terminal(os.environ, is_json=arguments.json)
    with terminal.paged():
        result = _check(arguments)
        terminal.show(result)
    return 0 if result.is_well else 1


def _check(arguments: argparse.Namespace) -> CheckResult:
    if arguments.section in DOCTOR_SECTIONS:
        return _check_section(arguments.section, arguments)
    if arguments.section == "hooks":
        return _check_hooks(arguments.home)
    parts = {name: _section_result(name, arguments) for name in DOCTOR_SECTIONS}
    return Everything(parts, _check_hooks(arguments.home, is_sound=parts["store"].is_well))


def _check_section(name: str, arguments: argparse.Namespace) -> CheckResult:
    check: Callable[[argparse.Namespace], CheckResult] = load(DOCTOR_SECTIONS[name])
    return check(arguments)


def _check_hooks(home: str | None, *, is_sound: bool = True) -> HooksCheck:
    from .hooks_check import HooksCheck, examine  # they load what installs use

    environ = {**os.environ, "HOME": required_user_dir(os.environ)}
    program_dir = str(program_paths(environ).program_dir)
    return HooksCheck(program_dir, list(examine(home, environ)), is_sound)


def _section_result(name: str, arguments: argparse.Namespace) -> CheckResult:
    """Return the result of one of several sections, which may be an error or nothing to check."""
    try:
        database = find_location(arguments.home, os.environ).database
        if name == "store" and not (find_spec("apsw") and os.path.exists(database)):
            return NothingToCheck()
        return _check_section(name, arguments)
    except (SessionMemoryError, OSError) as error:
        return FailedCheck(described(error), is_shown=name == "store")


@dataclass(frozen=True)
class NothingToCheck(CheckResult):
    """The result of a section without anything to check."""

    is_well = True

    def show(self, terminal: Terminal) -> None:
        pass


@dataclass(frozen=True)
class FailedCheck(CheckResult):
    """The error of a section; people only see it if it `is_shown`."""

    problem: str
    is_shown: bool
    is_well = False

    def show(self, terminal: Terminal) -> None:
        if self.is_shown:
            terminal.note(terminal.short(self.problem))

    def as_json(self) -> dict[str, Any]:
        return {"problem": self.problem}


@dataclass(frozen=True)
class Everything(CheckResult):
    """The results of all sections."""

    parts: dict[str, CheckResult]
    hooks: HooksCheck

    @property
    def is_well(self) -> bool:
        return self.hooks.is_well

    def show(self, terminal: Terminal) -> None:
        for part in self.parts.values():
            part.show(terminal)
        terminal.line()
        self.hooks.show(terminal)

    def as_json(self) -> dict[str, Any]:
        parts = {name: {"ok": part.is_well, **part.as_json()} for name, part in self.parts.items()}
        return self.hooks.as_json() | parts
