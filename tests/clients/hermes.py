"""The real Hermes Agent from PyPI, run offline with a fake model behind it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from clients.npm import HERMES
from clients.others import OtherRuntime
from fakes.loopback import LoopbackServer

PACKAGE = HERMES
# Without the last two lines it installs further packages at its start.
CONFIG = """\
# my settings
model:
  default: fake-1
  provider: custom
  base_url: ${MODEL_URL}/v1
  api_key: dummy
  context_length: 100000
security:
  allow_lazy_installs: false
"""


class Hermes(OtherRuntime):
    """Hermes with a person's own settings."""

    def __init__(self, root: Path, package_place: Path, model: LoopbackServer) -> None:
        super().__init__(root, package_place, model)
        self.directory = self.home / ".hermes"
        self.directory.mkdir(exist_ok=True)
        self.config = self.directory / "config.yaml"
        self.config.write_text(CONFIG)
        self.environment["PATH"] = f"{Path(sys.executable).parent}:{os.defpath}"
        self.environment["MODEL_URL"] = model.base_url

    @property
    def command(self) -> list[str]:
        return [str(self.place / "bin" / "python"), "-m", "hermes_cli.main"]

    def run(self, prompt: str, *words: str, hooks: str = "--accept-hooks") -> str:
        """Run a prompt, in a new session unless the words name another one."""
        options = ["-Q", "--yolo", *filter(None, [hooks])]
        return self.execute("chat", *options, *words, "-q", prompt)
