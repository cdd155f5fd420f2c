"""A session with no file, word or branch in common with a prompt gets no line, unless it is at work."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from desk_scene import Desk
from git_scene import git
from records import append, assistant, exchange, new_id, tool_result

FENCE = "Mend the fence of the lower garden"
ROOF = "Which tiles does the roof need?"  # nothing in common with the fence


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def sessions(text: str) -> list[str]:
    return [line for line in text.split("\n") if line.startswith("- ")]


def have_read(desk: Desk, session: str, file: str) -> None:
    """Let a session begin and read a file."""
    path = desk.folder(desk.clone) / f"{session}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    fields = {"cwd": str(desk.clone), "sessionId": session}
    append(path, *exchange("What is in it?", "I look.", **fields))
    append(path, assistant(("Read", {"file_path": file}), **fields), tool_result("ok", **fields))


@pytest.mark.parametrize(("minutes", "is_told"), [(5, True), (29, True), (31, False), (500, False)])
def test_it_is_told_for_half_an_hour(desk: Desk, minutes: float, is_told: bool) -> None:
    desk.working(FENCE, minutes=minutes)
    assert bool(sessions(desk.prompt(ROOF))) == is_told


@pytest.mark.parametrize(
    "prompt", ["yes", "go on", "9", "address the PR comments", "why does lint fail?"]
)
def test_it_is_told_at_the_start_if_the_prompt_says_little(desk: Desk, prompt: str) -> None:
    desk.working(FENCE, minutes=50)
    assert sessions(desk.prompt(prompt))


@pytest.mark.parametrize(
    "prompt",
    [
        "Mend the roof near the fence",
        "Which tiles does garden/lower need for the roof?",
        "Which tiles do the posts need?",
        "Which tiles are in posts.py?",
    ],
)
def test_it_is_told_if_the_prompt_names_its_subject_file_or_directory(
    desk: Desk, prompt: str
) -> None:
    edit = ("Edit", {"file_path": f"{desk.clone}/garden/lower/posts.py"})
    desk.working(FENCE, minutes=50, call=edit)
    assert sessions(desk.prompt(prompt))


@pytest.mark.parametrize(("sessions_that_edit", "is_told"), [(2, True), (3, False)])
def test_a_file_that_most_sessions_edit_is_nothing_in_common(
    desk: Desk, sessions_that_edit: int, is_told: bool
) -> None:
    reader, log = new_id(), f"{desk.clone}/log.md"
    have_read(desk, reader, log)
    for number in range(sessions_that_edit):
        desk.working(f"{FENCE} {number}", minutes=40, call=("Edit", {"file_path": log}))
    assert bool(sessions(desk.prompt(ROOF, session=reader))) == is_told


def test_a_copy_of_a_file_in_hand_is_something_in_common(desk: Desk) -> None:
    place, reader = desk.worktree("garden"), new_id()
    have_read(desk, reader, f"{desk.clone}/a")
    desk.prompt("Count them", session=reader)
    desk.working(FENCE, place, call=("Edit", {"file_path": f"{place}/a"}))
    assert sessions(desk.prompt("do 1, 2 and 5", session=reader))


@pytest.mark.parametrize(("branch", "is_told"), [("garden", True), ("main", False)])
def test_it_is_told_if_it_is_on_the_same_branch(desk: Desk, branch: str, is_told: bool) -> None:
    if branch != "main":
        git(desk.clone, "switch", "-q", "-c", branch)
    log = desk.clone / ".git" / "logs" / "HEAD"
    hour_ago = int(time.time()) - 3600
    lines = [line.replace(line.split("> ")[1].split()[0], str(hour_ago)) for line in log.open()]
    log.write_text("".join(lines))
    desk.working(FENCE, minutes=50)
    assert bool(sessions(desk.prompt(ROOF))) == is_told


def test_it_is_not_told_if_the_branch_was_switched_since(desk: Desk) -> None:
    desk.working(FENCE, minutes=50)
    git(desk.clone, "switch", "-q", "-c", "roof")
    assert not sessions(desk.prompt(ROOF))


def test_one_in_another_worktree_is_told_at_the_start_only(desk: Desk) -> None:
    place, reader = desk.worktree("garden"), new_id()
    path = desk.working(FENCE, place)
    (line,) = sessions(desk.prompt(ROOF, session=reader))
    assert ", in worktree wt-garden" in line
    append(path, *exchange("Paint it green", "It is green."))
    assert not sessions(desk.prompt("Which tiles for the barn?", session=reader))
    append(path, *exchange("Paint the posts of the fence", "They are green."))
    assert sessions(desk.prompt("Which posts carry the fence?", session=reader))


@pytest.mark.parametrize(
    ("prompt", "minutes", "is_told"),
    [(ROOF, 5, True), (ROOF, 50, False), ("go on", 50, True)],
)
def test_one_in_this_worktree_is_told_in_the_middle_of_a_task_too(
    desk: Desk, prompt: str, minutes: int, is_told: bool
) -> None:
    reader = new_id()
    desk.prompt(ROOF, session=reader)
    desk.working(FENCE, minutes=minutes)
    assert bool(sessions(desk.prompt(prompt, session=reader))) == is_told


def test_it_is_counted_beside_a_session_that_is_told(desk: Desk) -> None:
    desk.working(FENCE, minutes=50)
    desk.working("Count the tiles of the roof")
    text = desk.prompt(ROOF)
    assert len(sessions(text)) == 1
    assert text.endswith("+1 more")
