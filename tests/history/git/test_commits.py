"""The commits of a repository since a time, and its files that are not committed."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from git_scene import git, repository

from session_memory.history.git.commits import Repository


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return repository(tmp_path / "api", kept="1\n", changed="1\n", gone="1\n")


def repository_at(root: Path) -> Repository:
    return Repository(str(root / ".git"), str(root))


def test_new_changed_and_removed_files_are_not_committed(root: Path) -> None:
    (root / "changed").write_text("2\n")
    (root / "gone").unlink()
    (root / "new").write_text("1\n")
    (root / "added").write_text("1\n")
    git(root, "add", "added")
    (root / ".gitignore").write_text("built\n")
    (root / "built").write_text("1\n")
    paths = ["kept", "changed", "gone", "new", "added", "built", "never"]
    assert repository_at(root).uncommitted(paths) == ["changed", "gone", "new", "added"]


@pytest.mark.parametrize(
    "file", [".git/info/exclude", "../person/ignored", "../home/.config/git/ignore"]
)
def test_files_that_the_person_ignores_are_not_listed(
    root: Path, monkeypatch: pytest.MonkeyPatch, file: str
) -> None:
    """The repository's own settings are honoured as by git, but run no program."""
    home = root.parent / "home"
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    for name in ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_COUNT"):
        monkeypatch.delenv(name, raising=False)
    home.mkdir()
    (root.parent / "person").mkdir()
    if "person" in file:
        (home / ".gitconfig").write_text("[core]\n\texcludesFile = ~/../person/ignored\n")
    path = root / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("*.swp\n")
    ran = root.parent / "ran"
    program = root.parent / "program"
    program.write_text(f"#!/bin/sh\ntouch '{ran}'\n")
    program.chmod(0o700)
    git(root, "config", "core.fsmonitor", str(program))
    git(root, "config", "core.pager", str(program))
    (root / "notes.swp").write_text("1\n")
    (root / "new").write_text("1\n")
    assert repository_at(root).uncommitted(["notes.swp", "new"]) == ["new"]
    assert not ran.exists()


def test_a_file_that_was_only_touched_is_committed(root: Path) -> None:
    os.utime(root / "kept", (time.time() + 5, time.time() + 5))
    (root / "changed").write_text("1\n")
    assert repository_at(root).uncommitted(["kept", "changed"]) == []


def test_no_file_is_committed_before_the_first_commit(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "-b", "main")
    (tmp_path / "new").write_text("1\n")
    assert repository_at(tmp_path).uncommitted(["new"]) == ["new"]
    assert repository_at(tmp_path).commits_since(0) == []


def test_commits_of_all_branches_and_heads_since_a_time_are_listed(root: Path) -> None:
    git(root, "switch", "-q", "-c", "other")
    git(root, "commit", "-q", "--allow-empty", "-m", "on a branch \x01\x02")
    git(root, "switch", "-q", "--detach")
    git(root, "commit", "-q", "--allow-empty", "-m", "without a branch")
    head = git(root, "rev-parse", "HEAD")
    git(root, "switch", "-q", "main")
    time.sleep(1.1)  # none of them is of the present second
    subjects = {each.subject for each in repository_at(root).commits_since(0, [head])}
    assert subjects == {"begin", "on a branch \x01\x02", "without a branch"}
    later = round((time.time() + 3600) * 1000)
    assert repository_at(root).commits_since(later, [head]) == []
