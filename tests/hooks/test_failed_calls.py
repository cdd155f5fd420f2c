"""What is told with a call that found no file at its path: the one path that is meant, if it is there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from git_scene import git
from hooks_scene import run
from tool_call_scene import Project

from session_memory.hooks.failed_call import CHARACTERS


class Failing(Project):
    """The project with a file `src/db/x.py`, which git tracks."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.add("src/db/x.py")

    def add(self, name: str) -> None:
        path = self.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("1\n")
        git(self.directory, "add", "-A")

    def failed(self, name: str, tool: str = "Read", **fields: Any) -> str:
        """What the agent is told after a failed call; '' for nothing."""
        event = self.user.event(
            hook_event_name="PostToolUseFailure", cwd=self.cwd, tool_name=tool, tool_use_id="toolu_9",
            tool_input={"file_path": str(self.directory / name)}, error="File does not exist.", **fields,
        )  # fmt: skip
        output = run(event, self.user.root, "post_tool_use_failure")
        if not output:
            return ""
        answer = json.loads(output)["hookSpecificOutput"]
        assert answer["hookEventName"] == "PostToolUseFailure"
        assert len(answer["additionalContext"]) <= CHARACTERS
        return str(answer["additionalContext"].partition("\n")[2])


@pytest.fixture
def project(tmp_path: Path) -> Failing:
    return Failing(tmp_path)


@pytest.mark.parametrize("tool", ["Read", "Edit", "Write"])
def test_the_one_file_that_is_meant_is_named_once(project, tool):
    told = project.failed("src/x.py", tool)
    assert told == "- there is no src/x.py; the one known file of that name is src/db/x.py"
    assert project.failed("src/x.py", tool) == ""
    assert project.user.log() == []


def test_each_sub_agent_is_told_for_itself(project):
    assert project.failed("src/x.py") != ""
    assert project.failed("src/x.py", agent_id="a1") != ""


def test_nothing_is_told_if_the_file_is_there_or_two_are_meant_or_none_is(project):
    assert project.failed("src/db/x.py") == ""
    assert project.failed("lib/x.py") == ""
    assert project.failed("src/y.py") == ""
    project.add("src/web/x.py")
    assert project.failed("src/x.py") == ""


def test_nothing_is_told_of_a_file_that_is_gone(project):
    (project.directory / "src" / "db" / "x.py").unlink()
    assert project.failed("src/x.py") == ""


def test_nothing_is_told_after_a_failed_command(project):
    assert project.failed("src/x.py", "Bash") == ""
