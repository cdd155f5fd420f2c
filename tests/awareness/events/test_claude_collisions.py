"""Two sessions of the real Claude Code in one clone: each request reports the other's collisions."""

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


def works(
    claude: Claude, prompt: str, *tools: tuple[str, dict[str, str]], session: Turn | None = None
) -> Turn:
    """A turn in which the agent calls these tools one after the other."""
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


@pytest.mark.slow
def test_a_file_that_another_session_edited_is_told_first(claude: Claude, app: Path) -> None:
    main = works(claude, "look at the port", read(app))
    other = works(claude, "change the port", read(app), edit(app, "1", "2"))
    assert app.read_text() == "port = 2\n"
    told = works(claude, "and now?", session=main).told
    assert told[0] == '! src/app: edited just now by "change the port", after you read it'
    assert told[1].startswith('- "change the port" (just now, ')
    assert works(claude, "nothing else?", session=main).told == []
    assert not [line for line in works(claude, "go on", session=other).told if line.startswith("!")]


@pytest.mark.slow
def test_a_file_that_both_edited_is_told_to_the_one_who_edited_it_first(
    claude: Claude, app: Path
) -> None:
    main, other = works(claude, "one"), works(claude, "two")
    works(claude, "change the port", read(app), edit(app, "1", "2"), session=main)
    works(claude, "name it", read(app), edit(app, "port", "door"), session=other)
    assert (
        works(claude, "well?", session=main).told[0]
        == '! src/app: edited just now by "two", after you edited it'
    )


# What people report of sessions that share a clone: what the one did, what the other did then, and
# what the next request of the first holds.
REPORTS: dict[str, tuple[str, str, str]] = {
    "the branch is switched under a session": (
        "git status",
        "git switch -q -c fix/port",
        "! branch is now fix/port (was main): `git switch -q -c fix/port` run ",
    ),
    "a stash takes along what another session has not committed": (
        "edit",
        "git stash -q",
        "! src/app: `git stash -q` run ",
    ),
    "a commit takes in what another session has not finished": (
        "edit",
        "echo y >> src/db && git commit -qam wip",
        "! src/app: `git commit -qam wip` run ",
    ),
    "a session repairs the tree that is another's": (
        "edit",
        "git status --short; git checkout -q -- . && git clean -fdq",
        "! src/app: `git checkout -q -- .` run ",
    ),
    "two sessions write over each other's files": (
        "edit",
        "cd src && sed -i s/2/3/ app",
        "! src/app: edited ",
    ),
    "work in a worktree drags along HEAD of the root checkout": (
        "git status",
        "git worktree add -q .trees/port && git switch -q -c fix/port",
        "! branch is now fix/port (was main): `git switch -q -c fix/port` run ",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("report", REPORTS)
def test_what_people_report_of_a_shared_clone_is_in_the_next_request(
    claude: Claude, app: Path, report: str
) -> None:
    git(claude.project, "config", "user.name", "Ada")
    git(claude.project, "config", "user.email", "ada@example.org")
    (claude.project / "CLAUDE.md").write_text(
        "Other sessions work here too. Never touch what is not yours.\n"
    )
    git(claude.project, "add", "CLAUDE.md")
    git(claude.project, "commit", "-q", "-m", "Say so")
    does, other_does, told = REPORTS[report]
    steps = [read(app), edit(app, "1", "2")] if does == "edit" else [bash(does)]
    main = works(claude, "look around", *steps)
    works(claude, "fix it", bash(other_does))
    assert works(claude, "and now?", session=main).told[0].startswith(told)


@pytest.mark.slow
def test_a_session_that_commits_to_a_branch_it_did_not_switch_to_is_told(
    claude: Claude, app: Path
) -> None:
    main = works(claude, "look around", bash("git status"))
    works(claude, "fix it", bash("git switch -q -c fix/port"))
    commit = "git -c user.name=Ada -c user.email=ada@example.org commit -qam port"
    works(claude, "change the port", read(app), edit(app, "1", "2"), bash(commit), session=main)
    (told,) = [
        request.news for request in claude.api.prompts() if "change the port" in request.news
    ][:1]
    assert "! branch is now fix/port (was main): `git switch -q -c fix/port` run " in told
    assert git(claude.project, "log", "-1", "--format=%s", "fix/port") == "port"


@pytest.mark.slow
def test_what_a_sub_agent_edited_its_session_has_edited(claude: Claude, app: Path) -> None:
    main = works(claude, "look at the port", read(app))
    calls = [
        {"tools": [{"name": name, "input": arguments}]}
        for name, arguments in (read(app), edit(app, "1", "2"))
    ]
    claude.api.subagents["Change the port"] = [*calls, "done"]
    task = {
        "description": "Change it",
        "prompt": "Change the port",
        "subagent_type": "general-purpose",
    }
    claude.api.replies = [{"tools": [{"name": "Agent", "input": task}]}, "done", "done"]
    claude.run("delegate it", "--allowedTools", "Agent,Task,Read,Edit")
    assert app.read_text() == "port = 2\n"
    assert works(claude, "and now?", session=main).told[0].startswith("! src/app: edited ")


@pytest.mark.slow
def test_an_edit_that_the_runtime_refused_is_none(claude: Claude, app: Path) -> None:
    main = works(claude, "look at the port", read(app))
    works(claude, "change the port", read(app), edit(app, "9", "2"))
    assert app.read_text() == "port = 1\n"
    assert not [
        line for line in works(claude, "and now?", session=main).told if line.startswith("!")
    ]
