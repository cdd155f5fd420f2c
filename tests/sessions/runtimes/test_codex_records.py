"""What a rollout of Codex says once for many of its records."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from records import new_id

from session_memory.sessions.runtimes.detection import runtime_of
from session_memory.sessions.runtimes.records import RESULTS
from session_memory.sessions.runtimes.table import runtime
from session_memory.sessions.transcripts.entries import Entry
from session_memory.sessions.transcripts.lines import first_line
from session_memory.sessions.transcripts.reader import TranscriptReader

CODEX = runtime("codex").records


def test_a_long_rollout_read_forward_is_not_kept_in_memory() -> None:
    branch = CODEX.open_transcript(
        b'{"timestamp":"2026-11-20T10:00:00.000Z","type":"session_meta","payload":{"id":"a","cwd":"/srv/app"}}'
    )
    assert branch is not None
    kept = []
    for number in range(3):
        branch.note({"type": "turn_context", "payload": {"cwd": f"/srv/{number}"}})
        entries = [
            Entry(role="user", text="hello", timestamp=1.0, id=f"{number}.{i}", offset=0)
            for i in range(100)
        ]
        for entry in entries:
            branch.complete(entry)
        assert {entry.cwd for entry in entries} == {f"/srv/{number}"}
        kept.append(sum(isinstance(value, list) and len(value) for value in vars(branch).values()))
    assert kept == [100, 100, 100]


def test_a_sub_agent_whose_task_is_encrypted_is_a_call_and_its_end_is_none() -> None:
    """As Codex 0.171 writes it for the models of its catalogue."""

    def entry(kind: str, call_id: str) -> Entry | None:
        item = {"type": "SubAgentActivity", "id": call_id, "kind": kind}
        item |= {"agent_thread_id": "01a22ba1-eb03", "agent_path": "/root/count"}
        payload = {"type": "item_completed", "turn_id": "t1", "item": item}
        return CODEX.entry({"type": "event_msg", "ordinal": 7, "payload": payload}, 0)

    started = entry("started", "call_1")
    assert started is not None
    assert [(use.name, use.argument, use.call_id) for use in started.tools] == [
        ("spawn_agent", "/root/count", "call_1")
    ]
    assert entry("completed", "subagent-completed-1") is None


def test_what_an_image_stands_between_was_not_typed() -> None:
    content = [
        {"type": "input_text", "text": "Look at this."},
        {"type": "input_text", "text": "<image name=[Image #1]>"},
        {"type": "input_image", "image_url": "data:"},
        {"type": "input_text", "text": "</image>"},
    ]
    record = {
        "type": "response_item",
        "payload": {"type": "message", "role": "user", "content": content},
    }
    found = CODEX.entry(record, 0)
    assert found is not None
    assert found.text == "Look at this.\n\n[image]"


def test_what_an_editor_puts_before_a_request_was_not_typed() -> None:
    headings = (
        "# Review findings",
        "\n# Files mentioned by the user",
        "\r\n  # Context from my IDE setup:",
    )
    for heading in headings:
        text = f"{heading}:\n\n## a.py: src/a.py\n\n## My request for Codex:\nFix the login.\n"
        found = CODEX.entry(
            {"type": "response_item", "payload": message("user", "input_text", text)}, 0
        )
        assert found is not None
        assert found.text == "Fix the login."


def test_a_rewritten_rollout_tells_the_directory_of_each_turn_in_either_direction(
    tmp_path: Path,
) -> None:
    path = tmp_path / "rollout.jsonl"
    records = [
        {
            "timestamp": "2026-11-20T10:00:00.000Z",
            "type": "session_meta",
            "payload": {"cwd": "/srv/0"},
        }
    ]
    for number in (1, 2, 3):
        records.append({**records[0], "type": "turn_context", "payload": {"cwd": f"/srv/{number}"}})
        payload = message("user", "input_text", f"Turn {number}.")
        records.append({**records[0], "type": "response_item", "payload": payload})
    path.write_text("".join(json.dumps(record, sort_keys=True) + "\n" for record in records))
    with path.open("rb") as file:
        assert runtime_of(file.fileno()) is runtime("codex")
        reader = TranscriptReader(runtime("codex"), first_line(file.fileno()))
        backward = [entry.cwd for entry in list(reader.from_end(file.fileno()))]
        forward = [entry.cwd for entry in reader.conversation(file.fileno()) if entry]
    assert forward == backward[::-1] == ["/srv/1", "/srv/2", "/srv/3"]


def message(role: str, kind: str, text: str) -> dict[str, Any]:
    return {"type": "message", "id": None, "role": role, "content": [{"type": kind, "text": text}]}


@pytest.mark.parametrize(("instructions", "end"), [(None, "\n"), ("x" * 2_000_000, "\r\n")])
def test_a_rollout_of_before_september_2025_is_read_too(
    tmp_path: Path, instructions: str | None, end: str
) -> None:
    """Its lines are what the model saw and nothing else: without times, and the directory in a
    message."""
    shell = {"command": ["bash", "-lc", "make deploy"], "workdir": "/srv/app/docs"}
    records: list[dict[str, Any]] = [
        {
            "id": "c3c4b301-27c8-4c70-b6e4-46b99fdf0236",
            "timestamp": "2025-08-18T01:16:13.522Z",
            "instructions": instructions,
        },
        {"record_type": "state"},
        message(
            "user",
            "input_text",
            "<environment_context>\n  <cwd>/srv/app</cwd>\n</environment_context>",
        ),
        message("user", "input_text", "How do I deploy this?"),
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}]},
        {
            "type": "function_call",
            "id": None,
            "name": "shell",
            "arguments": json.dumps(shell),
            "call_id": "call_1",
        },
        {
            "type": "function_call_output",
            "call_id": "call_1",
            "output": '{"output":"no","metadata":{"exit_code":2}}',
        },
        message("assistant", "output_text", "It is done."),
    ]
    path = tmp_path / "rollout-2025-08-18T01-16-13-c3c4b301-27c8-4c70-b6e4-46b99fdf0236.jsonl"
    path.write_bytes(
        "".join(json.dumps(one, separators=(",", ":")) + end for one in records).encode()
    )
    descriptor = os.open(path, os.O_RDONLY)
    try:
        found_by = runtime_of(descriptor)
        assert found_by is not None
        assert found_by.name == "codex"
        head = first_line(descriptor)
        forward = [
            one
            for one in TranscriptReader(found_by, head).conversation(descriptor)
            if one is not None
        ]
        backward = list(TranscriptReader(found_by, head).from_end(descriptor))[::-1]
    finally:
        os.close(descriptor)
    said = [entry.text or entry.tools[0].argument for entry in forward]
    assert said == ["How do I deploy this?", "make deploy", "It is done."]
    assert [entry.cwd for entry in forward] == ["/srv/app", "/srv/app/docs", "/srv/app"]
    assert {entry.timestamp for entry in forward} == {1755479773.522}
    [result] = CODEX.events(records[6], 0, RESULTS)
    assert (result.call_id, result.has_failed) == ("call_1", True)
    assert backward == forward


def test_what_codex_does_for_itself_is_nobody_s_session() -> None:
    internal = {"source": {"internal": "memory_consolidation"}}
    for head in (
        internal,
        {"thread_source": "memory_consolidation"},
        {"source": {"subagent": "review"}},
    ):
        line = {
            "timestamp": "2026-11-20T10:00:00.000Z",
            "type": "session_meta",
            "payload": {"id": "a", **head},
        }
        branch = CODEX.open_transcript(json.dumps(line).encode())
        assert branch is not None
        assert branch.is_of_subagent


def test_a_session_that_goes_on_may_be_told_although_many_others_began_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("session_memory.sessions.runtimes.codex.MOST_SESSIONS", 3)
    paths = [
        tmp_path / "sessions" / "2026" / "11" / day / f"rollout-{day}.jsonl"
        for day in ("16", "17", "18", "19", "20")
    ]
    for written, path in zip((9, 1, 2, 3, 4), paths):
        path.parent.mkdir(parents=True)
        path.touch()
        os.utime(path, (written, written))
    found = runtime("codex").folders_below(str(tmp_path), "/srv")
    assert found == [str(paths[number]) for number in (0, 4, 3)]


def test_the_call_of_a_sub_agent_is_its_session_s_also_on_a_later_day(tmp_path: Path) -> None:
    codex, session, agent = runtime("codex"), new_id(), new_id()
    paths = {
        each: tmp_path
        / f"sessions/2026/{day}/rollout-2026-{day.replace('/', '-')}T10-00-00-{each}.jsonl"
        for each, day in ((new_id(), "11/28"), (session, "11/29"), (agent, "12/01"))
    }
    for path in paths.values():
        path.parent.mkdir(parents=True)
        path.write_text("{}\n")
    event = {
        "hook_event_name": "PreToolUse",
        "session_id": session,
        "agent_id": agent,
        "transcript_path": str(paths[agent]),
    }
    assert codex.is_own(event, {})
    assert codex.own_path(event, "/srv/app", str(tmp_path)) == str(paths[session])
    paths[session].unlink()
    assert codex.own_path(event, "/srv/app", str(tmp_path)) == str(paths[agent])
    assert not codex.is_own({**event, "hook_event_name": "Stop"}, {})
