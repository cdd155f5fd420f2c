"""`session-memory rescue` restores work that git commands took away.

It is restored into a new branch, or a file that does not exist. Git, transcripts and the command
are real.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from collision_scene import Pair, beside
from own_process import plain_environment, run_here

from bench.clones import Clone, git

PRECIOUS = "precious line of mine\n"


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    return Pair(Clone(tmp_path))


def run(pair: Pair, *words: str, cwd: Path | None = None, code: int = 0) -> str:
    root = pair.clone.root.parent
    environment = {**plain_environment(root), "SESSION_MEMORY_DIR": str(root / "place")}
    done = run_here(["rescue", *words], environment, cwd or pair.clone.root)
    assert done.returncode == code, (done.stdout, done.stderr)
    return done.stdout + done.stderr


def listed(pair: Pair, *words: str) -> list[dict[str, Any]]:
    rescuable: list[dict[str, Any]] = json.loads(run(pair, "--json", *words))["rescuable"]
    return rescuable


def rescued(pair: Pair, *words: str) -> str:
    """Restore the only thing that is listed; the name of the branch or the path of the file."""
    (lost,) = listed(pair, *words)
    assert PRECIOUS.strip() in lost["diff"], lost
    (restored,) = json.loads(run(pair, lost["id"], "--json"))["restored"]
    return str(restored["place"])


def on_branch(pair: Pair, branch: str, name: str = "src/app.py") -> str:
    return git(pair.clone.root, "show", f"{branch}:{name}") or ""


@pytest.mark.parametrize(
    ("command", "is_noted"),
    [("git stash drop", True), ("git stash clear", False), ("git stash pop -q", True)],
)
def test_a_stash_comes_back_as_a_branch(pair: Pair, command: str, is_noted: bool) -> None:
    other = beside(pair)
    pair.main.edit("src/app.py", PRECIOUS)
    pair.main.bash("git stash -q")
    if is_noted:
        pair.main.prompt()
    other.bash(command)
    if is_noted:
        pair.main.prompt()
    other.bash("git checkout -q -- .")
    (lost,) = listed(pair)
    assert (lost["kind"], lost["title"]) == ("stash" if is_noted else "commit", "main")
    branch = rescued(pair, "--session", "main")
    assert branch == f"rescue/{lost['id']}"
    assert PRECIOUS in on_branch(pair, branch)
    assert listed(pair) == []


def test_the_untracked_files_of_a_stash_come_back(pair: Pair) -> None:
    other = beside(pair)
    pair.main.write("new.py", PRECIOUS)
    pair.main.bash("git stash -q -u")
    other.bash("git stash clear")
    branch = rescued(pair)
    assert PRECIOUS in on_branch(pair, f"{branch}^3", "new.py")


@pytest.mark.parametrize("is_noted", [True, False])
def test_a_deleted_branch_comes_back(pair: Pair, is_noted: bool) -> None:
    other = beside(pair)
    pair.main.bash("git switch -q -c work")
    pair.main.edit("src/app.py", PRECIOUS)
    pair.main.bash("git commit -qam mine && git switch -q -")
    if is_noted:
        pair.main.prompt()
    other.bash("git branch -D work")
    if is_noted:
        pair.main.prompt()
    branch = rescued(pair, "--session", "main")
    assert PRECIOUS in on_branch(pair, branch)


def test_commits_of_a_removed_worktree_without_a_branch_come_back(pair: Pair) -> None:
    other = beside(pair)
    other.bash("git switch -q --detach")
    other.edit("src/app.py", PRECIOUS)
    other.bash("git commit -qam mine")
    pair.main.bash("git worktree remove --force ../wt")
    assert PRECIOUS in on_branch(pair, rescued(pair, "--session", "other"))


def test_staged_work_comes_back_after_a_reset(pair: Pair) -> None:
    pair.main.edit("src/app.py", PRECIOUS)
    pair.main.bash("git add -A")
    pair.discord.bash("git reset -q --hard")
    (lost,) = listed(pair)
    assert (lost["kind"], lost["about"], lost["is_whole"]) == ("file", "src/app.py", True)
    path = rescued(pair)
    assert path == f"{pair.clone.root}/src/app.py.rescued-{lost['id']}"
    assert Path(path).read_text() == f"src/app.py\n{PRECIOUS}"
    assert (pair.clone.root / "src/app.py").read_text() == "src/app.py\n"


@pytest.mark.parametrize("is_staged", [True, False])
def test_uncommitted_work_of_a_removed_worktree_comes_back(pair: Pair, is_staged: bool) -> None:
    other = beside(pair)
    other.edit("src/app.py", PRECIOUS)
    other.write("new/deep.py", "a new file of it\n")
    if is_staged:
        other.bash("git add -A")
    other.prompt()
    pair.main.bash("git worktree remove --force ../wt")
    other.prompt()
    lost = {each["about"]: each for each in listed(pair, "--session", "other")}
    assert set(lost) == {"src/app.py", "new/deep.py"}
    for each in lost.values():
        assert each["kind"] == ("file" if is_staged else "text")
    text = run(pair, lost["new/deep.py"]["id"])
    assert ("not the whole file" in text) != is_staged
    assert (pair.clone.root / "new/deep.py").read_text() == "a new file of it\n"
    assert not (pair.clone.root.parent / "wt").exists()


def test_an_untracked_file_that_was_cleaned_comes_back_from_the_transcript(pair: Pair) -> None:
    pair.main.write("notes/new.py", f"one\n{PRECIOUS}two\n")
    pair.main._call(
        "Edit",
        {
            "file_path": str(pair.clone.root / "notes/new.py"),
            "old_string": "two",
            "new_string": "three",
        },
        lambda: 0,
    )
    pair.discord.bash("git clean -fdq")
    printed = run(pair)
    assert "not the whole file" in printed
    path = rescued(pair)
    assert path == f"{pair.clone.root}/notes/new.py"
    assert Path(path).read_text() == f"one\n{PRECIOUS}three\n"


def test_unstaged_work_comes_back_from_the_transcript_beside_the_file(pair: Pair) -> None:
    pair.main.edit("src/app.py", PRECIOUS)
    pair.discord.bash("git reset -q --hard")
    path = Path(rescued(pair))
    assert path.name.startswith("app.py.rescued-t")
    assert path.read_text() == PRECIOUS
    assert (pair.clone.root / "src/app.py").read_text() == "src/app.py\n"


def test_an_edit_that_a_commit_hook_threw_away_comes_back(pair: Pair) -> None:
    root = pair.clone.root
    pair.main.edit("src/app.py", "an edit before the commit\n")
    (root.parent / "hidden.patch").write_text(f"{git(root, 'diff')}\n")
    git(root, "checkout", "-q", "--", ".")
    pair.main.edit("src/app.py", PRECIOUS)
    git(root, "checkout", "-q", "--", ".")
    git(root, "apply", "../hidden.patch")
    path = Path(rescued(pair))
    assert path.name.startswith("app.py.rescued-t")
    assert path.read_text() == PRECIOUS


@pytest.mark.parametrize(
    "commands",
    [
        ["git commit -qam mine"],
        ["git commit -qam mine", "git commit -q --amend -m again"],
        ["git add -A", "git commit -qm mine", "git switch -q -c x", "git reset -q --hard HEAD~1"],
        ["git stash -q"],
        ["git stash -q", "git stash -q -- src", "git switch -q --detach"],
        ["git add -A"],
        [],
    ],
)
def test_work_that_is_there_is_not_listed(pair: Pair, commands: list[str]) -> None:
    other = beside(pair)
    other.edit("docs/guide.md", "staged elsewhere\n")
    other.bash("git add -A && git switch -q --detach && git commit -qm detached")
    other.edit("docs/guide.md", "staged again\n")
    other.bash("git add -A")
    pair.main.edit("src/app.py", PRECIOUS)
    for command in commands:
        assert pair.main.bash(command) == 0
        pair.main.prompt()
    assert listed(pair, "--unknown") == []
    assert "no lost work" in run(pair, "--list")


def test_two_stashes_of_which_both_are_there_are_not_listed(pair: Pair) -> None:
    for line in (PRECIOUS, "another line\n"):
        pair.main.edit("src/app.py", line)
        pair.main.bash("git stash -q")
    assert listed(pair, "--unknown") == []


def test_a_person_s_commits_are_only_counted_unless_asked_for(pair: Pair) -> None:
    pair.later(30)
    pair.clone.shell(
        f"git switch -q -c x; echo '{PRECIOUS.strip()}' >>Makefile; git commit -qam it"
    )
    pair.clone.shell("git switch -q main; git branch -D x")
    assert listed(pair) == []
    assert "1 more commit or staged file by an unknown session or person" in run(pair)
    (lost,) = listed(pair, "--unknown")
    assert (lost["kind"], lost["session"]) == ("commit", None)
    assert PRECIOUS in on_branch(pair, rescued(pair, "--unknown"), "Makefile")


def test_nothing_of_excluded_and_forgotten_sessions_is_listed(pair: Pair) -> None:
    other = beside(pair)
    other.edit("src/app.py", PRECIOUS)
    other.bash("git stash -q")
    other.write("new.py", "unsaved work\n")
    other.write("src/db.py", "staged work\n")
    other.bash("git add src/db.py")
    other.prompt()
    pair.main.bash("git stash clear")
    other.bash("git reset -q --hard && rm new.py")
    other.prompt()
    assert {each["kind"] for each in listed(pair)} == {"stash", "file", "text"}
    pair.clone.rules("{other: exclude}")
    assert listed(pair, "--unknown") == []
    assert "no session is called" in run(pair, "--session", "other", code=1)
    pair.clone.rules("{other: activity}")
    assert "text" not in {each["kind"] for each in listed(pair)}


def test_a_session_of_another_repository_is_not_listed(pair: Pair, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    pair.clone.shell(f"git init -q {elsewhere}")
    stranger = pair.clone.session("stranger", elsewhere, elsewhere)
    stranger.write("gone.py", PRECIOUS)
    (elsewhere / "gone.py").unlink()
    assert listed(pair) == []


def test_files_outside_the_repository_and_of_git_are_never_written(pair: Pair) -> None:
    """A transcript names any path."""
    outside = pair.clone.root.parent / "outside.py"
    for path in (str(outside), f"{pair.clone.root}/.git/hooks/post-checkout", "../x.py"):
        pair.main._call("Write", {"file_path": path, "content": PRECIOUS}, lambda: 0)
    assert listed(pair, "--unknown") == []


def test_a_link_that_leads_out_of_the_worktree_is_not_followed(pair: Pair) -> None:
    other = beside(pair)
    other.write("new/app.py", PRECIOUS)
    other.prompt()
    outside = pair.clone.root.parent / "outside"
    outside.mkdir()
    pair.clone.shell(f"git worktree remove --force ../wt; ln -s {outside} new")
    other.prompt()
    (lost,) = listed(pair)
    assert "a link leads out of" in run(pair, lost["id"], code=1)
    assert list(outside.iterdir()) == []


def test_a_file_that_is_there_is_never_overwritten(pair: Pair) -> None:
    pair.main.write("new.py", PRECIOUS)
    pair.clone.shell("rm new.py; echo other >new.py")
    (lost,) = listed(pair)
    first = Path(rescued(pair))
    assert first.name == f"new.py.rescued-{lost['id']}"
    assert (pair.clone.root / "new.py").read_text() == "other\n"
    first.write_text("changed\n")
    assert "already exists" in run(pair, lost["id"], code=1)
    assert first.read_text() == "changed\n"


def test_no_program_of_the_repository_runs_and_nothing_else_changes(pair: Pair) -> None:
    root = pair.clone.root
    other = beside(pair)
    pair.main.edit("src/app.py", PRECIOUS)
    pair.main.bash("git stash -q")
    pair.main.prompt()
    other.bash("git stash clear")
    marker, hooks = root.parent / "marker", root / ".git/hooks"
    hooks.mkdir(exist_ok=True)
    for name in ("reference-transaction", "post-checkout", "post-index-change"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch {marker}\n")
        (hooks / name).chmod(0o755)
    for key in ("diff.external", "core.fsmonitor", "core.pager", "diff.x.textconv"):
        git(root, "config", key, f"touch {marker};")
    (root / ".git/info").mkdir(exist_ok=True)
    (root / ".git/info/attributes").write_text("* diff=x\n")
    before = git(root, "for-each-ref")
    branch = rescued(pair)
    assert not marker.exists()
    kept = "".join(
        line
        for line in (git(root, "for-each-ref") or "").splitlines(keepends=True)
        if branch not in line
    )
    assert kept == before


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["zebra"], "no lost work has the id 'zebra'"),
        (["--session", "zebra"], "no session is called 'zebra'"),
    ],
)
def test_a_wrong_name_is_an_error_with_what_to_do(pair: Pair, words: list[str], said: str) -> None:
    printed = run(pair, *words, code=1)
    assert said in printed
    assert len(printed.strip().splitlines()) > 1


def test_outside_of_a_repository_the_error_says_what_to_do(pair: Pair, tmp_path: Path) -> None:
    printed = run(pair, cwd=tmp_path, code=1)
    assert "needs a git worktree" in printed
    assert "change to a worktree" in printed


def test_long_diffs_are_cut_unless_asked_for(pair: Pair) -> None:
    text = "".join(f"line {number} of the new file\n" for number in range(100))
    pair.main.write("new.py", text)
    (pair.clone.root / "new.py").unlink()
    assert "line 99 of" not in run(pair)
    assert "more lines: --full" in run(pair)
    assert "line 99 of" in run(pair, "--full")
    assert "line 9" not in run(pair, "--list")


def test_secrets_are_redacted_on_the_screen_and_whole_in_the_file(pair: Pair) -> None:
    secret = "ghp_" + "Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8Qr9St0Uv1Wx2"
    pair.main.write("new.py", f"token = '{secret}'\n")
    (pair.clone.root / "new.py").unlink()
    printed = run(pair) + run(pair, "--json")
    assert secret not in printed
    assert "[redacted" in printed
    (lost,) = listed(pair)
    run(pair, lost["id"])
    assert secret in (pair.clone.root / "new.py").read_text()


def test_a_repository_without_sessions_has_nothing(pair: Pair, tmp_path: Path) -> None:
    pair.clone.shell(f"git init -q {tmp_path}/empty")
    assert "no lost work" in run(pair, cwd=tmp_path / "empty")
    assert os.listdir(tmp_path / "empty") == [".git"]
