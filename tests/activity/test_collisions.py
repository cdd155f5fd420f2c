"""What sessions that share a clone are told of their collisions: one readable snapshot a situation, on real git and real
files."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from collision_scene import Pair, branch_switched, collisions, edited_after_reading
from git_scene import git
from markdown_snapshot import MarkdownSnapshot
from syrupy.assertion import SnapshotAssertion

from bench.clones import Clone


@pytest.fixture
def told(snapshot: SnapshotAssertion) -> SnapshotAssertion:
    return snapshot.use_extension(MarkdownSnapshot)


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    return Pair(Clone(tmp_path))


def without_commits(text: str) -> str:
    return re.sub(r"\b[0-9a-f]{7}\b", "<commit>", text)


def edited_after_editing(pair: Pair) -> None:
    pair.main.edit("src/app.py", "1\n")
    pair.main.read("src/db.py")
    pair.discord.edit("src/app.py", "x\n")
    pair.discord.edit("src/db.py", "x\n")


def both_edited(pair: Pair) -> None:
    pair.main.read("src/app.py")
    pair.discord.edit("src/app.py", "x\n")
    pair.main.edit("src/app.py", "1\n")


def edited_by_a_command(pair: Pair) -> None:
    pair.main.read("src/app.py")
    pair.discord.bash("cd src && sed -i 's/app/application/' app.py && cat app.py")


def renamed(pair: Pair) -> None:
    pair.main.edit("src/app.py", "1\n")
    pair.discord.bash("git mv -f src/app.py src/main.py")


def many_files(pair: Pair) -> None:
    for name in ("src/app.py", "src/db.py", "docs/guide.md", "Makefile", "src/ui/main.ts"):
        pair.main.read(name)
        pair.discord.edit(name, "x\n")


def branch_switched_by_a_person(pair: Pair) -> None:
    pair.main.read("src/app.py")
    pair.clone.shell("git switch -q -c fix/login")


def detached(pair: Pair) -> None:
    pair.discord.bash("git checkout -q --detach HEAD")


def stashed(pair: Pair) -> None:
    """A stash takes along what another session has not committed, a file that is new too."""
    pair.main.edit("src/app.py", "1\n")
    pair.main.write("src/new.py", "1\n")
    pair.discord.bash("git stash --include-untracked")


def committed_by_another(pair: Pair) -> None:
    """`commit -a` takes in what another session has not finished."""
    pair.main.edit("src/app.py", "1\n")
    pair.main.write("src/new.py", "1\n")
    pair.discord.edit("src/db.py", "x\n")
    pair.discord.bash("git commit -am 'Fix the login'")


def added_by_another(pair: Pair) -> None:
    pair.main.write("src/new.py", "1\n")
    pair.discord.bash("git add -A && git commit -m 'Fix the login'")


def committed_among_own_commits(pair: Pair) -> None:
    """A session commits other files before and after another one has taken in what it had not finished."""
    pair.main.edit("src/app.py", "1\n")
    pair.main.edit("src/db.py", "1\n")
    pair.later()
    pair.main.bash("git add src/db.py && git commit -qm 'Mend the database'")
    pair.later()
    pair.discord.bash("git commit -qam 'Fix the login'")
    pair.later()
    pair.main.edit("Makefile", "1\n")
    pair.main.bash("git commit -qam 'Build it'")


def committed_and_switched_away(pair: Pair) -> None:
    pair.main.edit("src/app.py", "1\n")
    pair.discord.bash("git switch -q -c fix/login && git commit -qam 'Fix the login'")
    pair.later()
    pair.clone.shell("git switch -q main")


def amended(pair: Pair) -> None:
    pair.main.edit("src/app.py", "1\n")
    pair.discord.edit("src/db.py", "x\n")
    pair.discord.bash("git commit -qm 'Fix the login' src/db.py")
    pair.later()
    pair.discord.bash("git commit -q --amend --all --no-edit")


def reset(pair: Pair) -> None:
    """One session 'repairs' the tree that is another's."""
    pair.main.edit("src/app.py", "1\n")
    pair.discord.bash("git reset --hard")


def checked_out(pair: Pair) -> None:
    pair.main.edit("src/app.py", "1\n")
    pair.main.edit("src/db.py", "1\n")
    pair.discord.bash("git checkout -- src/app.py")


def cleaned(pair: Pair) -> None:
    pair.main.write("src/new.py", "1\n")
    pair.discord.bash("git clean -fd")


def branch_moved_back(pair: Pair) -> None:
    pair.main.edit("src/app.py", "1\n")
    pair.main.bash("git commit -qam mine")
    pair.main.prompt()
    pair.later()
    pair.discord.bash("git reset -q --hard HEAD~1")


def worktree_drags_head(pair: Pair) -> None:
    """A command for a worktree that is run in the root checkout moves HEAD there."""
    pair.discord.bash("git worktree add -q ../wt -b fix/login && cd ../wt && cd ../clone && git switch -q -c fix/other")


SITUATIONS: list[Callable[[Pair], None]] = [
    edited_after_reading, edited_after_editing, both_edited, edited_by_a_command, renamed, many_files, branch_switched,
    branch_switched_by_a_person, detached, stashed, committed_by_another, added_by_another, committed_among_own_commits,
    committed_and_switched_away, amended, reset, checked_out, cleaned, branch_moved_back, worktree_drags_head,
]  # fmt: skip


@pytest.mark.parametrize("happens", SITUATIONS, ids=lambda happens: happens.__name__)
def test_what_happened_to_a_session_is_the_first_that_it_is_told(happens, pair, told):
    happens(pair)
    pair.later()
    text = pair.main.prompt()
    lines = text.split("\n")
    assert lines[1].startswith("! ")
    assert without_commits(text) + "\n" == told
    assert collisions(pair.main.prompt()) == []


def test_what_others_do_is_told_after_a_clock_was_days_ahead(pair: Pair) -> None:
    pair.later(3 * 24 * 60)
    pair.discord.edit("src/db.py", "x\n")
    assert pair.main.prompt()
    pair.later(-3 * 24 * 60)
    pair.main.read("src/app.py")
    pair.later(1)
    pair.clone.session("telegram").edit("src/app.py", "y\n")
    assert collisions(pair.main.prompt()) == ['! src/app.py: edited just now by "telegram", after you read it']


def test_a_stash_of_named_files_concerns_no_other(pair: Pair) -> None:
    pair.main.edit("src/app.py", "1\n")
    pair.discord.edit("src/db.py", "x\n")
    pair.discord.bash("git stash push -- src/db.py; rm src/app.py")
    assert not [line for line in collisions(pair.main.prompt()) if "git stash" in line]


def test_an_edit_of_another_worktree_is_taken_by_no_command_in_this_one(pair: Pair, tmp_path: Path) -> None:
    git(pair.clone.root, "worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    pair.main.edit(str(tmp_path / "side/src/app.py"), "1\n")
    pair.discord.edit("src/app.py", "x\n")
    pair.discord.bash("git commit -qam all")
    assert not [line for line in collisions(pair.main.prompt()) if "not committed" in line]
