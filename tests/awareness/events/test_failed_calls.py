"""A call with a wrong path gets the one existing path that it means."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from clients.everyone import CLIENTS, User
from clients.npm import NpmPlace
from git_scene import git
from hooks_scene import run
from install_machine import Machine, copy_repository
from runtimes_scene import READ
from tool_call_scene import Project

from session_memory.awareness.events.failed_call import CHARACTERS
from session_memory.history.told import ToldText
from session_memory.sessions.transcripts.entries import INTRODUCTION

TOLD = "- there is no src/x.py; the one known file of that name is src/db/x.py"
ID = "749242fd-9c24-41de-955f-d05032646e32"
# By the argument of the hook: the event of a read that failed, as the runtime sends it, and the
# folder of the session.
EVENTS = {
    "copilot": (
        {
            "hook_event_name": "PostToolUseFailure",
            "timestamp": "2026-11-23T09:06:39.341Z",
            "tool_name": "Read",
            "tool_input": {"path": "src/x.py"},
            "error": "Path does not exist",
        },
        "",
    ),
    "pi": (
        {
            "hook_event_name": "tool_result",
            "runtime": "pi",
            "tool_name": "read",
            "tool_input": {"path": "src/x.py"},
            "tool_use_id": "toolu_24_0",
        },
        ".pi/agent/sessions/--srv-app--",
    ),
    "qwen": (
        {
            "hook_event_name": "PostToolUseFailure",
            "timestamp": "2026-11-23T09:07:25.256Z",
            "permission_mode": "yolo",
            "prompt_id": f"{ID}########0",
            "tool_use_id": "toolu_1795424845225_iahl1tlfw",
            "tool_call_id": "call_34_0",
            "tool_name": "read_file",
            "tool_input": {"file_path": "src/x.py"},
            "error": "File not found",
            "duration_ms": 4,
        },
        ".qwen/projects/-srv-app/chats",
    ),
}


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
            hook_event_name="PostToolUseFailure",
            cwd=self.cwd,
            tool_name=tool,
            tool_use_id="toolu_9",
            tool_input={"file_path": str(self.directory / name)},
            error="File does not exist.",
            **fields,
        )
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
    assert told == TOLD
    assert project.failed("src/x.py", tool) == ""
    assert project.user.log() == []


def test_the_proof_knows_the_line(project):
    assert ToldText.of(project.failed("src/x.py"), 0, 0, has_arrived=True).paths == (
        "src/x.py",
        "src/db/x.py",
    )


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


@pytest.mark.parametrize("runtime", EVENTS)
def test_the_file_is_named_once_in_the_other_runtimes_whose_agents_hear_it(project, runtime):
    event, folder = EVENTS[runtime]
    event = {**event, "session_id": ID, "cwd": project.cwd}
    for directory in (".copilot", ".pi/agent", ".qwen"):
        (project.user.root / directory).mkdir(parents=True)
    if folder:
        event["transcript_path"] = str(project.user.root / folder / f"{ID}.jsonl")
    options = (
        {"arguments": [runtime], "COPILOT_CLI": "1"}
        if runtime == "copilot"
        else {"arguments": [runtime]}
    )
    text = INTRODUCTION + TOLD
    answers = {
        "copilot": {"additionalContext": text},
        "pi": {"message": {"customType": "session-update", "content": text, "display": True}},
        "qwen": {
            "hookSpecificOutput": {"hookEventName": "PostToolUseFailure", "additionalContext": text}
        },
    }
    assert (
        json.loads(run(event, project.user.root, "post_tool_use_failure", **options))
        == answers[runtime]
    )
    assert run(event, project.user.root, "post_tool_use_failure", **options) == b""


@pytest.mark.parametrize("name", ["copilot", "pi", "qwen-code"])
def test_the_real_clients_give_it_to_the_model(
    tmp_path: Path, npm_place: NpmPlace, name: str
) -> None:
    client = CLIENTS[name]
    with client.model() as model:
        user = User(name, client.program(tmp_path, npm_place(client.package), model), model)
        (tmp_path / "home" / f".{name.partition('-')[0]}").mkdir(exist_ok=True)
        machine = (
            Machine(tmp_path / "home", copy_repository(tmp_path / "copy"))
            .has_environment()
            .has_program()
        )
        machine.installed()
        directory = user.program.project
        (directory / "src" / "db").mkdir(parents=True)
        (directory / "src" / "db" / "x.py").write_text("1\n")
        git(directory, "init", "-q")
        git(directory, "add", "-A")
        user.orders("look at x.py", user.call(READ, str(directory / "src" / "x.py")))
        user.ask("look at x.py")
        assert TOLD in user.requests()
