"""`python -m bench.counted`: commands over 20,000 sessions (1.6 GB) that have not changed.

Each figure is the processor time of a whole process with its children, against a process that takes
the status of every transcript, the least work that shows that nothing changed. `costs` and `proof`
have counted once before. The last row is the first ingest. `--directory DIR` keeps the sessions
there for the next run.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from random import Random

from session_memory.sessions.transcripts.entries import INTRODUCTION

from .command import run
from .corpus import Author, texts_of, write_session
from .report import Row, as_table
from .scratch import scratch_directory
from .stopwatch import Command, Stopwatch, installed

SEED = 57
PROJECTS = 40
FILE_BYTES = 60_000
DAYS = 90
TOLD_SHARE = 0.1  # of the sessions that got an update
STATUS_OF_ALL = """
import os, sys
for folder, _, names in os.walk(sys.argv[1]):
    for name in names:
        os.lstat(f"{folder}/{name}")
"""
# of each command in multiples of the reference, which takes .07 s for 20,000 sessions
FIRST_LIMIT = 550.0  # of the first ingest: 40 s for 20,000 sessions
LIMITS = {"proof": 42.0, "costs": 42.0, "": 5.5, "ingest": 4.0, "search test build": 4.0}


def main(
    sessions: int = 20_000, directory: Path | None = None, runs: int = 5, check: bool = False
) -> int:
    """Return the exit code: 1 if `check` and a limit is exceeded."""
    with scratch_directory() as scratch:
        home = directory or scratch
        write_sessions(home, sessions)
        rows = _measured(home, runs)
    print(as_table(rows, runs, "processor times"))
    return 1 if check and any(row.is_over for row in rows) else 0


def _measured(home: Path, runs: int) -> list[Row]:
    rows = []
    has_store = (home / ".session-memory").exists()
    with Stopwatch(of_processor=True) as stopwatch:
        # each does something once
        first, *_ = [
            stopwatch.run(installed(home, words)) for words in ("ingest", "costs", "proof")
        ]
        for words, limit in LIMITS.items():
            command = installed(home, *words.split())
            places = [sys.executable, "-I", "-c", STATUS_OF_ALL, str(home / ".claude/projects")]
            reference = Command(places, command.environment)
            measured, least = stopwatch.compare(command, reference, runs)
            title = words or "the overview"
            rows.append(Row(title, measured.seconds, least.seconds, "one stat per file", limit))
        if not has_store:
            times = first.seconds, least.seconds
            rows.append(Row("the first ingest", *times, "one stat per file", FIRST_LIMIT))
    return rows


def write_sessions(home: Path, sessions: int) -> None:
    """Write transcripts of the last DAYS days, unless they are there."""
    projects = home / ".claude" / "projects"
    if projects.exists():
        return
    texts, random, now = texts_of(SEED), Random(SEED), time.time() - 3600
    for number in range(sessions):
        end = now - (sessions - number) / sessions * DAYS * 86_400
        project = f"project-{number % PROJECTS}"
        author = Author(texts, f"{SEED}-{number}", project, FILE_BYTES, end)
        path = projects / f"-home-dev-{project}" / f"{author.session_id}.jsonl"
        write_session(path, author)
        if random.random() < TOLD_SHARE:
            _tell(path, author, end)


def _tell(path: Path, author: Author, end: float) -> None:
    """Append an update about a file, as Claude Code records it."""
    name = author.path().removeprefix(f"{author.cwd}/")
    text = (
        f"{INTRODUCTION}[Session Activity]\n"
        f'! {name}: edited 5m ago by "Other", after you read it\n- "Other" (5m ago)'
    )
    record = {
        "parentUuid": author.parent_id,
        "sessionId": author.session_id,
        "cwd": author.cwd,
        "type": "attachment",
        "attachment": {"type": "hook_additional_context", "content": [text]},
        "uuid": author.uuid(),
        "timestamp": author.timestamp(),
    }
    with open(path, "a", encoding="utf-8") as file:
        file.write(json.dumps(record) + "\n")
    os.utime(path, (end, end))


if __name__ == "__main__":
    run(main)
