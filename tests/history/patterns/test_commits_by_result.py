"""The session of a commit, known from git's output, and of lines that others amended, moved or squashed."""

from __future__ import annotations

from pathlib import Path

import pytest
from authors_scene import CLAUDE, CODEX, Author, Authors, next_second
from git_scene import git
from records import assistant, user

from session_memory.common.text.written_lines import made_commits

CART = "".join(f"line number {number} of the cart\n" for number in range(1, 10))
BY_SCRIPT = (
    """python3 -c "t=open('cart.ts').read(); open('cart.ts','w').write(t.replace('9','nine'))" """
)


@pytest.fixture
def authors(tmp_path: Path) -> Authors:
    found = Authors(tmp_path, **{"cart.ts": CART})
    (tmp_path / "message").write_text("Sort the cart\n")
    next_second()
    return found


@pytest.fixture
def writer(authors: Authors) -> Author:
    """A session at work beside another one."""
    authors.session(CLAUDE, "Good morning").says("Good morning.")
    return authors.session(CODEX, "Sort the cart")


@pytest.mark.parametrize(
    "commit",
    [
        "git commit -a -F ../message",
        "GIT_EDITOR='cp ../message' git commit -a",
        "git commit -qam begun && git commit --amend -F ../message",
    ],
)
def test_a_commit_whose_message_no_command_shows_is_its_sessions(
    authors: Authors, writer: Author, commit: str
) -> None:
    writer.shell(BY_SCRIPT)
    writer.shell(commit)
    writer.says("Done.")
    assert authors.named("HEAD") == authors.named("cart.ts:9") == (writer.id, "commit")


def test_a_commit_is_known_though_the_store_had_its_call_before_the_result(
    authors: Authors,
) -> None:
    authors.session(CODEX, "Good morning").says("Good morning.")
    session = authors.session(CLAUDE, "Sort the cart")
    session.shell(BY_SCRIPT)
    call = assistant(("Bash", {"command": "git commit -a -F ../message"}), **session.fields)
    session.append(call)
    authors.run("ingest")
    printed = git(authors.root, "commit", "-a", "-F", "../message")
    block = {
        "type": "tool_result",
        "tool_use_id": call["message"]["content"][0]["id"],
        "content": printed,
    }
    session.append(user([block], **session.fields))
    session.says("Done.")
    assert authors.named("HEAD") == (session.id, "commit")


def test_a_rebased_commit_is_of_the_session_that_first_made_it(
    authors: Authors, writer: Author
) -> None:
    writer.shell(BY_SCRIPT)
    writer.shell("git commit -a -F ../message")
    writer.says("Done.")
    (authors.linked / "other").write_text("by hand\n")
    git(authors.linked, "add", "other")
    git(authors.linked, "commit", "-qm", "By hand")
    git(authors.root, "rebase", "-q", "other")
    assert authors.named("HEAD") == (writer.id, "commit")


def test_a_line_of_a_commit_that_another_session_amended_is_not_the_others(
    authors: Authors, writer: Author
) -> None:
    writer.shell(BY_SCRIPT)
    writer.shell("git commit -qam 'Sort the cart'")
    writer.says("Done.")
    amending = authors.session(CLAUDE, "Add a page")
    amending.shell("echo page > page && git add page && git commit --amend --no-edit")
    amending.says("Done.")
    assert authors.named("cart.ts:9")[0] != amending.id
    assert authors.named("HEAD") == (amending.id, "commit")


def test_a_line_that_another_session_picked_is_its_writers(authors: Authors) -> None:
    session = authors.session(CODEX, "Write nine", authors.linked)
    session.shell(f"{BY_SCRIPT} && git commit -qam Nine")
    session.says("Done.")
    picking = authors.session(CLAUDE, "Take it over")
    picking.shell("git cherry-pick other")
    picking.says("Done.")
    assert authors.named("cart.ts:9") == (session.id, "commit")
    assert authors.named("HEAD") == (picking.id, "commit")


def test_of_two_commits_with_one_subject_each_is_its_own_sessions(authors: Authors) -> None:
    first = authors.session(CODEX, "Write nine")
    first.shell(BY_SCRIPT)
    first.shell("git commit -am wip")
    next_second()
    second = authors.session(CLAUDE, "Write one")
    second.shell(BY_SCRIPT.replace("'9','nine'", "'1','one'"))
    second.shell("git commit -am wip")
    assert authors.named("HEAD") == (second.id, "commit")
    assert authors.named("HEAD~1") == (first.id, "commit")


def test_a_line_that_another_session_squashed_is_its_writers(authors: Authors) -> None:
    session = authors.session(CODEX, "Write nine", authors.linked)
    session.shell("sed -i 's/number 9/number nine/' cart.ts && git commit -qam 'Nine'")
    session.says("Done.")
    squashing = authors.session(CLAUDE, "Take it over")
    squashing.shell("git merge -q --squash other && git commit -qm 'Take it over'")
    squashing.says("Done.")
    assert authors.named("cart.ts:9") == (session.id, "command")


@pytest.mark.parametrize(
    "printing", ["echo '[work {}] By hand'; git status -s", "git log -1; cat log"]
)
def test_a_session_that_only_prints_what_git_said_did_not_commit(
    authors: Authors, printing: str
) -> None:
    (authors.root / "cart.ts").write_text(CART.replace("9", "nine"))
    (authors.root / "log").write_text(git(authors.root, "commit", "-am", "By hand"))
    session = authors.session(CLAUDE, "Look at the log", ago=-1)
    session.shell(printing.format(git(authors.root, "rev-parse", "--short", "HEAD")))
    session.says("I saw it.")
    assert authors.named("HEAD")[1] != "commit"


def test_a_commit_that_failed_is_not_the_persons_with_the_same_subject(authors: Authors) -> None:
    hook = authors.root / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    (authors.root / "cart.ts").write_text(CART.replace("9", "nine"))
    authors.session(CODEX, "Commit it").shell("git commit -qam 'Nine it is'")
    hook.unlink()
    git(authors.root, "commit", "-qam", "Nine it is")
    assert authors.named("HEAD")[1] != "commit"


@pytest.mark.parametrize("place", ["root", "linked"])
def test_a_short_line_of_a_person_is_not_a_sessions_that_edited_others(
    authors: Authors, place: str
) -> None:
    session = authors.session(CLAUDE, "Write one", getattr(authors, place))
    session.edit("cart.ts", "line number 1 of the cart", "y = 1")
    session.says("Done.")
    text = (authors.root / "cart.ts").read_text()
    (authors.root / "cart.ts").write_text(text.replace("line number 9 of the cart", "x = 9"))
    assert authors.named("cart.ts:9")[1] in ("", "guess")


def test_of_two_sessions_each_has_its_short_line(authors: Authors) -> None:
    first, second = authors.session(CLAUDE, "Write nine"), authors.session(CLAUDE, "Write one")
    first.edit("cart.ts", "line number 9 of the cart", "x = 9")
    second.edit("cart.ts", "line number 1 of the cart", "y = 1")
    assert authors.named("cart.ts:9") == (first.id, "command")
    assert authors.named("cart.ts:1") == (second.id, "command")


def test_a_session_that_moved_a_file_did_not_write_its_lines(authors: Authors) -> None:
    authors.session(CODEX, "Write nine").shell("sed -i 's/number 9/number nine/' cart.ts")
    moving = authors.session(CLAUDE, "Move it")
    moving.shell("mv cart.ts shop.ts")
    moving.says("Done.")
    assert authors.named("shop.ts:9") != (moving.id, "command")


def test_the_commits_in_the_result_of_a_command_are_hashed_by_id_and_subject() -> None:
    result = "x\n[work 1f2e3d4] Sort the  cart\n 1 file changed\n[detached HEAD 0123456789ab] Two\n[a b] no\n"
    ids = ["commit\0001f2e3d4", "subject\000Sort the cart", "commit\0000123456", "subject\000Two"]
    assert made_commits(result) == ids
    assert made_commits(f"{'a[b] ' * 20}\n{result}") == ids
    assert made_commits(result.partition("\n")[2]) == ids
    assert made_commits(result.replace("\n[", "\n [")) == []
