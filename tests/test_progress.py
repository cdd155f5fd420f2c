"""What a test run says of itself, by a real one."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parent
SOURCE = """
import time

def test_one():
    pass

def test_two():
    assert 1 == 2, "the sum is wrong"

def test_three():
    pass
"""


def run(directory: Path, *words: str, conftest: str = "") -> str:
    (directory / "test_sums.py").write_text(SOURCE)
    (directory / "conftest.py").write_text(f'{conftest}pytest_plugins = ["progress"]\n')
    environ = {
        "PATH": os.defpath,
        "HOME": str(directory),
        "PYTHONPATH": f"{TESTS}{os.pathsep}{TESTS.parent}",
    }
    environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "xdist",
        "--rootdir",
        str(directory),
        *words,
    ]
    done = subprocess.run(
        command, cwd=directory, env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stdout


def test_it_says_its_size_its_duration_and_every_failure_as_it_happens(tmp_path: Path) -> None:
    said = run(tmp_path, "-n", "2")
    assert "3 tests in 1 file, by 2 processes: about " in said
    assert "(a guess for 3 that were not run here yet)" in said
    assert_failure_is_told(said)
    said = run(tmp_path)
    assert "3 tests in 1 file: about " in said
    assert "a guess" not in said
    assert_failure_is_told(said)


def test_its_end_lists_the_slowest_tests_and_what_each_took(tmp_path: Path) -> None:
    for words in ([], ["-n", "2"]):
        said = run(tmp_path, *words, conftest="import progress\nprogress.LEAST_SECONDS = 0\n")
        _, title, listed = said.partition("the slowest 3 of 3 tests: ")
        assert title, said
        lines = re.findall(r"^ +([\d.]+) s test_sums\.py::(test_\w+)$", listed, re.MULTILINE)
        assert {name for _, name in lines} == {"test_one", "test_two", "test_three"}
        seconds = [float(took) for took, _ in lines]
        assert seconds == sorted(seconds, reverse=True)


def assert_failure_is_told(said: str) -> None:
    failed = r"^FAILED test_sums.py::test_two \(call, [\d.]+ s\): AssertionError: the sum is wrong$"
    assert re.search(failed, said.partition("= FAILURES =")[0], re.MULTILINE)
