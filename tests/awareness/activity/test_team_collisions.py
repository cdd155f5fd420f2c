"""Collisions with another machine's copy of the repository, from upkeep's files, without a server."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest
from hooks_scene import told
from records import append, assistant, user
from tool_call_scene import Project

from session_memory.extras.team._activity import keep_activity
from session_memory.extras.team.postgres.engine import RecentSession
from session_memory.history.store.values import StoredEntry
from session_memory.sessions.settings.homes import person_home

GONE = "team: {url: 'postgresql://bob@127.0.0.1:1/gone', machine: desk}\n"


class TeamProject(Project):
    """The project of somebody who has joined a team, of which another member edits files on their laptop."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        config = self.user.root / ".session-memory" / "config.yaml"
        config.write_text(GONE)
        self.minutes_ago = 20.0
        self.done: list[StoredEntry] = []

    def elsewhere(self, *paths: str, branch: str = "main", title: str = "fix login") -> None:
        """Ann edits files on her laptop, and this machine hears of it."""
        at = int((time.time() - self.minutes_ago * 60) * 1000)
        self.minutes_ago -= 1
        for path in paths:
            number = len(self.done)
            self.done.append(StoredEntry(number, "tool", path, at, "", 0, number, "Edit", "edit"))
        session = RecentSession(7, "ann@laptop", "acme/app", "s-1", title, branch, tuple(self.done))
        home = person_home({"HOME": str(self.user.root)})
        keep_activity(home, [session], {self.cwd: ("acme/app", str(self.directory))}, ())

    def edit(self, name: str) -> None:
        """This session edits a file."""
        call = {
            "type": "tool_use",
            "id": f"toolu_{name}",
            "name": "Edit",
            "input": {"file_path": f"{self.cwd}/{name}"},
        }
        append(self.own, assistant(call, cwd=self.cwd))
        (self.directory / name).write_text("2\n")
        append(
            self.own,
            user(
                [{"tool_use_id": call["id"], "type": "tool_result", "content": "Done."}],
                cwd=self.cwd,
            ),
        )

    def prompt(self) -> list[str]:
        """The collisions that a prompt tells of."""
        printed = self.user.run(cwd=self.cwd)
        return (
            [line for line in told(printed).split("\n") if line.startswith("! ")] if printed else []
        )


@pytest.fixture
def project(tmp_path):
    return TeamProject(tmp_path)


def test_a_file_that_both_edited_is_told_once_with_who_and_where(project):
    project.edit("app")
    project.elsewhere("app", "db", "/home/ann/notes.md")
    line = '! app: edited 20m ago by "fix login" (ann@laptop) on another machine, and you edited it here'
    assert project.prompt() == [line]
    project.elsewhere("app")
    assert project.prompt() == []
    project.edit("db")
    project.elsewhere("db")
    assert 'by "fix login" (ann@laptop) on another machine' in project.prompt()[0]


def test_what_is_only_edited_there_is_told_when_it_is_edited_here(project):
    project.elsewhere("db")
    assert project.prompt() == []
    project.elsewhere("app")
    assert project.told("db") == ""
    assert '! app: edited 19m ago by "fix login" (ann@laptop) on another machine' in project.told(
        "app"
    )
    assert project.told("app") == ""


def test_what_lies_outside_of_the_repository_there_is_not_what_has_its_path_here(project):
    project.edit("app")
    project.elsewhere(f"{project.cwd}/app")
    assert project.prompt() == []


@pytest.mark.parametrize(("branch", "is_told"), [("fix/login", True), ("main", False)])
def test_a_branch_that_both_work_on_is_told_once(project, branch, is_told):
    subprocess.run(
        ["git", "symbolic-ref", "HEAD", f"refs/heads/{branch}"], cwd=project.cwd, check=True
    )
    project.prompt()
    project.elsewhere("db", branch=branch)
    line = f'! {branch}, the branch you are on: also worked on 20m ago by "fix login" (ann@laptop) on another machine'
    assert project.prompt() == [line] * is_told
    project.elsewhere("app", branch=branch)
    assert project.prompt() == []
