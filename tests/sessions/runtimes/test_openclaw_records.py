"""OpenClaw keeps Pi's records in a database; Pi's decoder reads them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from session_memory.session_monitor import parse_jsonl_entries
from session_memory.sessions.runtimes.records import MESSAGES, RESULTS, CallResult
from session_memory.sessions.runtimes.table import runtime

CAPTURES = Path(__file__).resolve().parents[4] / "shared" / "captures" / "openclaw"


@pytest.fixture
def lines() -> list[bytes]:
    """The records of a session with tools, a second turn, and an answer that was stopped."""
    path = CAPTURES / "3-interrupted" / "transcript_events.json"
    if not path.exists():
        pytest.skip("there are no captures beside the repository")
    rows = json.loads(path.read_text())
    return [row["event_json"].encode() for row in rows if row["session_id"] == "s2"]


def test_its_messages_and_calls_are_read(lines: list[bytes]) -> None:
    entries = parse_jsonl_entries(lines, "pi")
    assert [(entry.role, entry.text) for entry in entries] == [
        ("user", "Please change alpha to gamma in notes.txt"),
        ("assistant", "Reading."),
        ("assistant", ""),
        ("assistant", ""),
        ("assistant", "All done."),
        ("user", "Second question"),
        ("assistant", "answer two"),
        ("user", "Question to be stopped"),
    ]
    assert [(tool.kind, tool.argument) for entry in entries for tool in entry.tools] == [
        ("read", "notes.txt"),
        ("edit", "notes.txt"),
        ("command", "cat notes.txt; false"),
    ]


def test_a_refused_edit_and_a_command_with_an_exit_code_have_failed(lines: list[bytes]) -> None:
    records = runtime("pi").records
    events = [event for line in lines for event in records.events(json.loads(line), 0, RESULTS)]
    failed = [event.has_failed for event in events if isinstance(event, CallResult)]
    assert failed == [False, True, True]


@pytest.mark.parametrize(
    ("details", "is_error", "has_run"),
    [
        ({"status": "failed", "exitCode": None, "exitReason": "signal"}, True, True),
        ({"status": "failed", "exitCode": 127, "exitReason": "exit"}, True, True),
        ({"status": "failed", "exitCode": None, "exitReason": "manual-cancel"}, True, False),
        ({"status": "failed", "exitCode": None}, True, False),  # it did not start
        ({"status": "error", "tool": "exec"}, False, False),  # its arguments were refused
    ],
)
def test_a_command_that_failed_has_run_unless_it_could_not_start_or_was_stopped(
    details: dict[str, object], is_error: bool, has_run: bool
) -> None:
    text = [{"type": "text", "text": "Command aborted by signal SIGKILL"}]
    message = {"role": "toolResult", "toolCallId": "call_1", "toolName": "exec", "content": text}
    record = {"type": "message", "message": {**message, "details": details, "isError": is_error}}
    [result] = runtime("openclaw").records.events(record, 0, RESULTS)
    assert isinstance(result, CallResult)
    assert (result.has_failed, result.has_run) == (True, has_run)


def calling(name: str, **arguments: str) -> dict[str, object]:
    """The record of a call with the id `a:b`, as a model may give one."""
    call = {"type": "toolCall", "id": "a:b", "name": name, "arguments": arguments}
    message = {"role": "assistant", "content": [call], "stopReason": "toolUse"}
    return {"type": "message", "id": "1", "parentId": None, "message": message}


def test_a_patch_is_an_edit_of_each_of_its_files() -> None:
    lines = ["*** Begin Patch", "*** Add File: new.txt", "+one", "*** Update File: notes.txt"]
    record = calling("apply_patch", input="\n".join([*lines, "@@", "-a", "+b", "*** End Patch"]))
    records = runtime("openclaw").records
    [entry] = records.events(record, 0, MESSAGES)
    assert [(use.kind, use.argument, use.call_id) for use in entry.tools] == [
        ("edit", "new.txt", "a:b"),
        ("edit", "notes.txt", "a:b:1"),
    ]
    assert [records.edits(record, use.call_id) for use in entry.tools] == [
        [("", "one")],
        [("a", "b")],
    ]


def test_a_command_with_a_directory_of_its_own_goes_there_first() -> None:
    record = calling("exec", command="sed -i s/a/b/ notes.txt", workdir="/srv/it's")
    [entry] = runtime("openclaw").records.events(record, 0, MESSAGES)
    [use] = entry.tools
    assert (use.kind, use.argument) == ("command", "cd '/srv/it'\\''s' && sed -i s/a/b/ notes.txt")
