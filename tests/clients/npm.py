"""Programs from npm, and one from PyPI, each installed once into a cache that all checkouts share."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Callable
from functools import cache
from pathlib import Path

from filelock import FileLock

_SYSTEM = {"linux": "linux", "darwin": "darwin"}.get(sys.platform, "win32")
_MACHINE = "x64" if platform.machine().lower() in ("x86_64", "amd64") else "arm64"
DROID = f"@factory/cli-{_SYSTEM}-{_MACHINE}"  # the launcher wants a version that npm lacks
HERMES = "hermes-agent"  # from PyPI, into an environment of its own
OMP = "@oh-my-pi/pi-coding-agent"
BUN = f"@oven/bun-{_SYSTEM.replace('win32', 'windows')}-{_MACHINE.replace('arm64', 'aarch64')}"
VERSIONS = {
    "@anthropic-ai/claude-code": "2.1.332",
    "@earendil-works/pi-coding-agent": "1.6.0",
    "@openai/codex": "0.171.0",
    "@qwen-code/qwen-code": "0.24.4",
    "@github/copilot": "1.0.102",
    "@google/gemini-cli": "0.61.0",
    "opencode-ai": "1.18.33",
    DROID: "0.225.2",
    "openclaw": "2026.9.2",
    OMP: "18.2.3",
    BUN: "1.4.5",
    "cline": "3.0.65",
    "@kilocode/cli": "7.7.7",
    "@moonshot-ai/kimi-code": "2.1.0",
    "jest": "29.7.0",
    HERMES: "0.19.0",
}
COMPANIONS = {OMP: (BUN,)}  # a program that runs it
PERSON = Path.home()  # where npm has its settings: HOME is another once tests run
NpmPlace = Callable[[str], Path]
NODE = 22  # what Pi and Qwen Code run on, installed beside them: the one on the PATH may be older
INSTALL_SECONDS = (
    # a slow npm fails the tests then, as one that cannot install: skipped, they would seem to have
    # run
    1800
)


class UnavailableError(Exception):
    """There is no npm here, or nothing that pip can install from."""


@cache
def place_of(package: str) -> Path:
    """The directory that npm has installed `package` into, with a Node. Raises UnavailableError if
    there is no npm."""
    cache_dir = Path(os.environ.get("XDG_CACHE_HOME") or PERSON / ".cache") / "session-memory-tests"
    runs_on = "" if package == HERMES else f"-node-{NODE}"
    place = cache_dir / f"{package.rpartition('/')[2]}-{VERSIONS[package]}{runs_on}"
    if place.is_dir():
        return place
    if runs_on and not shutil.which("npm"):
        raise UnavailableError(f"there is no npm to install {package} with")
    cache_dir.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{place}.lock"):
        if not place.is_dir():
            (_install if runs_on else _install_from_pypi)(package, place)
    return place


def node_at(place: Path) -> str:
    """The Node that was installed there."""
    (node,) = place.glob("node_modules/node-*/bin/node*")
    return str(node)


def _install(package: str, place: Path) -> None:
    with tempfile.TemporaryDirectory(dir=place.parent) as scratch:
        (Path(scratch) / "package.json").write_text('{"private": true}')
        # the Node first: the scripts of a package may need a later one than that on the PATH
        _add(f"{_node_package()}@{NODE}", Path(scratch))
        for wanted in (*COMPANIONS.get(package, ()), package):
            _add(f"{wanted}@{VERSIONS[wanted]}", Path(scratch))
        os.replace(scratch, place)
        os.mkdir(scratch)  # for TemporaryDirectory to remove


def _install_from_pypi(package: str, place: Path) -> None:
    with tempfile.TemporaryDirectory(dir=place.parent) as scratch:
        venv.create(scratch, with_pip=True)
        wanted = f"{package}=={VERSIONS[package]}"
        done = subprocess.run(
            [f"{scratch}/bin/python", "-m", "pip", "install", "--quiet", wanted],
            env={**os.environ, "HOME": str(PERSON)},
            capture_output=True,
            text=True,
            timeout=INSTALL_SECONDS,
            check=False,
        )
        if done.returncode:
            raise UnavailableError(f"pip cannot install {wanted}: {done.stderr.strip()[-200:]}")
        os.replace(scratch, place)  # its scripts name the old path, but its Python runs here
        os.mkdir(scratch)  # for TemporaryDirectory to remove


def _add(wanted: str, place: Path) -> None:
    """Install a package into a directory, with a Node from there if there is one."""
    nodes = [str(path) for path in place.glob("node_modules/node-*/bin")]
    done = subprocess.run(
        ["npm", "install", "--no-audit", "--no-fund", "--loglevel=error", wanted],
        cwd=place,
        env={
            **os.environ,
            "HOME": str(PERSON),
            "PATH": os.pathsep.join([*nodes, os.environ.get("PATH", os.defpath)]),
        },
        capture_output=True,
        text=True,
        timeout=INSTALL_SECONDS,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"npm cannot install {wanted}: {done.stderr.strip().splitlines()[-1:]}")


def _node_package() -> str:
    """The npm package that carries a Node for this machine."""
    machine = {"x86_64": "x64", "amd64": "x64"}.get(platform.machine().lower(), "arm64")
    system = {
        "linux": "node-linux",
        "darwin": "node-bin-darwin" if machine == "arm64" else "node-darwin",
    }
    return f"{system.get(sys.platform, 'node-win')}-{machine}"
