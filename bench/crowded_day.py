"""A home on a day with 20 sessions and 14 collisions, for the page's Now.

16 sessions are open and wait for their user. Five pairs of sessions have edited the same two or
three files. Another session works in a linked worktree."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random

from session_memory.sessions.runtimes.claude import encode_cwd

from .invented import WORK, Work, add_records, claude_turn, session_id
from .open_sessions import noted_process

SEED = 5
SESSIONS = 20
OPEN = 16
COLLISIONS = 14
PAIRS = 5  # of sessions that have edited the same two or three files
MINUTE = 60
EDITED_AFTER = 47  # seconds after a turn's begin, between the edit's record and its result


@contextmanager
def crowded_day(home: Path, now: float) -> Iterator[None]:
    """Write the sessions of the last two hours, some of which are open during the block.

    `now` is in seconds since 1970."""
    ids = _write(home, now)
    with ExitStack() as processes:
        for id in ids[:OPEN]:
            processes.enter_context(noted_process(home / ".claude", id, "idle"))
        yield


def _write(home: Path, now: float) -> list[str]:
    """Write all transcripts and files; return the ids of the sessions."""
    random = Random(SEED)
    main, worktree = _repository(home / "code" / "bakery-shop")
    ids = []
    for pair in range(PAIRS):
        work = WORK[pair % len(WORK)]
        earlier, later = now - (110 - pair) * MINUTE, now - (4 + 2 * pair) * MINUTE
        letters = "abc" if pair else "ab"
        files = [f"src/part{pair}{letter}.ts" for letter in letters]
        first = work._replace(project=main.name)
        ids.append(_edit(home, random, first, earlier, files))
        again = work._replace(project=main.name, request=f"Check this: {work.request}")
        ids.append(_edit(home, random, again, later, files))
    elsewhere = WORK[0]._replace(project=worktree.name, request="Close the shop on holidays")
    ids.append(_edit(home, random, elsewhere, now - 14 * MINUTE, ["src/part0a.ts"]))
    for number, work in enumerate(WORK[: -(SESSIONS - 2 * PAIRS) : -1]):
        begin = now - (30 + 18 * number) * MINUTE
        ids.append(_edit(home, random, work, begin, [work.file]))
    return ids


def _edit(home: Path, random: Random, work: Work, begin: float, files: list[str]) -> str:
    """Write a session that edits the files, a minute for each; return its id."""
    place = home / "code" / work.project
    folder = home / ".claude" / "projects" / encode_cwd(str(place))
    transcript = folder / f"{session_id(random)}.jsonl"
    for number, file in enumerate(files):
        at = begin + number * MINUTE
        turn = claude_turn(random, home, work._replace(file=file), transcript.stem, at)
        add_records(transcript, turn)
        edited = place / file
        edited.parent.mkdir(parents=True, exist_ok=True)
        edited.write_text(f"edited by {transcript.stem}\n")
        os.utime(edited, (at + EDITED_AFTER, at + EDITED_AFTER))
    return transcript.stem


def _repository(main: Path) -> tuple[Path, Path]:
    """Make a repository with a linked worktree; return both directories."""
    main.mkdir(parents=True)
    worktree = main.with_name("bakery-holidays")
    identity = ["-c", "user.name=Baker", "-c", "user.email=baker@example.org"]
    for words in (
        ["init", "-q", "-b", "main"],
        [*identity, "commit", "-q", "--allow-empty", "-m", "Begin"],
        ["worktree", "add", "-q", "-b", "holidays", str(worktree)],
    ):
        subprocess.run(["git", *words], cwd=main, check=True, capture_output=True)
    return main, worktree
