"""Somebody who uses every runtime in one project: the real programs, in one home directory.

`CLIENTS` has a line for each. Its class is created with the directory of the machine, where npm has
put its package, and the model that answers it. `say` runs one prompt to its end, in a new session
or in an earlier one. `add_plugin` and `remove_plugin` do what a user does to add the repository as
a plugin and remove it. It edits files and runs commands without asking.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from shutil import rmtree
from typing import Any, Protocol

from clients import claude, cline, omp, openclaw, pi
from clients.claude import Claude
from clients.claude_plugin import PLUGIN, ClaudePlugin
from clients.cline import Cline
from clients.hermes import CONFIG, HERMES, Hermes
from clients.omp import Omp
from clients.openclaw import OpenClaw
from clients.others import (
    CODEX,
    COPILOT,
    DROID,
    GEMINI,
    KILO,
    KIMI,
    OPENCODE,
    QWEN,
    Codex,
    Copilot,
    Droid,
    Gemini,
    Kilo,
    Kimi,
    OpenCode,
    Qwen,
)
from clients.pi import Pi
from fakes.fake_anthropic import FakeAnthropic
from fakes.fake_gemini import FakeGemini
from fakes.fake_llm import FakeLLM
from fakes.fake_responses import FakeResponses
from fakes.loopback import LoopbackServer, text_of
from install_machine import write_marketplace
from runtimes_scene import EDIT, READ, SHELL, TOOLS, row_of

from session_memory import NAME
from session_memory.sessions.runtimes.table import all_runtimes

RUNTIMES = {one.name: one for one in all_runtimes()}
MARKETPLACE = "session-memory"


class Program(Protocol):
    """A real runtime."""

    environment: dict[str, str]
    project: Path
    LAST: tuple[str, ...]
    """The words that go on with the last session."""
    BY_ID: tuple[str, ...]
    """The words that go on with a session, with `{}` for its id."""

    def say(self, prompt: str, *session: str) -> None:
        """Runs a prompt, in the session that such words name, else in a new one."""

    def add_plugin(self, source: Path) -> None:
        """Takes a copy of the repository as a plugin."""

    def remove_plugin(self, source: Path) -> None:
        """Takes it out again."""


@dataclass(frozen=True)
class Client:
    """The install of a runtime.

    `package` is npm's, `model` the fake that it uses. `settings` is its user's file that an install
    changes ('' if it only adds files), with the content `text`."""

    program: Any
    package: str
    model: type[LoopbackServer]
    settings: str
    text: str = '{\n   "hooks": {}\n}'


class _Claude(Claude):
    LAST, BY_ID = ("--continue",), ("--resume", "{}")

    def __init__(self, root: Path, place: Path, model: FakeAnthropic) -> None:
        super().__init__(root, model, place)

    def say(self, prompt: str, *session: str) -> None:
        self.run(
            prompt, "--permission-mode", "acceptEdits", f"--allowedTools=Bash,mcp__{NAME}", *session
        )

    def add_plugin(self, source: Path) -> None:
        ClaudePlugin(self, source).install()

    def remove_plugin(self, source: Path) -> None:
        plugin = ClaudePlugin(self, source)
        plugin.plugin("uninstall", PLUGIN)
        plugin.plugin("marketplace", "remove", MARKETPLACE)


class _Pi(Pi):
    LAST, BY_ID = ("--continue",), ("--session", "{}")

    def __init__(self, root: Path, place: Path, model: FakeLLM) -> None:
        super().__init__(root, model)
        del self.environment["SESSION_MEMORY_PYTHON"]

    def say(self, prompt: str, *session: str) -> None:
        self.run(prompt, *session)

    def add_plugin(self, source: Path) -> None:
        self.execute("install", str(source))

    def remove_plugin(self, source: Path) -> None:
        self.execute("remove", str(source))


class _Codex(Codex):
    """In code mode, as the models are that it is used with."""

    LAST, BY_ID = ("resume", "--last"), ("resume", "{}")

    def say(self, prompt: str, *session: str) -> None:
        self.run(
            "--dangerously-bypass-approvals-and-sandbox", "-m", "gpt-6.1-sol", *session, prompt
        )

    def add_plugin(self, source: Path) -> None:
        self.execute("plugin", "marketplace", "add", str(write_marketplace(source)))
        self.execute("plugin", "add", PLUGIN)

    def remove_plugin(self, source: Path) -> None:
        self.execute("plugin", "remove", PLUGIN)
        self.execute("plugin", "marketplace", "remove", MARKETPLACE)


class _Qwen(Qwen):
    LAST, BY_ID = ("--continue",), ("--resume", "{}")

    def say(self, prompt: str, *session: str) -> None:
        self.run("--yolo", *session, prompt)

    def add_plugin(self, source: Path) -> None:
        self.execute(
            "extensions", "install", f"{write_marketplace(source)}:session-memory", "--consent"
        )

    def remove_plugin(self, source: Path) -> None:
        self.execute("extensions", "uninstall", "session-memory")


class _Copilot(Copilot):
    LAST, BY_ID = ("--continue",), ("--resume={}",)

    def say(self, prompt: str, *session: str) -> None:
        self.run(*session, prompt)

    def add_plugin(self, source: Path) -> None:
        self.execute("plugin", "marketplace", "add", str(source))
        self.execute("plugin", "install", PLUGIN)

    def remove_plugin(self, source: Path) -> None:
        self.execute("plugin", "uninstall", PLUGIN)
        self.execute("plugin", "marketplace", "remove", MARKETPLACE)


class _OpenCode(OpenCode):
    LAST, BY_ID = ("--continue",), ("--session", "{}")

    def say(self, prompt: str, *session: str) -> None:
        self.run(*session, prompt)

    def remove_plugin(self, source: Path) -> None:
        self.plugin_file.unlink()


class _Kilo(_OpenCode, Kilo):
    """Kilo, a fork of OpenCode."""


class _Gemini(Gemini):
    LAST, BY_ID = ("--resume", "latest"), ("--resume", "{}")

    def say(self, prompt: str, *session: str) -> None:
        # A resume in a later minute leaves an empty chat, with which the next start would delete
        # the session's.
        for chat in (self.home / ".gemini").rglob("session-*.jsonl"):
            if b'"type":"gemini"' not in chat.read_bytes():
                chat.unlink()
        self.run("--yolo", *session, prompt)

    def add_plugin(self, source: Path) -> None:
        """It takes none: its user has the hook in the settings."""
        hook = {
            "type": "command",
            "command": f"python3 -I -S {quote(str(source))}/hooks/user_prompt_submit.py gemini",
        }
        settings = {**json.loads(self.SETTINGS), "hooks": {"BeforeAgent": [{"hooks": [hook]}]}}
        (self.home / ".gemini" / "settings.json").write_text(json.dumps(settings))

    def remove_plugin(self, source: Path) -> None:
        (self.home / ".gemini" / "settings.json").write_text(self.SETTINGS)


class _Droid(Droid):
    """It resumes a session offline only as a fork."""

    LAST, BY_ID = ("--fork", ""), ("--fork", "{}")

    def say(self, prompt: str, *session: str) -> None:
        words = [word or self.last_session() for word in session]
        self.run(*words, prompt)

    def add_plugin(self, source: Path) -> None:
        """It takes none here: its user has the hook in the settings."""
        hook = {
            "type": "command",
            "command": f"python3 -I -S {quote(str(source))}/hooks/session_start.py droid",
        }
        settings = {"hooks": {"SessionStart": [{"hooks": [hook]}]}}
        self.settings.parent.mkdir(exist_ok=True)
        self.settings.write_text(json.dumps(settings))

    def remove_plugin(self, source: Path) -> None:
        self.settings.unlink()

    @property
    def settings(self) -> Path:
        return self.home / ".factory" / "settings.json"


class _Kimi(Kimi):
    LAST, BY_ID = ("--continue",), ("-r", "{}")

    def say(self, prompt: str, *session: str) -> None:
        self.run(*session, prompt)

    def add_plugin(self, source: Path) -> None:
        """It takes none here: its user has the hook in the settings."""
        command = f"python3 -I -S {quote(str(source))}/hooks/user_prompt_submit.py kimi"
        self.settings.parent.mkdir(exist_ok=True)
        self.settings.write_text(
            f'[[hooks]]\nevent = "UserPromptSubmit"\ncommand = {json.dumps(command)}\n'
        )

    def remove_plugin(self, source: Path) -> None:
        self.settings.unlink()

    @property
    def settings(self) -> Path:
        return self.home / ".kimi-code" / "config.toml"


class _Cline(Cline):
    """It goes on with a session only in its terminal."""

    LAST, BY_ID = ("--id", ""), ("--id", "{}")

    def say(self, prompt: str, *session: str) -> None:
        if session:
            self.go_on(session[-1] or self.sessions()[0], prompt)
        else:
            self.run(prompt)

    def add_plugin(self, source: Path) -> None:
        self.plugin_file.parent.mkdir()
        self.plugin_file.write_text(f'export {{ default }} from "{source}/hooks/cline/index.js";\n')

    def remove_plugin(self, source: Path) -> None:
        self.plugin_file.unlink()

    @property
    def plugin_file(self) -> Path:
        return self.home / ".cline" / "plugins" / "session-memory.js"


class _Omp(Omp):
    """Its edits name the old text, as another setting lets them."""

    LAST, BY_ID = ("--continue",), ("--resume", "{}")

    def __init__(self, root: Path, place: Path, model: FakeLLM) -> None:
        super().__init__(root, place, model, edit={"mode": "replace"})

    def say(self, prompt: str, *session: str) -> None:
        self.run(*session, prompt)

    def add_plugin(self, source: Path) -> None:
        """It takes none: its user has the extension."""
        self.extension.parent.mkdir()
        self.extension.write_text(f'export {{ default }} from "{source}/hooks/pi/index.ts";\n')

    def remove_plugin(self, source: Path) -> None:
        self.extension.unlink()

    @property
    def extension(self) -> Path:
        return self.directory / "extensions" / "session-memory.ts"


class _Hermes(Hermes):
    LAST, BY_ID = ("-c",), ("--resume", "{}")

    def say(self, prompt: str, *session: str) -> None:
        self.run(prompt, *session)

    def add_plugin(self, source: Path) -> None:
        """It takes none here: its user has the hook in the settings."""
        command = f"python3 -I -S {quote(str(source))}/hooks/user_prompt_submit.py hermes"
        hooks = f"hooks:\n  pre_llm_call:\n    - command: {json.dumps(command)}\n"
        self.config.write_text(CONFIG + hooks)

    def remove_plugin(self, source: Path) -> None:
        self.config.write_text(CONFIG)


class _OpenClaw(OpenClaw):
    """A session has any id that its user gives it."""

    LAST, BY_ID = ("one",), ("{}",)

    def say(self, prompt: str, *session: str) -> None:
        self.run(*(session or self.LAST), prompt)

    def add_plugin(self, source: Path) -> None:
        """Its plugin is in a folder, and its user allows it by name."""
        install = RUNTIMES["openclaw"].install
        texts = install.wanted_files('{"hooks": {}}', "python3", str(source))
        for name, text in texts.items():
            path = self.directory / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        entry = {"enabled": True, "hooks": {"allowConversationAccess": True}}
        settings = {**self.settings, "plugins": {"entries": {NAME: entry}}}
        self.settings_file.write_text(json.dumps(settings))

    def remove_plugin(self, source: Path) -> None:
        rmtree(self.directory / "extensions")
        self.settings_file.write_text(json.dumps(self.settings))


# What an edit gives its tool for the old text and the new one.
_TEXTS = {
    "claude-code": ("old_string", "new_string"),
    "cline": ("old_text", "new_text"),
    "copilot": ("old_str", "new_str"),
    "droid": ("old_str", "new_str"),
    "gemini": ("old_string", "new_string"),
    "hermes": ("old_string", "new_string"),
    "kilo": ("oldString", "newString"),
    "kimi": ("old_string", "new_string"),
    "omp": ("old_string", "new_string"),
    "openclaw": ("oldText", "newText"),
    "opencode": ("oldString", "newString"),
    "pi": ("oldText", "newText"),
    "qwen-code": ("old_string", "new_string"),
}
# By the name of the runtime.
CLIENTS = {
    "claude-code": Client(_Claude, claude.PACKAGE, FakeAnthropic, ".claude/settings.json"),
    "cline": Client(
        _Cline,
        cline.PACKAGE,
        FakeLLM,
        ".cline/data/settings/cline_mcp_settings.json",
        '{"mcpServers": {}}',
    ),
    "codex": Client(_Codex, CODEX, FakeResponses, ".codex/hooks.json"),
    "copilot": Client(_Copilot, COPILOT, FakeLLM, ""),
    "droid": Client(_Droid, DROID, FakeLLM, ".factory/settings.json"),
    "gemini": Client(_Gemini, GEMINI, FakeGemini, ".gemini/settings.json", Gemini.SETTINGS),
    "hermes": Client(_Hermes, HERMES, FakeLLM, ".hermes/config.yaml", CONFIG),
    "kilo": Client(_Kilo, KILO, FakeLLM, ""),
    "kimi": Client(_Kimi, KIMI, FakeLLM, ".kimi-code/config.toml", "# mine\ntelemetry = false\n"),
    "omp": Client(_Omp, omp.PACKAGE, FakeLLM, ""),
    "openclaw": Client(_OpenClaw, openclaw.PACKAGE, FakeLLM, ""),
    "opencode": Client(_OpenCode, OPENCODE, FakeLLM, ""),
    "pi": Client(_Pi, pi.PACKAGE, FakeLLM, ""),
    "qwen-code": Client(_Qwen, QWEN, FakeLLM, ".qwen/settings.json", '{\n   "$version": 4\n}'),
}


class User:
    """One runtime of somebody who uses them all.

    Each `ask` is a prompt, from the second on in the same session."""

    def __init__(self, name: str, program: Program, model: LoopbackServer) -> None:
        self.name = name
        self.program = program
        self.model = model
        self.has_begun = False

    def orders(self, prompt: str, *calls: tuple[str, Any]) -> None:
        """Lets the model answer a prompt by these tool calls."""
        if isinstance(self.model, FakeAnthropic):
            self.model.replies = [
                {"tools": [{"name": name, "input": arguments}]} for name, arguments in calls
            ]
        else:
            self.model.scripts[prompt] = [
                (name, json.dumps(arguments)) for name, arguments in calls
            ]

    def call(self, kind: str, given: str, old: str = "", new: str = "") -> tuple[str, Any]:
        """The tool call that reads a file, puts `new` in the place of `old` in it, or runs a command."""
        if self.name == "codex":
            return "exec", {"script": _codex_script(kind, given, old, new)}
        name, key = row_of(TOOLS, RUNTIMES[self.name])[kind]
        arguments: dict[str, Any] = {key: given}
        if kind == SHELL:
            arguments |= {"description": "Work."}
        if kind == EDIT:
            old_key, new_key = _TEXTS[self.name]
            texts = {old_key: old, new_key: new}
            arguments |= {"edits": [texts]} if self.name in ("pi", "openclaw") else texts
        if (self.name, kind) == ("droid", SHELL):
            arguments = {key: given, "summary": "Work.", "riskLevel": "low", "timeout": 60}
            arguments["riskLevelReason"] = "It works."
        if (self.name, kind) == ("cline", READ):
            arguments = {key: [{"path": given}]}
        if (self.name, kind) == ("cline", SHELL):
            arguments = {key: [given]}
        if (self.name, kind) == ("gemini", EDIT):
            arguments |= {"instruction": "Work."}
        return name, arguments

    def ask(self, prompt: str) -> str:
        """The request that the model received for a prompt, as JSON: the longest one, beside those
        for titles."""
        before = len(self.model.requests)
        self.program.say(prompt, *(self.program.LAST if self.has_begun else ()))
        self.has_begun = True
        with self.model.lock:
            sent = [json.dumps(request.body) for request in self.model.requests[before:]]
        return max((text for text in sent if prompt in text), key=len)

    def requests(self) -> str:
        """What the model was sent so far, as JSON."""
        with self.model.lock:
            return "\n".join([json.dumps(request.body) for request in self.model.requests])


def results_in(body: dict[str, Any]) -> list[str]:
    """What tools returned, in the order of a request of any of these APIs."""
    messages = [one for one in body.get("messages", ()) if one.get("content")]
    blocks = [block for one in messages for block in one["content"] if isinstance(block, dict)]
    of_claude = [
        text_of(block["content"]) for block in blocks if block.get("type") == "tool_result"
    ]
    of_chat = [text_of(one["content"]) for one in messages if one.get("role") == "tool"]
    of_responses = [
        one["output"]
        for one in body.get("input", ())
        if str(one.get("type")).endswith("_call_output")
    ]
    parts = [part for one in body.get("contents", ()) for part in one.get("parts", ())]
    of_gemini = [
        part["functionResponse"]["response"] for part in parts if "functionResponse" in part
    ]
    return [
        *of_claude,
        *of_chat,
        *map(str, of_responses),
        *[str(one.get("output", one)) for one in of_gemini],
    ]


def _codex_script(kind: str, given: str, old: str, new: str) -> str:
    """What a model in code mode writes to do that."""
    if kind == EDIT:
        patch = f"*** Begin Patch\n*** Update File: {given}\n@@\n-{old}\n+{new}\n*** End Patch"
        return f"await tools.apply_patch({json.dumps(patch)})"
    command = f"cat {given}" if kind == READ else given
    return f"await tools.exec_command({{cmd:{json.dumps(command)}}})"
