"""Collisions with file times that are coarse or from another clock.

FAT, exFAT, HFS+, NFS and SMB have such times.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from collision_scene import Pair, collisions

from bench.clones import Clone

HOUR = 3600
EDITED = '! src/app.py: edited just now by "discord", after you '


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    return Pair(Clone(tmp_path))


@pytest.fixture
def behind(tmp_path: Path) -> Pair:
    """A pair whose files have a clock that is an hour behind theirs."""
    clone = Clone(tmp_path)
    clone.now = time.time() + HOUR
    return Pair(clone)


def cut(pair: Pair, grain: float, name: str = "src/app.py") -> None:
    """Give a file its time as a file system with this grain has it."""
    path = pair.clone.root / name
    found = int(path.stat().st_mtime / grain + 1e-6) * grain
    os.utime(path, (found, found))


def by_its_own_clock(pair: Pair) -> None:
    for path in pair.clone.root.rglob("*"):
        if path.is_file() and path.stat().st_mtime > time.time():
            os.utime(path)


@pytest.mark.parametrize("begins", [0.0, 0.1, 0.4, 0.9, 1.3])
@pytest.mark.parametrize("grain", [2.0, 1.0, 0.01])
@pytest.mark.parametrize("way", ["edit", "command"])
@pytest.mark.parametrize("own", ["read", "edit"])
def test_an_edit_is_told_with_coarse_times(
    pair: Pair, own: str, way: str, grain: float, begins: float
) -> None:
    pair.clone.now += begins + 0.0037
    pair.main.read("src/app.py") if own == "read" else pair.main.edit("src/app.py", "1\n")
    cut(pair, grain)
    pair.clone.now += 5
    pair.discord.edit("src/app.py", "x\n") if way == "edit" else pair.discord.bash(
        "echo x >> src/app.py"
    )
    cut(pair, grain)
    assert collisions(pair.main.prompt()) == [f"{EDITED}{own.replace('edit', 'edited')} it"]


@pytest.mark.parametrize("begins", [0.1, 0.9])
@pytest.mark.parametrize("grain", [2.0, 1.0, 0.01])
def test_an_own_edit_after_another_is_no_collision_with_coarse_times(
    pair: Pair, grain: float, begins: float
) -> None:
    pair.clone.now += begins
    pair.discord.edit("src/app.py", "x\n")
    cut(pair, grain)
    pair.clone.now += 3
    pair.main.read("src/app.py")
    pair.main.edit("src/app.py", "1\n")
    cut(pair, grain)
    assert collisions(pair.main.prompt()) == []
    pair.discord.bash("false && sed -i s/a/b/ src/app.py")
    assert collisions(pair.main.prompt()) == []


@pytest.mark.parametrize("grain", [2.0, 1.0])
def test_work_that_git_takes_away_is_told_with_coarse_times(pair: Pair, grain: float) -> None:
    pair.clone.now += 0.6
    pair.main.edit("src/app.py", "1\n")
    cut(pair, grain)
    pair.later(1)
    pair.discord.bash("git reset -q --hard")
    cut(pair, grain)
    (line,) = collisions(pair.main.prompt())
    assert line.startswith("! src/app.py: `git reset -q --hard` run just now")


@pytest.mark.parametrize("own", ["read", "edit"])
def test_an_edit_is_told_by_a_clock_that_is_behind(behind: Pair, own: str) -> None:
    behind.main.read("src/app.py") if own == "read" else behind.main.edit("src/app.py", "1\n")
    behind.later(1)
    behind.discord.edit("src/app.py", "x\n")
    by_its_own_clock(behind)
    assert collisions(behind.main.prompt()) == [f"{EDITED}{own.replace('edit', 'edited')} it"]


def test_an_edit_by_a_command_is_told_where_the_log_of_head_shows_that_the_clock_is_behind(
    behind: Pair,
) -> None:
    behind.main.bash("git commit -q --allow-empty -m more")
    committed = behind.clone.now - 0.5
    behind.main.prompt()
    behind.main.read("src/app.py")
    behind.later(0.2)
    behind.discord.bash("echo x >> src/app.py")
    wrote = behind.clone.now - 0.5
    for name, then in ((".git/logs/HEAD", committed), ("src/app.py", wrote)):
        os.utime(behind.clone.root / name, (then - HOUR, then - HOUR))
    assert collisions(behind.main.prompt()) == [f"{EDITED}read it"]


def test_an_edit_is_told_by_a_clock_that_is_ahead(pair: Pair) -> None:
    pair.main.read("src/app.py")
    pair.later(1)
    pair.discord.edit("src/app.py", "x\n")
    later = pair.clone.now + 300
    os.utime(pair.clone.root / "src" / "app.py", (later, later))
    assert collisions(pair.main.prompt()) == [f"{EDITED}read it"]


def test_an_own_edit_after_another_is_no_collision_by_a_clock_that_is_behind(behind: Pair) -> None:
    behind.discord.edit("src/app.py", "x\n")
    behind.later(1)
    behind.main.read("src/app.py")
    behind.main.edit("src/app.py", "1\n")
    by_its_own_clock(behind)
    assert collisions(behind.main.prompt()) == []


def test_a_file_that_was_put_back_with_its_old_time_is_no_collision(pair: Pair) -> None:
    pair.main.read("src/app.py")
    pair.clone.shell("cp -p src/app.py kept")
    pair.later(1)
    pair.discord.edit("src/app.py", "x\n")
    pair.clone.shell("cp -p kept src/app.py")
    os.utime(pair.clone.root / "src" / "app.py", (pair.clone.now - 600.5, pair.clone.now - 600.5))
    assert collisions(pair.main.prompt()) == []


def edit_after_a_commit(pair: Pair, seconds: float) -> None:
    """Have somebody commit a file and, so long after, a session edit it in a quick call."""
    pair.clone.call_seconds = 0.1
    pair.main.read("src/app.py")
    pair.clone.now = int(pair.clone.now) + 1.1
    pair.clone.shell("echo y >> src/app.py; git commit -qam another")
    pair.clone.now += seconds
    pair.main.edit("src/app.py", "1\n")


@pytest.mark.parametrize("since_commit", [0.2, 0.6])
def test_a_commit_in_the_second_of_an_edit_but_before_it_did_not_take_it(
    pair: Pair, since_commit: float
) -> None:
    """Git logs whole seconds, but the log's own time tells which came first."""
    edit_after_a_commit(pair, since_commit)
    pair.clone.now += 0.5
    pair.discord.bash("git checkout -q -- .")
    pair.later()
    (line,) = collisions(pair.main.prompt())
    assert line.startswith("! src/app.py: `git checkout -q -- .` run 5m ago by ")


def test_a_commit_in_the_second_of_an_edit_and_after_it_took_it(pair: Pair) -> None:
    pair.clone.call_seconds = 0.1
    pair.clone.now = int(pair.clone.now) + 1.1
    pair.main.edit("src/app.py", "1\n")
    pair.clone.now += 0.2
    pair.clone.shell("git commit -qam another")
    pair.clone.now += 0.5
    pair.discord.bash("git checkout -q -- .")
    pair.later()
    assert collisions(pair.main.prompt()) == []


def test_a_commit_that_took_an_edit_is_told_if_another_was_made_in_the_same_second(
    pair: Pair,
) -> None:
    edit_after_a_commit(pair, 0.3)
    pair.clone.now += 0.6
    pair.discord.bash("echo x >> src/db.py; git commit -qam wip")
    pair.later()
    (line,) = collisions(pair.main.prompt())
    assert line.startswith("! src/app.py: `git commit -qam wip` run 5m ago by ")


@pytest.mark.parametrize("begins", [0.1, 0.6])
def test_a_command_that_edits_and_commits_leaves_nothing_uncommitted(
    pair: Pair, begins: float
) -> None:
    """Its commit is in the second of its result or in the one before."""
    pair.clone.call_seconds = 0.6
    pair.clone.now = int(pair.clone.now) + 1 + begins
    pair.discord.bash("echo x >> src/app.py; git commit -qam wip")
    pair.clone.now += 10
    pair.main.edit("src/app.py", "1\n")
    pair.discord.read("src/db.py")
    assert collisions(pair.main.prompt()) == []
