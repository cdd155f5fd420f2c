"""A process that has imported the program and forks for each command that a test starts: importing it for each takes 0.6 s.

The command runs in a process of its own all the same: with its own environment, signals, locks and connections."""

from __future__ import annotations

import functools
import gc
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from own_process import set_environment

from session_memory.settings.program import load_all_modules

_DIGITS = 8  # of a number that is reported


class Started:
    """`session-memory WORDS`, as a process. It has what of Popen is needed; stdout has what it prints to stderr too."""

    def __init__(
        self, words: list[str], environ: Mapping[str, str], cwd: Path, log: Path | None = None, module: str = "cli"
    ) -> None:
        """Start it, or the `main` of another module. With `log`, append what it prints there."""
        if log:
            out, printed = os.open(os.devnull, os.O_RDONLY), os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        else:
            out, printed = os.pipe()
        self._report, reported = os.pipe()
        asked = json.dumps([words, dict(environ), str(cwd), module]).encode()
        socket.send_fds(_server(), [asked], [printed, reported])
        for number in (printed, reported):
            os.close(number)
        self.stdout = open(out, encoding="utf-8")  # noqa: SIM115
        self.returncode: int | None = None
        self.pid = int(os.read(self._report, _DIGITS))

    def poll(self) -> int | None:
        """Return the exit code, None while it runs; of a signal, its number below 0."""
        return self._ended(0)

    def wait(self, seconds: float) -> int:
        """Return the exit code. Raises TimeoutExpired."""
        code = self._ended(seconds)
        if code is None:
            raise subprocess.TimeoutExpired("session-memory", seconds)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def _ended(self, seconds: float) -> int | None:
        if self.returncode is None and select.select([self._report], [], [], seconds)[0]:
            self.returncode = os.waitstatus_to_exitcode(int(os.read(self._report, _DIGITS)))
            os.close(self._report)
        return self.returncode


@functools.cache
def _server() -> socket.socket:
    """The socket of the process that forks; it ends with this one, whose end closes the socket."""
    own, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    subprocess.Popen(
        [sys.executable, __file__, str(its.fileno())], env=environ, pass_fds=[its.fileno()], stdin=subprocess.DEVNULL,
        start_new_session=True,
    )  # fmt: skip
    its.close()
    return own


def _serve(listener: socket.socket) -> None:
    while True:
        asked, given, _, _ = socket.recv_fds(listener, 1 << 20, 2)
        if not asked:
            return
        if not os.fork():
            listener.close()
            _wait_for(*given, *json.loads(asked))
        for number in given:
            os.close(number)


def _wait_for(printed: int, reported: int, words: list[str], environ: dict[str, str], cwd: str, module: str) -> None:
    """Report the process id of the command, and the status with which it ended."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    if pid := os.fork():
        os.close(printed)
        os.write(reported, f"{pid:{_DIGITS}}".encode())
        os.write(reported, f"{os.waitpid(pid, 0)[1]:{_DIGITS}}".encode())
        os._exit(0)
    os.close(reported)
    for number in (1, 2):
        os.dup2(printed, number)
    os.close(printed)
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", 1, "utf-8", "backslashreplace", closefd=False)  # noqa: SIM115
    os.chdir(cwd)
    set_environment(environ)
    sys.argv = ["session-memory", *words]
    gc.unfreeze()
    sys.exit(importlib.import_module(f"session_memory.{module}").main(words))


if __name__ == "__main__":
    load_all_modules()
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    _serve(socket.socket(fileno=int(sys.argv[1])))
