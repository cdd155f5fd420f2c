"""Calls without effect: refused, interrupted, waiting, failed.

Their form is that of real clients.
"""

from __future__ import annotations

import pytest

from session_memory.awareness.activity.actions import FileAction
from session_memory.awareness.activity.collisions import _evidence
from session_memory.awareness.activity.collisions._evidence import Evidence
from session_memory.common.system.json import encode_compactly
from session_memory.sessions.runtimes.records import RESULTS, CallResult
from session_memory.sessions.runtimes.table import runtime
from session_memory.sessions.transcripts.entries import FAILED

from ...hooks_scene import PlainUser, told
from ...records import append, assistant, exchange, tool_result, user

REFUSED = "The user doesn't want to proceed with this tool use. The tool use was rejected."


def _claude(content, **fields):
    block = {"type": "tool_result", "tool_use_id": "1", "is_error": True, "content": content}
    return {
        "type": "user",
        "message": {"role": "user", "content": [block]},
        "sessionId": "s",
        "uuid": "u",
        **fields,
    }


def _codex(output):
    return {
        "type": "response_item",
        "payload": {"type": "function_call_output", "call_id": "1", "output": output},
    }


def _copilot(**data):
    return {"type": "tool.execution_complete", "id": "e", "data": {"toolCallId": "1", **data}}


def _gemini(**call):
    call = {"id": "1", "name": "run_shell_command", "args": {}, **call}
    return {"id": "m", "type": "gemini", "content": "", "toolCalls": [call]}


def _opencode(**state):
    data = {
        "type": "tool",
        "callID": "1",
        "tool": "bash",
        "state": {"input": {"command": "make"}, **state},
    }
    return {"type": "part", "id": "p", "data": data}


def _pi(text):
    content = [{"type": "text", "text": text}]
    message = {"role": "toolResult", "toolCallId": "1", "isError": True, "content": content}
    return {"type": "message", "id": "m", "message": message}


def _qwen(**result):
    part = {
        "functionResponse": {"id": "1", "name": "run_shell_command", "response": {"error": "no"}}
    }
    return {
        "type": "tool_result",
        "uuid": "u",
        "message": {"role": "user", "parts": [part]},
        "toolCallResult": result,
    }


def _response(text):
    return [{"functionResponse": {"id": "1", "response": {"output": text}}}]


@pytest.mark.parametrize(
    ("name", "record", "has_run"),
    [
        ("agent-sdk", _claude("Exit code 1\nFAILED"), True),
        ("agent-sdk", _claude(REFUSED, toolDenialKind="user-rejected"), False),
        ("agent-sdk", _claude(REFUSED), False),
        ("agent-sdk", _claude("Permission to use Bash with command rm has been denied."), False),
        (
            "agent-sdk",
            _claude("<tool_use_error>String to replace not found in file.</tool_use_error>"),
            False,
        ),
        ("agent-sdk", _claude("PreToolUse:Bash hook error: no"), False),
        ("codex", _codex("Exit code: 1\nOutput:\nFAILED"), True),
        ("codex", _codex("Exit code: 1\nOutput:\nthe log says: reject command"), True),
        ("codex", _codex("Command blocked by PreToolUse hook: no. Command: make"), False),
        ("codex", _codex("Script failed: approval policy is Never; reject command"), False),
        (
            "copilot",
            _copilot(success=True, result={"content": "FAILED\n<exited with exit code 1>"}),
            True,
        ),
        (
            "copilot",
            _copilot(
                success=False, error={"code": "denied", "message": "Permission denied by rules"}
            ),
            False,
        ),
        ("copilot", _copilot(success=False, model="resumed"), True),
        ("gemini", _gemini(status="success", result=_response("FAILED\nExit Code: 1")), True),
        (
            "gemini",
            _gemini(status="error", result=_response("Tool execution denied by policy.")),
            False,
        ),
        ("gemini", _gemini(status="cancelled", result=_response("[Operation Cancelled]")), False),
        ("opencode", _opencode(status="completed", output="FAILED", metadata={"exit": 1}), True),
        (
            "opencode",
            _opencode(status="error", error="The user rejected permission to use this tool call."),
            False,
        ),
        ("pi", _pi("FAILED\n\nCommand exited with code 1"), True),
        ("pi", _pi("Blocked by the user"), False),
        (
            "qwen",
            _qwen(status="error", executionStatus="completed", resultDisplay={"exitCode": 1}),
            True,
        ),
        (
            "qwen",
            _qwen(status="error", executionStatus="not_started", errorType="execution_denied"),
            False,
        ),
        ("qwen", _qwen(status="cancelled"), False),
    ],
)
def test_a_result_says_if_the_call_ran(name, record, has_run):
    events = runtime(name).records.events(record, 0, RESULTS)
    found = [event for event in events if isinstance(event, CallResult)]
    assert [(one.call_id.partition(":")[0], one.has_run) for one in found] == [("1", has_run)]


@pytest.fixture
def plain(tmp_path):
    return PlainUser(tmp_path)


def _edit(number, name):
    given = {"file_path": f"/srv/agent/{name}"}
    return assistant({"type": "tool_use", "id": f"toolu_{number}", "name": "Edit", "input": given})


def _result(number, content="done", *, is_error=False, **fields):
    block = {
        "tool_use_id": f"toolu_{number}",
        "type": "tool_result",
        "content": content,
        "is_error": is_error,
    }
    return user([block], **fields)


def test_an_edit_that_was_refused_or_failed_is_not_told(plain):
    plain.session(
        user("mend the cart"),
        _edit(1, "refused.py"),
        _result(1, REFUSED, is_error=True, toolDenialKind="user-rejected"),
        _edit(2, "failed.py"),
        _result(2, "<tool_use_error>String to replace not found</tool_use_error>", is_error=True),
        _edit(3, "done.py"),
        _result(3),
        *exchange("good", "Mended: it was the tax."),
    )
    line = told(plain.run()).split("\n- ")[1]
    assert "edited done.py" in line
    assert "and 1 more" not in line
    assert "refused.py" not in line


def test_an_edit_that_waits_for_permission_is_told_of_no_session(plain):
    path = plain.session(*exchange("mend the cart", "Looking at the tax."), _edit(1, "waits.py"))
    assert "waits.py" not in told(plain.run())
    append(path, _result(1), *exchange("good", "Mended: it was the tax."))
    assert "Mended" in told(plain.run())


def test_an_edit_whose_result_is_missing_counts_once_the_session_goes_on(plain):
    plain.session(
        user("mend the cart"), _edit(1, "lost.py"), *exchange("good", "Mended: it was the tax.")
    )
    assert "edited lost.py" in told(plain.run())


def test_a_command_that_was_refused_is_not_named_and_one_that_failed_is_marked(plain):
    commands = [("npm publish", REFUSED), ("npm test", "Exit code 1\nFAILED")]
    records = [user("publish it")]
    for number, (command, answer) in enumerate(commands):
        call = {
            "type": "tool_use",
            "id": f"toolu_{number}",
            "name": "Bash",
            "input": {"command": command},
        }
        records += [assistant(call), _result(number, answer, is_error=True)]
    plain.session(*records, *exchange("why?", "The tests fail in the cart."))
    line = told(plain.run()).split("\n- ")[1]
    assert "ran npm test (failed)" in line
    assert "publish;" not in line
    assert "npm publish" not in line


def test_the_result_of_another_call_is_not_taken_for_that_of_one_that_waits(plain):
    plain.session(
        user("mend the cart"),
        _edit(1, "a.py"),
        tool_result(),
        *exchange("go on", "Done with the tax."),
    )
    assert "edited a.py" in told(plain.run())


def test_an_outcome_needs_only_a_part_of_a_usual_result(tmp_path, monkeypatch):
    path = tmp_path / "s.jsonl"
    block = {"type": "tool_result", "content": "exit 1", "is_error": True, "tool_use_id": "t1"}
    message = {"role": "user", "content": [block]}
    record = {"type": "user", "message": message, "uuid": "u", "timestamp": "2026-01-01T00:00:05Z"}
    line = encode_compactly(
        {"parentUuid": "p", "isSidechain": False, **record, "toolUseResult": ""}
    )
    path.write_text(f'{{"type":"assistant","id":"t1"}}\n{line}\n')
    claude = runtime("agent-sdk")
    action = FileAction("command", "", (1.0, 0, "t1"), is_command=True)
    evidence = Evidence({"": claude}, {"": str(path)}, None, "")
    with monkeypatch.context() as patch:
        patch.setattr(_evidence, "objects_in", lambda line: pytest.fail("all of it was decoded"))
        assert evidence.outcome("", action, is_last=False) == FAILED
    assert evidence.end("", action) == (1767225605.0, True)
    assert evidence.printed("", action) == "exit 1"
