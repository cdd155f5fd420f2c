"""A process that has imported the program and forks for each command and hook of a test.

Importing the program takes a command 0.6 s, a hook most of its time. Each fork is a separate
process with its own environment, signals, locks and connections.
"""

from __future__ import annotations

import atexit
import faulthandler
import fcntl
import functools
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import termios
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO, Any, NoReturn

from jinja2 import BytecodeCache, Environment
from jinja2.bccache import Bucket
from no_sync import stop_syncing
from own_process import set_environment

from session_memory.sessions.settings import program

_DIGITS = 8  # of a number that is reported


class Forked:
    """A process with these streams as stdin, stdout and stderr. It has what of Popen is needed."""

    def __init__(
        self,
        words: Sequence[object],
        environ: Mapping[str, str],
        cwd: Path,
        module: str,
        streams: Sequence[IO[bytes]],
        preload: str = "",
    ) -> None:
        """Run the `main` of a module, or the script at the path `module`. `preload` is a library to
        load first."""
        self._report, reported = os.pipe()
        asked = json.dumps(
            [[str(word) for word in words], dict(environ), str(cwd), module]
        ).encode()
        socket.send_fds(_server(preload), [asked], [*[one.fileno() for one in streams], reported])
        os.close(reported)
        self._code: int | None = None
        self.pid = int(os.read(self._report, _DIGITS))

    def poll(self, seconds: float = 0) -> int | None:
        """Return the exit code, None while it runs; of a signal, its number below 0."""
        if self._code is None and select.select([self._report], [], [], seconds)[0]:
            self._code = os.waitstatus_to_exitcode(int(os.read(self._report, _DIGITS)))
            os.close(self._report)
        return self._code

    def wait(self, seconds: float) -> int:
        """Return the exit code. Raises TimeoutExpired."""
        code = self.poll(seconds)
        if code is None:
            raise subprocess.TimeoutExpired("session-memory", seconds)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)


class Started(Forked):
    """`session-memory WORDS`, as a process; `stdout` has what it prints to stderr too."""

    def __init__(
        self,
        words: list[str],
        environ: Mapping[str, str],
        cwd: Path,
        log: Path | None = None,
        module: str = "cli",
    ) -> None:
        """Start it, or the `main` of another module. With `log`, append what it prints there."""
        out, printed = (os.open(os.devnull, os.O_RDONLY), log) if log else os.pipe()
        with open(printed, "ab") as target, open(os.devnull, "rb") as nothing:
            super().__init__(words, environ, cwd, module, [nothing, target, target])
        self.stdout = open(out, encoding="utf-8")  # noqa: SIM115

    def wait(self, seconds: float) -> int:
        """Return the exit code. Raises TimeoutExpired, and prints what each thread is at."""
        try:
            return super().wait(seconds)
        except subprocess.TimeoutExpired:
            os.kill(self.pid, signal.SIGUSR1)
            os.set_blocking(self.stdout.fileno(), False)
            time.sleep(1)  # what it printed before is there already
            print(self.stdout.read())
            raise


def run_forked(
    words: Sequence[object],
    environ: Mapping[str, str],
    cwd: Path,
    module: str = "cli",
    given: bytes = b"",
    preload: str = "",
) -> subprocess.CompletedProcess[bytes]:
    """Run it to its end."""
    with ExitStack() as stack:
        streams = [stack.enter_context(tempfile.TemporaryFile()) for _ in range(3)]
        streams[0].write(given)
        streams[0].seek(0)
        code = Forked(words, environ, cwd, module, streams, preload).wait(150)
        for stream in streams:
            stream.seek(0)
        return subprocess.CompletedProcess(words, code, streams[1].read(), streams[2].read())


@functools.cache
def _server(preload: str) -> socket.socket:
    """The socket of the process that forks; it ends with this one, whose end closes the socket."""
    own, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    if preload:
        environ["LD_PRELOAD"] = preload
    subprocess.Popen(
        [sys.executable, __file__, str(its.fileno())],
        env=environ,
        pass_fds=[its.fileno()],
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )
    its.close()
    return own


def _serve(listener: socket.socket) -> None:
    while True:
        asked, given, _, _ = socket.recv_fds(listener, 1 << 20, 4)
        if not asked:
            return
        words, environ, cwd, module = json.loads(asked)
        if words[:1] == ["page"]:
            _prepare_page()
        if not os.fork():
            listener.close()
            _wait_for(*given, words, environ, cwd, module)
        for number in given:
            os.close(number)


class _Compiled(BytecodeCache):
    """Templates that were compiled before: to compile those of the page takes 0.35 s."""

    def __init__(self) -> None:
        self._codes: dict[str, Any] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        bucket.code = self._codes.get(bucket.key)

    def dump_bytecode(self, bucket: Bucket) -> None:
        self._codes[bucket.key] = bucket.code


@functools.cache
def _prepare_page() -> None:
    """Do once what else each process of the page would do first."""
    try:
        from session_memory.extras.page import jinja  # only here: it loads large packages
    except ModuleNotFoundError:  # a copy without the page
        return
    for name in (
        "anyio._backends._asyncio",
        "uvicorn.loops.asyncio",
        "uvicorn.protocols.http.h11_impl",
    ):
        importlib.import_module(name)
    jinja.Environment = functools.partial(Environment, bytecode_cache=_Compiled())  # type: ignore[assignment,misc]
    made = jinja.environment()
    for name in made.list_templates():
        made.get_template(name)


def _wait_for(
    stdin: int,
    stdout: int,
    stderr: int,
    reported: int,
    words: list[str],
    environ: dict[str, str],
    cwd: str,
    module: str,
) -> None:
    """Report the process id of the command, and the status with which it ended."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    pid = os.fork()
    for number, target in enumerate((stdin, stdout, stderr)):
        os.dup2(target, number)
        os.close(target)
    if pid:
        for number in range(3):
            os.close(number)
        os.write(reported, f"{pid:{_DIGITS}}".encode())
        os.write(reported, f"{os.waitpid(pid, 0)[1]:{_DIGITS}}".encode())
        os._exit(0)
    os.close(reported)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", 1, "utf-8", "backslashreplace", closefd=False)  # noqa: SIM115
    faulthandler.register(signal.SIGUSR1)
    if os.isatty(0):  # Ctrl-C there is for this process
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    os.chdir(cwd)
    set_environment(environ)
    try:
        if module.endswith(".py"):
            sys.argv = [module, *words]
            sys.exit(runpy.run_path(module, run_name="__main__") and 0)
        sys.argv = ["session-memory", *words]
        sys.exit(importlib.import_module(f"session_memory.{module}").main(words))
    except SystemExit as ended:
        _end(ended.code)


def _end(code: object) -> NoReturn:
    """End as `sys.exit` does, but leave all modules alone: to remove their objects takes three
    quarters of what a command does."""
    if not isinstance(code, (int, type(None))):
        print(code, file=sys.stderr)
        code = 1
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    gc.collect()  # closes what was left open
    with suppress(OSError):  # the interpreter's own end tries again, and says so
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code or 0)
    sys.exit(code)


if __name__ == "__main__":
    program.load_all_modules()
    if "LD_PRELOAD" not in os.environ:  # which makes a sync fail, too
        stop_syncing()
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    _serve(socket.socket(fileno=int(sys.argv[1])))
