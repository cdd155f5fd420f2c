"""A clone is recognised by its origin and the first commit of its history."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from git_scene import git, repository

from session_memory.common.system.git_identity import first_commit, origin_of

SECONDS = 60.0


@pytest.mark.parametrize(
    ("settings", "origin"),
    [
        ('[remote "origin"]\n\turl = git@example.com:acme/shop.git\n', "example.com/acme/shop"),
        (
            '  [remote "origin"] ; ours\nurl="https://EXAMPLE.com/acme/shop"\n',
            "example.com/acme/shop",
        ),
        ('[remote "fork"]\n\turl = https://example.com/acme/shop\n', ""),
        ('[remote "origin"]\n\tfetch = x\n[branch "main"]\n\turl = https://example.com/a\n', ""),
        ('[remote "origin"]\n\turl = /srv/git/shop\n', ""),
        ("", ""),
    ],
)
def test_the_origin_is_read_from_the_settings(tmp_path: Path, settings: str, origin: str) -> None:
    (tmp_path / "config").write_text(settings)
    assert origin_of(str(tmp_path)) == origin


def test_a_history_begins_with_the_first_of_the_first_parents(tmp_path: Path) -> None:
    root = repository(tmp_path / "a", a="1\n")
    first = git(root, "rev-parse", "HEAD")
    git(root, "checkout", "-q", "--orphan", "other")
    git(root, "commit", "-q", "-m", "another beginning")
    git(root, "checkout", "-q", "main")
    git(root, "merge", "-q", "--allow-unrelated-histories", "-s", "ours", "-m", "join", "other")
    git(root, "worktree", "add", "-q", "../b")
    assert first_commit(f"{root}/.git", f"{root}/.git", SECONDS) == first
    assert first_commit(f"{root}/.git/worktrees/b", f"{root}/.git", SECONDS) == first


def test_without_a_history_there_is_no_first_commit(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "empty")
    root = repository(tmp_path / "a", a="1\n")
    git(root, "commit", "-q", "--allow-empty", "-m", "more")
    git(tmp_path, "clone", "-q", "--depth=1", f"file://{root}", "shallow")
    for name in ("empty", "shallow", "none"):
        git_dir = f"{tmp_path}/{name}/.git"
        assert first_commit(git_dir, git_dir, SECONDS) == ""


def test_git_is_not_waited_for_without_end(tmp_path: Path) -> None:
    root = repository(tmp_path / "a", a="1\n")
    git(root, "pack-refs", "--all")
    (root / ".git" / "packed-refs").unlink()
    os.mkfifo(root / ".git" / "packed-refs")
    assert first_commit(f"{root}/.git", f"{root}/.git", 0.3) == ""
