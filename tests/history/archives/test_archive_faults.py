"""Archives where processes die, disks are full and transcripts are huge."""

from __future__ import annotations

import os
import random
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

import pytest
from archives_scene import MONDAY, archive, messages, travel
from records import append, assistant, exchange, line, tool_result, user, write
from share import some

from session_memory.history.archives.format import facts_in
from session_memory.history.archives.list import find_archive

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "conversations"


def start_archive(transcript: Path, folder: str) -> int:
    """The id of a process that archives."""
    child = os.fork()
    if child == 0:
        try:
            archive(transcript, folder)
        finally:
            os._exit(0)
    return child


class TestCrashes:
    # it waits for as long as an archive takes on this machine, 100 times
    @pytest.mark.timeout(1200)
    def test_killed_at_any_moment_the_archive_is_the_old_or_the_new_whole(self, tmp_path, folder):
        """Each child renews the archive; the parent kills it at some moment and looks. It waits
        longer where the last one had not come to write and less where it had, so that both are seen
        however busy the machine is."""
        records = [
            one
            for number in range(60)
            for one in exchange(f"question {number}", "answer " * 50, at=MONDAY + number)
        ]
        transcript = write(tmp_path / "t.jsonl", *records)
        path = archive(transcript, folder)
        source, rounds = random.Random(1), some(100, 50)
        outcomes = {"old": 0, "new": 0}
        longest = 2 * median(self._seconds_to_archive(transcript, folder) for _ in range(9))
        for number in range(rounds):
            before = path.read_bytes()
            append(transcript, user(f"round {number}", at=MONDAY + 100 + number))
            child = start_archive(transcript, folder)
            time.sleep(source.random() * longest)
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            after = path.read_bytes()
            if after == before:
                outcomes["old"] += 1
                longest *= 1.2
            else:
                outcomes["new"] += 1
                longest /= 1.2
                assert facts_in(after.decode()[-4096:])["messages"] == 120 + number + 1
                assert messages(path)[-1] == ("User", f"round {number}")
        assert min(outcomes.values()) > rounds / 10, outcomes
        archive(transcript, folder)
        assert sorted(os.listdir(folder)) == [".lock", path.name]

    def _seconds_to_archive(self, transcript, folder):
        began = time.monotonic()
        child = start_archive(transcript, folder)
        os.waitpid(child, 0)
        return time.monotonic() - began

    def test_a_full_disk_leaves_the_old_archive(self, tmp_path, folder):
        transcript = write(tmp_path / "t.jsonl", *travel())
        path = archive(transcript, folder)
        before = path.read_bytes()
        append(transcript, *exchange("more " * 400, "text " * 400))
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (900, 900))
            try:
                archive(transcript, folder)
            except OSError:
                os._exit(7)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        assert path.read_bytes() == before
        assert sorted(os.listdir(folder)) == [".lock", path.name]


@pytest.mark.slow
def test_memory_does_not_grow_with_the_transcript(tmp_path, folder):
    """300 MB with 60,000 messages, a line of 20 MB among them."""
    transcript = tmp_path / "t.jsonl"
    block = b"".join(
        line(user(f"question {n}", at=MONDAY))
        + line(assistant("answer " * 40))
        + line(tool_result("x" * 9000))
        for n in range(30)
    )
    with transcript.open("wb") as file:
        for number in range(1000):
            file.write(block.replace(b'"uuid":"', b'"uuid":"%d-' % number))
        file.write(line(tool_result("y" * 20_000_000)))
    program = f"""
import os, resource, sys
sys.path.insert(0, {str(ROOT)!r})
from session_memory.history.archives.format import ArchiveStyle
from session_memory.history.archives.writer import ArchiveSource, write_archive
from session_memory.sessions.runtimes.table import runtime
write_archive(ArchiveSource("s", {str(transcript)!r}, runtime("agent-sdk")), {str(folder)!r}, ArchiveStyle(), 0.0)
if os.path.exists("/proc/self/status"):  # Linux counts in ru_maxrss what the process was before its exec
    print(*[row.split()[1] for row in open("/proc/self/status") if row.startswith("VmHWM")])
else:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) < 100 * 1024
    assert find_archive(str(folder), "s")[1]["messages"] == 60_000
