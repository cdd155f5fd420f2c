"""Starting the processes that read ahead (reading_process.py): forked where that is safe, for they are at work in a
tenth of the time; else interpreters of their own."""

from __future__ import annotations

import gc
import marshal
import os
import signal
import subprocess
import sys
from contextlib import suppress
from typing import IO, TYPE_CHECKING, Protocol

from ...text.secrets.scan import suspects
from .worker import SIZE_BYTES, read_tasks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .worker import Task

_THREADS = "/proc/self/task"  # has an entry for each thread of this process, also for those of libraries
_PROGRAM = (
    "import sys, marshal; sys.path[:] = marshal.load(sys.stdin.buffer); "
    "from session_memory.store.ingest.worker import read_all; read_all(sys.stdin.buffer, sys.stdout.buffer)"
)


class Process(Protocol):
    """One that reads."""

    pid: int

    def frames(self) -> Iterator[bytes]:
        """What it writes, frame by frame, until it ends. Raises OSError."""

    def stop(self) -> None:
        """Ends it, whatever it is doing."""


class Interpreter:
    """A Python of its own, which is told its tasks through a pipe."""

    def __init__(self, tasks: list[Task], home: str, limit: int) -> None:
        command = [sys.executable, "-I", "-S", "-c", _PROGRAM]
        self._orders = (tasks, home, limit)
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self.pid = self._process.pid

    def frames(self) -> Iterator[bytes]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with self._process.stdin as stdin:
            marshal.dump(sys.path, stdin)
            marshal.dump(self._orders, stdin)
        yield from _frames(self._process.stdout)

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()


class Fork:
    """This process once more. It neither touches what it has taken over from this one, the open database above all, nor
    ends as an interpreter does, which would close that. Of `others` it holds no pipe: their end shows by that."""

    def __init__(self, tasks: list[Task], home: str, limit: int, others: list[Fork]) -> None:
        self._pipe: IO[bytes]
        own_end, its_end = os.pipe()
        self.pid = os.fork()
        if not self.pid:
            status = 1
            try:
                gc.disable()
                for descriptor in (own_end, *[other._pipe.fileno() for other in others]):
                    os.close(descriptor)
                with open(its_end, "wb") as stdout:
                    read_tasks(tasks, home, limit, stdout)
                status = 0
            finally:
                os._exit(status)
        os.close(its_end)
        self._pipe = os.fdopen(own_end, "rb")

    def frames(self) -> Iterator[bytes]:
        yield from _frames(self._pipe)

    def stop(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        with suppress(ChildProcessError):  # where the caller has the system do that
            os.waitpid(self.pid, 0)


def start(tasks: list[list[Task]], home: str, limit: int) -> list[Process]:
    """A process for each of these lists of tasks; none where the system has no room for them."""
    started: list[Process] = []
    forks: list[Fork] = []
    is_forking = may_fork()
    suspects([])  # which loads once what each fork would load for itself
    try:
        for own in tasks:
            if is_forking:
                forks.append(Fork(own, home, limit, forks))
                started.append(forks[-1])
            else:
                started.append(Interpreter(own, home, limit))
    except OSError:
        for process in started:
            process.stop()
        return []
    return started


def may_fork() -> bool:
    """Whether this process has one thread: what others held would stay locked in a fork. Elsewhere than on Linux the
    system's own libraries may not bear it."""
    return os.path.isdir(_THREADS) and len(os.listdir(_THREADS)) == 1


def _frames(stdout: IO[bytes]) -> Iterator[bytes]:
    with stdout:
        while size := int.from_bytes(stdout.read(SIZE_BYTES), "little"):
            frame = stdout.read(size)
            if len(frame) < size:
                return
            yield frame
