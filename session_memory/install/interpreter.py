"""Interpreters: the one that runs this, the one that runs the hooks, and what they are."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

_RUN_SECONDS = 30
OLDEST = (3, 10)


def base_python() -> str:
    """The real path of the interpreter that runs this, or of the one that its virtual environment was made from."""
    return os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable)


def python_in(env: Path) -> Path:
    """Where the interpreter of a virtual environment lies."""
    return env / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def version_of(python: str | Path) -> str:
    """Its version such as 3.11.7; '' if it does not run."""
    code = "import sys; print('.'.join(map(str, sys.version_info[:3])))"
    try:
        done = subprocess.run(
            [str(python), "-I", "-S", "-c", code], stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=_RUN_SECONDS, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def minor(version: str) -> str:
    """3.11 for 3.11.7: what the files of an environment and compiled modules depend on."""
    return ".".join(version.split(".")[:2])
