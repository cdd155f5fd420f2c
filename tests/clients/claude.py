"""The real Claude Code, run offline: a temporary home and project, our hooks in its settings, a
fake API behind it."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import uuid
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from clients.terminal import Terminal
from fakes.fake_anthropic import FakeAnthropic
from fakes.loopback import Request
from records import register

REPOSITORY = Path(__file__).resolve().parents[2]
PACKAGE = "@anthropic-ai/claude-code"
API_KEY = "sk-ant-dummy"
RUN_SECONDS = 400


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

    @property
    def command(self) -> list[str]:
        """How it is started."""
        return [self.executable]

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
