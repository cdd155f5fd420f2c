"""The real OpenClaw from npm, run offline with a fake model behind it, and a gateway if wanted."""

from __future__ import annotations

import json
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from clients import npm
from clients.others import OtherRuntime
from fakes.loopback import LoopbackServer

PACKAGE = "openclaw"
START_SECONDS = 200.0  # of a gateway
_TOKEN = "for-tests"


class OpenClaw(OtherRuntime):
    """OpenClaw with one agent, whose workspace is the project."""

    local: tuple[str, ...] = ("--local",)

    def __init__(self, root: Path, package_place: Path, model: LoopbackServer) -> None:
        super().__init__(root, package_place, model)
        provider = {
            "baseUrl": f"{model.base_url}/v1",
            "apiKey": "dummy",
            "api": "openai-completions",
            "models": [
                {"id": "fake-1", "name": "Fake", "contextWindow": 200_000, "maxTokens": 4096}
            ],
        }
        defaults = {"model": {"primary": "fake/fake-1"}, "workspace": str(self.project)}
        self.settings = {
            "models": {"providers": {"fake": provider}},
            "agents": {"defaults": defaults},
        }
        self.directory = self.home / ".openclaw"
        self.directory.mkdir()
        self.settings_file = self.directory / "openclaw.json"
        self.settings_file.write_text(json.dumps(self.settings))
        # it refuses an older Node, also for the programs that it starts
        node = Path(npm.node_at(package_place))
        self.environment["PATH"] = f"{node.parent}:{self.environment['PATH']}"

    @property
    def command(self) -> list[str]:
        (script,) = self.place.glob("node_modules/openclaw/openclaw.mjs")
        return [npm.node_at(self.place), str(script)]

    @contextmanager
    def gateway(self) -> Iterator[None]:
        """Run a gateway, without which there are no sub-agents."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        lines = self.settings_file.read_text().splitlines()
        given = json.loads("\n".join([line for line in lines if not line.startswith("//")]))
        settings = {"mode": "local", "port": port, "auth": {"mode": "token", "token": _TOKEN}}
        self.settings_file.write_text(json.dumps({**given, "gateway": settings}))
        self.environment["OPENCLAW_GATEWAY_TOKEN"] = _TOKEN
        process = subprocess.Popen(
            [*self.command, "gateway", "run", "--port", str(port)],
            env=self.environment,
            cwd=self.project,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.local = ()
        try:
            _wait_for(port)
            yield
        finally:
            process.terminate()
            process.wait(60)

    def run(self, session: str, prompt: str, *words: str) -> str:
        """Run a prompt in a session of this id, new or not."""
        named = ("--session-id", session, "--message", prompt)
        return self.execute("agent", *self.local, *words, *named)


def _wait_for(port: int) -> None:
    """Wait until something listens at a port."""
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            assert time.monotonic() < deadline, "the gateway does not listen"
            time.sleep(0.5)
