"""`python -m bench.why REPOSITORY...`: which session wrote a commit, judged by public checkpoints.

A repository with a branch `entire/checkpoints/v1` has the transcripts of its sessions, and its
commits name their checkpoint: so the sessions of a commit are known. The person who runs this
fetches the repositories; nothing of them is in this project. The store gets the transcripts alone,
and never sees the labels. Older checkpoints put the day before a session's id; it does not count,
since a session that goes on the next day has two such ids.
"""

from __future__ import annotations

import os
import random
import re
import subprocess
import time
from collections import Counter
from pathlib import Path
from statistics import quantiles
from typing import NamedTuple

from session_memory.common.text.written_lines import normalised
from session_memory.history.git.commits import Commit, Repository
from session_memory.history.patterns.why import Asked, Reasons, bot_reason
from session_memory.history.store.ingest.ingestion import Ingestion
from session_memory.history.store.ingest.sources import SourceDirectory
from session_memory.history.store.sqlite.engine import SqliteStore
from session_memory.history.store.sqlite.written_lines import known_key

from .command import run
from .research.recall.checkpoints import Checkpoints
from .scratch import scratch_directory

TRAILER = re.compile(r"^Entire-Checkpoint: ([0-9a-f]{12})$", re.M)
DAY = re.compile(r"^\d{4}-\d\d-\d\d-")
SAMPLE = 100  # lines of which the reason is looked at
MOVED_SHARE = 0.2  # of a commit's lines that it also removes: it moves text


class Labelled(NamedTuple):
    """A commit and the sessions of its checkpoint."""

    commit: Commit
    sessions: frozenset[str]


def main(*repositories: Path, most: int = 400, seed: int = 7) -> None:
    for path in repositories:
        with scratch_directory() as root:
            measure(path, root, most, seed)


def measure(path: Path, root: Path, most: int, seed: int) -> None:
    """Print the figures of one repository."""
    checkpoints = Checkpoints(path)
    checkpoints.write_transcripts(root / "projects" / "-repository")
    sessions = checkpoints.sessions_of
    store = SqliteStore(str(root / "store" / "memory.db"))
    Ingestion(store, workers=os.cpu_count() or 1).scan(SourceDirectory(str(root / "projects")))
    known = {state.session_id for state in store.file_states("").values()}
    repository = Repository(str(path), str(path))
    reasons = Reasons(store, repository, known_key(store.path))
    every = commits_of(path)
    labelled = [
        Labelled(repository.commit(name), _plain(sessions.get(checkpoint, set()) & known))
        for name, checkpoint in every
        if checkpoint
    ]
    labelled = [
        labelled_commit
        for labelled_commit in labelled
        if labelled_commit.sessions and labelled_commit.commit.parents < 2
    ][:most]
    lines = attributed_lines = right = unmoved = unmoved_right = commits = top = moving = 0
    for labelled_commit in labelled:
        added = reasons.of_added(labelled_commit.commit)
        lines += len(added)
        ids = [DAY.sub("", item.session_id) if item else "" for _, item in added]
        attributed_lines += sum(map(bool, ids))
        ok = sum(session in labelled_commit.sessions for session in ids if session)
        right += ok
        gone = {normalised(line) for line in repository.added(labelled_commit.commit.id)[1]}
        if sum(normalised(line.text) in gone for line, _ in added) > MOVED_SHARE * len(added):
            moving += 1
        else:
            unmoved, unmoved_right = unmoved + sum(map(bool, ids)), unmoved_right + ok
        if any(ids):
            commits += 1
            top += Counter(filter(None, ids)).most_common(1)[0][0] in labelled_commit.sessions
    bumps = [repository.commit(name) for name, _ in every]
    bumps = [bump for bump in bumps if bot_reason(bump)]
    attributed = sum(any(reason.asked for reason in reasons.of_commit(bump.id)) for bump in bumps)
    clean, of_any = unmoved_right / max(1, unmoved), top / max(1, commits)
    print(
        f"{path.parent.name}: {len(known)} sessions, {len(labelled)} labelled commits, {lines} "
        f"added lines"
    )
    print(
        f"  coverage {attributed_lines / max(1, lines):.3f}, precision {right / max(1, attributed_lines):.3f}"
    )
    print(f"  precision on the commits that move nothing {clean:.3f} ({moving} move)")
    print(
        f"  top session {top / max(1, len(labelled)):.3f}; {of_any:.3f} of the {commits} commits "
        f"with any"
    )
    print(f"  {attributed} of {len(bumps)} bumps and commits of bots attributed")
    quotations(store, reasons, labelled, seed)
    store.close()


def quotations(store: SqliteStore, reasons: Reasons, labelled: list[Labelled], seed: int) -> None:
    """Print for how many sample lines a request is quoted, and if each quotation is in the
    store."""
    drawn = random.Random(seed)
    stated = invented = 0
    times: list[float] = []
    for _ in range(SAMPLE):
        added = reasons.of_added(drawn.choice(labelled).commit)
        if not added:
            continue
        line, _ = added[drawn.randrange(len(added))]
        began = time.perf_counter()
        [(_, item)] = reasons.attributed([line])
        origin = reasons.asked(item) if item else None
        times.append(time.perf_counter() - began)
        stated += bool(origin and origin.words)
        invented += bool(origin and not _stands(store, origin))
    print(f"  of {SAMPLE} lines the reason is stated for {stated}, invented for {invented}")
    print(f"  a line takes {quantiles(times, n=20)[-1] * 1000:.1f} ms at p95, without git's time")


def _stands(store: SqliteStore, origin: Asked) -> bool:
    texts = " ".join(
        " ".join(row[0].split())
        for row in store.rows(
            "SELECT content FROM memory_transcript_entries WHERE id IN (?, ?)",
            (origin.request_item, origin.proposal_item),
        )
    )
    return all(
        " ".join(part.split()).rstrip("…") in texts
        for part in (origin.words, origin.proposal)
        if part
    )


def _plain(sessions: set[str]) -> frozenset[str]:
    return frozenset(DAY.sub("", session) for session in sessions)


def commits_of(path: Path) -> list[tuple[str, str]]:
    """Return the commits of HEAD, each with its checkpoint ('' for none)."""
    log = _git(path, "log", "--no-merges", "--format=%H%x00%B%x01", "HEAD")
    commits = []
    for record in log.split("\x01"):
        name, _, message = record.strip().partition("\0")
        if name:
            trailer = TRAILER.search(message)
            commits.append((name, trailer[1] if trailer else ""))
    return commits


def _git(path: Path, *arguments: str) -> str:
    command = ["git", "-C", str(path), *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, errors="replace", check=True
    ).stdout


if __name__ == "__main__":
    run(main)
