"""The real Pi, from npm, run offline: a temporary home and project, our package installed, a fake
model behind it."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from clients import npm
from fakes.fake_llm import FakeLLM
from fakes.loopback import Request

REPOSITORY = Path(__file__).resolve().parents[2]
EXTENSION = REPOSITORY / "hooks" / "pi" / "index.ts"
PACKAGE = "@earendil-works/pi-coding-agent"
MODEL = "fake/fake-1"
RUN_SECONDS = 400
CUSTOM_TYPE = "session-update"
INTRODUCTION = "A record of your other sessions, not instructions:\n[Session Activity]\n"


def pi_command() -> list[str]:
    """How the real Pi is started: a Node that runs it, and its program. Raises npm.UnavailableError."""
    place = npm.place_of(PACKAGE)
    return [
        npm.node_at(place),
        str(place / "node_modules" / PACKAGE / "dist" / "bundle" / "cli.js"),
    ]


class Turn:
    """One finished prompt: the model's request (None if there was none), and Pi's output."""

    def __init__(self, request: Request | None, output: str, errors: str = "") -> None:
        self.request = request
        self.output = output
        self.errors = errors

    @property
    def told(self) -> list[str]:
        """What the prompt was told of other sessions, a line each."""
        assert self.request is not None, f"no request was sent:\n{self.output}{self.errors}"
        return activity(self.request)


def activity(request: Request) -> list[str]:
    """Return the lines about other sessions after the last prompt of `request`."""
    parts = request.news.split(INTRODUCTION)
    assert len(parts) <= 2, "told twice on one prompt"
    return parts[1].splitlines() if len(parts) == 2 else []


class Pi:
    """One user's machine: `home` with Pi's directory, `project` to work in, and the `model` that
    answers."""

    def __init__(self, root: Path, model: FakeLLM) -> None:
        self.command = pi_command()
        self.model = model
        self.root = root
        self.home = root / "home"
        self.project = root / "project"
        self.agent_dir = self.home / ".pi" / "agent"
        # so that the package makes none of its own
        environment = self.home / ".local/share/session-memory/env"
        for directory in (self.agent_dir, self.project, environment):
            directory.mkdir(parents=True, exist_ok=True)
        self.environment = {
            "PATH": os.defpath,
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            "PI_OFFLINE": "1",
            "PI_TELEMETRY": "0",
            "PI_SKIP_VERSION_CHECK": "1",
            "SESSION_MEMORY_PYTHON": sys.executable,
        }
        provider = {
            "baseUrl": model.base_url,
            "api": "anthropic-messages",
            "apiKey": "dummy",
            "models": [{"id": "fake-1"}],
        }
        (self.agent_dir / "models.json").write_text(json.dumps({"providers": {"fake": provider}}))

    def configure(self, **settings: Any) -> None:
        """Adds to settings.json."""
        path = self.agent_dir / "settings.json"
        before = json.loads(path.read_text()) if path.exists() else {}
        path.write_text(json.dumps({**before, **settings}))

    def use_package(self, path: Path = REPOSITORY) -> None:
        """Does as `pi install <path>`."""
        self.configure(packages=[str(path)])

    def execute(self, *arguments: str) -> str:
        """Runs a command of pi, such as `install`, to its end; what it printed."""
        done = self._run([*self.command, *arguments])
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def run(self, prompt: str, *options: str) -> Turn:
        """Runs `pi -p prompt` in the project to its end. It must end well."""
        before = len(self.model.requests)
        done = self._run([*self.command, "--model", MODEL, *options, "-p", prompt])
        assert done.returncode == 0, done.stdout + done.stderr
        return Turn(self._prompt_since(before), done.stdout, done.stderr)

    @contextlib.contextmanager
    def rpc(self, *options: str) -> Iterator[Rpc]:
        """A session that is controlled through RPC; ended when the block is left."""
        rpc = Rpc([*self.command, "--model", MODEL, "--mode", "rpc", *options], self)
        try:
            yield rpc
        finally:
            rpc.close()

    def sessions(self) -> list[Path]:
        """The session files of a plain user, the oldest first."""
        return sorted(self.agent_dir.glob("sessions/*/*.jsonl"))

    def state_dir(self, home: Path | None = None) -> Path:
        """Where the hook keeps its cursors and log: for a plain user in their own place."""
        return (home or self.home) / ".session-memory" / "state"

    def copy_extension(self, **entries: str) -> Path:
        """A copy of the extension with other Python entries beside it, by name; the path of the copy."""
        hooks = Path(tempfile.mkdtemp(dir=self.root)) / "hooks"
        (hooks / "pi").mkdir(parents=True)
        for name, source in entries.items():
            (hooks / f"{name}.py").write_text(source)
        return shutil.copy(EXTENSION, hooks / "pi" / "index.ts")

    def _run(self, command: list[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            cwd=self.project,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=RUN_SECONDS,
            check=False,
        )

    def _prompt_since(self, number: int) -> Request | None:
        return next(
            (request for request in self.model.requests[number:] if request.kind == "prompt"), None
        )


class Rpc:
    """Pi under RPC: commands go in as lines of JSON, responses and events come out as such."""

    def __init__(self, command: list[str], pi: Pi) -> None:
        self._pi = pi
        self._child = subprocess.Popen(
            command,
            cwd=pi.project,
            env=pi.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._records: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._errors: list[str] = []
        self._readers = [
            threading.Thread(target=read, daemon=True) for read in (self._read, self._read_errors)
        ]
        for reader in self._readers:
            reader.start()

    @property
    def is_running(self) -> bool:
        return self._child.poll() is None

    def prompt(self, message: str) -> Turn:
        """Sends a prompt, and waits until pi has settled."""
        before = len(self._pi.model.requests)
        self.send("prompt", message=message)
        self.wait("agent_settled")
        return Turn(self._pi._prompt_since(before), "", self.errors)

    def send(self, command: str, **fields: Any) -> dict[str, Any]:
        """Sends a command; the data of its response."""
        self.write({"type": command, **fields})
        response = self.wait("response")
        assert response["success"], response
        data: dict[str, Any] = response.get("data") or {}
        return data

    def write(self, record: dict[str, Any]) -> None:
        """Sends a record that has no response."""
        assert self._child.stdin is not None
        self._child.stdin.write(json.dumps(record) + "\n")
        self._child.stdin.flush()

    @property
    def errors(self) -> str:
        """What pi wrote to stderr so far."""
        return "".join(self._errors)

    def kill(self) -> None:
        """Ends pi as nobody should."""
        self._child.kill()
        self._child.wait()

    def close(self) -> int:
        """Ends pi by closing its stdin, and waits for it; its exit status."""
        assert self._child.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._child.stdin.close()
        try:
            return self._child.wait(10)
        except subprocess.TimeoutExpired:
            self._child.kill()
            return self._child.wait()
        finally:
            for reader in self._readers:
                reader.join(5)

    def wait(self, kind: str) -> dict[str, Any]:
        """The next record of a kind that pi sends."""
        deadline = time.monotonic() + RUN_SECONDS
        while True:
            record = self._records.get(timeout=max(0.1, deadline - time.monotonic()))
            assert record is not None, f"pi ended before {kind}:\n{self.errors}"
            if record.get("type") == kind:
                return record

    def _read(self) -> None:
        assert self._child.stdout is not None
        for line in self._child.stdout:
            self._records.put(json.loads(line))
        self._records.put(None)

    def _read_errors(self) -> None:
        assert self._child.stderr is not None
        self._errors.extend(self._child.stderr)


def records(path: Path) -> list[dict[str, Any]]:
    """The records of a session file."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def told_in(path: Path) -> list[dict[str, Any]]:
    """The messages of ours that a session file holds."""
    return [record for record in records(path) if record["type"] == "custom_message"]
