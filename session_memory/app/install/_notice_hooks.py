"""Adds the hooks for notices to the settings of runtimes if the person wants notices, and removes
them."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path

from ... import NAME
from ...awareness.install.ledger import InstallLedger
from ...awareness.install.plan import HookPlan, InstalledPaths
from ...common.errors import SessionMemoryError
from ...sessions.settings.program import ProgramPaths, program_paths
from . import program
from ._home_changes import plan_notice_hooks
from ._homes import known_home


def switch_notice_hooks(environ: Mapping[str, str], *, is_on: bool) -> tuple[list[Path], list[str]]:
    """Add the hooks for notices in all homes with an install, or remove them.

    Return the changed files, and why homes were not changed. Raises SessionMemoryError, OSError."""
    paths = program_paths(environ)
    with program.locked(paths) if paths.program_dir.is_dir() else nullcontext():
        ledger = InstallLedger.read(paths.ledger_file)
        plans, refused = _plans(ledger, paths, environ, is_on=is_on)
        for plan in plans:
            plan.make(ledger)
    if is_on and not ledger.records:
        refused.append(f"no hook will send them until you run {NAME} install")
    return [change.path for plan in plans for change in plan.changes], refused


def _plans(
    ledger: InstallLedger, paths: ProgramPaths, environ: Mapping[str, str], *, is_on: bool
) -> tuple[list[HookPlan], list[str]]:
    """Return the changes of each home's settings, and the errors of those that cannot be changed."""
    python = str(paths.python) if paths.python.exists() else sys.executable
    place = InstalledPaths(paths.app, python, paths, is_on)
    plans: list[HookPlan] = []
    refused: list[str] = []
    for root, record in ledger.records.items():
        target = None if record.template else known_home(root, ledger, environ)
        if not target or target.kind == "skills":
            continue
        try:
            plan = plan_notice_hooks(target, place, ledger)
            for change in plan.changes if plan else ():
                change.check()
        except SessionMemoryError as error:
            refused.append(f"{error}")
        else:
            plans += [plan] if plan else []
    return plans, refused
