"""At its first prompt, a session is told about another one on the same task."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from desk_scene import CALL, Desk
from records import append, assistant, exchange, new_id, show_told, user

REQUEST = "Make the cart round its total to full cents, and add a test for it"


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


@pytest.mark.parametrize(
    ("asked", "prompt", "issue"),
    [
        ("fix #123", "please look into issue #123", "#123"),
        ("fix https://example.com/acme/shop/issues/123", "close #123", "#123"),
        ("SHOP-12: the cart is empty", "Work on SHOP-12", "SHOP-12"),
    ],
)
def test_the_same_issue_is_told(desk: Desk, asked: str, prompt: str, issue: str) -> None:
    desk.working(asked)
    (line,) = desk.warnings(prompt)
    assert line.endswith(f"is also working on {issue}")
    assert asked[:8] in line


def test_the_issue_of_another_worktree_s_branch_is_told(desk: Desk) -> None:
    desk.working("make the cart round its total", desk.worktree("fix/123-cart"))
    (line,) = desk.warnings("fix #123")
    assert line.endswith(
        ', in worktree wt-fix-123-cart is also working on #123, on branch "fix/123-cart"'
    )


def test_branches_of_one_stem_are_told(desk: Desk) -> None:
    desk.working("make the cart round its total", desk.worktree("fix/cart-total"))
    (line,) = desk.warnings("the total of the cart is wrong", desk.worktree("ann/cart-total-2"))
    assert line.endswith('is working on branch "fix/cart-total"; yours is "ann/cart-total-2"')


def test_the_same_prompt_in_another_worktree_is_told(desk: Desk) -> None:
    desk.working(REQUEST, minutes=3)
    (line,) = desk.warnings(REQUEST.replace(", ", ",\n"), desk.worktree("one"))
    assert line.endswith(", in worktree shop got the same prompt 3m ago")


@pytest.mark.parametrize("is_told_something", [True, False])
def test_only_the_first_prompt_is_compared(desk: Desk, is_told_something: bool) -> None:
    session, question = new_id(), "hello there, how is the garden?"
    if is_told_something:
        desk.working("plant the orchard")
    assert bool(desk.prompt(question, session=session)) == is_told_something
    path = desk.folder(desk.clone) / f"{session}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    append(path, user(question, cwd=str(desk.clone)))
    show_told(path, desk.printed)
    append(path, assistant("Fine.", cwd=str(desk.clone)))
    desk.working("fix #123")
    assert desk.warnings("fix #123", session=session) == []


@pytest.mark.parametrize(
    ("asked", "prompt"),
    [
        ("fix #123", "fix #124"),
        ("fix #123", "what is left to do?"),
        ("fix #12, #13, #14 and #15", "fix #12"),
        ("fix acme/site#123", "fix acme/shop#123"),
        ("yes, go on", "yes, go on"),
    ],
)
def test_another_task_is_not_told(desk: Desk, asked: str, prompt: str) -> None:
    desk.working(asked)
    assert desk.warnings(prompt) == []


def test_the_last_issue_that_was_asked_for_counts(desk: Desk) -> None:
    path = desk.working("fix #123", minutes=9)
    append(path, *exchange("now fix #124", "I will.", cwd=str(desk.clone)))
    append(path, assistant(CALL, cwd=str(desk.clone)))
    assert desk.warnings("fix #123") == []
    assert len(desk.warnings("fix #124")) == 1


@pytest.mark.parametrize("message", [{"stop_reason": "end_turn"}, {}])
def test_a_session_that_has_just_answered_is_not_told(desk: Desk, message: dict[str, str]) -> None:
    path = desk.working("fix #123")
    append(path, assistant("It is fixed.", cwd=str(desk.clone), message=message))
    assert desk.warnings("fix #123", desk.worktree("one")) == []


@pytest.mark.parametrize("is_same", [True, False])
def test_a_session_that_was_interrupted_is_not_told(desk: Desk, is_same: bool) -> None:
    request = REQUEST if is_same else "fix #123"
    path = desk.working(request)
    append(path, user("[Request interrupted by user for tool use]", cwd=str(desk.clone)))
    assert desk.warnings(request) == []


@pytest.mark.parametrize("is_same", [True, False])
def test_a_session_whose_process_has_ended_is_not_told(desk: Desk, is_same: bool) -> None:
    request = REQUEST if is_same else "fix #123"
    desk.working(request)
    (desk.home / ".claude" / "sessions").mkdir()
    assert desk.warnings(request) == []


def test_an_excluded_session_is_not_told(desk: Desk) -> None:
    path = desk.working("fix #123")
    config = desk.home / ".session-memory" / "config.yaml"
    config.parent.mkdir(exist_ok=True)
    config.write_text(f"sessions:\n  {path.stem}:\n    ignore: true\n")
    assert desk.prompt("fix #123") == ""
    config.write_text(f"sessions:\n  {path.stem}:\n    quote: false\n")
    assert desk.warnings("fix #123") == []


def test_a_fork_of_a_session_is_not_told_of_it(desk: Desk) -> None:
    path = desk.working("fix #123")
    id = new_id()
    (desk.folder(desk.clone) / f"{id}.jsonl").write_bytes(path.read_bytes())
    assert desk.warnings("fix #123 in another way", session=id) == []


def test_a_later_prompt_hears_of_the_same_in_its_directory_and_spaces_do_not_count(
    desk: Desk,
) -> None:
    session, question = new_id(), "hello there, how is the garden?"
    desk.prompt(question, session=session)
    path = desk.folder(desk.clone) / f"{session}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    append(path, *exchange(question, "Fine.", cwd=str(desk.clone)))
    desk.working(REQUEST, minutes=3)
    desk.working(REQUEST, desk.worktree("one"), minutes=3)
    (line,) = desk.warnings(REQUEST.replace(", ", ",\n"), session=session)
    assert line.endswith(
        " got the same prompt 3m ago, in this directory; it has edited nothing yet"
    )


def test_an_answer_with_the_words_of_a_prompt_is_not_a_prompt(desk: Desk) -> None:
    path = desk.working("Say what I shall ask the next agent for")
    append(path, assistant(REQUEST, cwd=str(desk.clone), at=time.time() - 30))
    assert desk.warnings(REQUEST) == []
