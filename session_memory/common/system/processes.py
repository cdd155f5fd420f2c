"""The processes of other programs: whether one still runs, by its id and start time."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple


class NotedProcess(NamedTuple):
    """A process that a program has recorded in a file.

    `started` is its start time in the form of proc(5), `domain` the machine or container of its
    process id. Both, and the session that it works on, are '' if not recorded."""

    pid: int
    started: str = ""
    session_id: str = ""
    domain: str = ""


def is_alive(pid: int, started: str, program: str) -> bool:
    """Return whether the process runs and, as far as the system tells, is the recorded one.

    Systems reuse ids. `started` is its start time in the form of proc(5), or ''."""
    try:
        # proc(5): after the name, which may contain anything, the state is the first field and the
        # start time the 20th.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except FileNotFoundError:
        if Path("/proc/self").exists():
            return False
        command = ["ps", "-o", "stat=,command=", "-p", str(pid)]
        import subprocess  # only without /proc

        listed = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
        return bool(listed) and not listed.startswith("Z") and program in listed
    except (ProcessLookupError, PermissionError):
        return False
    return fields[0] != "Z" and (not started or fields[19] == started)


def pid_domain() -> str:
    """Return Claude Code's name for the process ids of this machine or container, or ''."""
    try:
        machine = Path("/etc/machine-id").read_text().strip()
        return f"linux:{machine}:{os.readlink(f'/proc/{os.getpid()}/ns/pid')}"
    except OSError:
        return ""
