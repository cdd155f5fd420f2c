"""Two sessions of the real Claude Code in one clone: what the request of the one holds of what the other did to it."""

from __future__ import annotations

from pathlib import Path

import pytest
from clients.claude import Claude, Turn, resume
from git_scene import git, repository


@pytest.fixture
def app(claude: Claude) -> Path:
    """A file of the repository that the project is."""
    claude.project.rmdir()
    return repository(claude.project, src__app="port = 1\n", src__db="x = 1\n") / "src" / "app"


def works(claude: Claude, prompt: str, *tools: tuple[str, dict[str, str]], session: Turn | None = None) -> Turn:
    """A turn in which the agent calls these tools, each once it has the result of the one before."""
    calls = [{"tools": [{"name": name, "input": arguments}]} for name, arguments in tools]
    claude.api.replies = [*calls, "done"]
    options = ("--allowedTools", "Read,Edit,Write,Bash")
    return resume(claude, session, prompt, *options) if session else claude.run(prompt, *options)


def edit(path: Path, old: str, new: str) -> tuple[str, dict[str, str]]:
    return "Edit", {"file_path": str(path), "old_string": old, "new_string": new}


def bash(command: str) -> tuple[str, dict[str, str]]:
    return "Bash", {"command": command, "description": "As asked"}


def read(path: Path) -> tuple[str, dict[str, str]]:
    return "Read", {"file_path": str(path)}


def test_a_file_that_another_session_edited_is_told_first(claude: Claude, app: Path) -> None:
    main = works(claude, "look at the port", read(app))
    other = works(claude, "change the port", read(app), edit(app, "1", "2"))
    assert app.read_text() == "port = 2\n"
    told = works(claude, "and now?", session=main).told
    assert told[0] == "! src/app: change the port edited it just now, after you read it"
    assert told[1].startswith('- "change the port" (just now, ')
    assert works(claude, "nothing else?", session=main).told == []
    assert not [line for line in works(claude, "go on", session=other).told if line.startswith("!")]


def test_a_file_that_both_edited_is_told_to_the_one_who_edited_it_first(claude: Claude, app: Path) -> None:
    main, other = works(claude, "one"), works(claude, "two")
    works(claude, "change the port", read(app), edit(app, "1", "2"), session=main)
    works(claude, "name it", read(app), edit(app, "port", "door"), session=other)
    assert works(claude, "well?", session=main).told[0] == "! src/app: two edited it just now, after you edited it"


def test_a_branch_that_was_switched_under_a_session_is_told_with_who_did_it(claude: Claude, app: Path) -> None:
    main = works(claude, "look around", bash("git status"))
    works(claude, "fix it", bash("git switch -q -c fix/port"))
    assert git(claude.project, "branch", "--show-current") == "fix/port"
    told = works(claude, "and now?", session=main).told
    assert told[0] == '! branch is fix/port now, it was main: fix it ran "git switch -q -c fix/port" just now'


def test_a_stash_of_another_session_is_told_to_the_one_whose_edits_it_took(claude: Claude, app: Path) -> None:
    main = works(claude, "change the port", read(app), edit(app, "1", "2"))
    works(claude, "clean up", bash("git -c user.name=Ada -c user.email=ada@example.org stash"))
    assert app.read_text() == "port = 1\n"
    (line, *_) = works(claude, "and now?", session=main).told
    assert line.startswith('! src/app, which you had not committed: clean up ran "git stash" ')


def test_an_edit_that_the_runtime_refused_is_none(claude: Claude, app: Path) -> None:
    main = works(claude, "look at the port", read(app))
    works(claude, "change the port", read(app), edit(app, "9", "2"))
    assert app.read_text() == "port = 1\n"
    assert not [line for line in works(claude, "and now?", session=main).told if line.startswith("!")]
