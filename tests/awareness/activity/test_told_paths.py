"""Paths in an update are relative to the repository's root, wherever the sessions began."""

from __future__ import annotations

from pathlib import Path

import pytest
from collision_scene import Pair

from bench.clones import Clone

FILES = ("a.py", "packages/x/a.py", "packages/y/a.py")


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    return Clone(tmp_path, FILES)


@pytest.mark.parametrize("begins", ["", "packages/x", "packages/y"])
def test_files_of_packages_are_named_from_the_root(clone: Clone, begins: str) -> None:
    reader = clone.session("reader", worktree=clone.root / begins)
    for name in "xy":
        actor = clone.session(name, worktree=clone.root / "packages" / name)
        clone.now += 60
        actor.edit("a.py", "x\n")
    text = reader.prompt()
    assert "edited packages/x/a.py" in text
    assert "edited packages/y/a.py" in text


def test_a_file_that_was_read_is_named_from_the_root(clone: Clone) -> None:
    reader = clone.session("reader")
    actor = clone.session("x", worktree=clone.root / "packages" / "x")
    actor.read("a.py")
    assert "read packages/x/a.py" in reader.prompt()


def test_a_worktree_is_a_root_while_it_is_one(clone: Clone) -> None:
    reader = clone.session("reader")
    place = clone.root / ".claude" / "worktrees" / "fix"
    clone.shell(f"git worktree add -q -b fix {place}")
    actor = clone.session("x", worktree=place)
    actor.edit("a.py", "x\n")
    assert "edited a.py" in reader.prompt()
    (place / ".git").unlink()
    actor.edit("a.py", "x\n")
    assert "edited .claude/worktrees/fix/a.py" in reader.prompt()


def test_without_a_repository_files_are_named_from_where_the_session_began(tmp_path: Path) -> None:
    clone = Clone(tmp_path, FILES)
    clone.shell("rm -rf .git")
    pair = Pair(clone)
    pair.discord.edit("packages/x/a.py", "x\n")
    assert "edited packages/x/a.py" in pair.main.prompt()
