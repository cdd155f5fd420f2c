"""Checks format, style and types with the lowest versions of ruff, mypy and all other packages that
pyproject.toml allows, so that an index with older versions than the newest judges the same. `.ci/run`
does so after the linters; it takes a minute."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from session_memory.app.install._pip_settings import uv_variables


def main() -> int:
    variables = uv_variables(os.environ)
    if variables is None:
        print("Left out: the lowest versions, since uv cannot be told pip's settings here.")
        return 0
    with tempfile.TemporaryDirectory() as place:
        python = f"{place}/env/bin/python"
        uv = [sys.executable, "-m", "uv"]
        packages = ["--resolution", "lowest-direct", "--editable", f"{ROOT}[dev]"]
        ruff = [python, "-m", "ruff"]
        commands = (
            [*uv, "venv", "--quiet", "--python", sys.executable, f"{place}/env"],
            [*uv, "pip", "install", "--quiet", "--python", python, *packages],
            [*ruff, "check", "--no-cache", "."],
            [*ruff, "format", "--no-cache", "--check", "."],
            [python, "-m", "mypy", "--cache-dir", f"{place}/cache"],
        )
        for command in commands:
            done = subprocess.run(command, cwd=ROOT, env={**os.environ, **variables}, check=False)
            if done.returncode:
                return done.returncode
    return 0


if __name__ == "__main__":
    sys.exit(main())
