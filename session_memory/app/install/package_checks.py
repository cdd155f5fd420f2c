"""Strategies that other packages bring: `install` and `doctor` look for them."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping

from ...common.text.format import enumerated
from ...memory.entry_points import note_strategies, noted_strategies
from ...sessions.settings.program import ProgramPaths
from .environment import Environment
from .program_checks import NOTE, OK, Finding

_UNSEARCHED = "the installed packages could not be searched for strategies"
_FAILURES = (OSError, ValueError, subprocess.SubprocessError)


def search_packages(environment: Environment, environ: Mapping[str, str]) -> list[str]:
    """Note the strategies in the private environment; return the errors, [] if it succeeded."""
    if environment.state == "missing":
        return []
    try:
        note_strategies(environ, environment.python)
    except _FAILURES as error:
        return [f"{_UNSEARCHED}: {error}"]
    return []


def check_packages(_: ProgramPaths, environ: Mapping[str, str]) -> list[Finding]:
    """Note the strategies of other packages, and return what changed, [] if nothing did."""
    try:
        new, gone = note_strategies(environ)
    except _FAILURES as error:
        return [Finding(NOTE, "strategies", f"{_UNSEARCHED}: {error}")]
    known = [*noted_strategies(environ)]
    changes = [
        f"{change}: {enumerated(names)}"
        for change, names in (("new", new), ("gone", gone))
        if names
    ]
    if not known and not changes:
        return []
    text = f"of other packages: {enumerated(known) if known else 'none'}"
    return [Finding(OK, "strategies", "; ".join([text, *changes]))]
