"""`session-memory doctor`: checks that the hook works, and says in plain words how to fix what does not."""

from __future__ import annotations

import argparse
import os
import shlex
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from .. import NAME, __version__
from ..install.checks import check_home
from ..install.homes import NoHomeError, Target, find, identify, known_home
from ..install.ledger import InstallLedger, LedgerError, read_ledger
from ..install.output import show_trial
from ..install.program_checks import NOTE, OK, WRONG, Finding, check_program
from ..install.templates import templated_home
from ..install.trial import Trial
from ..runtimes import all_runtimes
from ..settings.notices import looks_like_home
from ..settings.program import ProgramPaths, program_paths
from ..system.terminal import Terminal

SUMMARY = "check that the hook works, and say how to fix it if not"
_OF_A_PERSON = ("config", "log", "state", "upkeep")  # the same for all runtimes of theirs: found once
_STYLES = {OK: "green", NOTE: "yellow", WRONG: "red"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--home", metavar="PATH", help="the home to look at (without it: all that it is installed in)")
    parser.add_argument("--json", action="store_true", help="print the findings as JSON")


class Examined(NamedTuple):
    """The findings about `root` ('' for the program), called `title`, with a trial run of its hook."""

    root: str
    title: str
    findings: list[Finding]
    trial: Trial | None = None


def run(arguments: argparse.Namespace) -> int:
    """Examines the program and the homes; returns 0 if all is well, else 1."""
    environ = dict(os.environ)
    environ.setdefault("HOME", str(Path.home()))
    terminal, program_dir = Terminal(environ, is_json=arguments.json), program_paths(environ).program_dir
    terminal.line(terminal.paint("bold", f"{NAME} {__version__}") + terminal.short(f" in {program_dir}"))
    found: dict[str, list[Finding]] = {}
    told: set[str] = set()
    for one in examine(arguments.home, environ):
        found.setdefault(one.root, []).extend(one.findings)
        if one.root:
            terminal.heading(terminal.short(one.root) + (f" ({one.title})" if one.title else ""))
        _show(one.findings, terminal)
        if one.trial is not None and one.trial.text and one.trial.session not in told:
            told.add(one.trial.session)  # in a project all runtimes get the same updates
            terminal.line()
            show_trial(one.trial, terminal, with_speed=False)
    wrongs = sum(finding.state == WRONG for findings in found.values() for finding in findings)
    terminal.line()
    terminal.line(terminal.paint("bold", _verdict(wrongs)))
    terminal.result(
        {
            "version": __version__,
            "ok": not wrongs,
            "findings": [{"home": home or None, **vars(f)} for home, findings in found.items() for f in findings],
        }
    )
    return 1 if wrongs else 0


def examine(path: str | None, environ: Mapping[str, str]) -> Iterator[Examined]:
    """Yield the findings about the program, then about the home `path`, else about each home with an installation."""
    paths = program_paths(environ)
    try:
        ledger = read_ledger(paths.ledger_file)
    except LedgerError:  # one of the findings on the program
        ledger = InstallLedger(paths.ledger_file)
    yield Examined("", "", check_program(paths, environ))
    targets, lost = _targets(path, ledger, paths, environ)
    for root, findings in lost.items():
        yield Examined(root, "", findings)
    yield from _around(path or os.getcwd(), environ)
    shared: set[tuple[str, Finding]] = set()
    for target in targets:
        findings, trial = check_home(target, paths, ledger, environ, time.time())
        place = target.home.state_dir
        yield Examined(target.root, target.title, [one for one in findings if (place, one) not in shared], trial)
        shared.update((place, one) for one in findings if one.about in _OF_A_PERSON)


def _around(start: str, environ: Mapping[str, str]) -> Iterator[Examined]:
    """Yield a finding if `start` is in a directory that only looks like an agent home."""
    for folder in dict.fromkeys(runtime.SESSIONS_FOLDER for runtime in all_runtimes()):
        line = looks_like_home(os.path.abspath(start), environ, folder)
        if line:
            text, _, mend = line.rpartition(": ")
            yield Examined("", "", [Finding(NOTE, "home", text, mend)])
            return


def _targets(
    path: str | None, ledger: InstallLedger, paths: ProgramPaths, environ: Mapping[str, str]
) -> tuple[list[Target], dict[str, list[Finding]]]:
    """Return the homes to check, and the findings about paths that are not homes, or no longer."""
    targets: list[Target] = []
    lost: dict[str, list[Finding]] = {}
    for root in [path] if path else ledger.homes:
        try:
            targets.append(_home_at(root, ledger, environ))
        except NoHomeError as error:
            is_gone = root in ledger.homes and not os.path.exists(root)
            mend = f"if it is gone for good: {NAME} uninstall --home {shlex.quote(root)}" if is_gone else error.hint
            lost[root] = [Finding(WRONG, "home", f"{error}", mend)]
    if not path and not ledger.homes:
        targets = find(ledger, environ, os.getcwd())
    if not targets and not lost:
        lost[str(paths.program_dir)] = [Finding(WRONG, "homes", "it is installed into no home", "run install.py")]
    return targets, lost


def _home_at(root: str, ledger: InstallLedger, environ: Mapping[str, str]) -> Target:
    """Raise NoHomeError."""
    found = templated_home(root, ledger, environ) or known_home(
        os.path.abspath(os.path.expanduser(root)), ledger, environ
    )
    return found or identify(root, environ)


def _show(findings: list[Finding], terminal: Terminal) -> None:
    """Print a line for each finding, and one for what to do about it."""
    for finding in findings:
        mark = terminal.paint(_STYLES[finding.state], f"{finding.state:<6}")
        text = terminal.short(finding.text)
        terminal.paragraph(text, indent=" " * 23, first=f"  {mark} {finding.about:<13} ")
        if finding.mend:
            terminal.paragraph(terminal.short(finding.mend), indent=" " * 26, first=" " * 23 + "-> ")


def _verdict(wrongs: int) -> str:
    return "All is well." if not wrongs else f"{wrongs} {'thing is' if wrongs == 1 else 'things are'} wrong; see above."
