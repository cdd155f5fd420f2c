"""What a hook has left unwritten is written by a process for which the runtime does not wait."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from install_machine import REPOSITORY

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing is left unwritten here")

# A hook that leaves two files. `HANGS` names the part that waits for the FIFO without end. The
# process that writes them has the pipe of number `PIPE` as long as it runs.
HOOK = """
import _signal, os, sys
place, fifo, pipe, hangs = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
sys.path.insert(0, place)
from session_memory.awareness.events import main
from session_memory.common.system import files
main.FINISH_SECONDS = 1.0

class File:
    is_finished = False

    def finish(self):
        os.write(pipe, b"%d " % os.getpid())
        if hangs == "finish":
            open(fifo)

hook, begin = os.getpid(), _signal.setitimer

def begun(*times):
    if os.getpid() == hook:
        return begin(*times)
    open(fifo)

if hangs == "begin":
    _signal.setitimer = begun
files.UNFINISHED.update({"one": File(), "two": File()})
main.pre_compact()
"""


class Writer:
    """A hook's process that writes files, and the FIFO for which it may wait."""

    def __init__(self, root: Path) -> None:
        self.fifo = root / "fifo"
        os.mkfifo(self.fifo)
        self.environ = {"HOME": str(root), "PATH": "/usr/bin:/bin"}
        self.reading, self.writing = os.pipe()
        self.said = b""

    def run_hook(self, hangs: str) -> None:
        command = [sys.executable, "-I", "-c", HOOK, str(REPOSITORY), str(self.fifo)]
        command += [str(self.writing), hangs]
        done = subprocess.run(
            command,
            env=self.environ,
            input=b"{}",
            capture_output=True,
            timeout=20,
            pass_fds=[self.writing],
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
        os.close(self.writing)

    def wait(self) -> list[bytes]:
        """Return what the process said, once it has ended."""
        while select.select([self.reading], [], [], 20)[0]:
            content = os.read(self.reading, 1000)
            self.said += content
            if not content:
                return self.said.split()
        raise AssertionError("the process does not end")

    def end(self) -> None:
        """End a process that still waits."""
        try:
            os.close(os.open(self.fifo, os.O_WRONLY | os.O_NONBLOCK))
        except OSError:
            pass
        for pid in {*self.said.split()}:
            try:
                os.kill(int(pid), signal.SIGKILL)
            except ProcessLookupError:
                pass
        os.close(self.reading)


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[Writer]:
    writer = Writer(tmp_path)
    yield writer
    writer.end()


def test_all_files_are_written(writer: Writer) -> None:
    writer.run_hook("")
    assert len(writer.wait()) == 2


def test_a_file_system_that_hangs_leaves_no_process_behind(writer: Writer) -> None:
    writer.run_hook("finish")
    assert len(writer.wait()) == 1


def test_the_runtime_s_pipes_are_closed_before_the_process_begins(writer: Writer) -> None:
    writer.run_hook("begin")
    os.close(os.open(writer.fifo, os.O_WRONLY))
    assert len(writer.wait()) == 2
