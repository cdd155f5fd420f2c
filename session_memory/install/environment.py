"""The private environment: a virtual environment with the pinned dependencies, made by a bare Python."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from ..settings.program import ProgramPaths, python_in
from ..system.terminal import Terminal
from .file_changes import remove_replaced, replace_directory

OLDEST_PYTHON = (3, 10)
# What is installed, in this order. The lock file has a part for each, with all that it needs beyond those before it.
GROUPS = {
    "basic": ("orjson", "pyyaml"),
    "store": ("apsw",),
    "watch": ("rich", "shtab", "watchfiles"),
    "page": ("jinja2", "markdown-it-py", "pygments", "starlette", "uvicorn"),
}
# What is installed only where it is asked for or used, since it is large or few need it, and stays from then on.
EXTRAS = {
    "sdk": ("claude-agent-sdk", "croniter"),
    "graphiti": ("graphiti-core[kuzu]>=0.31.1", "httpx>=0.27"),
    "team": ("psycopg[binary]>=3.2",),
    "zstd": ("zstandard>=0.22",),
}
NO_INDEX = "no package index that has it could be reached"
_NO_INDEX_SIGN = "(from versions: none)"
_RECORD_FILE = "session-memory.json"
_PIP_TIMEOUT_SECONDS = 900
_START_TIMEOUT_SECONDS = 30


@dataclass
class Environment:
    """`python`, of `version`, runs the hooks. `state` is ready, made, added (to what was there) or missing;
    `problems` says for each group that could not be installed, why."""

    python: str
    version: str
    state: str
    problems: dict[str, str] = field(default_factory=dict)

    @property
    def missing(self) -> list[str]:
        return names_of(self.problems)


@dataclass
class _Record:
    """The origin of an environment, kept in it: a checksum of the pins, the Python, the groups installed."""

    pins: str
    version: str
    groups: list[str] = field(default_factory=list)


def names_of(groups: Iterable[str]) -> list[str]:
    """The distributions that these groups and extras ask for."""
    return [name for group in groups for name in (*GROUPS.get(group, ()), *EXTRAS.get(group, ()))]


def base_python() -> str:
    """The real path of the interpreter that runs this, or of the one that its virtual environment was made from."""
    return os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable)


def version_of(python: str | Path) -> str:
    """The version of an interpreter, such as 3.11.7; '' if it does not run."""
    code = "import sys; print('.'.join(map(str, sys.version_info[:3])))"
    try:
        done = subprocess.run(
            [str(python), "-I", "-S", "-c", code], stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=_START_TIMEOUT_SECONDS, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def minor(version: str) -> str:
    """3.11 for 3.11.7: installed packages and compiled modules depend on no more."""
    return ".".join(version.split(".")[:2])


def missing_groups(paths: ProgramPaths, lock_file: Path) -> list[str]:
    """The groups that the environment lacks; all of them if `lock_file` has other pins than those it was made from, or
    its Python is gone or of another version."""
    record = _read_record(paths.env)
    if record and record.pins == _pins(lock_file) and minor(record.version) == minor(version_of(paths.python)):
        return [group for group in GROUPS if group not in record.groups]
    return list(GROUPS)


def ensure_environment(
    paths: ProgramPaths, lock_file: Path, terminal: Terminal, groups: Collection[str] = tuple(GROUPS)
) -> Environment:
    """Makes the environment, or adds what it lacks of `groups`, which may name extras too; those that it has stay. What
    cannot be installed is told in `problems`."""
    missing = missing_groups(paths, lock_file)
    record = _read_record(paths.env)
    if record is None or missing == list(GROUPS):
        kept = [name for name in EXTRAS if record and name in record.groups]
        return _make_anew(paths, lock_file, terminal, list(dict.fromkeys([*groups, *kept])))
    absent = [group for group in (*GROUPS, *EXTRAS) if group in groups and group not in record.groups]
    problems = _install(paths.env, record, absent, lock_file, terminal)
    state = "added" if len(problems) < len(absent) else "ready"
    return Environment(str(paths.python), version_of(paths.python), state, problems)


def _make_anew(paths: ProgramPaths, lock_file: Path, terminal: Terminal, groups: Collection[str]) -> Environment:
    """Builds a new environment beside the old one, and keeps the old one where the new one would have less."""
    pins = _pins(lock_file)
    version = version_of(base_python())
    built = paths.program_dir / f"env-{pins[:8]}-{version}"
    with terminal.working(f"making a private environment with Python {version}"):
        problem = _make_venv(built)
    problems = dict.fromkeys(groups, problem)
    if not problem:
        record = _Record(pins, version)
        (built / _RECORD_FILE).write_text(json.dumps(vars(record)) + "\n")
        problems = _install(built, record, list(groups), lock_file, terminal)
    old_version = version_of(paths.python)
    old = _read_record(paths.env) if old_version else None
    if problem or ("basic" in problems and old and "basic" in old.groups):
        shutil.rmtree(built, ignore_errors=True)
        if old_version:
            return Environment(str(paths.python), old_version, "ready", problems)
        return Environment(base_python(), version, "missing", problems)
    replace_directory(built, paths.env)
    remove_replaced(paths.env)
    return Environment(str(paths.python), version, "made", problems)


def _make_venv(directory: Path) -> str:
    """Makes a virtual environment without pip, whose copy takes 4 seconds; returns '' or why there is none."""
    shutil.rmtree(directory, ignore_errors=True)
    done = _run([base_python(), "-I", "-m", "venv", "--without-pip", str(directory)])
    return _last_line(done.stdout + done.stderr) if done.returncode else ""


def _install(env: Path, record: _Record, groups: list[str], lock_file: Path, terminal: Terminal) -> dict[str, str]:
    """Installs `groups` into `env`; returns for each that could not be installed, why."""
    pip = _pip(env) if groups else []  # to ask for its version takes half a second
    problems: dict[str, str] = {}
    for group in groups:
        names = names_of([group])
        if not pip:
            problems[group] = "this Python has no pip of version 22.3 or newer, nor ensurepip"
        elif NO_INDEX in problems.values():
            problems[group] = NO_INDEX
        else:
            with terminal.working(f"installing {', '.join(names)}"):
                done = _run([*pip, "install", "--quiet", "--no-cache-dir", *_wanted(group, lock_file)])
            if done.returncode:
                said = done.stdout + done.stderr
                errors = [
                    line.removeprefix("ERROR:").strip() for line in said.splitlines() if line.startswith("ERROR:")
                ]
                problems[group] = NO_INDEX if _NO_INDEX_SIGN in said else errors[0] if errors else _last_line(said)
            else:
                record.groups.append(group)
                (env / _RECORD_FILE).write_text(json.dumps(vars(record)) + "\n")
    return problems


def _wanted(group: str, lock_file: Path) -> list[str]:
    """Return pip's arguments for a group: its pins, or, for an extra without pins, versions that fit the others."""
    _, is_pinned, rest = lock_file.read_text().partition(f"# [{group}]\n")
    if not is_pinned:
        return ["--constraint", str(lock_file), *EXTRAS[group]]
    return ["--no-deps", *rest.partition("\n\n")[0].splitlines()]


def _pip(env: Path) -> list[str]:
    """The command of pip that installs into `env`: the base interpreter's, else the one that Python brings; or []."""
    python = str(python_in(env))
    pip = [base_python(), "-m", "pip", "--python", python]
    if _run([*pip, "--version"]).returncode == 0:
        return pip
    done = _run([python, "-I", "-m", "ensurepip"])
    return [python, "-I", "-m", "pip"] if done.returncode == 0 else []


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    """Runs with the caller's PIP_* settings, but for those that would have pip install somewhere else."""
    environ = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    environ.update(PIP_USER="0", PIP_NO_INPUT="1", PIP_DISABLE_PIP_VERSION_CHECK="1")
    environ.setdefault("PIP_RETRIES", "1")
    try:
        return subprocess.run(
            command, env=environ, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
            timeout=_PIP_TIMEOUT_SECONDS, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return subprocess.CompletedProcess(command, 1, "", str(error))


def _last_line(output: str) -> str:
    return ([line.strip() for line in output.splitlines() if line.strip()] or ["it did not say why"])[-1]


def _pins(lock_file: Path) -> str:
    return hashlib.sha256(lock_file.read_bytes()).hexdigest()


def _read_record(env: Path) -> _Record | None:
    try:
        return _Record(**json.loads((env / _RECORD_FILE).read_bytes()))
    except (OSError, ValueError, TypeError):
        return None
