"""Processes that count as open sessions of Claude Code: they sleep, and have the note that it keeps.

Tests and the pictures of the page use them."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def started_at(pid: int) -> str:
    """Return when a process started, as proc(5) has it; '' without /proc."""
    stat = Path(f"/proc/{pid}/stat")
    return stat.read_text().rpartition(")")[2].split()[19] if stat.exists() else ""


@contextmanager
def noted_process(
    config_dir: Path, session_id: str, status: str, question: str = "", **noted: object
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a process of Claude Code on a session, with the note that it keeps.

    The note stays behind if the block kills the process."""
    process = subprocess.Popen(["sleep", "600"])
    note = config_dir / "sessions" / f"{process.pid}.json"
    note.parent.mkdir(exist_ok=True)
    content = {
        "pid": process.pid,
        "sessionId": session_id,
        "procStart": started_at(process.pid),
        "status": status,
        "statusUpdatedAt": time.time() * 1000,
        **({"waitingFor": question} if question else {}),
        **noted,
    }
    note.write_text(json.dumps(content))
    try:
        yield process
        note.unlink(missing_ok=process.poll() is not None)
    finally:
        process.kill()
        process.wait()
