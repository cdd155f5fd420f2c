"""The real Codex and Qwen Code, from npm, run offline on a machine of their own, with a fake model behind them."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from clients import npm
from fakes.loopback import LoopbackServer

CODEX = "@openai/codex"
QWEN = "@qwen-code/qwen-code"
RUN_SECONDS = 60


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

    def run(self, *words: str) -> str:
        """Runs `codex exec` with a prompt, behind words like `resume --last`. Hooks that nobody has looked at are skipped in silence, unless that is waived."""
        provider = (
            f'{{name="fake", base_url="{self.model.base_url}/v1", wire_api="responses", env_key="OPENAI_API_KEY"}}'
        )
        settings = ('model_provider="fake"', 'model="fake-1"', f"model_providers.fake={provider}")
        options = [word for setting in settings for word in ("-c", setting)]
        return self.execute(
            "exec", "--skip-git-repo-check", "--dangerously-bypass-hook-trust", *options, *words
        )  # fmt: skip


class Qwen(OtherRuntime):
    """Qwen Code: a plugin of Claude Code is an extension."""

    @property
    def command(self) -> list[str]:
        (script,) = self.place.glob("node_modules/@qwen-code/qwen-code/cli-entry.js")
        return [npm.node_at(self.place), str(script)]

    def run(self, *words: str) -> str:
        """Runs `qwen` with a prompt, behind words like `--continue`."""
        self.environment.update(OPENAI_BASE_URL=f"{self.model.base_url}/v1", OPENAI_MODEL="fake-1")
        return self.execute("--auth-type", "openai", *words)
