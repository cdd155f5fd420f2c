"""Cline's hooks: a prompt is told the news, and a call is refused once with its collision."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from cline_scene import ClineSession
from hooks_scene import run
from install_machine import REPOSITORY
from runtimes_scene import Person

from session_memory.sessions.runtimes.base import REFUSED
from session_memory.sessions.runtimes.cline import RUNTIME
from session_memory.sessions.runtimes.table import runtime, sender_of
from session_memory.sessions.transcripts.entries import INTRODUCTION

# Asks the plugin as Cline does: one JSON line for each call of a hook, and one for each answer.
ASKS = """
import plugin from {path};
plugin.setup({{}}, {{ session: {{ sessionId: {id} }} }});
const given = JSON.parse(process.argv[1]);
const answers = [];
for (const [name, context] of given) answers.push((await plugin.hooks[name](context)) ?? null);
console.log(JSON.stringify(answers));
"""


class ClineUser:
    """Somebody who uses Cline and Claude Code in one repository."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.person = Person(root)
        self.cwd = str(self.person.app)
        self.session = ClineSession(root / ".cline" / "data", self.cwd, at=time.time() - 600)

    def hook(self, script: str, event: str, **fields: Any) -> str:
        """Return the text that a hook answers to an event of the plugin."""
        given = {"hook_event_name": event, "runtime": "cline", "session_id": self.session.id}
        output = run({**given, "cwd": self.cwd, **fields}, self.root, script)
        return str(json.loads(output or b"{}").get("text", ""))

    def asks(self, prompt: str) -> str:
        """Return what a prompt is told, which Cline then writes behind the prompt."""
        told = self.hook("user_prompt_submit", "beforeRun", prompt=prompt)
        self.session.exchange(prompt, "Yes.", told=told)
        return told

    def edits(self, **fields: Any) -> str:
        """Return why an edit is refused, or ''."""
        call = {"tool_name": "editor", "tool_input": {"path": self.person.edited}}
        return self.hook("pre_tool_use", "beforeTool", **call, tool_use_id="e9", **fields)

    def has_read(self) -> None:
        at, given = time.time() - 600, {"files": [{"path": self.person.edited}]}
        self.session.call("read_files", given, at, at)


@pytest.fixture
def user(tmp_path: Path) -> ClineUser:
    return ClineUser(tmp_path)


def test_a_prompt_is_told_once_what_others_did(user: ClineUser) -> None:
    user.person.claude_session(user.person.app, "paint the door")
    assert '"paint the door" (Claude Code' in user.asks("begin")
    assert user.asks("go on") == ""
    user.person.claude_session(user.person.app, "oil the hinge")
    told = user.asks("go on")
    assert "oil the hinge" in told
    assert "paint the door" not in told


def test_an_update_is_told_again_if_the_document_lacks_it(user: ClineUser) -> None:
    user.asks("begin")
    user.person.claude_session(user.person.app, "paint the door")
    assert "paint the door" in user.hook("user_prompt_submit", "beforeRun", prompt="go on")
    user.session.exchange("go on", "Yes.")
    assert "paint the door" in user.asks("go on")
    assert user.asks("go on") == ""


def test_an_edit_of_a_file_that_another_session_edited_is_refused_once(user: ClineUser) -> None:
    user.asks("begin")
    user.has_read()
    user.person.claude_edits()
    reason = user.edits()
    assert reason.startswith(INTRODUCTION)
    assert reason.endswith(REFUSED)
    assert "edited just now" in reason
    assert user.edits() == ""


def test_a_refused_edit_is_no_edit_and_no_failure_of_the_agents(user: ClineUser) -> None:
    user.asks("begin")
    call = {"type": "tool_use", "id": "r1", "name": "run_commands"}
    user.session.add("assistant", {**call, "input": {"commands": ["git stash", "ls"]}})
    error = json.dumps({"error": f"{INTRODUCTION}! no{REFUSED}"})
    result = {"type": "tool_result", "tool_use_id": "r1", "content": error, "is_error": True}
    user.session.add("user", result)
    user.asks("go on")
    user.asks("go on")
    [path] = user.root.glob(f".session-memory/state/cline/*/{user.session.id}.jsonl")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    results = [line for line in lines if line["type"] == "result"]
    assert [(line["id"], line["content"]) for line in results] == [("r1", ""), ("r1:1", "")]
    assert {line["extra"]["has_run"] for line in results} == {False}


def test_a_sub_agent_hears_at_its_start_of_the_files_in_its_task(user: ClineUser) -> None:
    user.asks("begin")
    user.has_read()
    user.person.claude_edits()
    told = user.hook(
        "user_prompt_submit",
        "beforeRun",
        prompt=f"mend {user.person.edited}",
        agent_id="agent_1_a",
    )
    assert "edited just now" in told
    assert user.edits(agent_id="agent_1_a") == ""


def test_a_fork_goes_on_with_its_originals_updates(user: ClineUser) -> None:
    user.person.claude_session(user.person.app, "paint the door")
    user.asks("begin")
    original = user.session
    user.session = ClineSession(user.root / ".cline" / "data", user.cwd)
    user.session.forked_from(original, at=time.time())
    user.hook("session_start", "setup", source="resume")
    user.person.claude_session(user.person.app, "oil the hinge")
    told = user.asks("go on")
    assert "oil the hinge" in told
    assert "paint the door" not in told


def test_events_name_the_runtime() -> None:
    assert sender_of({"runtime": "cline"}, {}, runtime("agent-sdk")) is RUNTIME


def asked_of_plugin(user: ClineUser, *asked: tuple[str, dict[str, Any]]) -> list[Any]:
    """Return the answers of the plugin to calls of its hooks."""
    node = shutil.which("node")
    assert node
    path = json.dumps(f"{REPOSITORY}/hooks/cline/index.js")
    code = ASKS.format(path=path, id=json.dumps(user.session.id))
    words = [node, "--input-type=module", "--eval", code, json.dumps(asked)]
    environment = {"HOME": str(user.root), "PATH": "/usr/bin:/bin"}
    environment["SESSION_MEMORY_PYTHON"] = sys.executable
    done = subprocess.run(
        words, env=environment, cwd=user.cwd, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
    answers: list[Any] = json.loads(done.stdout)
    return answers


def snapshot(*texts: str, **more: Any) -> dict[str, Any]:
    """What Cline gives a hook: the messages so far."""
    messages = [{"role": "user", "content": [{"type": "text", "text": text}]} for text in texts]
    return {"snapshot": {"agentId": "agent_1_a", "messages": messages, **more}}


def edit_of(path: str, **more: Any) -> dict[str, Any]:
    call = {"toolName": "editor", "toolCallId": "e1"}
    return {**snapshot("begin", **more), "toolCall": call, "input": {"path": path}}


needs_node = pytest.mark.skipif(not shutil.which("node"), reason="needs node")


@needs_node
def test_the_plugin_adds_an_update_and_refuses_an_edit_once(user: ClineUser) -> None:
    user.person.claude_session(user.person.app, "paint the door")
    edit = ("beforeTool", edit_of(user.person.edited))
    begun = snapshot('<user_input mode="act">begin</user_input>')
    [told, called] = asked_of_plugin(user, ("beforeRun", begun), edit)
    assert '"paint the door" (Claude Code' in told["appendContext"]
    assert called is None
    user.session.exchange("begin", "Yes.")
    user.has_read()
    user.person.claude_edits()
    [refused, again] = asked_of_plugin(user, edit, edit)
    assert refused["skip"] is True
    assert refused["reason"].endswith(REFUSED)
    assert again is None


@needs_node
def test_the_plugin_answers_nothing_to_what_it_does_not_know(user: ClineUser) -> None:
    calls: list[tuple[str, dict[str, Any]]] = [
        ("beforeRun", {}),
        ("beforeRun", {"snapshot": {"messages": [None]}}),
        ("beforeTool", {}),
        ("beforeTool", {**edit_of(""), "input": None}),
        ("beforeTool", {**edit_of("x"), "toolCall": {"toolName": "constructor"}}),
    ]
    assert asked_of_plugin(user, *calls) == [None] * len(calls)
