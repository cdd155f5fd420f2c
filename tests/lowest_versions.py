"""Checks the types with the lowest versions of other packages that pyproject.toml allows. `.ci/run`
does so after the linters; it takes half a minute."""

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
        mypy = [sys.executable, "-m", "mypy", "--cache-dir", f"{place}/cache"]
        commands = (
            [*uv, "venv", "--quiet", "--python", sys.executable, f"{place}/env"],
            [*uv, "pip", "install", "--quiet", "--python", python, *packages],
            [*mypy, "--python-executable", python],
        )
        for command in commands:
            done = subprocess.run(command, cwd=ROOT, env={**os.environ, **variables}, check=False)
            if done.returncode:
                return done.returncode
    return 0


if __name__ == "__main__":
    sys.exit(main())
