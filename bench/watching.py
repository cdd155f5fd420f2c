"""`python -m bench.watching`: the share of a core that `agents --watch` takes, with 50 sessions.

First each session makes a tool call every five seconds, then all of them wait for their user.
Without `--watch` nothing runs, so nothing is measured there."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from session_memory.sessions.runtimes.claude import encode_cwd
from tests.records import append, assistant, tool_result, user

from .open_sessions import noted_process
from .scratch import scratch_directory

SESSIONS = 50
SECONDS = 60.0  # of each part
CALL_SECONDS = 5.0  # between two calls of a session
EARLIER_CALLS = 200  # of each turn when the measurement begins
_COMMAND = "import sys; from session_memory.cli import main; sys.exit(main())"


class Crowd:
    """Sessions of Claude Code, each in a project of its own."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._paths: list[tuple[Path, str]] = []
        for number in range(SESSIONS):
            project = home / "code" / f"shop{number}"
            project.mkdir(parents=True)
            folder = home / ".claude" / "projects" / encode_cwd(str(project))
            folder.mkdir(parents=True)
            self._paths.append((folder / f"s{number}.jsonl", str(project)))
            self._write(number, user("count the cups", cwd=str(project), at=time.time()))
            for _ in range(EARLIER_CALLS):
                self.call(number)

    def call(self, number: int) -> None:
        """Append a call with its result to the transcript of a session."""
        now, cwd = time.time(), self._paths[number][1]
        self._write(number, assistant(("Bash", {"command": "ls cups"}), cwd=cwd, at=now))
        self._write(number, tool_result("red\nblue\n" * 50, cwd=cwd, at=now))

    def end_turns(self) -> None:
        """Let all agents answer."""
        for number, (_, project) in enumerate(self._paths):
            end = {"stop_reason": "end_turn"}
            self._write(number, assistant("Two.", message=end, cwd=project, at=time.time()))

    def _write(self, number: int, record: dict[str, Any]) -> None:
        append(self._paths[number][0], record)


def processor_seconds(pid: int) -> float:
    """Return the processor time that a process has taken so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> int:
    with scratch_directory() as home, ExitStack() as stack:
        crowd = Crowd(home)
        for number in range(SESSIONS):
            stack.enter_context(noted_process(home / ".claude", f"s{number}", "busy"))
        watch = subprocess.Popen(
            [sys.executable, "-c", _COMMAND, "agents", "--watch", "--json"],
            env={"HOME": str(home), "PATH": os.defpath, "PYTHONPATH": os.getcwd()},
            stdout=subprocess.DEVNULL,
        )
        stack.callback(watch.wait)
        stack.callback(watch.terminate)
        _work(crowd, 10.0)
        began = processor_seconds(watch.pid)
        print(f"start: {began:.2f} s of processor time")
        _work(crowd, SECONDS)
        worked = processor_seconds(watch.pid)
        print(f"{SESSIONS} at work: {100 * (worked - began) / SECONDS:.2f} % of a core")
        crowd.end_turns()
        time.sleep(10)
        quiet = processor_seconds(watch.pid)
        time.sleep(SECONDS)
        waited = processor_seconds(watch.pid) - quiet
        print(f"all wait: {100 * waited / SECONDS:.2f} % of a core")
    return 0


def _work(crowd: Crowd, seconds: float) -> None:
    until = time.monotonic() + seconds
    number = 0
    while time.monotonic() < until:
        crowd.call(number % SESSIONS)
        number += 1
        time.sleep(CALL_SECONDS / SESSIONS)


if __name__ == "__main__":
    sys.exit(main())
