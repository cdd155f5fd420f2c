"""Makes the tasks of a repository: identifiers and labels, no text.

The labels of commits and lines are the sessions that the commit's checkpoint names. An error is
labelled with the earlier sessions in which the same error, without its paths and numbers, was
followed by a call that succeeded. The two tips are labelled with the files that conflict when the
branches are merged later. All draws have a fixed seed."""

from __future__ import annotations

import json
import random
import re
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from session_memory.common.system.git_directories import GitDirectory
from session_memory.history.git.commits import Commit
from session_memory.history.git.merges import Merges
from session_memory.history.patterns.failures import failures, normalised
from session_memory.history.patterns.why import bot_reason
from session_memory.history.store.ingest.checkpoints import BRANCHES
from session_memory.history.store.ingest.ingestion import Ingestion
from session_memory.history.store.ingest.sources import SourceDirectory
from session_memory.history.store.sqlite.engine import SqliteStore
from session_memory.history.store.sqlite.tool_uses import conversation_steps
from session_memory.history.store.values import Filter

from ... import merges as merge_bench
from ...scratch import scratch_directory
from ..recall.checkpoints import AGENTS, Checkpoints
from ..recall.sets import SetError
from .sources import Source, error_text

SEED = 7
MOST, MOST_NEGATIVE = 40, 20  # questions of a task
MOST_FILES = 120  # looked at for lines
LEAST_CHARACTERS = 16  # of a line
LEAST_WORDS = 4  # of an error
MOST_SOLVERS = 5  # sessions with one error: what all of them met has no answer
DIGEST = 12
TRAILER = re.compile(r"^Entire-Checkpoint: ([0-9a-f]{12})\s*$", re.M)
DAY = re.compile(r"^\d{4}-\d\d-\d\d-")  # that older checkpoints put before an id
_LOG = "--format=%H%x00%an%x00%ae%x00%s%x00%B%x01"
Answer = list[int]  # sessions by their place in the list


class Kept(NamedTuple):
    """The sessions of a repository, and each checkpoint's."""

    sessions: list[tuple[str, str]]  # their ids, and the blobs of their transcripts
    of_checkpoint: dict[str, Answer]


def made(path: Path, split: str) -> dict[str, Any]:
    """Return the tasks of the repository at `path`."""
    source, drawn = Source(path), random.Random(SEED)
    head = source.ask("rev-parse", "HEAD").strip()
    kept = _kept(path)
    labels, bots = _commits(source, kept)
    return {
        "repository": source.name,
        "split": split,
        "head": head,
        "checkpoints": next(filter(None, [source.resolved(ref) for ref in BRANCHES]), ""),
        "sessions": kept.sessions,
        "commit": _some(
            drawn, [[*label] for label in labels.items()], [[name, []] for name in bots]
        ),
        "line": _lines(source, head, labels, bots, drawn) if kept.sessions else [],
        "error": _errors(source, kept, drawn),
        "conflict": _conflicts(str(source.git_dir), drawn),
    }


def written(tasks: dict[str, Any], directory: Path) -> Path:
    """Write tasks to a file of the directory of their split: one line for each part."""
    path: Path = directory / tasks["split"] / (tasks["repository"].replace("/", "+") + ".json")
    path.parent.mkdir(parents=True, exist_ok=True)
    parts = [
        f"{json.dumps(name)}: {json.dumps(value, separators=(',', ':'))}"
        for name, value in tasks.items()
    ]
    path.write_text("{\n" + ",\n".join(parts) + "\n}\n")
    return path


def digest(path: str) -> str:
    """Return the digest that replaces the name of a file."""
    return sha256(path.encode()).hexdigest()[:DIGEST]


def _kept(path: Path) -> Kept:
    try:
        checkpoints = Checkpoints(path, (*AGENTS, "codex"))
    except SetError:
        return Kept([], {})
    longest = {}
    for transcript in sorted(checkpoints.transcripts, key=lambda transcript: transcript.size):
        longest[DAY.sub("", transcript.session)] = transcript.blob
    sessions = sorted(longest.items())
    place = {name: at for at, (name, _) in enumerate(sessions)}
    named = {
        id: {DAY.sub("", session) for session in ones}
        for id, ones in checkpoints.sessions_of.items()
    }
    return Kept(
        sessions,
        {
            id: sorted(place[session] for session in ones if session in place)
            for id, ones in named.items()
        },
    )


def _commits(source: Source, kept: Kept) -> tuple[dict[str, Answer], list[str]]:
    """Return the commits of HEAD's history with their sessions, and the excluded commits.

    Excluded are commits that bots made or that bump dependencies."""
    labels, bots = {}, []
    for record in source.ask("log", "--no-merges", _LOG, "HEAD").split("\x01"):
        name, author, mail, subject, message = (record.strip("\n").split("\0") + [""] * 4)[:5]
        trailers = TRAILER.findall(message)
        answer = sorted(
            {session for trailer in trailers for session in kept.of_checkpoint.get(trailer, ())}
        )
        if name and bot_reason(Commit(name, 1, author, mail, 0, 0, subject, "", ())):
            bots.append(name)
        elif answer:
            labels[name] = answer
    return labels, bots if kept.sessions else []


def _some(drawn: random.Random, positive: list[Any], negative: list[Any]) -> list[Any]:
    """Draw questions with an answer, and at most half as many without one."""
    sample = drawn.sample(positive, min(MOST, len(positive)))
    return sample + drawn.sample(
        negative, min(MOST_NEGATIVE, len(negative), (len(sample) + 1) // 2)
    )


def _lines(
    source: Source, head: str, labels: dict[str, Answer], bots: list[str], drawn: random.Random
) -> list[Any]:
    """Draw lines of HEAD: at most one of a commit in a file."""
    files = sorted(source.files(head).items())
    by_bots = {
        path
        for name in drawn.sample(bots, min(MOST, len(bots)))
        for path in source.ask(
            "diff-tree", "-r", "-z", "--root", "--no-commit-id", "--name-only", name
        ).split("\0")
    }
    looked = (
        drawn.sample(files, min(MOST_FILES, len(files)))
        + [line for line in files if line[1] in by_bots][:MOST_NEGATIVE]
    )
    bot = set(bots)
    positive: list[Any] = []
    negative: list[Any] = []
    for blob, path in dict.fromkeys(looked):
        numbers_by_commit: dict[str, list[int]] = defaultdict(list)
        for commit, number, text in source.blamed(head, path):
            if (commit in labels or commit in bot) and len(text.strip()) >= LEAST_CHARACTERS:
                numbers_by_commit[commit].append(number)
        for commit, numbers in numbers_by_commit.items():
            (negative if commit in bot else positive).append(
                [blob, drawn.choice(numbers), labels.get(commit, [])]
            )
    return _some(drawn, positive, negative)


class _Failed(NamedTuple):
    session: int
    offset: int
    at: int
    fixed_at: int


def _errors(source: Source, kept: Kept, drawn: random.Random) -> list[Any]:
    seen: dict[str, list[_Failed]] = defaultdict(list)
    contents = {}
    with scratch_directory() as root:
        directory = root / "projects" / "-repository"
        directory.mkdir(parents=True)
        for at, (session, blob) in enumerate(kept.sessions):
            contents[at] = source.bytes("cat-file", "blob", blob)
            (directory / f"{session}.jsonl").write_bytes(contents[at])
        place = {session: at for at, (session, _) in enumerate(kept.sessions)}
        for session, error, failed in _failures(root):
            if session in place:
                seen[error].append(failed._replace(session=place[session]))
    positive: list[Any] = []
    negative: list[Any] = []
    for _, ones in sorted(seen.items()):
        last = max(ones, key=lambda failure: failure.at)
        others = {failure.session for failure in ones} - {last.session}
        solved = sorted(
            {
                failure.session
                for failure in ones
                if failure.session != last.session and 0 < failure.fixed_at < last.at
            }
        )
        if others and not 0 < len(solved) <= MOST_SOLVERS:
            continue
        if error_text(contents[last.session], last.offset).strip():
            (positive if solved else negative).append([last.session, last.offset, solved])
    return _some(drawn, positive, negative)


def _failures(root: Path) -> Iterator[tuple[str, str, _Failed]]:
    """Yield the failures of each session, with their errors without paths and numbers."""
    with closing(SqliteStore(str(root / "store.db"))) as store:
        Ingestion(store).scan(SourceDirectory(str(root / "projects")))
        for conversation, steps in conversation_steps(store, Filter(limit=10**6)):
            for failure in failures(steps):
                error, tool = normalised(failure.tool.error), failure.tool
                if (
                    len(set(re.findall(r"(?<!<)\b[a-z]{3,}\b", error))) >= LEAST_WORDS
                    and tool.timestamp
                ):
                    fixed = (failure.fixed.timestamp if failure.fixed else 0) or 0
                    yield (
                        conversation.session_id,
                        error,
                        _Failed(0, tool.offset, tool.timestamp, fixed),
                    )


def _conflicts(git_dir: str, drawn: random.Random) -> list[Any]:
    """Draw pairs of tips midway between the first commits of two branches and their merge; half of
    them merge."""
    history = merge_bench.History(git_dir)
    merged = [commit for commit in history.commits.values() if len(commit.parents) == 2][
        : merge_bench.MOST
    ]
    positive: list[Any] = []
    negative: list[Any] = []
    with GitDirectory() as directory:
        merges = Merges(git_dir, Path(directory.path), merge_bench.SECONDS)
        for commit in merged:
            ours, other = commit.parents
            moments = list(
                merge_bench.moments_of((history.own(ours, other), history.own(other, ours)))
            )[:-1]
            files = (
                sorted({digest(conflict.path) for conflict in merges.conflicts(ours, other)})
                if moments
                else []
            )
            if files:
                positive.append([*moments[len(moments) // 2][1], files])
            elif moments and set(merges.changed(ours, other)) & set(merges.changed(other, ours)):
                negative.append([*moments[len(moments) // 2][1], []])
    return _some(drawn, positive, negative)
