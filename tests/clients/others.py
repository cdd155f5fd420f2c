"""The real Codex and Qwen Code, from npm, run offline on a machine of their own, with a fake model behind them."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

from fakes.loopback import LoopbackServer
from filelock import FileLock

CODEX = "@openai/codex"
QWEN = "@qwen-code/qwen-code"
VERSIONS = {CODEX: "0.169.0", QWEN: "0.24.4"}
INSTALL_SECONDS = 300
RUN_SECONDS = 60


@cache
def installed(package: str) -> Path | str:
    """Where npm has put a package, with a Node that is new enough for it; or why it could not be had.

    It is installed the first time, into a cache that all checkouts share.
    """
    cache_dir = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "session-memory-tests"
    place = cache_dir / f"{package.rpartition('/')[2]}-{VERSIONS[package]}"
    if place.is_dir():
        return place
    if not shutil.which("npm"):
        return "there is no npm here to install it with"
    cache_dir.mkdir(parents=True, exist_ok=True)
    with FileLock(cache_dir / f"{place.name}.lock"):
        if place.is_dir():
            return place
        with tempfile.TemporaryDirectory(dir=cache_dir) as scratch:
            (Path(scratch) / "package.json").write_text('{"private": true}')
            packages = [f"{package}@{VERSIONS[package]}", *([f"{_node()}@22"] if package == QWEN else [])]
            command = ["npm", "install", "--no-audit", "--no-fund", "--loglevel=error", *packages]
            done = subprocess.run(command, cwd=scratch, capture_output=True, text=True, timeout=INSTALL_SECONDS)
            if done.returncode:
                return f"npm cannot install it here: {done.stderr.strip().splitlines()[-1:]}"
            os.replace(scratch, place)
            os.mkdir(scratch)  # for TemporaryDirectory to remove
    return place


def _node() -> str:
    """The npm package that carries a Node for this machine."""
    machine = {"x86_64": "x64", "amd64": "x64"}.get(platform.machine().lower(), "arm64")
    system = {"linux": "node-linux", "darwin": "node-bin-darwin" if machine == "arm64" else "node-darwin"}
    return f"{system.get(sys.platform, 'node-win')}-{machine}"


class OtherRuntime:
    """One user's machine: a home directory, a project to work in, and the model that answers."""

    def __init__(self, root: Path, package_place: Path, model: LoopbackServer) -> None:
        self.place = package_place
        self.model = model
        self.home = root / "home"
        self.project = root / "project"
        for directory in (self.home / ".claude", self.project):
            directory.mkdir(parents=True)
        self.environment = {"PATH": os.defpath, "HOME": str(self.home), "LANG": "C.UTF-8", "OPENAI_API_KEY": "dummy"}

    def execute(self, *words: str) -> str:
        """Runs the program to its end, which must be a good one; what it printed, its diagnostics included."""
        done = subprocess.run(
            [*self.command, *words], env=self.environment, cwd=self.project, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=RUN_SECONDS,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout
        return done.stdout

    @property
    def command(self) -> list[str]:
        """How it is started."""
        raise NotImplementedError

    def requests(self) -> list[str]:
        """What the model was sent so far, as JSON."""
        with self.model.lock:
            return [json.dumps(request.body) for request in self.model.requests]


class Codex(OtherRuntime):
    """Codex: a marketplace, and a plugin from it."""

    @property
    def command(self) -> list[str]:
        (binary,) = self.place.glob("node_modules/@openai/codex-*/vendor/*/bin/codex")
        return [str(binary)]

    def run(self, prompt: str) -> str:
        """Runs `codex exec`. Hooks that nobody has looked at are skipped in silence, unless that is waived."""
        provider = (
            f'{{name="fake", base_url="{self.model.base_url}/v1", wire_api="responses", env_key="OPENAI_API_KEY"}}'
        )
        settings = ('model_provider="fake"', 'model="fake-1"', f"model_providers.fake={provider}")
        options = [word for setting in settings for word in ("-c", setting)]
        return self.execute(
            "exec", "--skip-git-repo-check", "--dangerously-bypass-hook-trust", *options, prompt
        )  # fmt: skip


class Qwen(OtherRuntime):
    """Qwen Code: a plugin of Claude Code is an extension."""

    @property
    def command(self) -> list[str]:
        (node,) = self.place.glob("node_modules/node-*/bin/node*")
        (script,) = self.place.glob("node_modules/@qwen-code/qwen-code/cli-entry.js")
        return [str(node), str(script)]

    def run(self, prompt: str) -> str:
        """Runs `qwen` with a prompt."""
        self.environment.update(OPENAI_BASE_URL=f"{self.model.base_url}/v1", OPENAI_MODEL="fake-1")
        return self.execute("--auth-type", "openai", prompt)
