"""A branch that moves unusually during a session.

It is moved from another worktree, or by a command that moves only branches.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from collision_scene import Pair, collisions

from bench.clones import Clone

FIX = "! branch is now fix (was main): "
STILL = "! branch is still main, but no longer at "
WAYS = {
    "reset in another worktree": (
        "git worktree add -q -f ../wt main && cd ../wt && git reset -q --hard HEAD~1",
        STILL,
    ),
    "commit in another worktree": (
        "git worktree add -q -f ../wt main && cd ../wt && git commit -q --allow-empty -m x",
        STILL,
    ),
    "update-ref from another worktree": (
        "git worktree add -q -b side ../wt && cd ../wt && git update-ref refs/heads/main HEAD~1",
        STILL,
    ),
    "update-ref": ("git update-ref refs/heads/main HEAD~1", STILL),
    "update-ref with a reason": ("git update-ref -m why refs/heads/main HEAD~1", STILL),
    "update-ref of HEAD": ("git update-ref HEAD HEAD~1", STILL),
    "rename": ("git branch -m fix", FIX),
    "rename by name": ("git branch -M main fix", FIX),
    "rename from another worktree": (
        "git worktree add -q -b side ../wt && cd ../wt && git branch -m main fix",
        FIX,
    ),
    "symbolic-ref": ("git branch fix && git symbolic-ref HEAD refs/heads/fix", FIX),
    "symbolic-ref with a reason": (
        "git branch fix && git symbolic-ref -m why HEAD refs/heads/fix",
        FIX,
    ),
    "a file written": ("git branch fix && echo 'ref: refs/heads/fix' > .git/HEAD", FIX),
    "a push": (
        "git clone -q . ../copy && git config receive.denyCurrentBranch ignore && cd ../copy && "
        "git commit -q --allow-empty -m x && git push -q origin main",
        STILL,
    ),
}


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    pair = Pair(Clone(tmp_path))
    pair.clone.shell("git commit -q --allow-empty -m more")
    pair.main.bash("git status")
    pair.main.prompt()
    pair.later()
    return pair


@pytest.mark.parametrize("packed", [False, True], ids=["loose", "packed"])
@pytest.mark.parametrize("way", WAYS)
def test_a_branch_that_another_session_moves_is_told(pair: Pair, way: str, packed: bool) -> None:
    if packed:
        pair.clone.shell("git pack-refs --all")
    command, line = WAYS[way]
    assert pair.discord.bash(command) == 0
    pair.later()
    (told,) = collisions(pair.main.prompt())
    assert told.startswith(line)
    assert 'by "discord"' in told or "written" in way or "push" in way
    pair.later()
    assert collisions(pair.main.prompt()) == []


@pytest.mark.parametrize("way", WAYS)
def test_a_branch_that_a_person_moves_is_told(pair: Pair, way: str) -> None:
    command, line = WAYS[way]
    assert pair.clone.shell(command) == 0
    pair.later()
    (told,) = collisions(pair.main.prompt())
    assert told.startswith(line)


@pytest.mark.parametrize("way", [*WAYS, "switch", "commit"])
def test_a_branch_that_the_session_moves_itself_is_not_told(pair: Pair, way: str) -> None:
    commands = {"switch": "git switch -q -c fix", "commit": "git commit -q --allow-empty -m mine"}
    assert pair.main.bash(commands.get(way) or WAYS[way][0]) == 0
    pair.later()
    assert collisions(pair.main.prompt()) == []


@pytest.mark.parametrize(
    "command",
    [
        "git commit -q --allow-empty -m x",
        "git worktree add -q -b side ../wt && cd ../wt && git commit -q --allow-empty -m x",
        "git branch fix && git branch -m fix other && git branch -D other",
        "git pack-refs --all && git gc -q",
        "git fetch -q . main:other",
        "git status",
    ],
)
def test_a_plain_commit_or_another_branch_is_not_told(pair: Pair, command: str) -> None:
    assert pair.discord.bash(command) == 0
    pair.later()
    assert collisions(pair.main.prompt()) == []
