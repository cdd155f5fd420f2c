"""Notes the runtimes that other packages bring, for hooks and commands.

A package has an entry point of the group `session_memory.runtimes`; a line of the person's own
config.yaml may name a package that was not installed. All others read the note.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ...common.system.entry_points import PackagePoint, PackageScan, scanned
from ...common.system.files import expanded, make_private_dir, write_atomically
from ...sessions.runtimes.base import Runtime
from ...sessions.runtimes.outside import (
    NotedRuntimes,
    OutsideRuntimeError,
    added_folders,
    faults,
    in_time,
    load,
)
from ...sessions.runtimes.records import CALLS, MESSAGES, RESULTS
from ...sessions.runtimes.table import PREBUILT, built_in_runtimes, outside_file, read_outside_again
from ...sessions.settings.homes import person_home

_ENTRY_POINTS = "session_memory.runtimes"  # of entry points
_ATTRIBUTE = "RUNTIME"  # of a module that a line of config.yaml names
_CONFIG = "config.yaml"  # in the note, the source of runtimes from the settings
_MOST_LINES = 200  # of a transcript that is read on trial


class OutsideRuntimes(NamedTuple):
    """The runtimes of other packages: the `titles` of those in use, and what changed.

    `new` and `gone` are names; `problems` has a text for each that cannot be used, by its name."""

    titles: list[str]
    new: list[str]
    gone: list[str]
    problems: dict[str, str]


def note_runtimes(
    environ: Mapping[str, str], others: Sequence[PackageScan] = ()
) -> OutsideRuntimes:
    """Note the runtimes in the packages of this and `others`' interpreters, and in the settings.

    Raises OSError, ValueError."""
    path = outside_file(environ)
    before = NotedRuntimes(path).sources
    points = _points(environ, others, before)
    problems: dict[str, str] = {}
    usable: dict[str, Runtime] = {}
    noted: dict[str, dict[str, tuple[str, ...]]] = {}
    for source, point in points:
        try:
            runtime = _tried(point, [*built_in_runtimes(), *usable.values()], environ)
        except OutsideRuntimeError as error:
            problems[point.name] = f"{error}"
            continue
        usable[runtime.name] = runtime
        row = (point.place, runtime.USUAL_DIR, runtime.CONFIG_VARIABLE, point.folder)
        noted.setdefault(source, {})[runtime.name] = row
    if noted != before:
        make_private_dir(os.path.dirname(path))
        write_atomically(path, json.dumps(noted).encode())
        read_outside_again()
    names = {name for rows in before.values() for name in rows}
    return OutsideRuntimes(
        [runtime.TITLE for runtime in usable.values()],
        sorted({*usable} - names),
        sorted(names - {*usable}),
        problems,
    )


def _points(
    environ: Mapping[str, str],
    others: Sequence[PackageScan],
    noted: Mapping[str, Mapping[str, tuple[str, ...]]],
) -> list[tuple[str, PackagePoint]]:
    """Return the places of runtimes, each once, with its source; the settings come first.

    Sources of earlier scans are kept while their interpreter is there."""
    by_source: dict[str, list[PackagePoint]] = {_CONFIG: list(_in_settings(environ))}
    # a directory's environment may name these folders, and nobody installed their packages
    in_variable = [
        os.path.abspath(path) for path in environ.get("PYTHONPATH", "").split(os.pathsep)
    ]
    for prefix, tables in (scanned(but=["", *in_variable, *added_folders]), *others):
        by_source[os.path.realpath(prefix)] = tables.get(_ENTRY_POINTS, [])
    for source, rows in noted.items():
        if source not in by_source and os.path.isdir(source):
            by_source[source] = [PackagePoint(name, row[0], row[3]) for name, row in rows.items()]
    by_place: dict[tuple[str, str], tuple[str, PackagePoint]] = {}
    for source, points in by_source.items():
        for point in points:
            by_place.setdefault((point.place, point.folder), (source, point))
    return list(by_place.values())


def _in_settings(environ: Mapping[str, str]) -> Iterator[PackagePoint]:
    """Yield the runtimes that the person's own settings name.

    Files of agent homes and projects do not count."""
    home = person_home(environ)
    named = home.settings().runtimes or []
    for path in [named] if isinstance(named, str) else named:
        folder, name = os.path.split(os.path.abspath(expanded(path, environ)))
        module = name.removesuffix(".py")
        yield PackagePoint(path, f"{module}:{_ATTRIBUTE}", folder)


def _tried(point: PackagePoint, others: list[Runtime], environ: Mapping[str, str]) -> Runtime:
    """Return the runtime, after a trial. Raises OutsideRuntimeError."""
    if not point.folder or not os.path.isdir(point.folder):
        raise OutsideRuntimeError(
            f"{point.place} is not there" + (f": {point.folder}" if point.folder else "")
        )
    runtime = load(point.place, point.folder, others, PREBUILT)
    faults.pop(runtime.name, None)
    for what, ask in _TRIALS.items():
        in_time(f"{what} of {point.place}", ask, runtime, environ)
    if fault := faults.get(runtime.name):
        raise OutsideRuntimeError(f"{point.place}: {fault}")
    return runtime


def _read_newest(runtime: Runtime, environ: Mapping[str, str]) -> None:
    """Read the beginning of the newest session."""
    config_dir = runtime.config_dir(environ)
    sessions = [
        session.path
        for folder in runtime.all_folders(config_dir)
        for session in runtime.sessions_in(folder)
        if os.path.isfile(session.path)
    ]
    if not sessions:
        return
    newest = max(sessions, key=os.path.getmtime)
    with open(newest, "rb") as file:
        lines = [line for _, line in zip(range(_MOST_LINES), file)]
    wanted = MESSAGES | CALLS | RESULTS
    for line in lines:
        if runtime.records.prefilter(line, wanted):
            try:
                record = json.loads(line)
            except ValueError:
                continue
            if isinstance(record, dict):
                list(runtime.records.events(record, 0, wanted))


# What everything else asks a runtime, with values that no runtime may fail at.
_TRIALS = {
    "is_own": lambda runtime, environ: runtime.is_own({"session_id": None}, environ),
    "has_started": lambda runtime, environ: runtime.has_started(environ),
    "refresh": lambda runtime, environ: runtime.refresh(runtime.config_dir(environ)),
    "recognises": lambda runtime, environ: runtime.records.recognises(b'{"type":"other"}'),
    "owns": lambda runtime, environ: runtime.records.owns({"type": "other"}),
    "settings_dir": lambda runtime, environ: runtime.install.settings_dir(environ),
    "wanted_hooks": lambda runtime, environ: runtime.install.wanted_hooks('{"hooks": {}}', "", ""),
    "wanted_files": lambda runtime, environ: runtime.install.wanted_files('{"hooks": {}}', "", ""),
    "reading its newest session": _read_newest,
}
