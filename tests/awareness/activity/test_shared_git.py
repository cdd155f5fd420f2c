"""A stash, branch or worktree that another session took away is reported once.

The line has the command that restores it.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from collision_scene import Pair, beside, collisions

from bench.clones import Actor, Clone, git
from session_memory.awareness.activity.collisions.ref_notes import (
    NOTES,
    RefNotes,
    forget_owners,
    note,
)
from session_memory.common.system.git_refs import SHORT_COMMIT, short_id

PRECIOUS = "precious\n"


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    return Pair(Clone(tmp_path))


def stashed(pair: Pair, actor: Actor) -> str:
    """Have a session stash an edit, and return the commit."""
    actor.edit("src/app.py", PRECIOUS)
    actor.bash("git stash -q")
    return commit(pair, "refs/stash")


def commit(pair: Pair, name: str) -> str:
    return (git(pair.clone.root, "rev-parse", name.strip("'")) or "").strip()


def run_told(pair: Pair, line: str, directory: Path | None = None) -> None:
    """Run the command that a line ends with."""
    command = line.rpartition(": ")[2]
    assert command.startswith("git "), line
    assert pair.clone.shell(command, directory) == 0, line


STASH_COMMANDS = {"pop": "popped", "drop": "dropped", "clear": "cleared"}


@pytest.mark.parametrize("flag", ["", " -q"])
@pytest.mark.parametrize("verb", STASH_COMMANDS)
def test_a_stash_that_a_session_in_another_worktree_took_is_told(
    pair: Pair, verb: str, flag: str
) -> None:
    other = beside(pair)
    kept = stashed(pair, pair.main)
    pair.main.prompt()
    assert other.bash(f"git stash {verb}{'' if verb == 'clear' else flag}") == 0
    pair.later(2)
    (line,) = collisions(pair.main.prompt())
    said = rf'! your stash "WIP on main: .*" was {STASH_COMMANDS[verb]} 2m ago by "other": '
    assert re.fullmatch(f"{said}git stash apply {short_id(kept)}", line), line
    run_told(pair, line)
    assert PRECIOUS in (pair.clone.root / "src/app.py").read_text()
    pair.later()
    assert collisions(pair.main.prompt()) == []


def test_an_id_that_begins_with_digits_is_never_the_number_of_a_stash(pair: Pair) -> None:
    root, tree = pair.clone.root, commit(pair, "HEAD^{tree}")
    index = (git(root, "commit-tree", "-p", "HEAD", "-m", "index", tree) or "").strip()
    options = ("-p", "HEAD", "-p", index, tree)  # as a stash has them
    for number in range(2000):
        made = git(root, "commit-tree", "-m", f"{number}", *options) or ""
        if made[:SHORT_COMMIT].isdigit():
            break
    assert pair.clone.shell(f"git stash store {short_id(made.strip())}") == 0
    assert pair.clone.shell(f"git stash show {made[:SHORT_COMMIT]}") != 0
    assert pair.clone.shell(f"git stash show {short_id(made.strip())}") == 0


def test_a_pop_of_what_another_session_stashed_is_told_to_both(pair: Pair) -> None:
    other = beside(pair)
    kept = stashed(pair, other)
    pair.main.prompt()
    # nothing to stash, so this pops the other's
    assert pair.main.bash("git stash -q; git stash pop -q") == 0
    assert PRECIOUS in (pair.clone.root / "src/app.py").read_text()
    (mine,) = collisions(pair.main.prompt())
    assert mine.startswith('! you popped the stash "WIP on wt: ')
    assert mine.endswith(f'" of another session: git stash store {short_id(kept)} puts it back')
    (theirs,) = collisions(other.prompt())
    assert theirs.startswith('! your stash "WIP on wt: ')
    assert theirs.endswith(f'popped just now by "main": git stash apply {short_id(kept)}')
    assert collisions(pair.main.prompt()) == collisions(other.prompt()) == []


@pytest.mark.parametrize(
    "commands",
    [
        ["git stash pop -q"],
        ["git stash drop -q"],
        ["git stash pop -q", "git stash", "git stash clear"],
        ["git stash branch mine"],
        ["sh ../own-script"],
    ],
)
def test_what_a_session_does_with_its_own_stash_is_not_told(
    pair: Pair, commands: list[str]
) -> None:
    other = beside(pair)
    (pair.clone.root.parent / "own-script").write_text("git stash drop -q\n")
    stashed(pair, pair.main)
    pair.main.prompt()
    other.prompt()
    for command in commands:
        assert pair.main.bash(command) == 0
        other.prompt()
    for _ in range(2):
        pair.later()
        assert collisions(pair.main.prompt()) == collisions(other.prompt()) == []


@pytest.mark.parametrize("is_there_before", [True, False])
def test_what_went_before_a_session_worked_on_a_branch_is_not_its_own(
    pair: Pair, is_there_before: bool
) -> None:
    late = pair.clone.session("late") if is_there_before else None
    if late:
        late.read("src/db.py")
        late.prompt()
    pair.main.bash("git switch -q -c work")
    pair.main.edit("src/app.py", PRECIOUS)
    pair.main.bash("git commit -q -a -m one")
    pair.main.bash("git switch -q main")
    pair.main.prompt()
    pair.discord.bash("git branch -f work main")
    pair.later(2)
    (line,) = collisions(pair.main.prompt())
    assert "! your branch work is no longer at " in line
    pair.later(60)
    late = late or pair.clone.session("late")
    for number in range(3):
        late.edit("src/app.py", f"{number}\n")
        late.bash("git switch -q work; git commit -q -a -m more")
        pair.main.prompt()
        pair.later(2)
        told = collisions(late.prompt())
        assert [one for one in told if "your branch" in one] == []
    late.bash("git switch -q main")
    late.prompt()
    pair.discord.bash("git branch -D work")
    pair.later(2)
    (line,) = [one for one in collisions(late.prompt()) if "your branch" in one]
    assert "! your branch work was deleted 2m ago" in line


def test_a_stash_of_another_session_that_a_third_one_drops_is_not_told_to_this_one(
    pair: Pair,
) -> None:
    other = beside(pair)
    stashed(pair, pair.discord)
    pair.discord.prompt()
    pair.main.prompt()
    other.bash("git stash drop")
    assert collisions(pair.main.prompt()) == []
    (line,) = collisions(pair.discord.prompt())
    assert 'was dropped just now by "other"' in line


def test_a_stash_that_a_person_drops_is_told_without_a_name(pair: Pair) -> None:
    kept = stashed(pair, pair.main)
    pair.main.prompt()
    pair.later()
    pair.clone.shell("git stash drop")
    (line,) = collisions(pair.main.prompt())
    assert line.endswith(f"was dropped just now: git stash apply {short_id(kept)}")


def test_a_removed_worktree_is_told_with_the_edits_that_went(pair: Pair) -> None:
    other = beside(pair)
    other.edit("src/db.py", "committed\n")
    other.bash("git commit -qam done")
    other.edit("src/app.py", PRECIOUS)
    other.prompt()
    assert pair.main.bash("git worktree remove --force ../wt") == 0
    (line,) = collisions(other.prompt())
    assert line == (
        '! your worktree wt was removed just now by "main", with your uncommitted edit of src/app.py'
        ": session-memory rescue"
    )
    assert collisions(other.prompt()) == []


@pytest.mark.parametrize(
    "command", ["git worktree remove ../wt", "rm -r ../wt; git worktree prune"]
)
def test_a_worktree_without_edits_is_made_again_by_what_is_told(pair: Pair, command: str) -> None:
    other = beside(pair)
    other.edit("src/db.py", "committed\n")
    other.bash("git commit -qam done")
    other.prompt()
    assert pair.main.bash(command) == 0
    line = collisions(other.prompt())[0]
    assert line.startswith('! your worktree wt was removed just now by "main": git worktree add ')
    run_told(pair, line)
    assert "committed" in (other.worktree / "src/db.py").read_text()


def test_a_worktree_made_anew_under_a_session_is_told(pair: Pair) -> None:
    other = beside(pair)
    other.edit("src/app.py", PRECIOUS)
    other.prompt()
    again = "git worktree remove --force ../wt && git worktree add -q -b fresh ../wt"
    assert pair.main.bash(again) == 0
    lines = collisions(other.prompt())
    assert lines[0] == (
        '! your worktree wt was removed and recreated just now by "main", with your uncommitted edit of '
        "src/app.py: session-memory rescue"
    )


def worked_on_a_branch(pair: Pair, name: str = "work") -> str:
    """Have main commit on a branch that it leaves, and return the commit."""
    pair.main.bash(f"git branch {name} && git switch -q {name}")
    pair.main.edit("src/app.py", PRECIOUS)
    pair.main.bash("git commit -qam mine && git switch -q -")
    pair.main.prompt()
    return commit(pair, name)


@pytest.mark.parametrize("packed", [False, True], ids=["loose", "packed"])
@pytest.mark.parametrize("name", ["work", "fix/cart", "fix/cart/deep"])
@pytest.mark.parametrize("flag", ["-D", "-q -D"])
def test_a_deleted_branch_is_told(pair: Pair, name: str, packed: bool, flag: str) -> None:
    other = beside(pair)
    kept = worked_on_a_branch(pair, name)
    pair.clone.shell(f"git branch {name}-2")
    if packed:
        pair.clone.shell("git pack-refs --all")
    pair.main.prompt()
    assert other.bash(f"git branch {flag} {name}") == 0
    (line,) = collisions(pair.main.prompt())
    assert line == (
        f'! your branch {name} was deleted just now by "other": git branch {name} {short_id(kept)}'
    )
    run_told(pair, line)
    assert commit(pair, name) == kept
    assert collisions(pair.main.prompt()) == []


@pytest.mark.parametrize(
    "command",
    ["git branch -f work main", "git update-ref refs/heads/work main", "git push -qf . main:work"],
)
def test_a_branch_that_lost_a_commit_is_told(pair: Pair, command: str) -> None:
    other = beside(pair)
    kept = worked_on_a_branch(pair)
    assert other.bash(command) == 0
    (line,) = collisions(pair.main.prompt())
    assert line == (
        f'! your branch work is no longer at {short_id(kept)}, moved just now by "other": '
        f"git branch work-{short_id(kept)} {short_id(kept)}"
    )
    run_told(pair, line)


@pytest.mark.parametrize(
    "command",
    [
        "git merge -q work && git branch -d work",
        "git branch -m work done",
        "git branch other-name work && git branch -D work",
        "git switch -q work && git commit -q --allow-empty -m more",
    ],
)
def test_a_branch_whose_commits_are_elsewhere_is_not_told(pair: Pair, command: str) -> None:
    other = beside(pair)
    worked_on_a_branch(pair)
    assert other.bash(command) == 0
    assert collisions(pair.main.prompt()) == []


def test_a_branch_with_a_name_that_a_shell_would_run_is_told_without_a_command(pair: Pair) -> None:
    other = beside(pair)
    kept = worked_on_a_branch(pair, "'x;touch$IFS-marker'")
    other.bash("git branch -D 'x;touch$IFS-marker'")
    (line,) = collisions(pair.main.prompt())
    assert line.endswith(f": commit {short_id(kept)}")


def test_a_stash_made_and_taken_between_two_prompts_is_noted_before_the_command(
    pair: Pair,
) -> None:
    """The hook before a call that runs git notes what is there."""
    other = beside(pair)
    kept = stashed(pair, pair.main)
    note(pair.clone.home, str(pair.clone.root / ".git"), pair.clone.now, is_forced=True)
    other.bash("git stash clear")
    (line,) = collisions(pair.main.prompt())
    assert line.endswith(f'was cleared just now by "other": git stash apply {short_id(kept)}')


def test_a_repository_with_a_table_of_refs_is_told_without_its_branches(pair: Pair) -> None:
    (pair.clone.root / ".git/refs/heads").rename(pair.clone.root / ".git/refs/old")
    (pair.clone.root / ".git/refs/heads").write_text("this repository uses the reftable format\n")
    pair.discord.edit("src/app.py", "x\n")
    assert "edited src/app.py" in pair.main.prompt()


def test_a_forgotten_session_is_in_no_notes(pair: Pair) -> None:
    stashed(pair, pair.main)
    pair.main.prompt()
    directory = Path(pair.clone.home.state_dir + NOTES)
    (notes,) = directory.glob("*.json")
    assert pair.main.id in notes.read_text()
    forget_owners(str(directory), {pair.main.id})
    assert pair.main.id not in notes.read_text()
    assert RefNotes(str(notes)).refs
