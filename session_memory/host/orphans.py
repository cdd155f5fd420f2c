"""Runtimes that a killed host left running: each finishes its turn, then ends by itself.

Until then its session must not be resumed, or two processes would write one transcript. The runtime lists its processes
in its configuration directory, which belongs to one group.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import time
from pathlib import Path

from ..runtimes import Runtime

POLL_SECONDS = 0.05
TERMINATE_SECONDS = 3.0


async def wait_for_end(runtime: Runtime, config_dir: str, timeout_seconds: float) -> None:
    """Wait until no runtime runs on `config_dir`; kill those that take longer than `timeout_seconds`."""
    deadline = time.monotonic() + timeout_seconds
    while pids := running_pids(runtime, config_dir):
        number = signal.SIGTERM
        if time.monotonic() > deadline + TERMINATE_SECONDS:
            number = signal.SIGKILL
        if time.monotonic() > deadline:
            for pid in pids:
                _send(pid, number)
        await asyncio.sleep(POLL_SECONDS)


def running_pids(runtime: Runtime, config_dir: str) -> list[int]:
    """Return the ids of the running processes that the runtime has listed in `config_dir`."""
    noted = runtime.live_processes(config_dir)
    return [pid for pid, started in noted if pid > 1 and _is_alive(pid, started, runtime.PROGRAM)]


def _is_alive(pid: int, started: str, program: str) -> bool:
    """Return whether the process runs and, if the system tells, is the listed one: systems reuse ids."""
    try:
        # proc(5): after the name, which may hold anything, the state is the first field, the start time the 20th.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except FileNotFoundError:
        if Path("/proc/self").exists():
            return False
        command = ["ps", "-o", "stat=,command=", "-p", str(pid)]
        told = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
        return bool(told) and not told.startswith("Z") and program in told
    except (ProcessLookupError, PermissionError):
        return False
    return fields[0] != "Z" and (not started or fields[19] == started)


def _send(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass
