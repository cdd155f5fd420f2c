"""Which branch was checked out when, and whether it is merged: by real repositories."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from git_scene import git, repository

from session_memory.history.git.branches import Branches


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository with a commit of its own on the branch fix/login, and main checked out."""
    root = repository(tmp_path / "app", src__app="1\n2\n3\n", src__db="x\n")
    git(root, "switch", "-q", "-c", "fix/login")
    commit(root, "src/app", "1\n2\n3\n4\n")
    commit(root, "src/new", "new\n")
    git(root, "switch", "-q", "main")
    return root


def commit(root: Path, name: str, text: str) -> None:
    (root / name).write_text(text)
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", f"Change {name}")


def merged(root: Path) -> None:
    commit(root, "src/db", "y\n")
    git(root, "merge", "-q", "fix/login")


def rebased(root: Path) -> None:
    commit(root, "src/db", "y\n")
    git(root, "cherry-pick", "main..fix/login")


def squashed(root: Path) -> None:
    commit(root, "src/db", "y\n")
    git(root, "merge", "-q", "--squash", "fix/login")
    git(root, "commit", "-q", "-m", "Fix the login")
    commit(root, "src/app", "0\n1\n2\n3\n4\n")


def merged_where_it_was_cloned_from(root: Path) -> None:
    there = root.parent / "there"
    git(root, "clone", "-q", "--bare", ".", str(there))
    git(root, "push", "-q", str(there), "fix/login:main")
    git(root, "remote", "add", "origin", str(there))
    git(root, "fetch", "-q", "origin")
    git(root, "remote", "set-head", "origin", "main")


@pytest.mark.parametrize(
    "happens",
    [merged, rebased, squashed, merged_where_it_was_cloned_from],
    ids=lambda happens: happens.__name__,
)
def test_a_branch_is_merged_however_its_changes_came_into_the_default_branch(
    happens: Callable[[Path], None], root: Path
) -> None:
    assert Branches().is_merged(str(root), "fix/login") is False
    happens(root)
    assert Branches().is_merged(str(root / "src"), "fix/login") is True


def test_a_branch_of_which_a_part_was_taken_is_not_merged(root: Path) -> None:
    git(root, "cherry-pick", "fix/login~1")
    assert Branches().is_merged(str(root), "fix/login") is False


def test_the_default_branch_is_that_of_the_origin_whatever_its_name(root: Path) -> None:
    git(root, "branch", "-q", "-m", "main", "live")
    assert Branches().is_merged(str(root), "fix/login") is None
    there = root.parent / "there"
    git(root, "clone", "-q", "--bare", ".", str(there))
    git(root, "remote", "add", "origin", str(there))
    git(root, "fetch", "-q", "origin")
    git(root, "remote", "set-head", "origin", "live")
    assert Branches().is_merged(str(root), "fix/login") is False
    assert Branches().is_merged(str(root), "live") is True


def test_what_cannot_be_told_is_none(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert Branches().is_merged(str(root), "gone") is None
    assert Branches().is_merged(str(tmp_path), "main") is None
    assert Branches(user_dir=str(root)).is_merged(str(root), "fix/login") is None
    assert Branches().is_merged(str(root), "--upload-pack=x") is None
    monkeypatch.setenv("PATH", str(tmp_path))
    assert Branches().is_merged(str(root), "fix/login") is None


def test_git_runs_nothing_that_the_repository_names_and_changes_nothing_in_it(
    root: Path, tmp_path: Path
) -> None:
    ran = tmp_path / "ran"
    for key in (
        "core.fsmonitor",
        "diff.external",
        "core.pager",
        "diff.evil.textconv",
        "diff.evil.command",
    ):
        git(root, "config", key, f"touch {ran};")
    (root / ".git/info/attributes").write_text("* diff=evil\n")
    before = {path: path.stat().st_mtime_ns for path in root.rglob("*")}
    assert Branches().is_merged(str(root), "fix/login") is False
    assert not ran.exists()
    assert {path: path.stat().st_mtime_ns for path in root.rglob("*")} == before


class TestCheckedOut:
    """`root` has its log of HEAD with the times 100 (main), 200 (fix/login), 300 (main again)."""

    @pytest.fixture
    def root(self, root: Path) -> Path:
        log = root / ".git/logs/HEAD"
        lines = []
        for line in log.read_text().splitlines(keepends=True):
            when = "100" if "initial" in line else "300" if "to main" in line else "200"
            lines.append(line.replace(line.partition("> ")[2].split()[0], when))
        log.write_text("".join(lines))
        return root

    def test_it_is_what_the_log_of_head_says(self, root: Path) -> None:
        branches = Branches()
        found = [
            branches.checked_out(str(root / "src"), when)
            for when in (50, 150, 250, 350, time.time())
        ]
        assert found == ["", "main", "fix/login", "main", "main"]
        assert branches.is_merged(str(root), "fix/login") is False
        assert branches.is_merged(str(root), "main") is True

    def test_each_worktree_has_its_own(self, root: Path) -> None:
        git(root, "worktree", "add", "-q", "../wt", "-b", "other")
        assert Branches().checked_out(f"{root.parent}/wt", time.time()) == "other"
        assert Branches().checked_out(f"{root}/gone", time.time()) == ""

    def test_a_commit_that_was_checked_out_is_no_branch(self, root: Path) -> None:
        git(root, "checkout", "-q", "--detach")
        assert Branches().checked_out(str(root), time.time() + 5) == ""
        (root / ".git/logs/HEAD").unlink()
        assert Branches().checked_out(str(root), os.stat(root).st_mtime) == ""
