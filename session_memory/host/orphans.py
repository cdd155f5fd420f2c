"""Runtimes that a killed host left running: each finishes the turn that it was in, and ends by itself.

Until then its session may not be resumed, or two processes would write one transcript. The runtime lists itself in
`sessions/<pid>.json` of its configuration directory, which belongs to one group.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import time
from pathlib import Path

POLL_SECONDS = 0.05
TERMINATE_SECONDS = 3.0


async def wait_for_end(config_dir: str, timeout_seconds: float) -> None:
    """Returns when no runtime runs on `config_dir`; ends those that take longer than `timeout_seconds`."""
    deadline = time.monotonic() + timeout_seconds
    while pids := running_pids(config_dir):
        number = signal.SIGTERM
        if time.monotonic() > deadline + TERMINATE_SECONDS:
            number = signal.SIGKILL
        if time.monotonic() > deadline:
            for pid in pids:
                _send(pid, number)
        await asyncio.sleep(POLL_SECONDS)


def running_pids(config_dir: str) -> list[int]:
    """The ids of the processes that are listed in `config_dir` and still run."""
    found = []
    for path in Path(config_dir, "sessions").glob("*.json"):
        try:
            listed = json.loads(path.read_bytes())
            pid = int(listed["pid"])
        except (OSError, ValueError, KeyError, TypeError):
            continue
        if pid > 1 and _is_alive(pid, str(listed.get("procStart", ""))):
            found.append(pid)
    return found


def _is_alive(pid: int, started: str) -> bool:
    """Whether the process runs and, as far as the system tells, is the one that was listed: systems reuse ids."""
    try:
        # proc(5): behind the name, which may hold anything, the state is the first field, the start time the 20th.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except FileNotFoundError:
        if Path("/proc/self").exists():
            return False
        command = ["ps", "-o", "stat=,command=", "-p", str(pid)]
        told = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
        return bool(told) and not told.startswith("Z") and "claude" in told
    except (ProcessLookupError, PermissionError):
        return False
    return fields[0] != "Z" and (not started or fields[19] == started)


def _send(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass
