"""Somebody who uses every runtime there is, in one project: the real programs, in one home directory.

`CLIENTS` has a line for each. Its class is made with the directory of the machine, where npm has put its package, and
the model that answers it; `say` runs one prompt to its end, in a new session or in the last one, and `add_plugin` and
`remove_plugin` do what its user does to have the repository as a plugin, and to be rid of it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from clients.claude import Claude
from clients.claude_plugin import PLUGIN, ClaudePlugin
from clients.others import (
    CODEX,
    COPILOT,
    GEMINI,
    OPENCODE,
    QWEN,
    Codex,
    Copilot,
    Gemini,
    OpenCode,
    OtherRuntime,
    Qwen,
)
from clients.pi import PACKAGE, Pi
from fakes.fake_anthropic import FakeAnthropic
from fakes.fake_gemini import FakeGemini
from fakes.fake_llm import FakeLLM
from fakes.fake_responses import FakeResponses
from fakes.loopback import LoopbackServer

MARKETPLACE = "session-memory"


class Program(Protocol):
    """A real runtime."""

    environment: dict[str, str]

    def say(self, prompt: str, *, goes_on: bool) -> None:
        """Runs a prompt, in the last session if that `goes_on`."""

    def add_plugin(self, source: Path) -> None:
        """Takes a copy of the repository as a plugin."""

    def remove_plugin(self, source: Path) -> None:
        """Takes it out again."""


@dataclass(frozen=True)
class Client:
    """How a runtime is had: `package` is npm's ('' where it comes otherwise), `model` the fake that it speaks with, and
    `settings` the file of its user's that an install changes ('' where it adds files alone), which holds `text`."""

    program: Any
    package: str
    model: type[LoopbackServer]
    settings: str
    text: str = '{\n   "hooks": {}\n}'


class _Claude(Claude):
    def __init__(self, root: Path, place: Path, model: FakeAnthropic) -> None:
        super().__init__(root, model)

    def say(self, prompt: str, *, goes_on: bool) -> None:
        self.run(prompt, *(["--continue"] if goes_on else []))

    def add_plugin(self, source: Path) -> None:
        plugin = ClaudePlugin(self, source)
        plugin.plugin("marketplace", "add", str(source))
        plugin.plugin("install", PLUGIN)

    def remove_plugin(self, source: Path) -> None:
        plugin = ClaudePlugin(self, source)
        plugin.plugin("uninstall", PLUGIN)
        plugin.plugin("marketplace", "remove", MARKETPLACE)


class _Pi(Pi):
    def __init__(self, root: Path, place: Path, model: FakeLLM) -> None:
        super().__init__(root, model)
        del self.environment["SESSION_MEMORY_PYTHON"]

    def say(self, prompt: str, *, goes_on: bool) -> None:
        self.run(prompt, *(["--continue"] if goes_on else []))

    def add_plugin(self, source: Path) -> None:
        self.execute("install", str(source))

    def remove_plugin(self, source: Path) -> None:
        self.execute("remove", str(source))


class _Codex(Codex):
    def say(self, prompt: str, *, goes_on: bool) -> None:
        self.run(*(["resume", "--last"] if goes_on else []), prompt)

    def add_plugin(self, source: Path) -> None:
        self.execute("plugin", "marketplace", "add", str(source))
        self.execute("plugin", "add", PLUGIN)

    def remove_plugin(self, source: Path) -> None:
        self.execute("plugin", "remove", PLUGIN)
        self.execute("plugin", "marketplace", "remove", MARKETPLACE)


class _ContinuedByOption(OtherRuntime):
    def say(self, prompt: str, *, goes_on: bool) -> None:
        self.run(*(["--continue"] if goes_on else []), prompt)

    def run(self, *words: str) -> str:
        raise NotImplementedError


class _Qwen(Qwen, _ContinuedByOption):
    def add_plugin(self, source: Path) -> None:
        self.execute("extensions", "install", f"{source}:session-memory", "--consent")

    def remove_plugin(self, source: Path) -> None:
        self.execute("extensions", "uninstall", "session-memory")


class _Copilot(Copilot, _ContinuedByOption):
    def add_plugin(self, source: Path) -> None:
        self.execute("plugin", "marketplace", "add", str(source))
        self.execute("plugin", "install", PLUGIN)

    def remove_plugin(self, source: Path) -> None:
        self.execute("plugin", "uninstall", PLUGIN)
        self.execute("plugin", "marketplace", "remove", MARKETPLACE)


class _OpenCode(OpenCode, _ContinuedByOption):
    def remove_plugin(self, source: Path) -> None:
        self.plugin_file.unlink()


class _Gemini(Gemini):
    def say(self, prompt: str, *, goes_on: bool) -> None:
        # A resume in a later minute leaves an empty chat, with which the next start would delete the session's.
        for chat in (self.home / ".gemini").rglob("session-*.jsonl"):
            if b'"type":"gemini"' not in chat.read_bytes():
                chat.unlink()
        self.run(*(["--resume", "latest"] if goes_on else []), prompt)

    def add_plugin(self, source: Path) -> None:
        """It takes none: its user has the hook in the settings."""
        hook = {"type": "command", "command": f"python3 -I -S {source}/hooks/user_prompt_submit.py gemini"}
        settings = {**json.loads(self.SETTINGS), "hooks": {"BeforeAgent": [{"hooks": [hook]}]}}
        (self.home / ".gemini" / "settings.json").write_text(json.dumps(settings))

    def remove_plugin(self, source: Path) -> None:
        (self.home / ".gemini" / "settings.json").write_text(self.SETTINGS)


# By the name of the runtime.
CLIENTS = {
    "claude-code": Client(_Claude, "", FakeAnthropic, ".claude/settings.json"),
    "codex": Client(_Codex, CODEX, FakeResponses, ".codex/hooks.json"),
    "copilot": Client(_Copilot, COPILOT, FakeLLM, ""),
    "gemini": Client(_Gemini, GEMINI, FakeGemini, ".gemini/settings.json", Gemini.SETTINGS),
    "opencode": Client(_OpenCode, OPENCODE, FakeLLM, ""),
    "pi": Client(_Pi, PACKAGE, FakeLLM, ""),
    "qwen-code": Client(_Qwen, QWEN, FakeLLM, ".qwen/settings.json", '{\n   "$version": 4\n}'),
}


class User:
    """One runtime of somebody who uses them all: each `ask` is a prompt, in the same session from the second on."""

    def __init__(self, program: Program, model: LoopbackServer) -> None:
        self.program = program
        self.model = model
        self.has_begun = False

    def ask(self, prompt: str) -> str:
        """The request that the model received for a prompt, as JSON: the longest one, beside those for titles."""
        before = len(self.model.requests)
        self.program.say(prompt, goes_on=self.has_begun)
        self.has_begun = True
        with self.model.lock:
            sent = [json.dumps(request.body) for request in self.model.requests[before:]]
        return max((text for text in sent if prompt in text), key=len)
