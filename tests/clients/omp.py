"""The real omp from npm, run offline by bun with a fake model behind it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from clients import npm
from clients.others import OtherRuntime
from fakes.loopback import LoopbackServer

PACKAGE = npm.OMP
_WITHOUT_WIZARD = {"startup": {"setupWizard": False}}


class Omp(OtherRuntime):
    """omp with a model of its own; its edits are patches with line numbers, unless in `settings`."""

    def __init__(
        self, root: Path, package_place: Path, model: LoopbackServer, **settings: Any
    ) -> None:
        super().__init__(root, package_place, model)
        fake = {"id": "fake-1", "name": "Fake", "contextWindow": 200_000, "maxTokens": 4096}
        provider = {
            "baseUrl": f"{model.base_url}/v1",
            "apiKey": "dummy",
            "api": "openai-completions",
            "models": [{**fake, "input": ["text"]}],
        }
        self.directory = self.home / ".omp" / "agent"
        self.directory.mkdir(parents=True)
        (self.directory / "models.yml").write_text(json.dumps({"providers": {"fake": provider}}))
        (self.directory / "config.yml").write_text(json.dumps({**_WITHOUT_WIZARD, **settings}))

    @property
    def command(self) -> list[str]:
        (bun,) = self.place.glob("node_modules/@oven/bun-*/bin/bun*")
        return [str(bun), str(self.place / "node_modules" / PACKAGE / "dist" / "cli.js")]

    def run(self, *words: str) -> str:
        """Run `omp -p` with a prompt, behind words like `--continue`."""
        return self.execute("-p", "--auto-approve", "--model", "fake/fake-1", *words)

    def sessions(self) -> list[Path]:
        """The session files, the oldest first."""
        return sorted(self.directory.glob("sessions/*/*.jsonl"))

    def patch(self, name: str, line: int, text: str) -> dict[str, str]:
        """What a model gives to change a line of a file that it has read in the last session."""
        read = re.findall(rf"\[{re.escape(name)}#(\w+)\]", self.sessions()[-1].read_text())
        return {"i": "mend", "input": f"[{name}#{read[-1]}]\nPUT {line}.={line}:\n+{text}"}
