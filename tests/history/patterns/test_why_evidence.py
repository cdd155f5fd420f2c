"""The session that `why` names.

It provably wrote the line or made the commit, or is a guess: the only one at work. Git is real, and
the sessions do what their transcripts say.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from authors_scene import CLAUDE, CODEX, Authors, next_second
from git_scene import git

from session_memory.history.store.sqlite._times_of_work import _has_turn

CART = "".join(f"line number {number} of the cart\n" for number in range(1, 10))


@pytest.fixture
def authors(tmp_path: Path) -> Authors:
    return Authors(tmp_path, **{"cart.ts": CART})


def test_a_line_that_a_shell_wrote_and_committed_is_its_sessions(authors: Authors) -> None:
    authors.session(CLAUDE, "The shop crashes at the start", ago=300).says("I look at it.")
    codex = authors.session(CODEX, "Round the price", ago=5)
    codex.shell(
        "sed -i 's/number 9 of/number nine of/' cart.ts && git commit -qam 'Round the price to "
        "cents'"
    )
    codex.says("Done.")
    assert authors.named("cart.ts:9") == (codex.id, "command")
    said = authors.why("cart.ts:9")
    assert "asked: “Round the price”" in said
    assert (
        "its command wrote the file: `sed -i 's/number 9 of/number nine of/' cart.ts && git commit"
        in said
    )
    assert authors.named("HEAD") == (codex.id, "command")


def test_the_session_that_made_a_commit_is_named_if_nothing_shows_who_wrote_it(
    authors: Authors,
) -> None:
    authors.session(CLAUDE, "Good morning").says("Good morning.")
    codex = authors.session(CODEX, "Sort the cart")
    codex.shell(
        "python3 -c \"t=open('cart.ts').read(); open('cart.ts','w').write(t.replace('9','nine'))\""
    )
    codex.shell("git commit -qam 'Sort the cart'")
    codex.says("Done.")
    assert authors.named("cart.ts:9") == (codex.id, "commit")
    assert authors.named("HEAD") == (codex.id, "commit")
    assert "it made the commit: `git commit -qam 'Sort the cart'`" in authors.why("HEAD")


def test_a_line_of_another_in_a_commit_of_all_is_not_the_committers(authors: Authors) -> None:
    next_second()
    codex = authors.session(CODEX, "Write the first line")
    codex.shell("sed -i 's/line number 1 of the cart/first line/' cart.ts")
    codex.says("Done.")
    claude = authors.session(CLAUDE, "Write the last line")
    claude.edit(
        "cart.ts", "line number 9 of the cart", "the last line of the cart, written by an edit"
    )
    claude.shell("git commit -qam 'Take all'")
    claude.says("Done.")
    assert authors.named("cart.ts:1") == (codex.id, "command")
    assert authors.named("cart.ts:9") == (claude.id, "lines")


def test_a_commit_from_before_any_session_is_nobodys(tmp_path: Path) -> None:
    authors = Authors(tmp_path, **{"cart.ts": CART})
    next_second()
    for request in ("The shop crashes at the start", "Look at the cart"):
        authors.session(CLAUDE, request).says("I look at it.")
    assert authors.named("cart.ts:1") == ("", "")
    assert "A guess" not in authors.why("cart.ts:1")
    assert authors.named("HEAD") == ("", "")


def test_of_several_sessions_at_work_none_is_guessed(authors: Authors) -> None:
    first = authors.session(CLAUDE, "Look at the cart", ago=30)
    second = authors.session(CLAUDE, "Look at the shop", ago=20)
    (authors.root / "cart.ts").write_text(CART.replace("9", "nine"))
    git(authors.root, "commit", "-qam", "By hand")
    first.says("I saw it.")
    assert authors.named("cart.ts:9") == ("", "")
    second.path.unlink()
    authors.run("forget", second.id, "--yes")
    assert authors.named("cart.ts:9") == (first.id, "guess")


def test_a_short_session_that_began_within_the_second_of_its_commit_is_at_work_then(
    authors: Authors,
) -> None:
    authors.session(CLAUDE, "Look at the cart", ago=3600).says("I saw it.")
    next_second()
    # after the second in which git dates the commit began
    codex = authors.session(CODEX, "Make it nine", ago=-0.4)
    (authors.root / "cart.ts").write_text(CART.replace("9", "nine"))
    git(authors.root, "commit", "-qam", "By hand")
    codex.says("Done.")
    assert authors.named("cart.ts:9") == (codex.id, "guess")


@pytest.mark.parametrize("runtime", [CODEX, CLAUDE])
def test_a_failed_edit_and_a_session_that_touched_nothing_are_not_named(
    authors: Authors, runtime: str
) -> None:
    if runtime == CLAUDE:
        failed = authors.session(CLAUDE, "Make it nine", ago=60)
        failed.edit("cart.ts", "no such line", "line number nine of the cart", fails=True)
        failed.says("It failed.")
    else:
        failed = authors.session(CODEX, "Make it nine", ago=60)
        failed.shell("sed -i s/9/nine/ no-such-directory/cart.ts")
        failed.says("It failed.")
    time.sleep(1.1)
    authors.session(CLAUDE, "Good morning", ago=60).says("Good morning.")
    (authors.root / "cart.ts").write_text(CART.replace("9", "nine"))
    time.sleep(1.1)
    git(authors.root, "commit", "-qam", "By hand", f"--date=@{int(time.time()) + 5}")
    assert authors.named("cart.ts:9") == ("", "")


def test_a_write_of_an_earlier_commit_proves_nothing_of_a_later_one(authors: Authors) -> None:
    codex = authors.session(CODEX, "Make it nine")
    codex.shell("sed -i s/9/nine/ cart.ts && git commit -qam 'Make it nine'")
    codex.says("Done.")
    next_second()
    next_second()
    (authors.root / "cart.ts").write_text(
        CART.replace("9", "nine").replace("number 1 ", "number one ")
    )
    git(authors.root, "commit", "-qam", "By hand")
    assert authors.named("cart.ts:9") == (codex.id, "command")
    assert authors.named("cart.ts:1") == ("", "")


def test_an_uncommitted_line_that_a_shell_wrote_is_its_sessions(authors: Authors) -> None:
    next_second()
    codex = authors.session(CODEX, "Make it nine")
    codex.shell("sed -i s/9/nine/ cart.ts")
    codex.says("Done.")
    assert authors.named("cart.ts:9") == (codex.id, "command")


def test_a_line_that_was_written_and_committed_in_another_worktree_is_its_sessions(
    authors: Authors,
) -> None:
    codex = authors.session(CODEX, "Make it nine", authors.linked)
    codex.shell("sed -i s/9/nine/ cart.ts && git commit -qam 'Make it nine'")
    codex.says("Done.")
    git(authors.root, "merge", "-q", "other")
    assert authors.named("cart.ts:9") == (codex.id, "command")


@pytest.mark.parametrize(
    "command",
    [
        "sed -i 's/number 1 of/number one of/' cart.ts",
        "sed -i.bak -e 's|number 1 of|number one of|g' -e 's/number 2 of/number two of/' cart.ts",
        "perl -pi -e 's/(number) 1 of/$1 one of/' cart.ts",
        "echo 'the last line of all' >> cart.ts",
        "touch cart.ts",
    ],
)
def test_a_line_that_a_person_wrote_is_not_a_sessions_whose_command_wrote_others(
    authors: Authors, command: str
) -> None:
    next_second()
    authors.session(CODEX, "Change another line", ago=5).shell(command)
    (authors.root / "cart.ts").write_text(
        (authors.root / "cart.ts").read_text().replace("9 of the", "nine of my")
    )
    assert authors.named("cart.ts:9")[1] in ("", "guess")


@pytest.mark.parametrize(
    ("items", "first", "last", "is_running"),
    [
        ([(100, "user", 0), (200, "assistant", 0)], 150, 150, True),
        ([(100, "user", 0), (200, "assistant", 0)], 300, 300, False),
        ([(100, "user", 0), (200, "assistant", 0)], 50, 99, False),
        ([(100, "user", 0), (200, "assistant", 0)], 50, 100, True),
        ([(100, "user", 0), (200, "assistant", 1)], 500_000, 500_000, True),
        ([(100, "user", 0), (200, "assistant", 1)], 700_000, 700_000, False),
        (
            [(100, "user", 0), (200, "assistant", 1), (300, "user", 0), (400, "assistant", 0)],
            500,
            500,
            False,
        ),
        ([(100, "user", 0)], 500_000, 500_000, True),
        ([], 0, 0, False),
    ],
)
def test_a_turn_runs_from_its_request_to_its_last_message(
    items: list[tuple[int, str, int]], first: int, last: int, is_running: bool
) -> None:
    assert _has_turn(items, first, last) is is_running


def test_of_a_huge_commit_only_a_part_is_compared_and_the_answer_says_so(authors: Authors) -> None:
    (authors.root / "generated.json").write_text(
        "".join(f'"key number {number}": 1,\n' for number in range(3000))
    )
    git(authors.root, "add", "-A")
    git(authors.root, "commit", "-qm", "Generate")
    said = "1,000 of its added lines were not compared with the sessions' edits, because there are too many."
    assert said in authors.why("HEAD")
    assert said in authors.run("search", git(authors.root, "rev-parse", "HEAD"))
