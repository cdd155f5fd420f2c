"""Sessions of the real Claude Code that edit one file at a time: the text with an edit's result."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from clients.claude import Claude
from clients.terminal import WAIT_SECONDS
from git_scene import git, repository

TOLD = (
    "PreToolUse:Edit hook additional context: A record of your other sessions, not instructions:\n"
)


@pytest.fixture
def app(claude: Claude) -> Path:
    """A file of the repository that the project is."""
    claude.project.rmdir()
    return repository(claude.project, src__app="port = 1\n") / "src" / "app"


def call(name: str, **arguments: object) -> dict[str, object]:
    return {"tools": [{"name": name, "input": arguments}]}


def read(path: Path) -> dict[str, object]:
    return call("Read", file_path=str(path))


def edit(path: Path, old: str, new: str) -> dict[str, object]:
    return call("Edit", file_path=str(path), old_string=old, new_string=new)


def works(claude: Claude, prompt: str, *replies: dict[str, object]) -> None:
    claude.api.replies = [*replies, "done"]
    claude.run(prompt, "--allowedTools", "Read,Edit,Write,Bash")


@contextmanager
def in_the_middle_of_a_turn(
    claude: Claude, before: list[dict[str, object]], after: list[object]
) -> Iterator[None]:
    """A turn that makes the calls `before`, waits until the block is left, and then makes the calls `after`."""
    waits, goes_on = claude.project / "waits", claude.project / "goes_on"
    command = f"touch {waits}; while [ ! -e {goes_on} ]; do sleep 0.02; done"
    claude.api.replies = [*before, call("Bash", command=command, description="Wait")]
    with ThreadPoolExecutor(1) as pool:
        turn = pool.submit(claude.run, "go on", "--allowedTools", "Read,Edit,Write,Bash")
        deadline = time.monotonic() + WAIT_SECONDS
        while not waits.exists():
            assert time.monotonic() < deadline, "the turn has not begun"
            time.sleep(0.02)
        try:
            yield
            claude.api.replies = [*after, "done"]
        finally:
            goes_on.touch()
        turn.result()


def told(claude: Claude) -> list[tuple[str, str]]:
    """Return the texts that came with tool results, each with the kind of its request."""
    requests = [request for request in claude.api.requests if TOLD in request.news]
    return [
        (request.kind, request.news.partition(TOLD)[2].partition("\n")[0]) for request in requests
    ]


@pytest.mark.slow
def test_who_refuses_to_edit_a_file_that_changed_is_told_who_changed_it_as_soon_as_it_has_read_it_again(
    claude: Claude, app: Path
) -> None:
    written = call(
        "Bash", command="sleep 0.5", description="Wait until the transcript has the read"
    )
    after = [edit(app, "1", "3"), read(app), written, edit(app, "2", "3")]
    with in_the_middle_of_a_turn(claude, [read(app)], after):
        works(claude, "change the port", read(app), edit(app, "1", "2"))
    assert app.read_text() == "port = 3\n"
    assert told(claude) == [
        ("main", '! src/app: edited just now by "change the port", before you edited it')
    ]


def test_an_edit_of_what_another_edited_in_this_turn_is_told_it_with_its_result_and_once(
    claude: Claude, app: Path
) -> None:
    after = [read(app), edit(app, "2", "3"), edit(app, "3", "4")]
    with in_the_middle_of_a_turn(claude, [], after):
        works(claude, "change the port", read(app), edit(app, "1", "2"))
    assert app.read_text() == "port = 4\n"
    assert told(claude) == [
        ("main", '! src/app: edited just now by "change the port", before you edited it')
    ]


@pytest.mark.slow
def test_a_sub_agent_is_told_with_the_result_of_its_own_edit(claude: Claude, app: Path) -> None:
    claude.api.subagents = {"rename it": [read(app), edit(app, "port", "door"), "renamed"]}
    task = call("Agent", description="Rename", prompt="rename it", subagent_type="general-purpose")
    with in_the_middle_of_a_turn(claude, [], [task]):
        works(claude, "change the port", read(app), edit(app, "1", "2"))
    assert app.read_text() == "door = 2\n"
    assert told(claude) == [
        ("subagent", '! src/app: edited just now by "change the port", before you edited it')
    ]


def ask_first(claude: Claude) -> None:
    place = claude.home / ".session-memory"
    place.mkdir(exist_ok=True)
    (place / "config.yaml").write_text("collisions: ask\n")


def test_a_git_command_that_moves_the_worktree_under_another_session_waits_for_its_user(
    claude: Claude, app: Path
) -> None:
    ask_first(claude)
    works(claude, "change the port", read(app), edit(app, "1", "2"))
    claude.api.replies = [
        call("Bash", command="cd . && git switch -q -c fix", description="Switch"),
        "done",
    ]
    with claude.terminal() as terminal:
        terminal.enter("switch to a branch of your own")
        wanted = 'changes the worktree of "change the port"'.replace(" ", "")
        terminal.wait(lambda: wanted in "".join(terminal.text().split()), "the reason")
    assert git(claude.project, "branch", "--show-current") == "main"


@pytest.mark.slow
def test_in_print_mode_such_a_command_is_run_and_told(claude: Claude, app: Path) -> None:
    ask_first(claude)
    works(claude, "change the port", read(app), edit(app, "1", "2"))
    switch = call("Bash", command="git switch -q -c fix", description="Switch")
    works(claude, "look", call("Bash", command="ls", description="List"), switch)
    assert git(claude.project, "branch", "--show-current") == "fix"
    (request,) = [
        request for request in claude.api.requests if "PreToolUse:Bash hook" in request.news
    ]
    assert (
        '`git switch -q -c fix` changes the worktree of "change the port", active just now'
        in request.news
    )


START = "SubagentStart hook additional context: "


@pytest.mark.slow
def test_a_sub_agent_is_told_at_its_start_what_another_did_to_the_files_of_its_task_and_its_session_is_not(
    claude: Claude, app: Path
) -> None:
    works(claude, "hello")
    claude.api.subagents = {"look at src/app": [read(app), "seen"], "look at nothing": ["seen"]}
    tasks = [
        call(
            "Agent",
            description="Look",
            prompt=prompt,
            subagent_type="general-purpose",
            run_in_background=False,
        )
        for prompt in ("look at nothing", "look at src/app")
    ]
    with in_the_middle_of_a_turn(claude, [], tasks):
        works(claude, "change the port", read(app), edit(app, "1", "2"))
    requests = [request for request in claude.api.requests if START in request.news]
    lines = {
        (one.kind, one.news.partition(START)[2].strip().partition("\n")[2].partition("\n")[0])
        for one in requests
    }
    assert lines == {("subagent", '! src/app: edited just now by "change the port"')}
    assert all("look at src/app" in one.text for one in requests)


@pytest.mark.slow
def test_an_agent_that_reads_a_file_at_the_wrong_place_is_told_where_it_is(
    claude: Claude, app: Path
) -> None:
    works(claude, "look", read(claude.project / "app"))
    (request,) = [
        one
        for one in claude.api.requests
        if "PostToolUseFailure:Read hook additional context: " in one.news
    ]
    assert "- there is no app; the one known file of that name is src/app" in request.news
