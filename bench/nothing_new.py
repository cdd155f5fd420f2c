"""`python -m bench.nothing_new`: `session-memory ingest` over many unchanged files.

As a whole process, it is compared with a bare interpreter, and with `session-memory search` over
the same files. It is started like the installed command, with `-I` and an empty environment.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from .command import run
from .report import Row, as_table
from .scratch import scratch_directory
from .sources import generated
from .stopwatch import Stopwatch, compile_package, installed

PROJECTS = 20
FILE_BYTES = 4096
LIMIT = 8.0  # of a command in a fresh process, written as ordinary Python


def main(files: int = 1000, runs: int = 40, check: bool = False) -> int:
    """Return the exit code: 1 if `check` and a limit is exceeded."""
    compile_package()
    with scratch_directory() as home:
        _write_transcripts(home, files)
        rows = _measure(home, files, runs)
    print(as_table(rows, runs))
    return 1 if check and any(row.is_over for row in rows) else 0


def _write_transcripts(home: Path, files: int) -> None:
    """Write files that were last changed an hour ago, because recent files are checked again."""
    source = generated(seed=7)
    then = time.time() - 3600
    for number in range(files):
        project = home / ".claude" / "projects" / f"-home-dev-project-{number % PROJECTS}"
        path = source(project, FILE_BYTES, then - number * 60)
        os.utime(path, (then, then))


def _measure(home: Path, files: int, runs: int) -> list[Row]:
    def told(stdout: bytes) -> None:
        assert stdout == f"Nothing new in {files:,} files.\n".encode(), stdout

    def found(stdout: bytes) -> None:
        assert b"session-memory read" in stdout, stdout

    rows = []
    with Stopwatch() as stopwatch:
        stopwatch.run(installed(home, "ingest"))
        for words, check in ((["ingest"], told), (["search", "test build"], found)):
            command = installed(home, *words)
            bare = command._replace(arguments=[sys.executable, "-I", "-c", "pass"])
            measured, reference = stopwatch.compare(command, bare, runs, check=check)
            title = f"{words[0]}, nothing new in {files} files"
            rows.append(Row(title, measured.seconds, reference.seconds, "bare", LIMIT))
    return rows


if __name__ == "__main__":
    run(main)
