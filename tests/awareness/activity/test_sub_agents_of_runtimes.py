"""The work of a session's sub-agents in another runtime is reported as the session's own."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from opencode_scene import tool
from records import (
    append,
    codex_exchange,
    copilot_message,
    exchange,
    gemini_exchange,
    gemini_message,
    lines,
    new_id,
    qwen_record,
    write,
)
from runtimes_scene import Person, patch


@pytest.fixture
def person(tmp_path: Path) -> Person:
    return Person(tmp_path)


def sub_agent_of_codex(person: Person) -> None:
    path = person.codex_session(person.app, "mend it")
    append(
        person.codex_session(person.app, "Edit it.", parent=path.stem[-36:]),
        patch(Path(person.edited)),
    )


def sub_agent_of_copilot(person: Person) -> None:
    """It writes into the session's own events."""
    path = person.copilot_session(person.app, "mend it")
    asked = {"toolCallId": "call_1", "name": "edit", "arguments": {"path": person.edited}}
    edit = copilot_message("assistant", "I edited it.", at=time.time() - 60, toolRequests=[asked])
    done = {
        **edit,
        "type": "tool.execution_complete",
        "data": {"toolCallId": "call_1", "success": True},
    }
    append(path, {**edit, "agentId": "a-child"}, {**done, "id": new_id(), "agentId": "a-child"})


def sub_agent_of_opencode(person: Person) -> None:
    session = person.opencode.exchange(person.app, "mend it", "Done.")
    title, at = "edit (@general subagent)", time.time() - 60
    child = person.opencode.session(person.app, title=title, parent=session, at=at)
    edit = tool("edit", {"filePath": person.edited}, at=time.time() - 61)
    person.opencode.turn(child, "Edit it.", "Done.", edit, at=time.time() - 60)


def sub_agent_of_gemini(person: Person) -> None:
    session_id = new_id()
    chat = person.gemini_chat(
        person.app, session_id, *gemini_exchange("mend it", "Done.", at=time.time() - 60)
    )
    call = {
        "id": "call_1",
        "name": "replace",
        "args": {"file_path": person.edited},
        "status": "success",
        "result": [],
    }
    header = {"sessionId": new_id(), "projectHash": "0" * 64, "startTime": "", "kind": "subagent"}
    edit = gemini_message("gemini", "", at=time.time() - 60, toolCalls=[call])
    path = chat.parent / session_id / f"{header['sessionId']}.jsonl"
    path.parent.mkdir()
    path.write_bytes(lines(header, gemini_message("user", "Edit it.", at=time.time() - 60), edit))


def sub_agent_of_qwen_code(person: Person, directory: str = "") -> None:
    path = person.qwen_session(person.app, "mend it")
    child = path.parent.parent / "subagents" / path.stem / "agent-1.jsonl"
    call = {"functionCall": {"id": "call_1", "name": "edit", "args": {"file_path": person.edited}}}
    answer = {"functionResponse": {"id": "call_1", "name": "edit", "response": {"output": "ok"}}}
    fields = {"cwd": str(person.app / directory), "at": time.time() - 60, "isSidechain": True}
    edit = qwen_record("assistant", "", **fields, message={"role": "model", "parts": [call]})
    write(
        child,
        edit,
        qwen_record("tool_result", "", **fields, message={"role": "user", "parts": [answer]}),
    )


@pytest.mark.parametrize(
    "edited_by",
    [
        sub_agent_of_codex,
        sub_agent_of_copilot,
        sub_agent_of_opencode,
        sub_agent_of_gemini,
        sub_agent_of_qwen_code,
    ],
)
def test_what_a_sub_agent_edits_its_session_has_edited(person, edited_by):
    person.read_in_claude()
    edited_by(person)
    text = person.prompt_in_claude(person.app)
    assert 'edited 1m ago by "mend it" (' in text
    assert "dit it." not in text
    assert person.prompt_in_claude(person.app) == ""


def test_what_a_sub_agent_edits_in_an_excluded_directory_is_not_told(person):
    person.read_in_claude()
    person.rules(f"projects: {{{person.app / 'src'}: {{ignore: true}}}}\n")
    sub_agent_of_qwen_code(person, "src")
    text = person.prompt_in_claude(person.app)
    assert ("mend it" in text, "! " in text) == (True, False)


def test_a_sub_agent_of_codex_that_begins_later_is_found(person):
    person.read_in_claude()
    path = person.codex_session(person.app, "mend it")
    assert "! " not in person.prompt_in_claude(person.app)
    append(
        person.codex_session(person.app, "Edit it.", parent=path.stem[-36:]),
        patch(Path(person.edited)),
    )
    append(path, *codex_exchange("go on", "It is done.", cwd=str(person.app), at=time.time() - 50))
    assert (
        '! src/app.py: edited 1m ago by "mend it" (Codex), after you read it'
        in person.prompt_in_claude(person.app)
    )


def test_what_a_sub_agent_of_codex_edited_its_own_session_has_in_hand(person):
    own = person.codex_session(person.app, "mend it", session_id=person.ids["codex"])
    append(
        person.codex_session(person.app, "Edit it.", parent=own.stem[-36:]),
        patch(Path(person.edited)),
    )
    edit = ("Edit", {"file_path": person.edited, "old_string": "", "new_string": "2"})
    Path(person.edited).write_text("2\n")
    folder = person.claude_session(person.app, "tidy the docs").parent
    write(
        folder / f"{new_id()}.jsonl",
        *exchange("mend it too", edit, cwd=str(person.app), at=time.time() - 30),
    )
    text = person.prompt_in_codex(person.app)
    assert (
        '! src/app.py: edited just now by "mend it too" (Claude Code), after you edited it' in text
    )
