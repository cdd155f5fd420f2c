"""What is Copilot's own: directories that change, patches, what nobody typed, where its sessions
lie."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from records import copilot_exchange, copilot_message, copilot_start, write

from session_memory.sessions.runtimes.records import MESSAGES, RESULTS, SUB_AGENTS, CallResult
from session_memory.sessions.runtimes.table import runtime
from session_memory.sessions.transcripts.entries import Entry
from session_memory.sessions.transcripts.lines import first_line
from session_memory.sessions.transcripts.reader import TranscriptReader

COPILOT = runtime("copilot")
RECORDS = COPILOT.records


def event(kind: str, **data: Any) -> dict[str, Any]:
    return {**copilot_message("user", ""), "type": kind, "data": data}


def entries(path: Path, *, backward: bool = False) -> list[Entry]:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        reader = TranscriptReader(COPILOT, first_line(descriptor))
        if backward:
            return list(reader.from_end(descriptor))[::-1]
        return [entry for entry in reader.conversation(descriptor) if entry is not None]
    finally:
        os.close(descriptor)


def test_a_session_that_goes_on_in_another_directory_is_known_to_in_either_direction(
    tmp_path: Path,
) -> None:
    path = write(
        tmp_path / "events.jsonl",
        copilot_start("a", "/srv/one", at=time.time() - 9),
        *copilot_exchange("first", "yes"),
        event("session.context_changed", cwd="/srv/two", gitRoot="/srv/two"),
        *copilot_exchange("second", "yes"),
        event("session.resume", context={"cwd": "/srv/three"}),
        *copilot_exchange("third", "yes"),
    )
    directories = ["/srv/one"] * 2 + ["/srv/two"] * 2 + ["/srv/three"] * 2
    rewritten = tmp_path / "rewritten.jsonl"
    records = [json.loads(line) for line in path.read_bytes().splitlines()]
    rewritten.write_text("".join(json.dumps(record, sort_keys=True) + "\n" for record in records))
    for file in (path, rewritten):
        assert [entry.cwd for entry in entries(file)] == directories
        assert [entry.cwd for entry in entries(file, backward=True)] == directories


def test_of_a_patch_each_file_is_an_edit_and_has_the_result() -> None:
    patch = "*** Begin Patch\n*** Update File: /srv/a.py\n@@\n-1\n+2\n*** Add File: b.py\n+1\n*** End Patch\n"
    for given in (patch, {"input": patch}, {"patch": patch}):
        call = {"toolCallId": "call_1", "name": "apply_patch", "arguments": given, "type": "custom"}
        record = copilot_message("assistant", "", toolRequests=[call])
        tools = entry.tools if (entry := RECORDS.entry(record, 0)) else ()
        assert [RECORDS.edits(record, use.call_id) for use in tools] == [[("1", "2")], [("", "1")]]
        used = [(use.kind, use.argument, use.call_id) for use in tools]
        assert used == [("edit", "/srv/a.py", "call_1"), ("edit", "b.py", "call_1:1")]
    edits = [{"path": "/srv/a.py", "kind": "edit"}, {"path": "/srv/b.py", "kind": "create"}]
    done = event(
        "tool.execution_complete",
        toolCallId="call_1",
        success=True,
        result={"content": "ok"},
        fileEdits=edits,
    )
    found = RECORDS.events(done, 0, RESULTS)
    assert found == [CallResult("call_1", False, "ok"), CallResult("call_1:1", False, "ok")]


def test_a_command_that_its_user_had_run_is_the_user_s() -> None:
    record = event(
        "tool.user_requested", toolCallId="c", toolName="bash", arguments={"command": "git log"}
    )
    found = RECORDS.entry(record, 0)
    assert found is not None
    assert (found.role, [(use.kind, use.argument) for use in found.tools]) == (
        "user",
        [("command", "git log")],
    )
    assert RECORDS.prefilter(json.dumps(record, separators=(",", ":")).encode(), MESSAGES)


def test_what_copilot_put_in_as_a_prompt_is_left_out() -> None:
    put_in: list[dict[str, Any]] = [
        {"isAutopilotContinuation": True},
        {"source": "skill-pdf"},
        {"source": "agent-1"},
    ]
    assert [
        one for one in put_in if RECORDS.entry(copilot_message("user", "Go on.", **one), 0)
    ] == []
    assert RECORDS.entry(copilot_message("user", "Go on.", source="user"), 0) is not None


def test_a_pasted_image_shows_as_one() -> None:
    found = RECORDS.entry(
        copilot_message("user", "", attachments=[{"type": "blob", "mimeType": "image/png"}]), 0
    )
    assert found is not None
    assert found.text == "[image]"


def test_a_name_is_read_however_it_is_quoted(tmp_path: Path) -> None:
    names = {"Plain words": "Plain words", '"a: \\"b\\""': 'a: "b"', "'it''s'": "it's", "": ""}
    for written, name in names.items():
        (tmp_path / "workspace.yaml").write_text(f"name: {written}\nuser_named: true\n")
        assert COPILOT.given_name(f"{tmp_path}/events.jsonl") == name


def test_of_very_many_sessions_the_youngest_may_be_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("session_memory.sessions.runtimes.copilot.MOST_SESSIONS", 3)
    for number in range(5):
        path = write(
            tmp_path / "session-state" / f"s{number}" / "events.jsonl", *copilot_exchange("a", "b")
        )
        os.utime(path, (number, number))
    (tmp_path / "session-state" / "begun").mkdir()
    found = COPILOT.folders_below(str(tmp_path), "/srv")
    assert [COPILOT.session_id_of(path) for path in found] == ["s4", "s3", "s2"]


def test_a_sub_agent_of_a_version_that_names_no_agent_is_left_out_too(tmp_path: Path) -> None:
    said = copilot_message("assistant", "It is empty.", parentToolCallId="call_1")
    path = write(tmp_path / "events.jsonl", *copilot_exchange("Look into it.", "Done."), said)
    assert [entry.text for entry in entries(path)] == ["Look into it.", "Done."]
    assert entries(path) == entries(path, backward=True)
    [found] = RECORDS.events(said, 0, MESSAGES | SUB_AGENTS)
    assert found.text == "It is empty."


def test_a_session_of_an_older_version_is_a_single_file(tmp_path: Path) -> None:
    session_id = "0b7e4f60-5a3c-4f0e-9d21-6a4a8c1f7e01"
    path = write(
        tmp_path / "session-state" / f"{session_id}.jsonl",
        copilot_start(session_id, "/srv/app", at=1.0),
    )
    [found] = COPILOT.sessions_in(str(path.parent))
    assert (found.key, found.path) == (session_id, str(path))


def test_arguments_of_an_older_version_are_json_in_a_string() -> None:
    asked = {"toolCallId": "call_1", "name": "bash", "arguments": '{"command":"make deploy"}'}
    found = RECORDS.entry(copilot_message("assistant", "", toolRequests=[asked]), 0)
    assert found is not None
    assert [tool.argument for tool in found.tools] == ["make deploy"]
