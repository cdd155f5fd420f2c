"""On a Python that is too old, programs say so in one line, and hooks only write to the log."""

from __future__ import annotations

import ast
import functools
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from install_machine import PYTHON, REPOSITORY

PROGRAMS = [REPOSITORY / "install.py", *sorted((REPOSITORY / "scripts").glob("*.py"))]
IMPORTED = [REPOSITORY / "hooks/entry.py", REPOSITORY / "hooks/old_python.py"]
HOOKS = sorted({*(REPOSITORY / "hooks").glob("*.py")} - {*IMPORTED})
SINCE_PYTHON_3 = (
    ast.JoinedStr,
    ast.AnnAssign,
    ast.NamedExpr,
    ast.Nonlocal,
    ast.AsyncFunctionDef,
    ast.Match,
)
_AS_OLD = "import runpy, sys; sys.version_info = (3, 9, 2); sys.argv[:] = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"


def runs(python: str) -> bool:
    """Whether it is a Python, and not a shim for one that is not there."""
    return subprocess.run([python, "-c", "pass"], capture_output=True, check=False).returncode == 0


@functools.cache
def old_pythons() -> list[list[str]]:
    """Real old Pythons if there are any, and always one that reports an old version."""
    real = [
        shutil.which(name) for name in ("python2.7", "python3.7", "python3.8", "python3.9", "pypy3")
    ]
    return [[PYTHON, "-c", _AS_OLD], *([found] for found in real if found and runs(found))]


def name_of(path: Path) -> str:
    return path.name


def run(python: list[str], path: Path, home: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*python, str(path)],
        input="{}",
        env={"HOME": str(home), "PATH": os.defpath},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("path", [*PROGRAMS, *HOOKS, *IMPORTED], ids=name_of)
def test_what_a_runtime_or_a_person_starts_can_be_read_by_any_python_from_2_7_on(
    path: Path,
) -> None:
    for node in ast.walk(ast.parse(path.read_text(), feature_version=(3, 4))):
        assert not isinstance(node, SINCE_PYTHON_3), f"line {getattr(node, 'lineno', '?')}"
        if isinstance(node, ast.FunctionDef):
            arguments = node.args
            assert {
                node.returns,
                *arguments.kwonlyargs,
                *(one.annotation for one in arguments.args),
            } == {None}


@pytest.mark.parametrize("path", PROGRAMS, ids=name_of)
def test_a_program_that_a_python_too_old_starts_says_so_in_one_line(
    path: Path, tmp_path: Path
) -> None:
    for python in old_pythons():
        done = run(python, path, tmp_path)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1), python
        assert "Python 3.10 or newer" in done.stderr


@pytest.mark.parametrize("path", HOOKS, ids=name_of)
def test_a_hook_that_a_python_too_old_starts_is_silent_and_logs_one_line(
    path: Path, tmp_path: Path
) -> None:
    for number, python in enumerate(old_pythons()):
        home = tmp_path / str(number)
        for _ in range(2):
            done = run(python, path, home)
            assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), python
        (line,) = (home / ".session-memory/state/hook.log").read_text().splitlines()
        assert "session-memory needs Python 3.10 or newer" in line


def test_a_hook_that_a_python_too_old_starts_is_silent_where_nothing_can_be_written(
    tmp_path: Path,
) -> None:
    (tmp_path / ".session-memory").write_text("no directory")
    done = run(old_pythons()[0], REPOSITORY / "hooks/user_prompt_submit.py", tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
