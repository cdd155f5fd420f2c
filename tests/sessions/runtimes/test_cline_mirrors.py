"""The mirrors of Cline's sessions: what is read of its documents."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from cline_scene import ClineSession

from session_memory.common.system import files
from session_memory.extras.conformance.fixture import said
from session_memory.sessions.runtimes.cline import RUNTIME as CLINE
from session_memory.sessions.transcripts.lines import first_line
from session_memory.sessions.transcripts.mirror import unread
from session_memory.sessions.transcripts.reader import TranscriptReader

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


def test_a_message_that_the_program_replaces_is_taken_back(data_dir: Path) -> None:
    session = ClineSession(data_dir, "/srv/app")
    session.exchange("one", "first")
    session.exchange("two", "second")
    assert len(told(data_dir, session.id)) == 4
    del session.messages[2:]
    session.exchange("three", "third")
    assert told(data_dir, session.id) == ["one", "first", "three", "third"]


def test_a_document_that_is_cut_off_is_named(data_dir: Path) -> None:
    session = ClineSession(data_dir, "/srv/app")
    session.path.write_text('{"messages": [{"role": "user"')
    CLINE.refresh(str(data_dir), everything=True)
    [(name, why)] = unread(CLINE.transcripts_dir(str(data_dir)))
    assert name == f"{session.id}/{session.id}.messages.json"
    assert why.endswith("its JSON is cut off or damaged")
