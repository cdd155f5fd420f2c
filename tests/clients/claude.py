"""The real Claude Code, run offline: a temporary home and project, our hooks in its settings, a
fake API behind it."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from fakes.fake_anthropic import FakeAnthropic
from fakes.loopback import Request
from records import register

REPOSITORY = Path(__file__).resolve().parents[2]
PACKAGE = "@anthropic-ai/claude-code"
API_KEY = "sk-ant-dummy"
RUN_SECONDS = 400
WAIT_SECONDS = 60
_ESCAPES = re.compile(rb"\x1b\[[0-9;?<>=]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b.")


def claude_executable() -> str | None:
    """Return the CLI in the SDK's wheel, without importing the SDK (over a second), or None."""
    spec = find_spec("claude_agent_sdk")
    found = Path(spec.origin).parent / "_bundled" / "claude" if spec and spec.origin else None
    return str(found) if found and found.is_file() else None


def _npm_executable(place: Path) -> str:
    (binary,) = place.glob(f"node_modules/{PACKAGE}-*/claude*")
    return str(binary)


def activity(request: Request) -> list[str]:
    """Return the lines about other sessions added to the last prompt of `request`.

    Their heading is left out."""
    parts = request.news.split("[Session Activity]\n")
    assert len(parts) <= 2, "told twice on one prompt"
    return parts[1].split("\n\n")[0].strip().splitlines() if len(parts) == 2 else []


class Turn:
    """One finished `claude -p`: its session, its answer, and the request for it.

    The request is None for a command such as /compact."""

    def __init__(self, session_id: str, answer: str, request: Request | None) -> None:
        self.session_id = session_id
        self.answer = answer
        self.request = request

    @property
    def told(self) -> list[str]:
        """What the prompt was told of other sessions, a line each."""
        assert self.request is not None, "no request was sent"
        return activity(self.request)


class Claude:
    """One user's machine: `home` with Claude Code's configuration, `project` to work in, and the
    `api` that answers. The program is the one in npm's `place`, else the one in the SDK's wheel."""

    def __init__(self, root: Path, api: FakeAnthropic, place: Path | None = None) -> None:
        self.executable = claude_executable() or "" if place is None else _npm_executable(place)
        self.api = api
        self.home = root / "home"
        self.project = root / "project"
        self.config_dir = self.home / ".claude"
        scratch = root / "tmp"
        for directory in (self.config_dir, self.project, scratch):
            directory.mkdir(parents=True, exist_ok=True)
        self.environment = {
            "PATH": os.defpath,
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            "TERM": "xterm-256color",
            "TMPDIR": str(scratch),
            "CLAUDE_CODE_TMPDIR": str(scratch),
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "ANTHROPIC_API_KEY": API_KEY,
            "ANTHROPIC_BASE_URL": api.base_url,
        }
        self._answer_first_questions()

    def install_hooks(
        self, *, interpreter: str = sys.executable, hooks: Path = REPOSITORY / "hooks"
    ) -> None:
        """Writes settings.json with the pack's hooks as `hooks.json` of the plugin declares them."""
        declared = json.loads((REPOSITORY / "hooks" / "hooks.json").read_text())["hooks"]
        for matchers in declared.values():
            for hook in (hook for matcher in matchers for hook in matcher["hooks"]):
                command = hook["command"].replace("python3", f'"{interpreter}"', 1)
                hook["command"] = command.replace("${CLAUDE_PLUGIN_ROOT}/hooks", str(hooks))
        settings = {"hooks": declared, "permissions": {"allow": ["Bash"]}}
        (self.config_dir / "settings.json").write_text(json.dumps(settings))

    def run(self, prompt: str, *options: str) -> Turn:
        """Runs `claude -p prompt` in the project to its end."""
        before = len(self.api.prompts())
        completed = subprocess.run(
            [self.executable, "-p", prompt, "--output-format", "json", *options],
            cwd=self.project,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=RUN_SECONDS,
        )
        assert completed.returncode == 0, completed.stdout + completed.stderr
        result = json.loads(completed.stdout)
        requests = self.api.prompts()[before:]
        return Turn(result["session_id"], result["result"], requests[0] if requests else None)

    def name_session(
        self, name: str, session_id: str = "", memory_dir: str = ".session-memory"
    ) -> str:
        """Makes the project an agent home in which `name` is the session with `session_id` (a new
        one); its id."""
        session_id = session_id or str(uuid.uuid4())
        sessions_dir = self.project / memory_dir / "sessions"
        sessions_dir.mkdir(parents=True, exist_ok=True)
        register(self.project, self.home)
        (sessions_dir / f"{name}.json").write_text(json.dumps({"sessionId": session_id}))
        return session_id

    def live_session_ids(self) -> set[str]:
        """The ids of the interactive sessions that are open."""
        files = (self.config_dir / "sessions").glob("*.json")
        return {
            match
            for file in files
            for match in re.findall(r'"sessionId": ?"([0-9a-f-]{36})"', file.read_text())
        }

    def state_dir(self, home: Path | None = None) -> Path:
        """Return the directory of the hooks' cursors and log, in a plain user's own place."""
        return (home or self.home) / ".session-memory" / "state"

    @contextlib.contextmanager
    def terminal(self, *options: str) -> Iterator[Terminal]:
        """An interactive session in the project; ended when the block is left."""
        terminal = Terminal([self.executable, *options], self.project, self.environment)
        try:
            terminal.wait(lambda: "❯" in terminal.text(), "the input line")
            yield terminal
        finally:
            terminal.close()

    def _answer_first_questions(self) -> None:
        """What the interactive CLI asks on its first start: the theme, the API key, whether to
        trust the project."""
        answers: dict[str, Any] = {
            "hasCompletedOnboarding": True,
            "theme": "dark",
            "customApiKeyResponses": {"approved": [API_KEY[-20:]], "rejected": []},
            "projects": {str(self.project): {"hasTrustDialogAccepted": True}},
        }
        (self.home / ".claude.json").write_text(json.dumps(answers))


class Terminal:
    """A program in a pseudo-terminal: what it drew so far, and a keyboard."""

    def __init__(self, command: list[str], directory: Path, environment: dict[str, str]) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        self._child = subprocess.Popen(
            command,
            cwd=directory,
            env=environment,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
        )
        os.close(slave)
        self._drawn = bytearray()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def text(self) -> str:
        """Everything drawn so far, without escape sequences."""
        return _ESCAPES.sub(b"", bytes(self._drawn)).decode("utf-8", "replace")

    def enter(self, line: str) -> None:
        """Type a line and, once it shows, Return; both at once would count as pasted text."""
        shown = self._compact().count(line.replace(" ", ""))
        os.write(self._master, line.encode())
        self.wait(lambda: self._compact().count(line.replace(" ", "")) > shown, f"{line!r} to show")
        os.write(self._master, b"\r")

    def press(self, key: str) -> None:
        """Presses a key."""
        os.write(self._master, key.encode())

    def wait(self, is_so: Callable[[], bool], what: str) -> None:
        """Wait until `is_so`. Fail with the screen after too long, or if the program ends."""
        deadline = time.monotonic() + WAIT_SECONDS
        while not is_so():
            assert self._child.poll() is None, (
                f"the CLI ended before {what}:\n{self.text()[-2000:]}"
            )
            assert time.monotonic() < deadline, (
                f"no {what} within {WAIT_SECONDS} s:\n{self.text()[-2000:]}"
            )
            time.sleep(0.02)

    def close(self) -> None:
        """End the program and wait for it, then end its process group, such as a launcher's child."""
        self._child.terminate()
        try:
            self._child.wait(5)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._child.pid, signal.SIGKILL)
        self._reader.join(5)
        os.close(self._master)

    def _compact(self) -> str:
        """Return the text without blanks, because a terminal program may move the cursor instead."""
        return "".join(self.text().split())

    def _read(self) -> None:
        while True:
            try:
                block = os.read(self._master, 65536)
            except OSError:
                return
            if not block:
                return
            self._drawn += block


def resume(claude: Claude, turn: Turn, prompt: str, *options: str) -> Turn:
    return claude.run(prompt, "--resume", turn.session_id, *options)


def ask(terminal: Terminal, api: FakeAnthropic, prompt: str) -> None:
    """Type a prompt and wait until the API has its request.

    The request of a cancelled prompt may come first."""
    before = len(api.prompts())
    terminal.enter(prompt)
    terminal.wait(
        lambda: any(prompt in each.text for each in api.prompts()[before:]),
        f"the request for {prompt!r}",
    )
