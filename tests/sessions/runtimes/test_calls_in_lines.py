"""The calls in the line of a transcript without their results, which are long and not searched for
commands."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from session_memory.sessions.runtimes.base import Runtime
from session_memory.sessions.runtimes.records import CALLS, MESSAGES
from session_memory.sessions.runtimes.table import all_runtimes, runtime
from session_memory.sessions.transcripts.entries import Entry

FIXTURES = Path(__file__).parent / "fixtures"
PRINTED = 'mark "args": {"input": "payload"} of a result'


def item(command: str) -> dict[str, object]:
    """A command of Codex with its result."""
    ran = {"command": ["bash", "-lc", command], "aggregated_output": PRINTED, "exit_code": 0}
    return {
        "type": "event_msg",
        "payload": {"type": "item_completed", "item": {"type": "CommandExecution", **ran}},
    }


def message(*commands: str) -> dict[str, object]:
    """A message of Gemini CLI with its calls and their results."""
    result = [{"functionResponse": {"response": {"output": PRINTED}}}]
    return {
        "id": "1",
        "toolCalls": [
            {"name": "x", "args": {"command": one}, "result": result} for one in commands
        ],
    }


def part(command: str) -> dict[str, object]:
    """A call of OpenCode with its result."""
    state = {"status": "completed", "input": {"command": command}, "output": PRINTED}
    return {"type": "part", "data": {"type": "tool", "state": state}}


LINES = {"codex": item("make a"), "gemini": message("make a", "make b"), "opencode": part("make a")}


@pytest.mark.parametrize("spaces", [(",", ":"), (", ", ": ")])
@pytest.mark.parametrize("name", LINES)
def test_the_output_of_a_command_is_left_out_and_each_command_stays(
    name: str, spaces: tuple[str, str]
) -> None:
    line = json.dumps(LINES[name], separators=spaces).encode()
    calls = runtime(name).records.without_results(line)
    assert b"mark" in line
    assert b"mark" not in calls
    assert [one for one in (b"make a", b"make b") if one in line and one not in calls] == []


@pytest.mark.parametrize("each", all_runtimes(), ids=lambda each: each.name)
def test_what_a_session_called_stays_also_where_two_records_are_on_one_line(each: Runtime) -> None:
    missing = []
    lines = (FIXTURES / each.name / "conversation.jsonl").read_bytes().splitlines()
    for line in lines:
        calls = [each.records.without_results(one) for one in (line, line + line, lines[0] + line)]
        for record in [json.loads(line)]:
            for event in each.records.events(record, 0, MESSAGES | CALLS):
                tools = event.tools if isinstance(event, Entry) else ()
                arguments = [json.dumps(tool.argument)[1:-1].encode() for tool in tools]
                missing += [
                    one
                    for one in arguments
                    if any(one not in call for call in calls) and one in line
                ]
    assert missing == []
