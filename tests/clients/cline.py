"""The real Cline from npm, run offline with a fake model behind it."""

from __future__ import annotations

import atexit
import json
import os
import signal
import time
from contextlib import closing, suppress
from pathlib import Path

from clients.others import OtherRuntime
from clients.terminal import Terminal
from fakes.loopback import LoopbackServer

from session_memory.sessions.runtimes.cline import RUNTIME as CLINE

PACKAGE = "cline"
RETURN_SECONDS = 10.0  # after which it counts as lost
_ENDS = {
    "hub-daemon.log": '"message":"command.end","command":"run.start"',
    "cline.log": '"event":"agent.run-finished"',
}
_MODEL = ("-P", "openai-compatible", "-m", "fake-1")


class Cline(OtherRuntime):
    """The program of Cline itself, which may leave a hub process behind (`close`)."""

    def __init__(self, root: Path, package_place: Path, model: LoopbackServer) -> None:
        super().__init__(root, package_place, model)
        self.environment["CLINE_TELEMETRY_DISABLED"] = "1"
        atexit.register(self.close)
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

    def go_on(self, session: str, prompt: str) -> None:
        """Type a prompt in the terminal, in a session of before; wait for the end of the run.

        The answer comes first. If the terminal is gone by then, Cline fails the run, and may write
        an earlier state of the document."""
        words = [*self.command, "-i", *_MODEL, "--id", session]
        environment = {**self.environment, "TERM": "xterm-256color"}
        with closing(Terminal(words, self.project, environment)) as terminal:
            before = self._ended_runs()
            last = self._answers(session)[-1]
            terminal.wait(lambda: terminal.shows(last), "the session")  # a key before is lost
            typed = terminal.drawn
            terminal.enter(prompt)
            pressed = time.monotonic()
            while not terminal.shows(f"❯ {prompt}", typed):  # so is Return until all is loaded
                if time.monotonic() > pressed + RETURN_SECONDS:
                    terminal.press("\r")
                    pressed = time.monotonic()
                time.sleep(0.1)
            terminal.wait(lambda: self._ended_runs() > before, "the end of the run")

    def start(self, prompt: str) -> None:
        """Start a session with a prompt in the terminal, as `handoff --to cline` does."""
        words = [*self.command, *CLINE.install.START.format(prompt="").split()[1:], *_MODEL, prompt]
        environment = {**self.environment, "TERM": "xterm-256color"}
        with closing(Terminal(words, self.project, environment)) as terminal:
            terminal.wait(lambda: any(prompt in each for each in self.requests()), "the prompt")

    def sessions(self) -> list[str]:
        """Return the ids of its sessions, the last written one first."""
        documents = (self.home / ".cline/data/sessions").glob("*/*.messages.json")
        ordered = sorted(documents, key=lambda path: -path.stat().st_mtime)
        return list(dict.fromkeys([path.parent.name for path in ordered]))

    def _ended_runs(self) -> int:
        """Return how many runs have ended, by the logs of the hub and of terminals without it."""
        ends = 0
        for name, end in _ENDS.items():
            log = self.home / ".cline/data/logs" / name
            ends += log.read_text(errors="replace").count(end) if log.exists() else 0
        return ends

    def _answers(self, session: str) -> list[str]:
        """Return the beginnings of the answers that call no tool."""
        folder = self.home / ".cline/data/sessions" / session
        messages = json.loads((folder / f"{session}.messages.json").read_text())["messages"]
        said = [one["content"] for one in messages if one["role"] == "assistant"]
        ends = [blocks for blocks in said if {block["type"] for block in blocks} == {"text"}]
        return [blocks[0]["text"].split("\n")[0].partition(":")[0] for blocks in ends]
