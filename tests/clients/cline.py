"""The real Cline from npm, run offline with a fake model behind it."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path

from clients.others import OtherRuntime
from fakes.loopback import LoopbackServer

PACKAGE = "cline"
_MODEL = ("-P", "openai-compatible", "-m", "fake-1")


class Cline(OtherRuntime):
    """The program of Cline itself, which may leave a hub process behind (`close`)."""

    def __init__(self, root: Path, package_place: Path, model: LoopbackServer) -> None:
        super().__init__(root, package_place, model)
        self.environment["CLINE_TELEMETRY_DISABLED"] = "1"
        place = ("-b", f"{model.base_url}/v1")
        self.execute("auth", "-p", "openai-compatible", "-k", "dummy", "-m", "fake-1", *place)

    @property
    def command(self) -> list[str]:
        (binary,) = self.place.glob("node_modules/@cline/cli-*/bin/cline")
        return [str(binary)]

    def close(self) -> None:
        """End the hub process if one was left behind."""
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            with suppress(OSError):
                words = path.read_bytes().split(b"\0")
                if {b"--cline-hub-daemon", os.fsencode(self.project)} <= {*words}:
                    os.kill(int(path.parent.name), signal.SIGTERM)

    def run(self, prompt: str) -> str:
        """Run a prompt in a new session: without a terminal there is no other."""
        return self.execute(*_MODEL, prompt)
