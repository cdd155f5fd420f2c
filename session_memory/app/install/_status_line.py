"""Adds the status line to the settings of runtimes if the person wants it, and removes it."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path

from ... import NAME
from ...awareness.install.formats import settings_at
from ...awareness.install.ledger import HomeRecord, InstallLedger
from ...common.errors import SessionMemoryError
from ...common.system.file_changes import FileChange, checksum
from ...sessions.runtimes.table import all_runtimes
from ...sessions.settings.homes import Home
from ...sessions.settings.program import ProgramPaths, program_paths
from . import program
from ._home_changes import extension_names
from ._homes import RUNTIME, Target, known_home, settings_of
from ._own_content import without_status_line


def switch_status_line(
    home: Home, environ: Mapping[str, str], *, is_on: bool
) -> tuple[list[Path], list[str]]:
    """Add our status line to the settings of all runtimes with their state in `home`, or remove it.

    An existing status line stays in front of ours. Return the changed files, including extensions
    that show the line by themselves, and the errors of files that were not changed. Raises
    SessionMemoryError, OSError."""
    paths = program_paths(environ)
    extensions = _extensions(home, environ)
    with program.locked(paths) if paths.program_dir.is_dir() else nullcontext():
        ledger = InstallLedger.read(paths.ledger_file)
        changes, refused = _changes(home, ledger, paths, environ, is_on=is_on)
        if not changes and not extensions:
            if refused:
                raise refused[0]
            if is_on:
                raise SessionMemoryError(
                    "no installed runtime shows a status line", f"run {NAME} install first"
                )
        if changes:
            _make(changes, ledger, is_on=is_on)
    return [*[change.path for _, change in changes], *extensions], [f"{error}" for error in refused]


def _changes(
    home: Home,
    ledger: InstallLedger,
    paths: ProgramPaths,
    environ: Mapping[str, str],
    *,
    is_on: bool,
) -> tuple[list[tuple[HomeRecord, FileChange]], list[SessionMemoryError]]:
    """Return the changes for all runtimes with their state in `home`, each with its record.

    The second value has the errors of settings that cannot be changed."""
    changes: list[tuple[HomeRecord, FileChange]] = []
    refused: list[SessionMemoryError] = []
    for root, record in ledger.records.items():
        target = None if record.template else known_home(root, ledger, environ)
        if not target or target.kind == "skills" or target.home.config_file != home.config_file:
            continue
        if not target.runtime.install.STATUS_LINE:
            continue
        try:
            change = _change(target, record, paths, ledger, is_on=is_on)
            change.check()
        except SessionMemoryError as error:
            refused.append(error)
        else:
            changes.append((record, change))
    return changes, refused


def _make(
    changes: list[tuple[HomeRecord, FileChange]], ledger: InstallLedger, *, is_on: bool
) -> None:
    """Make the changes, and note them in the ledger before and afterwards. Raises OSError."""
    for record, change in changes:
        # Unless somebody else writes the file, an uninstall restores it as a whole.
        before, after = change.before, change.after
        if before is not None and after is not None and checksum(before) in record.written:
            record.written.append(checksum(after))
    ledger.save()
    for record, change in changes:
        change.make()
        record.status_line = record.status_line if is_on else {}
    ledger.save()


def _extensions(home: Home, environ: Mapping[str, str]) -> list[Path]:
    """Return the extensions that show the line for `home`, or the settings that name a package."""
    files_shown = []
    for runtime in all_runtimes():
        target = settings_of(runtime, environ)
        if runtime.install.SHOWS_STATUS and target.home.config_file == home.config_file:
            files = [Path(target.settings_dir, name) for name in extension_names(target)]
            if target.plugins:
                files.append(Path(target.settings_dir, "settings.json"))
            files_shown += [file for file in files if file.is_file()]
    return files_shown


def _change(
    target: Target, record: HomeRecord, paths: ProgramPaths, ledger: InstallLedger, *, is_on: bool
) -> FileChange:
    """Return the change of one file, and note the file's content after it in `record`.

    Raises SettingsFileError."""
    path, is_ours = target.status_line_file, ledger.recogniser()
    noted = record.status_line or {"file": str(path), "before": "", "after": ""}
    removal = without_status_line(
        HomeRecord("", runtime=record.runtime, status_line=noted), is_ours
    )
    if not is_on:
        return removal
    python = str(paths.python) if paths.python.exists() else sys.executable
    words = [python, "-I", "-S", str(paths.app / "hooks" / "status_line.py")]
    words += [] if target.runtime is RUNTIME else [target.runtime.PROGRAM]
    command = f"{shlex.join(words)} || exit 0"
    install = target.runtime.install
    settings = settings_at(removal.before, path, install)
    after = settings.with_status_line(install, command, is_ours).content
    before = None if removal.after is None else removal.after.decode()
    record.status_line = {"file": str(path), "before": before, "after": checksum(after)}
    return FileChange(path, removal.before, after)
