"""The benchmark of early conflict reports, on a small history with known merges."""

from __future__ import annotations

import os
import subprocess
import tempfile
from itertools import count
from pathlib import Path

import pytest

from bench.merges import CONFLICTED, RESOLVED, judged, main
from session_memory.common.system.git_directories import remove_leftovers
from session_memory.history.git.merges import Conflict, Merges

from ..git_scene import GIT_ENVIRONMENT, git, repository

CART = "".join(f"line {number}\n" for number in range(1, 41))


class Histories:
    """A repository in which branches are merged; each commit is an hour after the last."""

    def __init__(self, root: Path) -> None:
        self.root = repository(root, cart=CART)
        self._hours = count(1)

    def run(self, *arguments: str) -> None:
        at = f"{4_000_000_000 + 3600 * next(self._hours)} +0000"
        environment = {**GIT_ENVIRONMENT, "GIT_AUTHOR_DATE": at, "GIT_COMMITTER_DATE": at}
        subprocess.run(
            ["git", *arguments], cwd=self.root, env=environment, capture_output=True, check=False
        )

    def commit(self, branch: str, number: int, words: str) -> None:
        git(self.root, "checkout", "-q", branch)
        lines = (self.root / "cart").read_text().splitlines(keepends=True)
        lines[number - 1] = f"{words}\n"
        (self.root / "cart").write_text("".join(lines))
        self.run("commit", "-qam", words)

    def merge(self, branch: str, text: str = "") -> None:
        """Merge a branch into main; `text` is how a conflict is solved."""
        git(self.root, "checkout", "-q", "main")
        self.run("merge", "-q", "--no-ff", "-m", f"merge {branch}", branch)
        if text:
            (self.root / "cart").write_text(text)
            self.run("commit", "-qam", f"merge {branch}")

    def branch(self, name: str) -> None:
        git(self.root, "branch", name, "main")


@pytest.fixture
def history(tmp_path: Path) -> Histories:
    return Histories(tmp_path / "shop")


def test_a_conflict_that_lasts_until_the_merge_is_reported_hours_before(history: Histories) -> None:
    history.branch("fix")
    history.commit("main", 20, "ours")
    history.commit("fix", 20, "theirs")
    history.commit("fix", 3, "more")
    history.merge("fix", CART)
    counts = judged(str(history.root))
    assert counts.files == {CONFLICTED: 1}
    assert counts.reported == {CONFLICTED: 1}
    assert counts.hours == [3.0]  # the merge stopped for an hour


def test_upkeep_that_sweeps_meanwhile_leaves_its_directory_alone(
    history: Histories, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    history.branch("fix")
    history.commit("main", 20, "ours")
    history.commit("fix", 20, "theirs")
    history.commit("fix", 3, "more")
    history.merge("fix", CART)
    conflicts = Merges.conflicts

    def conflicts_then_sweep(merges: Merges, first: str, other: str) -> list[Conflict]:
        found = conflicts(merges, first, other)
        remove_leftovers()
        return found

    monkeypatch.setattr(Merges, "conflicts", conflicts_then_sweep)
    counts = judged(str(history.root))
    assert (counts.files, counts.hours) == ({CONFLICTED: 1}, [3.0])


def test_a_conflict_that_was_taken_back_counts_as_resolved(history: Histories) -> None:
    history.branch("fix")
    history.commit("main", 20, "ours")
    history.commit("fix", 20, "theirs")
    history.commit("fix", 20, "ours")
    history.merge("fix")
    counts = judged(str(history.root))
    assert counts.files == {RESOLVED: 1}
    assert counts.pairs["conflicting"] == 0


def test_what_merges_is_not_reported(history: Histories) -> None:
    history.branch("fix")
    history.commit("main", 30, "ours")
    history.commit("fix", 3, "theirs")
    history.commit("fix", 4, "more")
    history.merge("fix")
    counts = judged(str(history.root))
    assert counts.pairs["with a moment before"] == 1
    assert not counts.files


def test_the_command_prints_figures_and_changes_nothing(
    history: Histories, capsys: pytest.CaptureFixture[str]
) -> None:
    history.branch("fix")
    history.commit("main", 20, "ours")
    history.commit("fix", 20, "theirs")
    history.commit("fix", 3, "more")
    history.merge("fix", CART)
    before = sorted(os.walk(history.root))
    assert main(str(history.root), check=True) == 0
    assert sorted(os.walk(history.root)) == before
    printed = capsys.readouterr().out
    assert "reported files: 1 (1 conflicted, 0 resolved, 0 wrong); right 1.00" in printed
    assert "recall 1.00" in printed
