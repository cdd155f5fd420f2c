"""Sets up a virtual environment in `.venv` with everything the tests need, and runs them.

Without `--all` it leaves out the longest tests, those of time and memory, and those with the clients from npm (Pi, Codex,
Qwen Code, Copilot CLI, OpenCode, Gemini CLI), which `--clients` adds. All arguments go to pytest.

Needs Python >= 3.10 with pip, and a package index the first time.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ENVIRONMENT = ROOT / ".venv"
PYTHON = ENVIRONMENT / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def main() -> int:
    if not PYTHON.exists():
        print("Making .venv ...", flush=True)
        make_environment()
    print("Installing what the tests need ...", flush=True)
    subprocess.run([*pip(), "install", "--quiet", "--editable", f"{ROOT}[dev]"], check=True)
    # The validator of ATIF alone: its models need none of what Harbor depends on, nor Python 3.12. Without it a test skips.
    harbor = ["--quiet", "--no-deps", "--ignore-requires-python", "harbor==0.26.0"]
    subprocess.run([*pip(), "install", *harbor], check=False)
    processes = 2 * (os.cpu_count() or 1)  # half of a test's time it waits, for a client, a server or a disk
    options = ["-n", str(processes), "--dist", "worksteal", *sys.argv[1:]]
    # Hundreds of processes import the package: each would compile it.
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return subprocess.run([PYTHON, "-m", "pytest", *options], cwd=ROOT, env=environ, check=False).returncode


def make_environment() -> None:
    """With pip where Python brings it; without where that is a package of its own, as on Debian."""
    for options in ([], ["--without-pip"]):
        command = [sys.executable, "-m", "venv", "--clear", *options, str(ENVIRONMENT)]
        if subprocess.run(command, check=False, capture_output=True).returncode == 0:
            return
    sys.exit("python3 -m venv fails here: install your system's package for it (python3-venv)")


def pip() -> list[str]:
    """The environment's own pip, else this interpreter's, told to install into the environment."""
    own = [str(PYTHON), "-m", "pip"]
    if subprocess.run([*own, "--version"], check=False, capture_output=True).returncode == 0:
        return own
    return [sys.executable, "-m", "pip", "--python", str(PYTHON)]


if __name__ == "__main__":
    sys.exit(main())
