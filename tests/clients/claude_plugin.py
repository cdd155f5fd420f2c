"""Claude Code that takes our plugin from a copy of the repository."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from clients.claude import Claude

PLUGIN = "session-memory@session-memory"
WAIT_SECONDS = 150


def wait_until(is_so: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while not is_so():
        assert time.monotonic() < deadline, f"no {what} within {WAIT_SECONDS} s"
        time.sleep(0.05)


class ClaudePlugin:
    """A user's Claude Code without us, and our marketplace, which is a copy of the repository."""

    def __init__(self, claude: Claude, source: Path) -> None:
        self.claude = claude
        self.source = source

    def plugin(self, *words: str) -> str:
        """Runs `claude plugin ...`; what it prints."""
        done = subprocess.run(
            [self.claude.executable, "plugin", *words],
            env=self.claude.environment,
            cwd=self.claude.project,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=WAIT_SECONDS,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def install(self) -> None:
        """Install the plugin from the marketplace."""
        self.plugin("marketplace", "add", str(self.source))
        self.plugin("install", PLUGIN)

    @property
    def data_dir(self) -> Path:
        return self.claude.config_dir / "plugins" / "data" / "session-memory-session-memory"

    def note(self) -> dict[str, Any]:
        """What the background set-up has noted; {} before it began."""
        path = self.data_dir / "environment.json"
        return dict(json.loads(path.read_text())) if path.exists() else {}

    def messages(self, prompt: str) -> list[str]:
        """What the user is shown by SessionStart hooks when a session begins with `prompt`."""
        done = subprocess.run(
            [self.claude.executable, "-p", prompt, "--output-format", "stream-json", "--verbose"],
            env=self.claude.environment,
            cwd=self.claude.project,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=WAIT_SECONDS,
            check=True,
        )
        records = [json.loads(line) for line in done.stdout.splitlines()]
        outputs = [
            r["stdout"]
            for r in records
            if r.get("subtype") == "hook_response" and r["stdout"].strip()
        ]
        return [
            json.loads(output)["systemMessage"] for output in outputs if "systemMessage" in output
        ]
