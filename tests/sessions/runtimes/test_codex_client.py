"""The real Codex: what its sub-agents do, and sessions that its user archives."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from clients.npm import NpmPlace
from clients.others import CODEX, Codex
from fakes.fake_responses import FakeResponses
from install_machine import REPOSITORY
from records import append, assistant, user
from tool_call_scene import Project

from session_memory.sessions.runtimes.claude import encode_cwd

COMMAND = "import sys; from session_memory.cli import main; sys.exit(main())"


def known(codex: Codex, *words: str) -> dict[str, Any]:
    """What a command of ours says as JSON."""
    environment = {**codex.environment, "PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, *words, "--json"],
        env=environment,
        cwd=codex.project,
        capture_output=True,
        text=True,
        check=True,
    )
    return dict(json.loads(done.stdout))


@pytest.mark.slow
def test_a_sub_agent_is_no_session_and_one_that_is_archived_stays_the_same(
    tmp_path: Path, npm_place: NpmPlace
) -> None:
    with FakeResponses() as model:
        codex = Codex(tmp_path, npm_place(CODEX), model)
        (codex.home / ".codex").mkdir()
        codex.run(
            "TOOL multi_agent_v1.spawn_agent " + json.dumps({"message": "Count the lines please."})
        )
        assert len(list((codex.home / ".codex" / "sessions").rglob("rollout-*.jsonl"))) == 2
        [session] = known(codex, "sessions", "--all")["sessions"]
        assert known(codex, "ingest")["entries"] > 0
        codex.execute("archive", session["id"])
        assert list((codex.home / ".codex" / "archived_sessions").iterdir())
        assert known(codex, "ingest")["entries"] == 0
        assert [one["id"] for one in known(codex, "sessions", "--all")["sessions"]] == [
            session["id"]
        ]
        said = known(codex, "read", session["id"])["entries"]
        assert ["Count the lines" in entry["text"] for entry in said].count(True) == 1


PATCH = "*** Begin Patch\\n*** Update File: app\\n@@\\n-1\\n+2\\n*** End Patch"
SHELL = ["TOOL exec_command " + json.dumps({"cmd": "sleep 0.3; sed -i s/1/2/ app; sleep 0.3"})]
CODE_MODE = ["-m", "gpt-6.1-sol"]
EDITS = {
    "shell": SHELL,
    "quick shell": ["TOOL exec_command " + json.dumps({"cmd": "sed -i s/1/2/ app"})],
    "shell in code mode": [
        *CODE_MODE,
        "TOOL exec "
        + json.dumps({"script": 'await tools.exec_command({cmd:"sed -i s/1/2/ app"})'}),
    ],
    "patch in code mode": [
        *CODE_MODE,
        "TOOL exec " + json.dumps({"script": f'await tools.apply_patch("{PATCH}")'}),
    ],
}


@pytest.mark.slow
@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_what_it_edits_is_told_to_others_with_a_prompt_and_before_they_edit_it(
    tmp_path: Path, npm_place: NpmPlace, edit: list[str]
) -> None:
    project = Project(tmp_path / "home")
    call = {
        "type": "tool_use",
        "id": "toolu_1",
        "name": "Read",
        "input": {"file_path": str(project.directory / "app")},
    }
    result = {"tool_use_id": "toolu_1", "type": "tool_result", "content": "1"}
    append(project.own, assistant(call, cwd=project.cwd), user([result], cwd=project.cwd))
    project.user.run(cwd=project.cwd)
    with FakeResponses() as model:
        codex = Codex(tmp_path, npm_place(CODEX), model)
        codex.project = project.directory
        (codex.home / ".codex").mkdir()
        codex.run("--sandbox", "danger-full-access", *edit)
    assert (project.directory / "app").read_text() == "2\n"
    told = ", after you read it"
    assert told in project.told()
    (calls,) = project.user.state_dir.glob("cursors/*.calls")
    calls.unlink()  # what was told before an edit is not told again
    assert (
        told
        in json.loads(project.user.run(cwd=project.cwd))["hookSpecificOutput"]["additionalContext"]
    )


LINE = "! app: edited just now by"


@pytest.fixture
def edited(tmp_path: Path) -> Project:
    """A project in which a session of Claude Code edited the file `app`."""
    project = Project(tmp_path / "home")
    prompt = user("go on", cwd=project.cwd)
    project.edited(transcript=project.user.session(prompt, project=encode_cwd(project.cwd)))
    return project


def told_with(
    edited: Project, place: Path, event: str, entry: str, task: str, **model_of_agent: str
) -> list[str]:
    """Run a sub-agent with a task, and one of our hooks. Return the requests with the line.

    They are the sub-agent's, and only its rollout shows the line."""
    command = f"{sys.executable} -I -S {REPOSITORY}/hooks/{entry} codex"
    hooks = {event: [{"hooks": [{"type": "command", "command": command}]}]}
    with FakeResponses() as model:
        codex = Codex(edited.user.root.parent, place, model)
        codex.project = edited.directory
        (codex.home / ".codex").mkdir()
        (codex.home / ".codex" / "hooks.json").write_text(json.dumps({"hooks": hooks}))
        spawn = json.dumps({"message": task, **model_of_agent})
        wait = json.dumps({"cmd": "sleep 5"})  # its end would end the sub-agent
        unsandboxed = "--dangerously-bypass-approvals-and-sandbox"
        codex.run(unsandboxed, f"TOOL multi_agent_v1.spawn_agent {spawn}\nTOOL exec_command {wait}")
        told = [request for request in codex.requests() if LINE in request]
    assert all("TOOL multi_agent" not in request for request in told)
    rollouts = [*(codex.home / ".codex" / "sessions").rglob("*.jsonl")]
    assert [LINE in path.read_text() for path in rollouts].count(True) == 1
    return told


@pytest.mark.slow
def test_a_sub_agent_is_told_with_its_task_what_another_session_did_to_a_file_of_it_and_its_session_is_not(
    edited: Project, npm_place: NpmPlace
) -> None:
    task = "Count the lines of ./app please."
    told = told_with(edited, npm_place(CODEX), "UserPromptSubmit", "user_prompt_submit.py", task)
    assert told
    assert all("Count the lines" in request for request in told)


@pytest.mark.slow
def test_a_sub_agent_is_warned_with_its_own_edit_and_its_session_is_not(
    edited: Project, npm_place: NpmPlace
) -> None:
    task = "TOOL exec " + json.dumps({"script": f'await tools.apply_patch("{PATCH}")'})
    model = {"model": CODE_MODE[1]}
    told = told_with(edited, npm_place(CODEX), "PreToolUse", "pre_tool_use.py", task, **model)
    assert told
    assert (edited.directory / "app").read_text() == "2\nx\n"
    [log] = edited.user.state_dir.glob("cursors/*.calls")
    [line] = [line for line in log.read_text().splitlines() if '"edited ' in line]
    assert not line.startswith('["",')  # of the sub-agent, not of its session
