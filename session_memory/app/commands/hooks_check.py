"""Checks the installed program and the hooks in homes, for `doctor` and the page."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from ... import NAME, __version__
from ...awareness.events.log import looks_like_home
from ...awareness.install.ledger import InstallLedger
from ...common.errors import SessionMemoryError
from ...common.extensions import load_present
from ...common.system.files import expanded
from ...common.system.terminal import Terminal
from ...extension_points import CHECKS
from ...sessions.runtimes.table import all_runtimes
from ...sessions.settings.program import ProgramPaths, program_paths
from ..install._checks import check_home
from ..install._homes import NoHomeError, Target, find, home_named
from ..install._trial import Trial
from ..install.program_checks import NOTE, OK, WRONG, Finding
from ..install.templates import templated_home
from .output import CheckResult

# the same for all runtimes of a person: reported once
_SHARED = ("config", "log", "state", "upkeep")
_STYLES = {OK: "green", NOTE: "yellow", WRONG: "red"}


class DoctorReport(NamedTuple):
    """The findings about one home, and the trial run of its hook.

    `root` is the home's directory ('' for the program itself), `title` its name in the report."""

    root: str
    title: str
    findings: list[Finding]
    trial: Trial | None = None


@dataclass(frozen=True)
class HooksCheck(CheckResult):
    """The findings about the program and the homes. A damaged store counts as wrong too."""

    program_dir: str
    reports: list[DoctorReport]
    is_sound: bool

    @property
    def wrong(self) -> int:
        """The number of things that are wrong."""
        states = [finding.state for report in self.reports for finding in report.findings]
        return states.count(WRONG) + (not self.is_sound)

    @property
    def is_well(self) -> bool:
        return not self.wrong

    @property
    def next_updates(self) -> dict[str, str]:
        """The next update of each session whose hook was tried and has news."""
        updates: dict[str, str] = {}
        for report in self.reports:
            if report.trial and report.trial.text:
                # in a project all runtimes get the same updates
                updates.setdefault(report.trial.session, report.trial.text)
        return updates

    def show(self, terminal: Terminal) -> None:
        terminal.line(
            terminal.paint("bold", f"{NAME} {__version__}")
            + terminal.short(f" in {self.program_dir}")
        )
        updates = self.next_updates
        for report in self.reports:
            if report.root:
                title = f" ({report.title})" if report.title else ""
                terminal.heading(terminal.short(report.root) + title)
            _show(report.findings, terminal)
            if report.trial and report.trial.session in updates:
                _show_update(report.trial.session, updates.pop(report.trial.session), terminal)
        verdict = "All is well."
        if self.wrong:
            are = "thing is" if self.wrong == 1 else "things are"
            verdict = f"{self.wrong} {are} wrong; see above."
        terminal.line()
        terminal.line(terminal.paint("bold", verdict))

    def as_json(self) -> dict[str, Any]:
        by_root: dict[str, list[Finding]] = {}
        for report in self.reports:
            by_root.setdefault(report.root, []).extend(report.findings)
        findings = [
            {"home": root or None, **vars(finding)}
            for root, findings in by_root.items()
            for finding in findings
        ]
        return {
            "version": __version__,
            "program_dir": self.program_dir,
            "ok": self.is_well,
            "findings": findings,
            "next_updates": [
                {"session": session, "text": text} for session, text in self.next_updates.items()
            ],
        }


def _show_update(session: str, text: str, terminal: Terminal) -> None:
    terminal.line()
    terminal.line(f"  The next prompt of {terminal.short(session)} would get this update:")
    terminal.line()
    terminal.quote(text)


def examine(path: str | None, environ: Mapping[str, str]) -> Iterator[DoctorReport]:
    """Yield the findings about the program, then about homes.

    These are the home `path`, or each home with an installation."""
    paths = program_paths(environ)
    try:
        ledger = InstallLedger.read(paths.ledger_file)
    except SessionMemoryError:  # one of the findings about the program
        ledger = InstallLedger(paths.ledger_file)
    checks = load_present(CHECKS.values())
    yield DoctorReport("", "", [finding for check in checks for finding in check(paths, environ)])
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
            [finding for finding in findings if (place, finding) not in shared],
            trial,
        )
        shared.update((place, finding) for finding in findings if finding.about in _SHARED)


def _targets(
    path: str | None, ledger: InstallLedger, paths: ProgramPaths, environ: Mapping[str, str]
) -> tuple[list[Target], dict[str, list[Finding]]]:
    """Return the homes to check, and findings about paths that are not homes (any more)."""
    targets: list[Target] = []
    lost: dict[str, list[Finding]] = {}
    for root in [path] if path else ledger.records:
        try:
            at = os.path.abspath(expanded(root, os.environ))
            target = templated_home(at, ledger, environ) or home_named(root, ledger, environ)
            targets.append(target)
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
            Finding(WRONG, "homes", "it is not installed into any home", "run install.py")
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
