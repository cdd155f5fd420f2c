"""Sets up a virtual environment in `.venv` with everything the tests need, and runs them.

Without `--all` it leaves out the longest tests, those of time and memory, and those with the
clients from npm (Claude Code, Pi, Codex, Qwen Code, Copilot CLI, OpenCode, Gemini CLI), which
`--clients` adds. All arguments go to pytest.

Needs Python >= 3.10 with pip or uv, and a package index the first time."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from session_memory.app.install._installers import Installers, NoInstallerError, package_for
from session_memory.app.install.environment import _base_python

ENVIRONMENT = ROOT / ".venv"
PYTHON = ENVIRONMENT / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
STAMP = ENVIRONMENT / "session-memory-tests"  # what was installed: see `wanted`
# The validator of ATIF alone: its models need none of what Harbor depends on, nor Python 3.12.
# Without it a test skips.
HARBOR = ["--no-deps", "--ignore-requires-python", "harbor==0.26.0"]


def main() -> int:
    is_made = PYTHON.exists()
    if not is_made:
        print("Making .venv ...", flush=True)
        make_environment()
    if problem := install_packages():
        if not is_made:  # so that the next run begins anew, with what is there by then
            shutil.rmtree(ENVIRONMENT, ignore_errors=True)
        sys.exit(f"The packages that the tests need cannot be installed: {problem}")
    # half of a test's time it waits, for a client, a server or a disk
    processes = 2 * (os.cpu_count() or 1)
    options = ["-n", str(processes), "--dist", "worksteal", *sys.argv[1:]]
    # Hundreds of processes import the package: each would compile it.
    environ = {
        name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"
    }
    return subprocess.run(
        [PYTHON, "-m", "pytest", *options], cwd=ROOT, env=environ, check=False
    ).returncode


def make_environment() -> None:
    """With pip where Python brings it; without where that is a package of its own, as on Debian."""
    for options in ([], ["--without-pip"]):
        command = [sys.executable, "-m", "venv", "--clear", *options, str(ENVIRONMENT)]
        if subprocess.run(command, check=False, capture_output=True).returncode == 0:
            return
    shutil.rmtree(ENVIRONMENT, ignore_errors=True)
    sys.exit(
        f"python3 -m venv fails here; what is missing: {package_for(_base_python()) or 'the module venv'}"
    )


def install_packages() -> str:
    """Install what the tests need, unless it is there; return '', or why that failed."""
    if STAMP.is_file() and STAMP.read_text() == wanted():
        return ""
    print("Installing what the tests need ...", flush=True)
    try:
        with Installers(str(PYTHON), _base_python(), os.environ, is_cached=True) as installers:
            done = installers.install(["--editable", f"{ROOT}[dev]"])
            if not done.returncode:
                installers.install(HARBOR)
    except NoInstallerError as error:
        return f"{error}; install it first: {error.hint}" if error.hint else str(error)
    if done.returncode:
        return (done.stdout + done.stderr).strip()
    STAMP.write_text(wanted())
    return ""


def wanted() -> str:
    """Return a checksum of all that decides what is installed."""
    parts = [(ROOT / "pyproject.toml").read_bytes(), Path(__file__).read_bytes(), os.fsencode(ROOT)]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


if __name__ == "__main__":
    sys.exit(main())
