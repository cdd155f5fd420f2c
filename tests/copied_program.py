"""A copy of the program without parts of it, and the tests that run there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
OF_TESTS = ("tests", "bench", "scripts", "skills", "templates", "docs", "findings")
SINGLE_FILES = ("pyproject.toml", "install.py", "requirements.lock")


def copy_parts(names: tuple[str, ...], to: Path) -> None:
    """Copy files and directories of the repository that are not there yet. What is compiled of them
    comes along, and counts for the files of the same time and size: to compile the package again
    takes a process longer than what it is started for."""
    for name in names:
        if (ROOT / name).is_dir() and not (to / name).exists():
            left_out = shutil.ignore_patterns(".git", "*.pyc.*")  # half written by another process
            shutil.copytree(ROOT / name, to / name, ignore=left_out, symlinks=True)
        elif not (to / name).exists():
            shutil.copy(ROOT / name, to / name)


def failures_in(copy: Path, *words: str) -> str:
    """Run tests in a copy of the program; return what pytest says if one fails, or if there is
    none, else ''."""
    copy_parts((*OF_TESTS, *SINGLE_FILES), copy)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:xdist", *words]
    kept = {name: os.environ[name] for name in ("PATH", "TMPDIR", "LANG") if name in os.environ}
    environ = {**kept, "HOME": str(copy.parent), "PYTHONPATH": str(copy)}
    done = subprocess.run(
        command, cwd=copy, env=environ, capture_output=True, text=True, timeout=550, check=False
    )
    return done.stdout + done.stderr if done.returncode else ""
