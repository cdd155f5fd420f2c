"""`session-memory doctor`: checks the upkeep, the store and the hooks, and how to fix them."""

from __future__ import annotations

import argparse
import os
import shlex
import time
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from typing import Any, NamedTuple

from ... import NAME, __version__
from ...awareness.events.log import looks_like_home
from ...awareness.install.ledger import InstallLedger
from ...common.errors import SessionMemoryError, described
from ...common.extensions import load, load_present
from ...common.system.files import expanded
from ...common.system.terminal import Terminal
from ...extension_points import CHECKS, DOCTOR_SECTIONS
from ...history.store.location import find_location
from ...sessions.runtimes.table import all_runtimes
from ...sessions.settings.homes import required_user_dir
from ...sessions.settings.program import ProgramPaths, program_paths
from ..install._checks import check_home
from ..install._homes import NoHomeError, Target, find, identify, known_home
from ..install._trial import Trial
from ..install.program_checks import NOTE, OK, WRONG, Finding
from ..install.templates import templated_home
from .arguments import add_common

SUMMARY = "check upkeep, store and hooks, and say how to fix problems"
_SECTIONS = ("all", *DOCTOR_SECTIONS, "hooks")
# the same for all runtimes of a person: reported once
_SHARED = ("config", "log", "state", "upkeep")
_STYLES = {OK: "green", NOTE: "yellow", WRONG: "red"}


class DoctorReport(NamedTuple):
    """The findings about `root` ('' for the program), called `title`, with a trial run of its
    hook."""

    root: str
    title: str
    findings: list[Finding]
    trial: Trial | None = None


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
    """Check the section, or all of them; return 1 if something is wrong. Raises
    SessionMemoryError."""
    terminal = Terminal(os.environ, is_json=arguments.json)
    with terminal.paged():
        is_well, result = _check(arguments, terminal)
    terminal.result(result)
    return 0 if is_well else 1


def _check(arguments: argparse.Namespace, terminal: Terminal) -> tuple[bool, dict[str, Any]]:
    if arguments.section == "hooks":
        return _check_hooks(arguments, terminal)
    if arguments.section != "all":
        return _show_section(arguments.section, arguments, terminal)
    parts = {name: _section_result(name, arguments, terminal) for name in DOCTOR_SECTIONS}
    terminal.line()
    is_well, result = _check_hooks(arguments, terminal, is_sound=parts["store"]["ok"])
    return is_well, result | parts


def _show_section(
    name: str, arguments: argparse.Namespace, terminal: Terminal
) -> tuple[bool, dict[str, Any]]:
    shown: tuple[bool, dict[str, Any]] = load(DOCTOR_SECTIONS[name])(arguments, terminal)
    return shown


def _section_result(name: str, arguments: argparse.Namespace, terminal: Terminal) -> dict[str, Any]:
    """Show a section among others, unless there is nothing to check; an error is part of its
    result."""
    try:
        database = find_location(arguments.home, os.environ).database
        if name == "store" and not (find_spec("apsw") and os.path.exists(database)):
            return {"ok": True}
        is_well, result = _show_section(name, arguments, terminal)
        return {"ok": is_well, **result}
    except (SessionMemoryError, OSError) as error:
        if name == "store":
            terminal.note(terminal.short(described(error)))
        return {"ok": False, "problem": described(error)}


def _check_hooks(
    arguments: argparse.Namespace, terminal: Terminal, is_sound: bool = True
) -> tuple[bool, dict[str, Any]]:
    """Print the findings about the program and the homes, and the verdict."""
    environ = {**os.environ, "HOME": required_user_dir(os.environ)}
    program_dir = program_paths(environ).program_dir
    terminal.line(
        terminal.paint("bold", f"{NAME} {__version__}") + terminal.short(f" in {program_dir}")
    )
    found: dict[str, list[Finding]] = {}
    shown: set[str] = set()
    for one in examine(arguments.home, environ):
        found.setdefault(one.root, []).extend(one.findings)
        if one.root:
            terminal.heading(terminal.short(one.root) + (f" ({one.title})" if one.title else ""))
        _show(one.findings, terminal)
        if one.trial is not None and one.trial.text and one.trial.session not in shown:
            shown.add(one.trial.session)  # in a project all runtimes get the same updates
            terminal.line()
            terminal.line(
                f"  The next prompt of {terminal.short(one.trial.session)} would get this update:"
            )
            terminal.line()
            terminal.quote(one.trial.text)
    wrongs = sum(finding.state == WRONG for findings in found.values() for finding in findings) + (
        not is_sound
    )
    verdict = (
        f"{wrongs} {'thing is' if wrongs == 1 else 'things are'} wrong; see above."
        if wrongs
        else "All is well."
    )
    terminal.line()
    terminal.line(terminal.paint("bold", verdict))
    findings = [
        {"home": home or None, **vars(one)} for home, findings in found.items() for one in findings
    ]
    return not wrongs, {"version": __version__, "ok": not wrongs, "findings": findings}


def examine(path: str | None, environ: Mapping[str, str]) -> Iterator[DoctorReport]:
    """Yield the findings about the program, then about homes.

    These are the home `path`, or each home with an installation."""
    paths = program_paths(environ)
    try:
        ledger = InstallLedger.read(paths.ledger_file)
    except SessionMemoryError:  # one of the findings about the program
        ledger = InstallLedger(paths.ledger_file)
    for check in load_present(CHECKS.values()):
        yield DoctorReport("", "", check(paths, environ))
    targets, lost = _targets(path, ledger, paths, environ)
    for root, findings in lost.items():
        yield DoctorReport(root, "", findings)
    folders = dict.fromkeys(runtime.SESSIONS_FOLDER for runtime in all_runtimes())
    start = os.path.abspath(path or os.getcwd())
    if line := next(
        filter(None, (looks_like_home(start, environ, folder) for folder in folders)), ""
    ):
        text, _, mend = line.rpartition(": ")
        yield DoctorReport("", "", [Finding(NOTE, "home", text, mend)])
    shared: set[tuple[str, Finding]] = set()
    for target in targets:
        findings, trial = check_home(target, paths, ledger, environ, time.time())
        place = target.home.state_dir
        yield DoctorReport(
            target.root,
            target.title,
            [one for one in findings if (place, one) not in shared],
            trial,
        )
        shared.update((place, one) for one in findings if one.about in _SHARED)


def _targets(
    path: str | None, ledger: InstallLedger, paths: ProgramPaths, environ: Mapping[str, str]
) -> tuple[list[Target], dict[str, list[Finding]]]:
    """Return the homes to check, and the findings about paths that are not homes, or no longer."""
    targets: list[Target] = []
    lost: dict[str, list[Finding]] = {}
    for root in [path] if path else ledger.records:
        try:
            at = os.path.abspath(expanded(root, os.environ))
            found = templated_home(at, ledger, environ) or known_home(at, ledger, environ)
            targets.append(found or identify(root, environ))
        except NoHomeError as error:
            is_gone = root in ledger.records and not os.path.exists(root)
            mend = (
                f"if it is gone for good: {NAME} uninstall --home {shlex.quote(root)}"
                if is_gone
                else error.hint
            )
            lost[root] = [Finding(WRONG, "home", f"{error}", mend)]
    if not path and not ledger.records:
        targets = find(ledger, environ, os.getcwd())
    if not targets and not lost:
        lost[str(paths.program_dir)] = [
            Finding(WRONG, "homes", "it is installed into no home", "run install.py")
        ]
    return targets, lost


def _show(findings: list[Finding], terminal: Terminal) -> None:
    """Print a line for each finding, and one with its remedy."""
    for finding in findings:
        mark = terminal.paint(_STYLES[finding.state], f"{finding.state:<6}")
        text = terminal.short(finding.text)
        terminal.paragraph(text, indent=" " * 23, first=f"  {mark} {finding.about:<13} ")
        if finding.mend:
            terminal.paragraph(
                terminal.short(finding.mend), indent=" " * 26, first=" " * 23 + "-> "
            )
