"""The mirrors of Cline's sessions: what is read of its documents."""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from cline_scene import ClineSession, lists_of
from records import new_id

from session_memory.common.system import files
from session_memory.extras.conformance.fixture import said
from session_memory.sessions.runtimes.cline import RUNTIME as CLINE
from session_memory.sessions.runtimes.records import RESULTS, USAGE, CallResult
from session_memory.sessions.transcripts.lines import first_line
from session_memory.sessions.transcripts.mirror import Exclusion, unread
from session_memory.sessions.transcripts.reader import TranscriptReader
from session_memory.sessions.transcripts.usage import ModelUsage

FIXTURES = Path(__file__).parent / "fixtures" / "cline"


@pytest.fixture
def data_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setitem(files.os.environ, b"HOME", os.fsencode(tmp_path))
    return tmp_path / ".cline" / "data"


def mirror(data_dir: Path, session_id: str) -> Path:
    CLINE.refresh(str(data_dir))
    (path,) = Path(CLINE.transcripts_dir(str(data_dir))).rglob(f"{session_id}.jsonl")
    return path


def told(data_dir: Path, session_id: str) -> list[str]:
    descriptor = os.open(mirror(data_dir, session_id), os.O_RDONLY)
    try:
        reader = TranscriptReader(CLINE, first_line(descriptor))
        return [text for _, text in said(list(reader.conversation(descriptor)))]
    finally:
        os.close(descriptor)


def test_the_fixtures_are_the_mirrors_of_the_documents_beside_them(data_dir: Path) -> None:
    shutil.copytree(FIXTURES / "sessions", data_dir / "sessions")
    CLINE.refresh(str(data_dir), everything=True)
    made = {path.name: path for path in Path(CLINE.transcripts_dir(str(data_dir))).rglob("*.jsonl")}
    for name in ("conversation", "fork", "subagent"):
        kept = (FIXTURES / f"{name}.jsonl").read_text()
        [path] = [path for path in made.values() if path.read_text() == kept]
        assert (path.parent.name == "1795168800000_site1") == (name == "subagent")


def test_messages_of_the_program_are_nobody_s(data_dir: Path) -> None:
    session = ClineSession(data_dir, "/srv/app")
    session.exchange("one", "first")
    lost = {"type": "text", "text": "Capability owner client disconnected."}
    session.add("assistant", lost, metadata={"displayOnly": True, "displayRole": "error"})
    session.add("user", lost, metadata={"userRunSpan": 0, "displayRole": "system"})
    assert told(data_dir, session.id) == ["one", "first"]
    session.exchange("two", "second")
    assert told(data_dir, session.id) == ["one", "first", "two", "second"]


def test_what_a_fork_copied_is_not_its_own(data_dir: Path) -> None:
    """The manifest names the session that was copied (by the program's text, 3.0.65)."""
    began = time.time() - 600
    original, fork = (ClineSession(data_dir, "/srv/app", at=began + late) for late in (0, 100))
    original.exchange("one", "first", at=began)
    fork.forked_from(original, at=began + 100)
    fork.exchange("two", "second", at=began + 200)
    with mirror(data_dir, fork.id).open("rb") as file:
        reader = TranscriptReader(CLINE, first_line(file.fileno()))
        entries = [entry for entry in reader.conversation(file.fileno()) if entry]
    assert [(entry.text, entry.is_copy, entry.origin) for entry in entries] == [
        ("one", True, original.id),
        ("first", True, original.id),
        ("two", False, ""),
        ("second", False, ""),
    ]


def test_a_message_that_the_program_replaces_is_taken_back(data_dir: Path) -> None:
    session = ClineSession(data_dir, "/srv/app")
    session.exchange("one", "first")
    session.exchange("two", "second")
    assert len(told(data_dir, session.id)) == 4
    del session.messages[2:]
    session.exchange("three", "third")
    assert told(data_dir, session.id) == ["one", "first", "three", "third"]


def aborts(session: ClineSession, prompt: str) -> None:
    """Write what an earlier run writes when it is aborted: its last prompt again, and an error."""
    text = f'<user_input mode="act">{prompt}</user_input>'
    session.messages.append({"id": f"msg_{new_id()}", "role": "user", "content": text})
    lost = {"type": "text", "text": "Interactive runtime abort requested"}
    session.add("assistant", lost, metadata={"displayOnly": True, "displayRole": "error"})


def test_an_earlier_state_that_an_aborted_run_writes_takes_nothing_back(data_dir: Path) -> None:
    session = ClineSession(data_dir, "/srv/app")
    session.exchange("one", "first")
    before = [*session.messages]
    session.exchange("two", "second")
    whole, both = [*session.messages], ["one", "first", "two", "second"]
    assert told(data_dir, session.id) == both
    size = mirror(data_dir, session.id).stat().st_size
    session.messages = before
    aborts(session, "one")
    assert told(data_dir, session.id) == both
    session.messages = whole
    aborts(session, "two")
    assert told(data_dir, session.id) == both
    assert mirror(data_dir, session.id).stat().st_size - size < 400  # a mark at most
    session.exchange("three", "third")
    assert told(data_dir, session.id) == [*both, "three", "third"]


def test_an_earlier_state_may_lack_a_long_run(data_dir: Path) -> None:
    session = ClineSession(data_dir, "/srv/app")
    session.exchange("one", "first")
    before = [*session.messages]
    session.exchange("two", "second")
    for number in range(30):
        session.call("run_commands", lists_of("commands", f"make {number}"), 0.0, 0.0)
    whole = told(data_dir, session.id)
    assert whole == ["one", "first", "two", "second", *["command"] * 30]
    session.messages = [*before]
    aborts(session, "one")
    assert told(data_dir, session.id) == whole
    session.messages = before
    session.exchange("three", "third")
    assert told(data_dir, session.id) == ["one", "first", "three", "third"]


def test_a_document_that_goes_on_without_its_last_messages_takes_them_back(data_dir: Path) -> None:
    session = ClineSession(data_dir, "/srv/app")
    session.exchange("one", "first")
    before = [*session.messages]
    session.exchange("two", "second")
    assert len(told(data_dir, session.id)) == 4
    session.messages = before
    session.write()
    assert told(data_dir, session.id) == ["one", "first"]
    session.messages = [*before]
    session.exchange("two", "second")
    assert len(told(data_dir, session.id)) == 4
    session.messages = before
    aborts(session, "one")
    assert len(told(data_dir, session.id)) == 4
    session.exchange("three", "third")
    assert told(data_dir, session.id) == ["one", "first", "three", "third"]


def test_a_prompt_whose_only_answer_is_an_error_is_a_person_s(data_dir: Path) -> None:
    session = ClineSession(data_dir, "/srv/app")
    session.exchange("one", "first")
    aborts(session, "two")
    assert told(data_dir, session.id) == ["one", "first", "two"]


def test_a_prompt_that_the_program_wrote_is_nobody_s(data_dir: Path) -> None:
    session = ClineSession(data_dir, "/srv/app")
    session.exchange("one", "first")
    notice = "<mode_notice>The user switched from plan mode to act mode.</mode_notice>\n"
    go_on = "The user approved switching to act mode. Continue with the approved plan now."
    session.exchange(go_on, "second")
    session.exchange(notice + go_on, "third")
    session.exchange(f"{notice}four", "fourth")
    assert told(data_dir, session.id) == ["one", "first", "second", "third", "four", "fourth"]


def results(data_dir: Path, session: ClineSession, content: Any, **more: Any) -> list[CallResult]:
    """The results of a call that ended with `content`."""
    block = {"type": "tool_result", "tool_use_id": "call_1", "name": "fetch", "content": content}
    session.add("user", {**block, **more})
    records = [json.loads(line) for line in mirror(data_dir, session.id).read_text().splitlines()]
    events = [event for record in records for event in CLINE.records.events(record, 0, RESULTS)]
    return [event for event in events if isinstance(event, CallResult)]


def test_a_result_without_success_is_one_and_failed_if_its_block_says_so(data_dir: Path) -> None:
    session = ClineSession(data_dir, "/srv/app")
    picture = {"type": "image", "data": "aGVsbG8=", "mediaType": "image/png"}
    text = {"type": "text", "text": "the page"}
    [first] = results(data_dir, session, [text, picture, {**text, "text": "its end"}])
    assert (first.content, first.has_failed) == ("the page\n\nits end", False)
    *_, failed = results(data_dir, session, "no such tool \ud800", is_error=True)
    assert failed.has_failed
    shown = [{"query": "a.png", "result": [text, picture], "success": True}]
    *_, last = results(data_dir, session, shown)
    assert (last.content, last.has_failed) == ("the page", False)
    assert "aGVsbG8=" not in mirror(data_dir, session.id).read_text()


def test_tokens_of_a_cache_are_among_those_of_the_prompt(data_dir: Path) -> None:
    session = ClineSession(data_dir, "/srv/app")
    counts = {"inputTokens": 100, "outputTokens": 5, "cacheReadTokens": 60, "cacheWriteTokens": 30}
    answer = {"type": "text", "text": "first"}
    session.add("assistant", answer, modelInfo={"id": "big-1"}, metrics={**counts, "cost": 0.25})
    records = [json.loads(line) for line in mirror(data_dir, session.id).read_text().splitlines()]
    [usage] = [each for record in records for each in CLINE.records.events(record, 0, USAGE)]
    assert isinstance(usage, ModelUsage)
    assert (usage.input, usage.cached, usage.written, usage.output) == (10, 60, 30, 5)
    assert usage.dollars == 0.25


def test_a_session_without_a_manifest_is_named_and_read_once_that_is_there(data_dir: Path) -> None:
    """Only the manifest has the directory, by which the session may be hidden."""
    session = ClineSession(data_dir, "/srv/app")
    session.exchange("one", "first")
    manifest = session.path.with_name(f"{session.id}.json")
    whole, root = manifest.read_text(), Path(CLINE.transcripts_dir(str(data_dir)))
    for content in (None, "", whole[:40]):
        manifest.unlink(missing_ok=True)
        if content is not None:
            manifest.write_text(content)
        CLINE.refresh(str(data_dir))
        assert list(root.rglob("*.jsonl")) == []
        [(_, why)] = unread(str(root))
        assert why.endswith("its session's manifest is missing or damaged")
    manifest.write_text(whole)
    assert told(data_dir, session.id) == ["one", "first"]
    assert mirror(data_dir, session.id).parent.name == "-srv-app"
    assert unread(str(root)) == []


def test_a_title_that_is_given_later_hides_the_session_and_its_sub_agents(data_dir: Path) -> None:
    place = data_dir.parents[1] / ".session-memory"
    place.mkdir()
    (place / "config.yaml").write_text("sessions:\n  Plan the garden: {ignore: true}\n")
    session = ClineSession(data_dir, "/srv/app")
    session.exchange("count the apples", "three apples")
    helper = session.path.with_name("agent_1.messages.json")
    helper.write_text(session.path.read_text())
    assert "apples" in mirror(data_dir, session.id).read_text()
    manifest = session.path.with_name(f"{session.id}.json")
    named = {**json.loads(manifest.read_text()), "metadata": {"title": "Plan the garden"}}
    manifest.write_text(json.dumps(named))
    for id in (session.id, "agent_1"):
        assert "apples" not in mirror(data_dir, id).read_text()
    paths = [mirror(data_dir, id) for id in (session.id, "agent_1")]
    for file in (session.path, helper, manifest):
        file.unlink()
    CLINE.refresh(str(data_dir), everything=True)
    assert all(path.exists() for path in paths)  # the store may have texts from before the rule
    (place / "config.yaml").write_text("")
    CLINE.refresh(str(data_dir), everything=True)
    assert not any(path.exists() for path in paths)


def test_a_forgotten_message_without_a_time_is_not_added_again(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A prompt without an answer has no time."""
    session = ClineSession(data_dir, "/srv/app", at=time.time() - 3600)
    session.exchange("one", "first")
    del session.messages[0]["ts"]
    session.messages[1]["ts"] += 60_000
    session.write()
    monkeypatch.setattr(Exclusion, "forgotten", lambda *_: time.time())
    assert told(data_dir, session.id) == ["first"]


def test_a_document_that_is_cut_off_is_named(data_dir: Path) -> None:
    session = ClineSession(data_dir, "/srv/app")
    session.path.write_text('{"messages": [{"role": "user"')
    CLINE.refresh(str(data_dir), everything=True)
    [(name, why)] = unread(CLINE.transcripts_dir(str(data_dir)))
    assert name == f"{session.id}/{session.id}.messages.json"
    assert why.endswith("its JSON is cut off or damaged")
