"""Pi's sessions as transcripts of Claude Code: our readers, the store and the real CLI take them for what they were."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
from records import PiSession
from store_scene import Scene

from session_memory.commands.pi_to_claude import main
from session_memory.runtimes.claude import RUNTIME as CLAUDE
from session_memory.runtimes.claude import encode_cwd
from session_memory.runtimes.records import MESSAGES, Compaction
from session_memory.session_monitor import read_session_log

ROOT = Path(__file__).resolve().parents[2]
MONDAY = 1_790_000_000.0


def convert(*paths, out):
    with redirect_stdout(io.StringIO()) as printed, redirect_stderr(io.StringIO()) as errors:
        code = main([*map(str, paths), "--out", str(out)])
    return subprocess.CompletedProcess(paths, code, printed.getvalue(), errors.getvalue())


def convert_by_script(*paths, out):
    return subprocess.run(
        [sys.executable, "-I", "-S", ROOT / "scripts" / "pi_to_claude.py", *map(str, paths), "--out", str(out)],
        capture_output=True, text=True, env={"HOME": str(out.parent), "LANG": "C.UTF-8"}, check=False,
    )  # fmt: skip


def converted(session, tmp_path, convert=convert):
    """The records of a session's transcript."""
    path = session.write(tmp_path / "pi")
    done = convert(path, out=tmp_path / "out")
    assert done.returncode == 0, done.stderr
    (made,) = (tmp_path / "out").rglob("*.jsonl")
    return made, [json.loads(line) for line in made.read_bytes().splitlines()]


def texts(records):
    """What a reader of Claude Code's transcripts finds in them."""
    entries = [CLAUDE.records.entry(record) for record in records]
    return [entry.text or [(tool.name, tool.argument) for tool in entry.tools] for entry in entries if entry]


@pytest.fixture
def session():
    session = PiSession(at=MONDAY)
    session.exchange("plan a trip", "Gladly.", at=MONDAY + 10)
    session.message("assistant", content=[
        {"type": "thinking", "thinking": "hidden"}, {"type": "text", "text": "Let me look."},
        {"type": "toolCall", "id": "call|1", "name": "read", "arguments": {"path": "/srv/notes.md"}},
    ], stopReason="toolUse", model="fake-1", at=MONDAY + 20)  # fmt: skip
    session.message("toolResult", toolCallId="call|1", content=[{"type": "text", "text": "the notes"}], isError=False)
    session.name("Travel")
    return session


def test_what_was_said_and_done_reads_as_it_did(session, tmp_path):
    path, records = converted(session, tmp_path, convert_by_script)
    assert texts(records) == ["plan a trip", "Gladly.", "Let me look."]
    log = read_session_log(jsonl_path=path, format="agent-sdk")
    assert "[Read notes.md]" in log or "[Read /srv/notes.md]" in log
    assert "hidden" not in path.read_text()
    assert [record["customTitle"] for record in records if record["type"] == "custom-title"] == ["Travel"]


def test_a_transcript_lies_where_claude_code_would_keep_it(session, tmp_path):
    path, _ = converted(session, tmp_path)
    assert path == tmp_path / "out" / "-srv-agent" / f"{session.id}.jsonl"
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_call_and_its_result_keep_together_under_an_id_that_the_api_takes(session, tmp_path):
    _, records = converted(session, tmp_path)
    blocks = [b for r in records for b in (r.get("message") or {}).get("content", []) if isinstance(b, dict)]
    (call,) = [block for block in blocks if block["type"] == "tool_use"]
    (result,) = [block for block in blocks if block["type"] == "tool_result"]
    assert call["id"] == result["tool_use_id"]
    assert call["id"].replace("_", "").isalnum()
    assert (call["name"], call["input"]) == ("Read", {"file_path": "/srv/notes.md"})


def test_the_records_hang_on_each_other_even_where_some_are_left_out(tmp_path):
    session = PiSession()
    session.user("one")
    session.assistant("failed", stop="error")
    session.add("custom_message", customType="session-update", content="injected", display=True)
    session.assistant("two")
    _, records = converted(session, tmp_path)
    assert texts(records) == ["one", "two"]
    assert [record["parentUuid"] for record in records] == [None, records[0]["uuid"]]


def test_what_an_edit_took_out_is_left_out_and_branches_stay_branches(tmp_path):
    session = PiSession()
    first = session.user("one")
    wrong = session.assistant("wrong")
    session.edit(wrong)
    session.back_to(first)
    session.assistant("right")
    _, records = converted(session, tmp_path)
    assert texts(records) == ["one", "right"]
    assert records[1]["parentUuid"] == records[0]["uuid"]


def test_a_compaction_is_one_for_claude_code_too(tmp_path):
    session = PiSession()
    session.exchange("one", "two")
    session.add("compaction", summary="They counted.", firstKeptEntryId="x", tokensBefore=9)
    session.user("three")
    _, records = converted(session, tmp_path)
    assert texts(records) == ["one", "two", "three"]
    found = [CLAUDE.records.events(record, 0, MESSAGES) for record in records]
    assert [Compaction() in events for events in found] == [False, False, True, False, False]
    assert records[4]["parentUuid"] == records[3]["uuid"]


def test_sessions_from_before_there_were_ids_are_converted_in_their_order(tmp_path):
    session = PiSession(version=1)
    session.exchange("one", "two")
    session.user("three")
    _, records = converted(session, tmp_path)
    assert texts(records) == ["one", "two", "three"]
    assert [record["parentUuid"] for record in records[1:]] == [record["uuid"] for record in records[:-1]]


def test_ids_that_are_no_text_are_replaced(tmp_path):
    session = PiSession(at=MONDAY)
    session.user("one")
    session.records[-1]["id"] = "\ud800"
    _, records = converted(session, tmp_path)
    assert texts(records) == ["one"]


def test_converting_again_changes_nothing(session, tmp_path):
    path, _ = converted(session, tmp_path)
    before = path.read_bytes(), path.stat().st_mtime_ns, path.stat().st_ino
    done = convert(tmp_path / "pi", out=tmp_path / "out")
    assert "0 sessions written" in done.stdout
    assert before == (path.read_bytes(), path.stat().st_mtime_ns, path.stat().st_ino)


def test_a_session_that_went_on_is_converted_anew_and_keeps_what_it_had(session, tmp_path):
    path, records = converted(session, tmp_path)
    session.exchange("and then?", "Home.")
    _, again = converted(session, tmp_path)
    assert [record for record in again if record["type"] != "custom-title"][: len(records) - 1] == records[:-1]
    assert texts(again)[-2:] == ["and then?", "Home."]
    assert path.exists()


def test_another_transcript_in_the_same_place_is_left_alone(session, tmp_path):
    target = tmp_path / "out" / "-srv-agent" / f"{session.id}.jsonl"
    target.parent.mkdir(parents=True)
    target.write_text('{"type":"user"}\n')
    done = convert(session.write(tmp_path / "pi"), out=tmp_path / "out")
    assert done.returncode == 1
    assert "another transcript" in done.stderr
    assert target.read_text() == '{"type":"user"}\n'


def test_what_is_no_session_is_said_and_the_rest_is_converted(session, tmp_path):
    session.write(tmp_path / "pi")
    (tmp_path / "pi" / "other.jsonl").write_text('{"type":"user"}\n')
    done = convert(tmp_path / "pi", out=tmp_path / "out")
    assert (done.returncode, done.stdout[:18]) == (1, "1 session written ")
    assert "other.jsonl: no session of Pi's" in done.stderr


@pytest.mark.parametrize("first", ["pi", "out"])
def test_the_store_holds_a_session_once_whichever_form_comes_first(session, tmp_path, first):
    converted(session, tmp_path)
    scene = Scene(tmp_path / "scene")
    for folder in (first, "out" if first == "pi" else "pi"):
        (scene.root / folder).symlink_to(tmp_path / folder / ("-srv-agent" if folder == "out" else ""))
        scene.ingest()
        counts = scene.store.counts()
        assert (counts.entries, counts.tool_uses) == (3, 1)
    assert sorted(state.source for state in scene.store.file_states("").values()) == ["pi", "pi-converted"]


def test_real_sessions_are_converted(tmp_path):
    captures = ROOT.parent / "shared" / "captures" / "pi"
    if not captures.is_dir():
        pytest.skip("the captures of real sessions are not here")
    done = convert(*captures.glob("*.jsonl"), out=tmp_path / "out")
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for path in (tmp_path / "out").rglob("*.jsonl") for line in path.open("rb")]
    assert len(texts(found)) > 10


def test_the_real_cli_goes_on_with_a_session(session, tmp_path, claude, api):
    session.records[0]["cwd"] = str(claude.project)
    out = claude.config_dir / "projects"
    assert convert(session.write(tmp_path / "pi"), out=out).returncode == 0
    turn = claude.run("where were we?", "--resume", session.id)
    sent = json.dumps(turn.request.body["messages"])
    assert [part in sent for part in ("plan a trip", "Gladly.", "Let me look.", "the notes")] == [True] * 4
    assert os.path.exists(out / encode_cwd(str(claude.project)) / f"{session.id}.jsonl")
