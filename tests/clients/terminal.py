"""A program in a pseudo-terminal, with a keyboard and everything that it drew."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import termios
import threading
import time
from collections.abc import Callable
from pathlib import Path

WAIT_SECONDS = 60
_ESCAPES = re.compile(rb"\x1b\[[0-9;?<>=]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b.")
# questions of a program to its terminal, which some wait for, and the answers of a real one
_ANSWERS = {b"\x1b[6n": b"\x1b[1;1R", b"\x1b[c": b"\x1b[?62;c"}


class Terminal:
    """A program in a pseudo-terminal: what it drew so far, and a keyboard."""

    def __init__(self, command: list[str], directory: Path, environment: dict[str, str]) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        self._child = subprocess.Popen(
            command,
            cwd=directory,
            env=environment,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(slave)
        self._drawn = bytearray()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def text(self) -> str:
        """Everything drawn so far, without escape sequences."""
        return _plain(bytes(self._drawn))

    def enter(self, line: str) -> None:
        """Type a line and, once it shows, Return; both at once would count as pasted text."""
        before = self.drawn
        os.write(self._master, line.encode())
        self.wait(lambda: self.shows(line, before), f"{line!r} to show")
        os.write(self._master, b"\r")

    def press(self, key: str) -> None:
        """Presses a key."""
        os.write(self._master, key.encode())

    def shows(self, text: str, after: int = 0) -> bool:
        """Return whether a text without its blanks was drawn, after so many bytes."""
        return _compact(text) in _compact(_plain(bytes(self._drawn[after:])))

    @property
    def drawn(self) -> int:
        """How many bytes were drawn so far."""
        return len(self._drawn)

    @property
    def has_ended(self) -> bool:
        return self._child.poll() is not None

    def kill(self) -> None:
        """End the program as `kill -9` does."""
        self._child.kill()
        self._child.wait()

    def wait(self, is_so: Callable[[], bool], what: str) -> None:
        """Wait until `is_so`. Fail with the screen after too long, or if the program ends."""
        deadline = time.monotonic() + WAIT_SECONDS
        while not is_so():
            assert self._child.poll() is None, (
                f"the CLI ended before {what}:\n{self.text()[-2000:]}"
            )
            assert time.monotonic() < deadline, (
                f"no {what} within {WAIT_SECONDS} s:\n{self.text()[-2000:]}"
            )
            time.sleep(0.02)

    def close(self) -> None:
        """End the program and wait for it, then end its process group, such as a launcher's child."""
        self._child.terminate()
        try:
            self._child.wait(5)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._child.pid, signal.SIGKILL)
        self._reader.join(5)
        os.close(self._master)

    def _read(self) -> None:
        while True:
            try:
                block = os.read(self._master, 65536)
            except OSError:
                return
            if not block:
                return
            self._drawn += block
            for question, answer in _ANSWERS.items():
                if question in block:
                    os.write(self._master, answer)


def _plain(drawn: bytes) -> str:
    return _ESCAPES.sub(b"", drawn).decode("utf-8", "replace")


def _compact(text: str) -> str:
    """Return a text without blanks, because a terminal program may move the cursor instead."""
    return "".join(text.split())
