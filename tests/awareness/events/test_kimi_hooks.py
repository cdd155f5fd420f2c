"""Kimi Code's hooks: a prompt is told the news, and a call is refused once with its collision."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from hooks_scene import run
from records import (
    append,
    kimi_event,
    kimi_exchange,
    kimi_start,
    kimi_told,
    new_id,
    write,
)
from runtimes_scene import Person

from session_memory.common.system.files import Opened
from session_memory.sessions.runtimes.kimi import RUNTIME
from session_memory.sessions.runtimes.records import INJECTED, RESULTS, CallResult, Injected
from session_memory.sessions.runtimes.table import runtime, sender_of
from session_memory.sessions.transcripts.entries import INTRODUCTION
from session_memory.sessions.transcripts.lines import first_line


class KimiUser:
    """Somebody who uses Kimi Code and Claude Code in one repository."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.person = Person(root)
        self.cwd = str(self.person.app)

    def hook(self, script: str, session_id: str, event: str, **fields: Any) -> dict[str, Any]:
        """Return what a hook prints for an event in the form of Kimi Code 2.1."""
        given = {"hook_event_name": event, "session_id": session_id, "cwd": self.cwd}
        given |= {"client_type": "kimi_code_cli", **fields}
        output = run(given, self.root, script, arguments=["kimi"])
        printed: dict[str, Any] = json.loads(output or b"{}").get("hookSpecificOutput", {})
        return printed

    def begins(self, *lines: dict[str, Any]) -> str:
        """Return the id of a new session, whose log begins with `lines`."""
        session_id = f"session_{new_id()}"
        path = self.person.kimi_file(session_id)
        path.parent.mkdir(parents=True)
        write(path, *kimi_start(self.cwd, at=time.time() - 600), *lines)
        return session_id

    def asks(self, session_id: str, *texts: str) -> str:
        """Return what a prompt of these parts is told, which the log then shows before it."""
        parts = [{"type": "text", "text": text} for text in texts]
        printed = self.hook(
            "user_prompt_submit", session_id, "UserPromptSubmit", prompt=parts, is_steer=False
        )
        path = self.person.kimi_file(session_id)
        if printed:
            append(path, kimi_told(printed["message"]))
        append(path, *kimi_exchange("\n".join(texts), "Yes."))
        return str(printed.get("message", ""))

    def calls(self, session_id: str, tool: str, **given: str) -> str:
        """Return why a call is refused, or ''."""
        call = {"tool_name": tool, "tool_input": given, "tool_call_id": "e9"}
        printed = self.hook("pre_tool_use", session_id, "PreToolUse", **call)
        assert printed.get("permissionDecision", "deny") == "deny"
        return str(printed.get("permissionDecisionReason", ""))

    def has_read(self, session_id: str) -> None:
        """Let a session have read the file `edited` ten minutes ago."""
        at, path = time.time() - 600, self.person.kimi_file(session_id)
        call = {"toolCallId": "c1", "name": "Read", "args": {"path": self.person.edited}}
        append(path, kimi_event("tool.call", at=at, **call))
        append(path, kimi_event("tool.result", at=at, toolCallId="c1", result={"output": "1"}))


@pytest.fixture
def user(tmp_path: Path) -> KimiUser:
    return KimiUser(tmp_path)


def test_a_prompt_of_parts_is_told_once_what_others_did(user: KimiUser) -> None:
    user.person.claude_session(user.person.app, "paint the door")
    id = user.begins()
    assert '"paint the door" (Claude Code' in user.asks(id, "go on", "as before")
    assert user.asks(id, "go on") == ""
    user.person.claude_session(user.person.app, "oil the hinge")
    told = user.asks(id, "go on")
    assert "oil the hinge" in told
    assert "paint the door" not in told


def test_a_prompt_that_begins_with_an_image_has_only_its_words() -> None:
    parts = [{"type": "image_url", "imageUrl": {"url": "a.png"}}, {"type": "text", "text": "hi"}]
    assert RUNTIME.prompt({"prompt": parts}) == "hi"


def test_the_directory_is_known_behind_the_tools_of_many_servers(tmp_path: Path) -> None:
    path = tmp_path / "wire.jsonl"
    first, *others = kimi_start("/srv/app", at=time.time())
    tools = {"type": "mcp.tools_discovered", "agentId": "main", "tools": ["x" * 7000]}
    write(path, first, *[tools] * 20, *others, *kimi_exchange("go on", "Yes."))
    with Opened(str(path)) as descriptor:
        head = first_line(descriptor)
    assert RUNTIME.records.open_transcript(head).directory == "/srv/app"
    assert b"go on" not in head


def test_a_first_prompt_is_told_before_the_session_has_a_log(user: KimiUser) -> None:
    user.person.claude_session(user.person.app, "paint the door")
    id = f"session_{new_id()}"
    path = user.person.kimi_file(id)
    path.parent.mkdir(parents=True)
    assert RUNTIME.transcript_path(str(user.root / ".kimi-code"), user.cwd, id) == str(path)
    assert "paint the door" in user.asks(id, "begin")
    assert user.asks(id, "go on") == ""


def test_an_update_that_the_log_lacks_is_told_again(user: KimiUser) -> None:
    user.person.claude_session(user.person.app, "paint the door")
    id = user.begins()
    prompt = {"prompt": [{"type": "text", "text": "go on"}]}
    assert user.hook("user_prompt_submit", id, "UserPromptSubmit", **prompt)
    append(user.person.kimi_file(id), *kimi_exchange("go on", "Yes."))
    assert "paint the door" in user.asks(id, "go on")
    assert user.asks(id, "go on") == ""


def test_a_fork_is_told_what_came_after_its_original_and_nothing_of_that_session(
    user: KimiUser,
) -> None:
    user.person.claude_session(user.person.app, "paint the door")
    original = user.begins()
    assert "paint the door" in user.asks(original, "sweep the floor")
    lines = user.person.kimi_file(original).read_bytes().splitlines()
    fork = user.begins(*[json.loads(line) for line in lines[3:]])
    state = user.person.kimi_file(fork).parents[2] / "state.json"
    state.write_text(json.dumps({"id": fork, "forkedFrom": original}))
    assert user.hook("session_start", fork, "SessionStart", source="resume") == {}
    user.person.claude_session(user.person.app, "oil the hinge")
    told = user.asks(fork, "go on")
    assert "oil the hinge" in told
    assert "paint the door" not in told
    assert "sweep the floor" not in told


def test_an_edit_is_refused_once_with_what_another_session_did_to_the_file(
    user: KimiUser,
) -> None:
    id = user.begins(*kimi_exchange("look", "yes", at=time.time() - 600))
    user.has_read(id)
    user.person.claude_edits()
    edit = {"path": user.person.edited, "old_string": "1", "new_string": "3"}
    given = {"toolCallId": "e9", "name": "Edit", "args": edit}
    append(user.person.kimi_file(id), kimi_event("tool.call", **given))  # before it runs
    reason = user.calls(id, "Edit", **edit)
    assert '! src/app.py: edited just now by "mend it" (Claude Code), after you read it' in reason
    assert reason.endswith("\nThe call was not run. It is run if it comes again.")
    assert len(reason) <= 500
    assert user.calls(id, "Edit", **edit) == ""
    assert user.calls(user.begins(), "Bash", command="cat src/app.py") == ""


def test_a_refused_call_has_not_run_and_its_reason_is_no_result() -> None:
    answer = RUNTIME.context_output(f"{INTRODUCTION}! a", "PreToolUse")["hookSpecificOutput"]
    failed = {"output": answer["permissionDecisionReason"], "isError": True}
    record = kimi_event("tool.result", at=1.0, toolCallId="c1", result=failed)
    assert RUNTIME.records.events(record, 0, RESULTS) == [CallResult("c1", True, "", False, 1.0)]


def test_the_texts_of_all_hooks_that_ran_with_a_prompt_are_found() -> None:
    record = kimi_told("first", "a\n\nb")
    assert RUNTIME.records.events(record, 0, INJECTED) == [Injected(("first", "a\n\nb"))]
    typed = kimi_exchange('<hook_result hook_event="UserPromptSubmit">\nx\n</hook_result>', "a")
    assert [RUNTIME.records.events(each, 0, INJECTED) for each in typed] == [[], []]


def test_an_event_without_a_transcript_is_kimi_code_s_only_if_it_names_the_client(
    user: KimiUser,
) -> None:
    event = {"session_id": "a", "cwd": user.cwd, "hook_event_name": "UserPromptSubmit"}
    assert sender_of(event, {}, RUNTIME) is runtime("agent-sdk")
    event["client_type"] = "kimi_code_cli"
    assert sender_of(event, {}, runtime("agent-sdk")) is RUNTIME
