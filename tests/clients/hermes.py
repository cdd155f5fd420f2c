"""The real Hermes Agent from PyPI, run offline with a fake model behind it."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

from clients.others import OtherRuntime
from fakes.loopback import LoopbackServer

PACKAGE = "hermes-agent==0.19.0"
INSTALL_SECONDS = 900
# Without the last two lines it installs further packages at its start.
CONFIG = """\
# my settings
model:
  default: fake-1
  provider: custom
  base_url: {url}/v1
  api_key: dummy
  context_length: 100000
security:
  allow_lazy_installs: false
"""


class UnavailableError(Exception):
    """Hermes cannot be installed here."""


def install_into(place: Path) -> Path:
    """Install Hermes into an environment of its own. Raises UnavailableError."""
    venv.create(place, with_pip=True)
    pip = [str(place / "bin" / "python"), "-m", "pip", "install", "--quiet", PACKAGE]
    done = subprocess.run(
        pip, capture_output=True, text=True, timeout=INSTALL_SECONDS, env=os.environ, check=False
    )
    if done.returncode:
        raise UnavailableError(f"pip cannot install {PACKAGE}: {done.stderr.strip()[-200:]}")
    return place


class Hermes(OtherRuntime):
    """Hermes with a person's own settings."""

    def __init__(self, root: Path, package_place: Path, model: LoopbackServer) -> None:
        super().__init__(root, package_place, model)
        self.directory = self.home / ".hermes"
        self.directory.mkdir()
        self.config = self.directory / "config.yaml"
        self.config.write_text(CONFIG.format(url=model.base_url))
        self.environment["PATH"] = f"{Path(sys.executable).parent}:{os.defpath}"

    @property
    def command(self) -> list[str]:
        return [str(self.place / "bin" / "hermes")]

    def run(self, prompt: str, *words: str) -> str:
        """Run a prompt, in a new session unless the words name another one."""
        return self.execute("chat", "-Q", "--yolo", "--accept-hooks", *words, "-q", prompt)
