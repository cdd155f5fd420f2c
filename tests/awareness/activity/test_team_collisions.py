"""Collisions with another machine's copy of the repository, from upkeep's files, without a server."""

from __future__ import annotations

import subprocess

import pytest
from teammate_scene import TeamProject


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
