"""The private environment: a virtual environment of pinned dependencies, made by a bare Python."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from ...common.system.files import path_stamp
from ...common.system.terminal import Terminal
from ...common.text.format import enumerated
from ...sessions.settings.program import ENVIRONMENT_RECORD, EXTRAS, LARGE, ProgramPaths, python_in
from ._installers import NO_PIP, Installers, NoInstallerError, package_for
from ._program_directory import remove_replaced, replace_directory

OLDEST_PYTHON = (3, 10)
# The parts to install, in this order. The lock file has a section for each, with the requirements
# that earlier parts lack.
PARTS = {
    "basic": ("orjson", "pyyaml"),
    "store": ("apsw",),
    "watch": ("rich", "shtab", "watchfiles"),
    "page": ("jinja2", "markdown-it-py", "pygments", "starlette", "uvicorn"),
}
NO_INDEX = "no package index with these packages could be reached"
_NOT_IN_INDEX = "(from versions: none)"  # also what pip says of an index that it cannot reach
_UNREACHABLE = ("after connection broken by", "Could not fetch URL", "error sending request")
_ERROR = re.compile(r"\s*error:", re.IGNORECASE)
_START_TIMEOUT_SECONDS = 30
_versions: dict[tuple[object, ...], str] = {}  # of interpreters that were asked, by their file


@dataclass
class Environment:
    """The environment of the hooks, which `python` runs; `version` is this Python's.

    `state` is ready, made, added (to an existing one) or missing. `problems` has the reason for
    each part that could not be installed, and `remedy` the command that makes their install
    possible, or ''."""

    python: str
    version: str
    state: str
    problems: dict[str, str] = field(default_factory=dict)
    remedy: str = ""

    @property
    def missing(self) -> list[str]:
        return names_of(self.problems)


@dataclass
class _Record:
    """The origin of an environment, stored in it.

    It has a checksum of the pins, the version of Python, the installed parts, and the `remedy` that
    `settings.program.how_to_add` reads."""

    pins: str
    version: str
    parts: list[str] = field(default_factory=list)
    remedy: str = ""


def names_of(parts: Iterable[str]) -> list[str]:
    """The distributions that these parts and extras ask for."""
    return [name for part in parts for name in (*PARTS.get(part, ()), *EXTRAS.get(part, ()))]


def sizes_of(extras: Iterable[str]) -> str:
    """Return the distributions of large extras and their sizes, for the question to a person."""
    return enumerated([f"{names_of([name])[0]} ({LARGE[name]})" for name in extras])


def _base_python() -> str:
    """Return the real path of this interpreter, or of the base of its virtual environment."""
    return os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable)


def version_of(python: str | Path) -> str:
    """Return the version of an interpreter, such as 3.11.7; '' if it does not run.

    An interpreter is asked once, unless its file changes: an install needs the version six times."""
    file = str(python), *path_stamp(str(python)), os.access(python, os.X_OK)
    version = _versions.get(file) or _asked_version(python)
    if version:
        _versions[file] = version
    return version


def _asked_version(python: str | Path) -> str:
    code = "import sys; print('.'.join(map(str, sys.version_info[:3])))"
    try:
        done = subprocess.run(
            [str(python), "-I", "-S", "-c", code],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_START_TIMEOUT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def minor(version: str) -> str:
    """Return 3.11 for 3.11.7; installed packages and compiled modules depend only on this part."""
    return ".".join(version.split(".")[:2])


def missing_parts(paths: ProgramPaths, lock_file: Path) -> list[str]:
    """Return the parts that the environment lacks.

    These are all parts if `lock_file` has other pins than the environment, or if its Python is gone
    or has another version."""
    record = _read_record(paths.env)
    if (
        record
        and record.pins == _pins(lock_file)
        and minor(record.version) == minor(version_of(paths.python))
    ):
        return [part for part in PARTS if part not in record.parts]
    return list(PARTS)


def installed_extras(paths: ProgramPaths) -> list[str]:
    """Return the extras of the environment, even an outdated one, which an install keeps."""
    record = _read_record(paths.env)
    return [name for name in EXTRAS if record and name in record.parts]


def remedy_of(paths: ProgramPaths) -> str:
    """Return the command that makes the last install's failed parts possible, or ''."""
    record = _read_record(paths.env)
    return record.remedy if record else ""


def ensure_environment(
    paths: ProgramPaths,
    lock_file: Path,
    terminal: Terminal,
    parts: Collection[str] = tuple(PARTS),
) -> Environment:
    """Make the environment, or add the missing parts of `parts`, which may include extras.

    Existing parts stay. `problems` of the result has the failed parts."""
    missing = missing_parts(paths, lock_file)
    record = _read_record(paths.env)
    if record is None or missing == list(PARTS):
        return _make_anew(
            paths, lock_file, terminal, list(dict.fromkeys([*parts, *installed_extras(paths)]))
        )
    absent = [part for part in (*PARTS, *EXTRAS) if part in parts and part not in record.parts]
    problems, remedy = _install(paths.env, record, absent, lock_file, terminal)
    state = "added" if len(problems) < len(absent) else "ready"
    return Environment(str(paths.python), version_of(paths.python), state, problems, remedy)


def _make_anew(
    paths: ProgramPaths, lock_file: Path, terminal: Terminal, parts: Collection[str]
) -> Environment:
    """Build a new environment, and replace the old one unless that had more."""
    pins = _pins(lock_file)
    version = version_of(_base_python())
    built = paths.program_dir / f"env-{pins[:8]}-{version}"
    with terminal.working(f"making a private environment with Python {version}"):
        problem = _make_venv(built)
    problems, remedy = dict.fromkeys(parts, problem), package_for(_base_python()) if problem else ""
    if not problem:
        record = _Record(pins, version)
        _write_record(built, record)
        problems, remedy = _install(built, record, list(parts), lock_file, terminal)
    old_version = version_of(paths.python)
    old = _read_record(paths.env) if old_version else None
    if problem or ("basic" in problems and old and "basic" in old.parts):
        shutil.rmtree(built, ignore_errors=True)
        if old_version:
            return Environment(str(paths.python), old_version, "ready", problems, remedy)
        return Environment(_base_python(), version, "missing", problems, remedy)
    replace_directory(built, paths.env)
    remove_replaced(paths.env)
    return Environment(str(paths.python), version, "made", problems, remedy)


def _make_venv(directory: Path) -> str:
    """Make a virtual environment without pip; return the reason if it fails, else ''.

    Copying pip into it would take 4 seconds."""
    shutil.rmtree(directory, ignore_errors=True)
    command = [_base_python(), "-I", "-m", "venv", "--without-pip", str(directory)]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace"
        )
    except OSError as error:
        return str(error)
    return _last_line(done.stdout + done.stderr) if done.returncode else ""


class _Installation:
    """An installation of parts into an environment, recorded in the environment."""

    def __init__(self, env: Path, record: _Record, lock_file: Path, installers: Installers) -> None:
        self.env, self.record, self.lock_file = env, record, lock_file
        self.installers = installers
        self.problems: dict[str, str] = {}
        self.remedy = ""

    def install(self, parts: list[str]) -> None:
        """Install parts together, since each start of pip takes a second.

        If that fails, install them one by one, because some may succeed."""
        problem = NO_INDEX if NO_INDEX in self.problems.values() else self._problem_of(parts)
        if not problem:
            self.record.parts += parts
            _write_record(self.env, self.record)
        elif len(parts) == 1 or problem in (NO_INDEX, NO_PIP) or self.remedy:
            self.problems |= dict.fromkeys(parts, problem)
        else:
            for part in parts:
                self.install([part])

    def _problem_of(self, parts: list[str]) -> str:
        """Install parts; return '', or why they could not be."""
        try:
            done = self.installers.install(_wanted(parts, self.lock_file))
        except NoInstallerError as error:
            self.remedy = error.hint
            return str(error)
        said = done.stdout + done.stderr
        if not done.returncode:
            return ""
        if any(sign in said for sign in _UNREACHABLE) or (
            len(parts) == 1 and _NOT_IN_INDEX in said
        ):
            return NO_INDEX
        errors = [
            line.strip()[len("error:") :].strip()
            for line in said.splitlines()
            if _ERROR.match(line)
        ]
        return errors[0] if errors else _last_line(said)


def _install(
    env: Path, record: _Record, parts: list[str], lock_file: Path, terminal: Terminal
) -> tuple[dict[str, str], str]:
    """Install parts into `env`; return the reason for each failed part, and a remedy.

    The remedy is a command that installs pip, or ''."""
    if not parts:
        return {}, ""
    pinned = [part for part in parts if f"# [{part}]\n" in lock_file.read_text()]
    with Installers(str(python_in(env)), _base_python(), os.environ) as installers:
        installation = _Installation(env, record, lock_file, installers)
        for batch in filter(None, [pinned, *([part] for part in parts if part not in pinned)]):
            with terminal.working(f"installing {', '.join(names_of(batch))}"):
                installation.install(batch)
    if record.remedy != installation.remedy:
        record.remedy = installation.remedy
        _write_record(env, record)
    return installation.problems, installation.remedy


def _wanted(parts: list[str], lock_file: Path) -> list[str]:
    """Return pip's arguments for parts: their pins, or versions compatible with the other parts.

    Only extras have no pins."""
    text = lock_file.read_text()
    if f"# [{parts[0]}]\n" not in text:
        return ["--constraint", str(lock_file), *names_of(parts)]
    pins = [text.partition(f"# [{part}]\n")[2].partition("\n\n")[0] for part in parts]
    return ["--no-deps", *[line for pinned in pins for line in pinned.splitlines()]]


def _last_line(output: str) -> str:
    return (
        [line.strip() for line in output.splitlines() if line.strip()] or ["it gave no reason"]
    )[-1]


def _write_record(env: Path, record: _Record) -> None:
    values = {**vars(record)}
    values["groups"] = values.pop("parts")  # the file's name for them since 0.2.0
    (env / ENVIRONMENT_RECORD).write_text(json.dumps(values) + "\n")


def _pins(lock_file: Path) -> str:
    return hashlib.sha256(lock_file.read_bytes()).hexdigest()


def _read_record(env: Path) -> _Record | None:
    try:
        values = json.loads((env / ENVIRONMENT_RECORD).read_bytes())
        values["parts"] = values.pop("groups")
        return _Record(**values)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None
