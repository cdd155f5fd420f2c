"""Collisions of sessions that share a clone: a readable snapshot per situation, with real git."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from collision_scene import Pair, collisions, play
from git_scene import git
from markdown_snapshot import MarkdownSnapshot
from syrupy.assertion import SnapshotAssertion

from bench.clones import Clone
from session_memory.awareness.activity.collisions import search as collision_search
from session_memory.awareness.activity.collisions.search import Findings
from session_memory.common.system.deadline import DeadlineError


@pytest.fixture
def told(snapshot: SnapshotAssertion) -> SnapshotAssertion:
    return snapshot.use_extension(MarkdownSnapshot)


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    return Pair(Clone(tmp_path))


def without_commits(text: str) -> str:
    return re.sub(r"\b[0-9a-f]{7}\b", "<commit>", text)


# What happens, as `play` has it, of which main is told.
SITUATIONS = {
    "edited_after_reading": ["main read", "discord edit"],
    "edited_after_editing": [
        "main edit",
        "main read src/db.py",
        "discord edit",
        "discord edit src/db.py",
    ],
    "both_edited": ["main read", "discord edit", "main edit"],
    "edited_by_a_command": [
        "main read",
        "discord $ cd src && sed -i 's/app/application/' app.py && cat app.py",
    ],
    "renamed": ["main edit", "discord $ git mv -f src/app.py src/main.py"],
    "many_files": [
        f"{who} {name}"
        for name in ("src/app.py", "src/db.py", "docs/guide.md", "Makefile", "src/ui/main.ts")
        for who in ("main read", "discord edit")
    ],
    # One session switches the branch under another, which goes on to commit.
    "branch_switched": ["main edit", "discord $ git switch -c fix/login"],
    "branch_switched_by_a_person": ["main read", "shell git switch -q -c fix/login"],
    "detached": ["discord $ git checkout -q --detach HEAD"],
    # A stash takes along what another session has not committed, a file that is new too.
    "stashed": ["main edit", "main write src/new.py", "discord $ git stash --include-untracked"],
    # `commit -a` takes in what another session has not finished.
    "committed_by_another": [
        "main edit",
        "main write src/new.py",
        "discord edit src/db.py",
        "discord $ git commit -am 'Fix the login'",
    ],
    "added_by_another": [
        "main write src/new.py",
        "discord $ git add -A && git commit -m 'Fix the login'",
    ],
    # A session commits other files before and after another one has taken in what it had not
    # finished.
    "committed_among_own_commits": [
        "main edit",
        "main edit src/db.py",
        "later 5",
        "main $ git add src/db.py && git commit -qm 'Mend the database'",
        "later 5",
        "discord $ git commit -qam 'Fix the login'",
        "later 5",
        "main edit Makefile",
        "main $ git commit -qam 'Build it'",
    ],
    "committed_and_switched_away": [
        "main edit",
        "discord $ git switch -q -c fix/login && git commit -qam 'Fix the login'",
        "later 5",
        "shell git switch -q main",
    ],
    "amended": [
        "main edit",
        "discord edit src/db.py",
        "discord $ git commit -qm 'Fix the login' src/db.py",
        "later 5",
        "discord $ git commit -q --amend --all --no-edit",
    ],
    # One session 'repairs' the tree that is another's.
    "reset": ["main edit", "discord $ git reset --hard"],
    "checked_out": ["main edit", "main edit src/db.py", "discord $ git checkout -- src/app.py"],
    "cleaned": ["main write src/new.py", "discord $ git clean -fd"],
    "branch_moved_back": [
        "main edit",
        "main $ git commit -qam mine",
        "main prompt",
        "later 5",
        "discord $ git reset -q --hard HEAD~1",
    ],
    # A command for a worktree that is run in the root checkout moves HEAD there.
    "worktree_drags_head": [
        "discord $ git worktree add -q ../wt -b fix/login && cd ../wt && cd ../clone && git switch -q -c fix/other"
    ],
}


@pytest.mark.parametrize("happens", SITUATIONS)
def test_what_happened_to_a_session_is_the_first_that_it_is_told(happens, pair, told):
    play(pair, SITUATIONS[happens])
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
    assert collisions(pair.main.prompt()) == [
        '! src/app.py: edited just now by "telegram", after you read it'
    ]


def test_a_stash_of_named_files_concerns_no_other(pair: Pair) -> None:
    pair.main.edit("src/app.py", "1\n")
    pair.discord.edit("src/db.py", "x\n")
    pair.discord.bash("git stash push -- src/db.py; rm src/app.py")
    assert not [line for line in collisions(pair.main.prompt()) if "git stash" in line]


TAKEN = 'src/app.py: `git stash{}` run 1m ago by "discord", while your edit was not committed'


@pytest.mark.parametrize("option", ["", " -u", " push -q -m wip"])
def test_a_stash_is_told_although_a_third_session_has_edited_the_file_since(
    pair: Pair, option: str
) -> None:
    telegram = pair.clone.session("telegram")
    pair.main.edit("src/app.py", "1\n")
    pair.later(1)
    pair.discord.bash(f"git stash{option}")
    pair.later(1)
    telegram.edit("src/app.py", "y\n")
    lines = collisions(pair.main.prompt())
    assert [line for line in lines if TAKEN.format(option) in line]
    assert [line for line in lines if 'by "telegram", after you edited it' in line]
    assert collisions(pair.main.prompt()) == []


def test_a_new_file_in_a_stash_is_told_although_a_third_session_has_made_it_again(
    pair: Pair,
) -> None:
    telegram = pair.clone.session("telegram")
    pair.main.write("src/new.py", "1\n")
    pair.later(1)
    pair.discord.bash("git stash -u")
    pair.later(1)
    telegram.write("src/new.py", "y\n")
    lines = collisions(pair.main.prompt())
    assert [line for line in lines if line.startswith("! src/new.py: `git stash -u` run 1m ago")]


@pytest.mark.parametrize("command", ["git stash -q -- src/db.py", "git add -A; git stash -qk"])
def test_a_stash_that_left_the_file_is_not_told_after_an_edit_of_a_third_session(
    pair: Pair, command: str
) -> None:
    telegram = pair.clone.session("telegram")
    pair.main.edit("src/app.py", "1\n")
    pair.discord.edit("src/db.py", "x\n")
    pair.later(1)
    pair.discord.bash(command)
    pair.later(1)
    telegram.edit("src/app.py", "y\n")
    assert not [line for line in collisions(pair.main.prompt()) if "git stash" in line]


# What happens after an edit by main, and the command of discord that it is told to have lost it to.
DISCARDED = {
    "git reset -q --hard": ["telegram edit"],
    "git checkout -q -- .": ["telegram edit", "later 1", "main read"],
    "git restore src": ["telegram edit"],
    "git restore -s HEAD -S -W .": ["telegram edit", "later 1", "telegram edit"],
    "git checkout -q -f": ["telegram edit", "later 1", "telegram $ git commit -qam all"],
    "git checkout -q src/app.py": ["telegram edit", "later 1", "telegram $ git restore ."],
    "git stash -q": ["discord edit", "later 1", "discord $ git reset -q --hard"],
    "git read-tree -u --reset HEAD": ["telegram edit", "later 1", "telegram $ git stash"],
}


@pytest.mark.parametrize("command", DISCARDED)
def test_an_edit_was_lost_to_the_first_command_that_discarded_it_whatever_was_done_since(
    pair: Pair, command: str
) -> None:
    steps = ["main edit", "later 1", f"discord $ {command}", "later 1"]
    play(pair, [*steps, *DISCARDED[command]])
    pair.later(1)
    lines = [line for line in collisions(pair.main.prompt()) if "not committed" in line]
    assert [line.partition(" run ")[0] for line in lines] == [f"! src/app.py: `{command}`"]
    play(pair, ["telegram edit", "later 1", "telegram $ git reset -q --hard"])
    assert not [line for line in collisions(pair.main.prompt()) if "not committed" in line]


# What happens after an edit by main that is not lost, or that main has taken back or stashed itself.
NOT_TAKEN = {
    "given_back": ["discord $ git stash -q", "later 1", "discord $ git stash pop -q"],
    "given_back_by_a_third": ["discord $ git stash -q", "later 1", "telegram $ git stash apply -q"],
    "given_back_by_itself": ["discord $ git stash -q", "later 1", "main $ git stash apply -q"],
    "given_back_to_others_edits": [
        "discord $ git stash -q",
        "later 1",
        "shell git stash apply -q",
        "telegram edit",
    ],
    "given_back_by_the_command": ["discord $ git rebase -q --autostash HEAD"],
    "kept_in_the_index": ["main $ git add src/app.py", "discord edit", "discord $ git restore ."],
    "kept_by_keep_index": [
        "main $ git add src/app.py",
        "discord edit src/db.py",
        "discord $ git stash -qk",
    ],
    "stashed_by_itself": ["main $ git stash -q", "discord edit", "discord $ git stash -q"],
    "stashed_before_the_last_prompt": [
        "main $ git stash -q",
        "main prompt",
        "later 1",
        "discord edit",
        "discord $ git reset -q --hard",
    ],
    "undone_before_the_last_prompt": [
        "main $ git restore src/app.py",
        "main prompt",
        "later 1",
        "discord edit",
        "discord $ git checkout -q -- .",
        "telegram edit",
    ],
    "left_by_a_command_for_other_files": ["discord $ git restore src/db.py", "telegram edit"],
    "left_by_a_command_for_the_index": ["discord $ git restore --staged .", "telegram edit"],
    "left_by_a_command_that_did_not_run": [
        "discord $ false && git reset -q --hard",
        "telegram edit",
    ],
}


@pytest.mark.parametrize("happens", NOT_TAKEN)
def test_an_edit_that_no_other_session_has_taken_is_not_told_as_taken(pair, happens):
    play(pair, ["main edit", "later 1", *NOT_TAKEN[happens]])
    pair.later(1)
    assert not [line for line in collisions(pair.main.prompt()) if "not committed" in line]


# What happens until telegram commits an edit that no earlier command has discarded.
NOT_DISCARDED = {
    "new": ["main $ cp Makefile src/new.py", "discord $ git reset -q --hard"],
    "new_and_edited": [
        "main $ cp Makefile src/new.py",
        "discord $ git reset -q --hard",
        "telegram edit src/new.py",
    ],
    "new_and_overwritten": [
        "main write src/new.py",
        "discord $ git checkout -q -f",
        "telegram write src/new.py",
    ],
    "given_back": [
        "main $ sed -i 1d src/app.py",
        "discord $ git stash -q && git reset -q --hard && git stash pop -q",
        "telegram edit",
    ],
    "given_back_as_a_branch": [
        "main $ sed -i 1d src/app.py",
        "discord $ git stash -q && git reset -q --hard",
        "discord $ git stash branch -q other",
        "telegram edit",
    ],
    "staged_by_itself": [
        "main $ sed -i 1d src/app.py && git add src/app.py",
        "discord $ git checkout -q -- .",
        "telegram edit",
    ],
    "staged_by_another": [
        "main edit",
        "discord $ git add .",
        "discord $ git restore .",
        "telegram write",
    ],
    "a_branch_with_the_name_of_a_folder": [
        "main $ sed -i 1d src/app.py",
        "discord $ git checkout -q -b src",
        "telegram edit",
    ],
    "the_index_only": [
        "main $ sed -i 1d src/app.py",
        "discord $ git restore -qS .",
        "telegram edit",
    ],
    "asked_for_each_change": [
        "main $ sed -i 1d src/app.py",
        "discord $ yes n | git restore -p .",
        "telegram edit",
    ],
    "failed": ["main $ sed -i 1d src/app.py", "discord $ git reset -q --hard none || true"],
}


@pytest.mark.parametrize("happens", NOT_DISCARDED)
def test_a_commit_of_an_edit_is_told_although_a_command_before_it_discards_edits(
    pair: Pair, happens: str
) -> None:
    steps = [step for each in NOT_DISCARDED[happens] for step in (each, "later 1")]
    play(pair, [*steps, "telegram $ git add -A", "telegram $ git commit -qm all"])
    lines = [line for line in collisions(pair.main.prompt()) if "not committed" in line]
    assert lines
    assert not [line for line in lines if not re.search("`git (add|commit) ", line)]


def test_an_edit_of_a_command_was_lost_before_an_edit_of_a_third_session(pair: Pair) -> None:
    steps = ["main $ sed -i 1d src/app.py", "later 1", "discord $ git reset -q --hard", "later 1"]
    play(pair, [*steps, "telegram edit", "telegram $ git commit -qam all"])
    [line] = [line for line in collisions(pair.main.prompt()) if "not committed" in line]
    assert line.startswith("! src/app.py: `git reset -q --hard` run ")


def test_an_edit_can_be_taken_after_this_session_stashed_another_file(pair: Pair) -> None:
    play(pair, ["main edit", "main edit src/db.py", "main $ git stash push -qm app src/db.py"])
    play(pair, ["later 1", "discord $ git reset -q --hard"])
    assert [line for line in collisions(pair.main.prompt()) if "not committed" in line]


@pytest.mark.parametrize("who", ["main", "discord", "telegram"])
def test_a_stash_of_a_command_s_edit_is_not_told_after_it_was_applied(pair: Pair, who: str) -> None:
    steps = ["main $ sed -i 1d src/app.py", "later 1", "discord $ git stash -q", "later 1"]
    play(pair, [*steps, f"{who} $ git stash apply -q"])
    assert not [line for line in collisions(pair.main.prompt()) if "not committed" in line]


def test_an_edit_that_this_session_stashed_and_took_back_can_be_taken_again(pair: Pair) -> None:
    play(pair, ["main edit", "main $ git stash -q", "main prompt", "main $ git stash pop -q"])
    play(pair, ["main prompt", "later 1", "discord $ git reset -q --hard"])
    assert [line for line in collisions(pair.main.prompt()) if "not committed" in line]


def test_before_a_call_an_edit_that_this_session_stashed_is_not_told_as_taken(pair: Pair) -> None:
    play(pair, ["main edit", "main $ git stash -q", "later 1", "discord edit"])
    pair.discord.bash("git reset -q --hard")
    pair.main.edit("src/db.py", "1\n")
    assert "not committed" not in pair.main.before_edit("src/app.py")


def test_an_edit_of_another_worktree_is_taken_by_no_command_in_this_one(
    pair: Pair, tmp_path: Path
) -> None:
    git(pair.clone.root, "worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    pair.main.edit(str(tmp_path / "side/src/app.py"), "1\n")
    pair.discord.edit("src/app.py", "x\n")
    pair.discord.bash("git commit -qam all")
    assert not [line for line in collisions(pair.main.prompt()) if "not committed" in line]


def test_sessions_whose_collisions_could_not_be_searched_in_time_wait_until_they_are(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    def find(*_: object) -> Findings:
        if hangs.pop():
            raise DeadlineError
        return search(*_)

    telegram = pair.clone.session("telegram")
    search, hangs = collision_search.find, [False, True]
    monkeypatch.setattr(collision_search, "find", find)
    play(pair, ["main read", "discord edit"])
    telegram.say("usual answer")
    text = pair.main.prompt()
    assert "usual answer" in text
    assert "discord" not in text
    assert collisions(pair.main.prompt()) == [
        '! src/app.py: edited just now by "discord", after you read it'
    ]
    hangs += [False, True, True]
    play(pair, ["main read", "discord edit"])
    assert pair.main.prompt() == ""
    assert pair.main.prompt() == ""
    assert collisions(pair.main.prompt()) == [
        '! src/app.py: edited just now by "discord", after you read it'
    ]


@pytest.mark.parametrize("command", ["echo more >> README.md", "sed -i s/a/b/ README.md; ls"])
def test_a_file_that_a_command_wrote_is_named_as_edited(tmp_path: Path, command: str) -> None:
    pair = Pair(Clone(tmp_path, ("README.md",)))
    pair.discord.bash(command)
    assert '- "discord" (just now, 1 message): edited README.md' in pair.main.prompt().split("\n")
