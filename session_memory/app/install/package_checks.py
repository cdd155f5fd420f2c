"""Strategies and runtimes that other packages bring: `install` and `doctor` look for them."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping

from ...common.system.entry_points import scanned
from ...common.text.format import enumerated
from ...memory.entry_points import note_strategies, noted_strategies
from ...sessions.settings.program import ProgramPaths
from ._outside_runtimes import note_runtimes
from .environment import Environment
from .program_checks import NOTE, OK, WRONG, Finding

_UNSEARCHED = "the installed packages could not be searched for {}"
_FAILURES = (OSError, ValueError, subprocess.SubprocessError)
_MEND = (
    "fix or update its package, or remove it: the package, or its line `runtimes` in config.yaml"
)


def search_packages(environment: Environment, environ: Mapping[str, str]) -> list[str]:
    """Note the strategies in the private environment, and the runtimes in it and beside this program.

    Return the errors, [] if it succeeded."""
    try:
        scans = [scanned(environment.python)] if environment.state != "missing" else []
    except _FAILURES as error:
        return [f"{_UNSEARCHED.format('strategies and runtimes')}: {error}"]
    problems = []
    try:
        for scan in scans:
            note_strategies(environ, scan)
    except _FAILURES as error:
        problems.append(f"{_UNSEARCHED.format('strategies')}: {error}")
    try:
        noted = note_runtimes(environ, scans)
    except _FAILURES as error:
        return [*problems, f"{_UNSEARCHED.format('runtimes')}: {error}"]
    unused = [f"the runtime {name} is not used: {text}" for name, text in noted.problems.items()]
    return [*problems, *unused]


def check_packages(paths: ProgramPaths, environ: Mapping[str, str]) -> list[Finding]:
    """Note the strategies and runtimes of other packages; return what there is, and what changed."""
    return [*_check_strategies(environ), *_check_runtimes(paths, environ)]


def _check_strategies(environ: Mapping[str, str]) -> list[Finding]:
    try:
        new, gone = note_strategies(environ)
    except _FAILURES as error:
        return [Finding(NOTE, "strategies", f"{_UNSEARCHED.format('strategies')}: {error}")]
    return _of_other_packages("strategies", [*noted_strategies(environ)], new, gone)


def _check_runtimes(paths: ProgramPaths, environ: Mapping[str, str]) -> list[Finding]:
    try:
        noted = note_runtimes(
            environ, [scanned(str(paths.python))] if paths.python.exists() else []
        )
    except _FAILURES as error:
        return [Finding(NOTE, "runtimes", f"{_UNSEARCHED.format('runtimes')}: {error}")]
    broken = [
        Finding(WRONG, "runtimes", f"{name} is not used: {text}", _MEND)
        for name, text in noted.problems.items()
    ]
    return [*_of_other_packages("runtimes", noted.titles, noted.new, noted.gone), *broken]


def _of_other_packages(
    about: str, known: list[str], new: list[str], gone: list[str]
) -> list[Finding]:
    changes = [
        f"{change}: {enumerated(names)}"
        for change, names in (("new", new), ("gone", gone))
        if names
    ]
    if not known and not changes:
        return []
    text = f"of other packages: {enumerated(known) if known else 'none'}"
    return [Finding(OK, about, "; ".join([text, *changes]))]
