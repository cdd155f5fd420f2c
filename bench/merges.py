"""`python -m bench.merges REPOSITORY...`: conflicts told before the merge, judged by the merges in
the history of repositories that you give (git directories; they are only read, and nothing of them
is kept).

Rules, fixed before the first measurement:

- A pair are the two parents of a merge commit (the latest `--most` of HEAD's history, with two
  parents and a common ancestor). A side is alive from its first commit that the other parent does
  not have, by the dates of the committers, along first parents. A moment is such a date at which
  both sides have a commit, or the merge itself; of more than MOMENTS, as many at equal distances
  are taken, with the first and the last. Of a pair that shares no changed file only the merge is
  judged.
- A file is reported if `Merges.conflicts` names it for the two tips at a moment before the last,
  which has the tips that were merged: a report there would be right by definition.
- A report of a file is right if the file conflicts in the merge of the two parents (CONFLICTED), or
  was resolved on a branch before it (RESOLVED): after the report a side merged commits of the other
  into itself, or a side changed the file again. All else is WRONG: the conflict went away while
  neither happened, as by a rename.
- A report of a pair is right if one of its files is. Recall is the share of the pairs with a
  conflict in the merge, and with a moment before the last, that were reported. Lead time runs from
  the first report to the date of the merge."""

from __future__ import annotations

import os
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import NamedTuple

from session_memory.common.system.git_directories import GitDirectory
from session_memory.common.system.git_process import QUIET, GitUnavailableError
from session_memory.history.git.merges import Merges

from .command import run

MOST, MOMENTS = 300, 12
SECONDS = 24 * 3600.0  # for all merges of a repository
PRECISION = 0.9
CONFLICTED, RESOLVED, WRONG = "conflicted", "resolved", "wrong"
EARLY, CONFLICTING, REPORTED, UNJUDGED = (
    "with a moment before",
    "conflicting",
    "of these reported",
    "not judged",
)


class Commit(NamedTuple):
    name: str
    parents: tuple[str, ...]
    time: float


class Counts:
    """The results for a repository's merges.

    They are pairs, files by verdict, reported pairs by verdict, and hours before merges."""

    def __init__(self) -> None:
        self.pairs: Counter[str] = Counter()
        self.files: Counter[str] = Counter()
        self.reported: Counter[str] = Counter()
        self.hours: list[float] = []
        self.seconds: list[float] = []  # of each trial merge

    def __add__(self, other: Counts) -> Counts:
        both = Counts()
        both.pairs, both.files = self.pairs + other.pairs, self.files + other.files
        both.reported = self.reported + other.reported
        both.hours, both.seconds = self.hours + other.hours, self.seconds + other.seconds
        return both


class History:
    """The commits of a repository, by their names."""

    def __init__(self, git_dir: str) -> None:
        self.git_dir = git_dir
        lines = self.ask("rev-list", "--parents", "--timestamp", "HEAD").splitlines()
        commit_lines = [line.split() for line in lines]
        self.commits = {
            name: Commit(name, tuple(parents), float(at)) for at, name, *parents in commit_lines
        }

    def ask(self, *arguments: str) -> str:
        command = [
            "git",
            "--no-pager",
            "--no-replace-objects",
            f"--git-dir={self.git_dir}",
            *arguments,
        ]
        environment = {**os.environ, **QUIET}
        return subprocess.run(
            command, capture_output=True, text=True, check=True, env=environment
        ).stdout

    def own(self, parent: str, other: str) -> list[Commit]:
        """Return a side's commits that the other lacks, along first parents, the oldest first."""
        names = self.ask("rev-list", "--first-parent", "--reverse", parent, f"^{other}").split()
        return [self.commits[name] for name in names]

    def changed(self, before: str, after: str) -> set[str]:
        """Return the files that differ between two commits."""
        return set(self.ask("diff-tree", "-r", "-z", "--name-only", before, after).split("\0")[:-1])


def main(*repositories: str, most: int = MOST, check: bool = False) -> int:
    """Return the exit code: 1 if `check` and less than PRECISION of the reports are right."""
    whole = Counts()
    for path in repositories:
        counts = judged(path, most)
        print(f"{path}\n{text_of(counts)}\n")
        whole += counts
    print(f"all\n{text_of(whole)}")
    return 1 if check and precision(whole.files) < PRECISION else 0


def judged(path: str, most: int = MOST) -> Counts:
    """Return what the latest merges of the repository at `path` give."""
    git_dir = next(
        (
            str(git_dir)
            for git_dir in (Path(path, ".git"), Path(path))
            if (git_dir / "objects").is_dir()
        ),
        path,
    )
    history, counts = History(git_dir), Counts()
    merged = [commit for commit in history.commits.values() if len(commit.parents) == 2][:most]
    with GitDirectory() as directory:
        merges = Merges(git_dir, Path(directory.path), SECONDS)
        for commit in merged:
            try:
                judge(commit, history, merges, counts)
            except GitUnavailableError:
                counts.pairs[UNJUDGED] += 1
    return counts


def judge(merge: Commit, history: History, merges: Merges, counts: Counts) -> None:
    """Add what one merge gives. Raises GitUnavailableError."""
    sides = history.own(*merge.parents), history.own(*merge.parents[::-1])
    last = conflicting(merges, merge.parents, counts)
    counts.pairs["merges"] += 1
    counts.pairs[CONFLICTING] += bool(last)
    moments = list(thinned(list(moments_of(sides))[:-1]))
    if not moments:
        return
    counts.pairs[EARLY] += 1
    ours, other = merge.parents
    if not last and not set(merges.changed(ours, other)) & set(merges.changed(other, ours)):
        return
    reports: dict[str, int] = {}  # the last moment of each file
    first: float | None = None
    for number, (at, tips) in enumerate(moments):
        for file in conflicting(merges, tips, counts):
            reports[file] = number
            first = at if first is None else first
    counts.pairs["conflicting with a moment before"] += bool(last)
    counts.pairs[REPORTED] += bool(last and reports)
    if first is None:
        return
    verdicts = [
        verdict(file, moments[at][1], file in last, sides, history) for file, at in reports.items()
    ]
    counts.files.update(verdicts)
    counts.reported[min(verdicts)] += 1  # in the order of the alphabet: the best one
    counts.hours.append((merge.time - first) / 3600)


def verdict(
    file: str,
    tips: tuple[str, str],
    is_conflicting: bool,
    sides: tuple[list[Commit], list[Commit]],
    history: History,
) -> str:
    """Return the verdict on a file that conflicted between two tips for the last time."""
    if is_conflicting:
        return CONFLICTED
    for tip, side, other in zip(tips, sides, sides[::-1]):
        names = [commit.name for commit in side]
        later = side[names.index(tip) + 1 :]
        others = {commit.name for commit in other}
        if any(others.intersection(commit.parents[1:]) for commit in later):
            return RESOLVED
        if later and file in history.changed(tip, names[-1]):
            return RESOLVED
    return WRONG


def moments_of(sides: tuple[list[Commit], list[Commit]]) -> Iterator[tuple[float, tuple[str, str]]]:
    """Yield the times when both sides have commits, with their tips; the merged tips are last."""
    positions, tips = [0, 0], ["", ""]
    while any(at < len(side) for at, side in zip(positions, sides)):
        behind = [
            side[at].time if at < len(side) else float("inf") for at, side in zip(positions, sides)
        ]
        which = behind.index(min(behind))
        tips[which] = sides[which][positions[which]].name
        positions[which] += 1
        if all(tips):
            yield behind[which], (tips[0], tips[1])


def thinned(moments: list[tuple[float, tuple[str, str]]]) -> list[tuple[float, tuple[str, str]]]:
    """Return at most MOMENTS moments at equal distances, including the first and the last."""
    if len(moments) <= MOMENTS:
        return moments
    return [
        moments[round(number * (len(moments) - 1) / (MOMENTS - 1))] for number in range(MOMENTS)
    ]


def conflicting(merges: Merges, tips: tuple[str, ...], counts: Counts) -> set[str]:
    """Return the files that conflict between two commits."""
    began = time.perf_counter()
    conflicting_paths = {conflict.path for conflict in merges.conflicts(tips[0], tips[1])}
    counts.seconds.append(time.perf_counter() - began)
    return conflicting_paths


def precision(verdicts: Counter[str]) -> float:
    """Return the share that is right."""
    return 1 - verdicts[WRONG] / verdicts.total() if verdicts else 1.0


def text_of(counts: Counts) -> str:
    """Return the figures in words."""
    possible = counts.pairs["conflicting with a moment before"]
    lines = [", ".join(f"{number} {what}" for what, number in counts.pairs.items())]
    for what, verdicts in (("files", counts.files), ("pairs", counts.reported)):
        counts_told = ", ".join(
            f"{verdicts[name]} {name}" for name in (CONFLICTED, RESOLVED, WRONG)
        )
        lines.append(
            f"reported {what}: {verdicts.total()} ({counts_told}); right {precision(verdicts):.2f}"
        )
    if possible:
        lines.append(f"recall {counts.pairs[REPORTED] / possible:.2f}")
    if counts.hours:
        lines.append(f"first report {median(counts.hours):.1f} hours before the merge (median)")
    if counts.seconds:
        lines.append(
            f"trial merge {1000 * median(counts.seconds):.0f} ms (median), "
            f"{max(counts.seconds):.1f} s (most)"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    run(main)
