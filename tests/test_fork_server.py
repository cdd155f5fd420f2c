"""A process that a test forks ends as one that is started does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from fork_server import run_forked
from own_process import plain_environment

BEFORE = """
import atexit, os, sys, threading, time
atexit.register(print, "at the end")
threading.Thread(target=lambda: (time.sleep(0.2), print("a thread"))).start()
class Cycle:
    def __del__(self):
        print("removed")
cycle = Cycle()
cycle.itself = cycle
del cycle
print("not flushed", end=" ")
"""
ENDS = {
    "without": "",
    "a number": "sys.exit(3)",
    "a sentence": "sys.exit('that failed')",
    "nothing": "sys.exit()",
    "an error": "raise ValueError('broken')",
    "an interrupt": "raise KeyboardInterrupt",
    "a closed stream": "print('more'); os.close(1); os.open('/dev/full', os.O_WRONLY)",
}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
def test_a_forked_process_ends_as_one_that_was_started(end: str, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(f"{BEFORE}{end}\n")
    environ = plain_environment(tmp_path)
    started = subprocess.run(
        [sys.executable, script], env=environ, cwd=tmp_path, capture_output=True, check=False
    )
    forked = run_forked([], environ, tmp_path, str(script))
    assert (forked.returncode, forked.stdout) == (started.returncode, started.stdout)
    assert last_line(forked.stderr) == last_line(started.stderr)


def last_line(text: bytes) -> str:
    return (text.decode().strip().splitlines() or [""])[-1]
