"""The private environment: a virtual environment with the pinned dependencies, made with what a bare Python has."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path

from ..system.screen import Screen
from .interpreter import base_python, minor, python_in, version_of
from .places import Places, put_in_place, remove_others

# What is installed, in this order. The last group comes with all that is pinned.
GROUPS = {
    "basic": ("filelock", "orjson", "pyyaml"),
    "store": ("apsw",),
    "sdk": ("claude-agent-sdk", "croniter", "rich", "watchfiles"),
}
NO_INDEX = "no package index that has it could be reached"
_NO_INDEX_SIGN = "(from versions: none)"
_RECORD_FILE = "session-memory.json"
_PIP_SECONDS = 900


@dataclass
class Environment:
    """`python`, of `version`, runs the hooks. `state` is ready, made, added (to what was there) or missing;
    `problems` tell by group why it is missing."""

    python: str
    version: str
    state: str
    problems: dict[str, str] = field(default_factory=dict)

    @property
    def missing(self) -> list[str]:
        """The distributions that are not installed."""
        return names_of(self.problems)


@dataclass
class _Record:
    """What an environment was made from, kept in it: a checksum of the pins, the Python, the groups installed."""

    pins: str
    version: str
    groups: list[str] = field(default_factory=list)

    def save(self, env: Path) -> None:
        (env / _RECORD_FILE).write_text(json.dumps(asdict(self)) + "\n")


def names_of(groups: Iterable[str]) -> list[str]:
    """The distributions that these groups ask for."""
    return [name for group in groups for name in GROUPS[group]]


def missing_groups(places: Places, lock_file: Path) -> list[str]:
    """What the environment that stands lacks of what `lock_file` pins: all of it where it was made from other pins,
    or its Python is gone or has become another."""
    record = _read_record(places.env)
    if record and record.pins == _pins(lock_file) and minor(record.version) == minor(version_of(places.python)):
        return [group for group in GROUPS if group not in record.groups]
    return list(GROUPS)


def ensure(places: Places, lock_file: Path, screen: Screen, groups: Collection[str] = tuple(GROUPS)) -> Environment:
    """Makes the environment, adds what it misses of `groups`, or leaves it alone. What cannot be had is only told."""
    missing = missing_groups(places, lock_file)
    record = _read_record(places.env)
    if record is None or missing == list(GROUPS):
        return _make_anew(places, lock_file, screen, groups)
    absent = [group for group in missing if group in groups]
    problems = _fill(places.env, record, absent, lock_file, screen)
    state = "added" if len(problems) < len(absent) else "ready"
    return Environment(str(places.python), version_of(places.python), state, problems)


def _make_anew(places: Places, lock_file: Path, screen: Screen, groups: Collection[str]) -> Environment:
    """Builds a new environment beside the old one, which stays if the new one would have less."""
    pins = _pins(lock_file)
    version = version_of(base_python())
    built = places.program_dir / f"env-{pins[:8]}-{version}"
    with screen.working(f"making a private environment with Python {version}"):
        problem = _make_venv(built)
    problems = dict.fromkeys(groups, problem)
    if not problem:
        record = _Record(pins, version)
        record.save(built)
        problems = _fill(built, record, list(groups), lock_file, screen)
    old_version = version_of(places.python)
    old = _read_record(places.env) if old_version else None
    if problem or ("basic" in problems and old and "basic" in old.groups):
        shutil.rmtree(built, ignore_errors=True)
        if old_version:
            return Environment(str(places.python), old_version, "ready", problems)
        return Environment(base_python(), version, "missing", problems)
    put_in_place(built, places.env)
    remove_others(places.env)
    return Environment(str(places.python), version, "made", problems)


def _make_venv(directory: Path) -> str:
    """Makes a virtual environment, with pip where Python brings it; returns '' or why there is none."""
    problem = ""
    for options in ([], ["--without-pip"]):  # Debian keeps ensurepip in a package of its own
        shutil.rmtree(directory, ignore_errors=True)
        done = _run([base_python(), "-I", "-m", "venv", *options, str(directory)])
        if done.returncode == 0:
            return ""
        problem = _last_line(done.stdout + done.stderr)
    return problem


def _fill(env: Path, record: _Record, groups: list[str], lock_file: Path, screen: Screen) -> dict[str, str]:
    """Installs `groups` into `env`; returns for each that could not be, why."""
    pip = _pip(env)
    problems: dict[str, str] = {}
    for group in groups:
        names = GROUPS[group]
        if not pip:
            problems[group] = "this Python has no pip of version 22.3 or newer"
        elif NO_INDEX in problems.values():
            problems[group] = NO_INDEX
        else:
            with screen.working(f"installing {', '.join(names)}"):
                wanted = _pinned(names, lock_file) if group != list(GROUPS)[-1] else ["--requirement", str(lock_file)]
                done = _run([*pip, "install", "--quiet", "--no-cache-dir", "--no-deps", *wanted])
            if done.returncode:
                problems[group] = _pip_problem(done.stdout + done.stderr)
            else:
                record.groups.append(group)
                record.save(env)
    return problems


def _pinned(names: Iterable[str], lock_file: Path) -> list[str]:
    """The lines of the lock for these distributions."""
    return [line for line in lock_file.read_text().splitlines() if line.partition("==")[0] in names]


def _pip(env: Path) -> list[str]:
    """The pip that installs into `env`: its own, else the base interpreter's; [] if there is none."""
    python = str(python_in(env))
    for pip in ([python, "-I", "-m", "pip"], [base_python(), "-m", "pip", "--python", python]):
        if _run([*pip, "--version"]).returncode == 0:
            return pip
    return []


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    """Runs with the caller's PIP_* settings, but for those that would lead pip out of the environment."""
    environ = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    environ.update(PIP_USER="0", PIP_NO_INPUT="1", PIP_DISABLE_PIP_VERSION_CHECK="1")
    environ.setdefault("PIP_RETRIES", "1")
    try:
        return subprocess.run(
            command, env=environ, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
            timeout=_PIP_SECONDS, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return subprocess.CompletedProcess(command, 1, "", str(error))


def _pip_problem(output: str) -> str:
    if _NO_INDEX_SIGN in output:
        return NO_INDEX
    errors = [line for line in output.splitlines() if line.startswith("ERROR:")]
    return errors[0][len("ERROR:") :].strip() if errors else _last_line(output)


def _last_line(output: str) -> str:
    return ([line.strip() for line in output.splitlines() if line.strip()] or ["it did not say why"])[-1]


def _pins(lock_file: Path) -> str:
    return hashlib.sha256(lock_file.read_bytes()).hexdigest()


def _read_record(env: Path) -> _Record | None:
    """The record of an environment; None where there is none that can be read."""
    try:
        return _Record(**json.loads((env / _RECORD_FILE).read_bytes()))
    except (OSError, ValueError, TypeError):
        return None
