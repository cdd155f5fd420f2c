"""The real OpenClaw from npm, run offline with a fake model behind it and no gateway."""

from __future__ import annotations

import json
from pathlib import Path

from clients import npm
from clients.others import OtherRuntime
from fakes.loopback import LoopbackServer

PACKAGE = "openclaw"


class OpenClaw(OtherRuntime):
    """OpenClaw with one agent, whose workspace is the project."""

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

    def run(self, session: str, prompt: str, *words: str) -> str:
        """Run a prompt in a session of this id, new or not."""
        return self.execute(
            "agent", "--local", *words, "--session-id", session, "--message", prompt
        )
