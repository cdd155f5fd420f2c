"""Runs the tests of the hook contract, of the install and of single functions on the oldest and the
newest other Python of this machine, and says which it leaves out. `.ci/run` does so after the
suite; two minutes in all."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from session_memory.app.install._installers import Installers, NoInstallerError
from session_memory.app.install.environment import _base_python

WANTED = (("3.10",), ("3.14", "3.13"))  # of each row the first that is here
TESTS = (
    "tests/awareness/events/test_hook.py",
    "tests/app/install/test_install.py",
    "tests/awareness/install/test_settings_file.py",
    "tests/sessions/settings",
    "tests/common/text",
)
# Of pyproject.toml's `dev` what these tests import.
NEEDED = (
    "pytest",
    "pytest-timeout",
    "pytest-xdist",
    "hypothesis",
    "filelock",
    "jsonschema",
    "syrupy",
    "regex",
)


def main() -> int:
    this = "{}.{}".format(*sys.version_info)
    failed = []
    for versions in WANTED:
        found = {version: python for version in versions for python in interpreters(version)}
        version = next((one for one in versions if one in found), "")
        if this in versions and versions[0] == this:
            continue
        if not version or version == this:
            print(
                f"Left out: the tests on Python {' or '.join(versions)}, which is not on this machine.",
                flush=True,
            )
            continue
        print(f"Python {version} ...", flush=True)
        failed += [version] if run(version, found[version]) else []
    return 1 if failed else 0


def interpreters(version: str) -> Iterator[str]:
    """Yield the Pythons of a version that run: on the PATH, of pyenv, of uv."""
    places = [shutil.which(f"python{version}") or ""]
    places += map(
        str,
        Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv").glob(
            f"versions/{version}.*/bin/python3"
        ),
    )
    places += map(
        str, (Path.home() / ".local/share/uv/python").glob(f"cpython-{version}.*/bin/python3")
    )
    for python in filter(None, places):
        done = subprocess.run([python, "--version"], capture_output=True, text=True, check=False)
        if re.match(rf"Python {re.escape(version)}\.\d+\s*$", done.stdout):
            yield python


def run(version: str, python: str) -> int:
    """Run TESTS on a Python, in an environment that is made once; return the exit code."""
    place = ROOT / ".venv" / "others" / version
    its_python = str(place / "bin" / "python")
    if not Path(its_python).exists():
        subprocess.run([python, "-m", "venv", "--clear", "--without-pip", place], check=True)
    try:
        with Installers(its_python, _base_python(), os.environ, is_cached=True) as installers:
            done = installers.install(["--editable", str(ROOT), *NEEDED])
    except NoInstallerError as error:
        print(f"Left out: {error}", flush=True)
        return 1
    if done.returncode:
        print(done.stdout + done.stderr, flush=True)
        return 1
    options = ["-n", "2", "-p", "no:cacheprovider", *sys.argv[1:]]
    return subprocess.run(
        [its_python, "-m", "pytest", *options, *TESTS], cwd=ROOT, check=False
    ).returncode


if __name__ == "__main__":
    sys.exit(main())
