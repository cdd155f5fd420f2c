"""The real Codex, Qwen Code, Copilot CLI, OpenCode, Kilo, Droid and Kimi Code, from npm, run offline on a
machine of their own, with a fake model behind them."""

from __future__ import annotations

import json
import os
import subprocess
import urllib.request
from pathlib import Path
from typing import Any

from clients import npm
from fakes.loopback import LoopbackServer

CODEX = "@openai/codex"
QWEN = "@qwen-code/qwen-code"
COPILOT = "@github/copilot"
GEMINI = "@google/gemini-cli"
OPENCODE = "opencode-ai"
DROID = npm.DROID
KILO = "@kilocode/cli"
KIMI = "@moonshot-ai/kimi-code"
RUN_SECONDS = 400


class OtherRuntime:
    """One user's machine: a home directory, a project to work in, and the model that answers."""

    def __init__(self, root: Path, package_place: Path, model: LoopbackServer) -> None:
        self.place = package_place
        self.model = model
        self.home = root / "home"
        self.project = root / "project"
        for directory in (self.home / ".claude", self.project):
            directory.mkdir(parents=True, exist_ok=True)
        self.environment = {
            "PATH": os.defpath,
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            "OPENAI_API_KEY": "dummy",
        }

    def execute(self, *words: str, given: str = "") -> str:
        """Run the program to its end, which must be a success; return its output and diagnostics.

        `given` is its input."""
        done = subprocess.run(
            [*self.command, *words],
            env=self.environment,
            cwd=self.project,
            input=given,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=RUN_SECONDS,
        )
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
        """Run `codex exec` with a prompt, after words like `resume --last`.

        Hooks that nobody has reviewed are silently skipped, unless that is waived."""
        words = (*self.options, *words)
        return self.execute(
            "exec", "--skip-git-repo-check", "--dangerously-bypass-hook-trust", *words
        )

    @property
    def options(self) -> list[str]:
        """The words that make it use the fake model."""
        provider = f'{{name="fake", base_url="{self.model.base_url}/v1", wire_api="responses", env_key="OPENAI_API_KEY"}}'
        settings = ('model_provider="fake"', 'model="fake-1"', f"model_providers.fake={provider}")
        return [word for setting in settings for word in ("-c", setting)]


class Qwen(OtherRuntime):
    """Qwen Code: a plugin of Claude Code is an extension."""

    def __init__(self, root: Path, package_place: Path, model: LoopbackServer) -> None:
        super().__init__(root, package_place, model)
        self.environment.update(OPENAI_BASE_URL=f"{model.base_url}/v1", OPENAI_MODEL="fake-1")

    @property
    def command(self) -> list[str]:
        (script,) = self.place.glob("node_modules/@qwen-code/qwen-code/cli-entry.js")
        return [npm.node_at(self.place), str(script)]

    def run(self, *words: str) -> str:
        """Runs `qwen` with a prompt, behind words like `--continue`."""
        return self.execute("--auth-type", "openai", *words)


class Copilot(OtherRuntime):
    """Copilot CLI: a marketplace, and a plugin from it, which is used in place."""

    def __init__(self, root: Path, package_place: Path, model: LoopbackServer) -> None:
        super().__init__(root, package_place, model)
        settings = {"banner": "never", "autoUpdate": False, "trusted_folders": [str(self.project)]}
        (self.home / ".copilot").mkdir()
        (self.home / ".copilot" / "config.json").write_text(json.dumps(settings))
        self.environment.update(
            COPILOT_OFFLINE="true",
            COPILOT_PROVIDER_BASE_URL=f"{model.base_url}/v1",
            COPILOT_PROVIDER_API_KEY="dummy",
            COPILOT_MODEL="fake-1",
            COPILOT_AUTO_UPDATE="false",
        )

    @property
    def command(self) -> list[str]:
        (binary,) = self.place.glob("node_modules/@github/copilot-*/copilot")
        return [str(binary)]

    def run(self, *words: str) -> str:
        """Runs `copilot -p` with a prompt, behind words like `--continue`."""
        *options, prompt = words
        return self.execute(*options, "-p", prompt, "--allow-all-tools", "-s")


class OpenCode(OtherRuntime):
    """OpenCode: a plugin is a file. Where there is one, it asks npm at each start for a package of
    its own, and goes on without."""

    NAME = "opencode"
    BINARY = "node_modules/opencode-*[!e]/bin/opencode"
    RUN: tuple[str, ...] = ("run",)

    def __init__(self, root: Path, package_place: Path, model: LoopbackServer) -> None:
        super().__init__(root, package_place, model)
        provider = {
            "npm": "@ai-sdk/openai-compatible",
            "options": {"baseURL": f"{model.base_url}/v1", "apiKey": "dummy"},
            "models": {"fake-1": {"limit": {"context": 200_000, "output": 8_000}}},
        }
        settings = {
            "$schema": "https://opencode.ai/config.json",
            "autoupdate": False,
            "share": "disabled",
        }
        settings |= {"model": "fake/fake-1", "provider": {"fake": provider}}
        self.plugin_file = self.home / ".config" / self.NAME / "plugin" / "session-memory.js"
        self.plugin_file.parents[1].mkdir(parents=True, exist_ok=True)
        (self.plugin_file.parents[1] / f"{self.NAME}.json").write_text(json.dumps(settings))
        (self.home / ".npmrc").write_text("registry=http://127.0.0.1:9/\nfetch-retries=0\n")
        for part in ("AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS"):
            self.environment[f"{self.NAME.upper()}_DISABLE_{part}"] = "1"

    @property
    def command(self) -> list[str]:
        (binary,) = self.place.glob(self.BINARY)
        return [str(binary)]

    def run(self, *words: str) -> str:
        """Runs `opencode run` with a prompt, behind words like `--continue`. It puts quotes around
        an argument with spaces, and takes one that is a number for none: several lines are given
        otherwise."""
        *options, prompt = words
        if "\n" in prompt:
            return self.execute(*self.RUN, *options, given=prompt)
        return self.execute(*self.RUN, *options, *prompt.split(" "))

    def add_plugin(self, source: Path) -> None:
        """Puts a plugin file there that loads the one in a copy of the repository."""
        self.plugin_file.parent.mkdir(exist_ok=True)
        self.plugin_file.write_text(
            f'export {{ SessionMemory }} from "{source}/hooks/{self.NAME}/index.js";\n'
        )


class Kilo(OpenCode):
    """Kilo, a fork of OpenCode."""

    NAME = "kilo"
    BINARY = "node_modules/@kilocode/cli-*/bin/kilo"
    RUN = ("run", "--auto")  # else it refuses the agent's commands

    def __init__(self, root: Path, package_place: Path, model: LoopbackServer) -> None:
        super().__init__(root, package_place, model)
        # else its first start adds a permission for commands to the settings
        (self.plugin_file.parents[1] / ".bash-permission-migrated").touch()


class OpenCodeServer:
    """`opencode serve`, which does over HTTP what its user does in the terminal; to be used in a
    `with` block."""

    def __init__(self, opencode: OpenCode) -> None:
        self._opencode = opencode

    def __enter__(self) -> OpenCodeServer:
        self._process = subprocess.Popen(
            [*self._opencode.command, "serve", "--port", "0"],
            env=self._opencode.environment,
            cwd=self._opencode.project,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert self._process.stdout
        for line in self._process.stdout:
            _, _, self._url = line.strip().partition("listening on ")
            if self._url:
                return self
        raise AssertionError("opencode serve ended")

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.communicate(timeout=RUN_SECONDS)

    def post(self, path: str, body: dict[str, Any]) -> Any:
        """What a request is answered with."""
        request = urllib.request.Request(
            self._url + path, json.dumps(body).encode(), {"content-type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=RUN_SECONDS) as response:
            return json.loads(response.read() or b"null")

    def say(self, session: str, prompt: str) -> str:
        """Runs a prompt of a session to its end; the id of its message."""
        body = {
            "parts": [{"type": "text", "text": prompt}],
            "model": {"providerID": "fake", "modelID": "fake-1"},
        }
        return str(self.post(f"/session/{session}/message", body)["info"]["parentID"])


class Gemini(OtherRuntime):
    """Gemini CLI, which takes no plugin: its settings have the hooks."""

    SETTINGS = (
        '{\n  "security": {"auth": {"selectedType": "gemini-api-key"}},\n'
        '  "privacy": {"usageStatisticsEnabled": false},\n  "general": {"enableAutoUpdate": false}\n}\n'
    )

    def __init__(self, root: Path, package_place: Path, model: LoopbackServer) -> None:
        super().__init__(root, package_place, model)
        (self.home / ".gemini").mkdir()
        (self.home / ".gemini" / "settings.json").write_text(self.SETTINGS)
        self.environment.update(
            GEMINI_API_KEY="dummy",
            GOOGLE_GEMINI_BASE_URL=model.base_url,
            GEMINI_CLI_TRUST_WORKSPACE="true",
        )

    @property
    def command(self) -> list[str]:
        (script,) = self.place.glob("node_modules/@google/gemini-cli/bundle/gemini.js")
        return [npm.node_at(self.place), str(script)]

    def run(self, *words: str) -> str:
        """Runs `gemini -p` with a prompt, behind words like `--resume latest`."""
        *options, prompt = words
        return self.execute("-m", "gemini-2.5-flash", *options, "-p", prompt)


class Droid(OtherRuntime):
    """Droid, of which `exec` runs without an account. It takes no plugin: its settings have the
    hooks."""

    def __init__(self, root: Path, package_place: Path, model: LoopbackServer) -> None:
        super().__init__(root, package_place, model)
        own_model = {
            "model": "fake-1",
            "displayName": "Fake",
            "baseUrl": f"{model.base_url}/v1",
            "apiKey": "dummy",
            "provider": "generic-chat-completion-api",
            "maxOutputTokens": 4096,
        }
        path = root / "droid-models.json"
        path.write_text(json.dumps({"customModels": [own_model], "cloudSessionSync": False}))
        self.environment.update(
            FACTORY_API_KEY="fk-dummy",
            FACTORY_RUNTIME_SETTINGS_PATH=str(path),
            FACTORY_DROID_AUTO_UPDATE_ENABLED="false",
        )

    @property
    def command(self) -> list[str]:
        (binary,) = self.place.glob("node_modules/@factory/cli-*/bin/droid*")
        return [str(binary)]

    def run(self, *words: str) -> str:
        """Runs `droid exec` with a prompt, behind words like `--fork <id>`."""
        return self.execute("exec", "-m", "custom:fake-1", "--auto", "high", *words)

    def last_session(self) -> str:
        """The id of the session that wrote last."""
        files = (self.home / ".factory" / "sessions").glob("*/*.jsonl")
        return max(files, key=lambda path: path.stat().st_mtime).stem


class Kimi(OtherRuntime):
    """Kimi Code, with its model in the environment. It takes no plugin here: its settings have the
    hooks."""

    def __init__(self, root: Path, package_place: Path, model: LoopbackServer) -> None:
        super().__init__(root, package_place, model)
        self.environment.update(
            KIMI_DISABLE_TELEMETRY="1",
            KIMI_CODE_NO_AUTO_UPDATE="1",
            KIMI_MODEL_NAME="fake-1",
            KIMI_MODEL_API_KEY="dummy",
            KIMI_MODEL_PROVIDER_TYPE="openai",
            KIMI_MODEL_BASE_URL=f"{model.base_url}/v1",
        )

    @property
    def command(self) -> list[str]:
        (script,) = self.place.glob("node_modules/@moonshot-ai/kimi-code/dist/main.mjs")
        return [npm.node_at(self.place), str(script)]

    def run(self, *words: str) -> str:
        """Runs `kimi -p` with a prompt, behind words like `-r <id>`."""
        *options, prompt = words
        return self.execute(*options, "-p", prompt)

    def sessions(self) -> list[str]:
        """The ids of its sessions, the last written one first."""
        files = (self.home / ".kimi-code" / "sessions").glob("*/*/agents/main/wire.jsonl")
        ordered = sorted(files, key=lambda path: -path.stat().st_mtime)
        return [path.parents[2].name for path in ordered]
