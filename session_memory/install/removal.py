"""Uninstalling: every home as it was before, then the program itself."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import SessionMemoryError
from ..settings.homes import MEMORY_DIR, claude_config_dir
from . import program
from .file_changes import remove_if_empty
from .home_changes import HomePlan, make_uninstall, ours, plan_uninstall
from .homes import NoHomeError, identify
from .ledger import HomeRecord, Ledger, read_ledger
from .lock import LOCK_NAME, locked
from .places import Places

_SESSIONS = ("sessions", "pi-sessions")
_PROGRAM_PARTS = ("app", "app-*", "app.new", "env", "env-*", "env.new", "bin", "sample-home", ".*.tmp", LOCK_NAME)


class NotInstalledError(SessionMemoryError):
    """A home that nothing was installed into."""


@dataclass
class Uninstalled:
    """What was taken out, or would be; `restored` says by home whether its settings have their old bytes again.
    `purged` lists what was deleted of the user's own configuration and state, `kept` what was not."""

    places: Places
    plans: list[HomePlan]
    is_dry_run: bool
    is_whole: bool
    restored: dict[str, bool] = field(default_factory=dict)
    purged: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)


def uninstall(
    paths: list[str], places: Places, environ: Mapping[str, str], *, dry_run: bool, purge: bool
) -> Uninstalled:
    """Uninstalls from the homes at `paths`; without any, from all, and removes the program.

    `purge` also deletes each home's configuration and state, but not the named sessions, which are the host's.
    Raises SessionMemoryError, OSError; before every home's settings are found to be in order nothing is touched.
    """
    ledger = read_ledger(places.ledger_file)
    records = _records(paths, ledger, environ)
    is_ours = ours(ledger)
    plans = [plan_uninstall(root, record, is_ours) for root, record in records.items()]
    result = Uninstalled(places, plans, dry_run, not paths)
    for plan, record in zip(plans, records.values()):
        after = plan.settings.after
        result.restored[plan.root] = (None if after is None else after.decode()) == record.original
    going = {str(change.path) for plan in plans for change in plan.changes if change.after is None}
    homes = [(root, record) for root, record in records.items() if root != str(places.sample_home)]
    own = [path for root, record in homes for path in _purgeable(root, record, environ) if path not in going]
    result.purged, result.kept = (own, []) if purge else ([], own)
    if dry_run:
        return result
    if places.program_dir.is_dir():
        with locked(places):
            _take_out(result, ledger)
    else:
        _take_out(result, ledger)
    return result


def _take_out(result: Uninstalled, ledger: Ledger) -> None:
    for plan in result.plans:
        make_uninstall(plan, ledger)
    for path in result.purged:
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        else:
            os.unlink(path)
        remove_if_empty(Path(path).parent)
    if result.is_whole:
        _remove_program(result.places, ledger)


def _records(paths: list[str], ledger: Ledger, environ: Mapping[str, str]) -> dict[str, HomeRecord]:
    """What is known of the homes to uninstall from. Entries of ours are found without a ledger too."""
    if not paths:
        config_dir = claude_config_dir(environ)
        unrecorded = {config_dir: HomeRecord(os.path.join(config_dir, "settings.json"), original="")}
        return dict(ledger.homes) or unrecorded
    records = {}
    for path in paths:
        root = os.path.abspath(os.path.expanduser(path))
        if root not in ledger.homes:
            root = identify(path, environ).root
        if root not in ledger.homes:
            raise NotInstalledError(f"{path}: nothing was installed there", f"the ledger is {ledger.path}")
        records[root] = ledger.homes[root]
    return records


def _purgeable(root: str, record: HomeRecord, environ: Mapping[str, str]) -> list[str]:
    try:
        memory_dir = Path(root, MEMORY_DIR) if record.template else identify(root, environ).memory_dir
    except NoHomeError:
        return []
    if not memory_dir.is_dir():
        return []
    return [str(path) for path in sorted(memory_dir.iterdir()) if path.name not in _SESSIONS]


def _remove_program(places: Places, ledger: Ledger) -> None:
    """Removes what the program directory holds of ours, the ledger last, and the directories that were made for it."""
    if program.is_our_link(places):
        places.link.unlink()
    for pattern in _PROGRAM_PARTS:
        for path in places.program_dir.glob(pattern):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
    places.ledger_file.unlink(missing_ok=True)
    remove_if_empty(places.program_dir)
    for made in reversed(ledger.made):
        remove_if_empty(Path(made))
