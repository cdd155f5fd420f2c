"""The hooks call functions that `session_monitor` exports, so programs get what hooks do."""

from __future__ import annotations

import sys
from types import CodeType, FrameType

import pytest
from hooks_scene import PlainUser
from records import exchange, new_id, write

from session_memory import session_monitor


@pytest.fixture
def plain(tmp_path):
    user = PlainUser(tmp_path)
    write(user.project_dir / f"{user.session_id}.jsonl", *exchange("plan a trip", "Gladly."))
    write(user.project_dir / f"{new_id()}.jsonl", *exchange("fix the parser", "It is fixed."))
    return user


def codes_called(user: PlainUser, hook: str, **event: str) -> set[CodeType]:
    codes: set[CodeType] = set()

    def note(frame: FrameType, kind: str, _: object) -> None:
        if kind == "call":
            codes.add(frame.f_code)

    sys.setprofile(note)
    try:
        user.run(hook, **event)
    finally:
        sys.setprofile(None)
    return codes


def test_a_prompt_goes_through_open_update(plain):
    codes = codes_called(plain, "user_prompt_submit", prompt="hello")
    assert session_monitor.open_update.__code__ in codes


def test_an_archive_before_compaction_goes_through_archive_transcript(plain):
    codes = codes_called(plain, "pre_compact", hook_event_name="PreCompact", trigger="auto")
    assert session_monitor.archive_transcript.__code__ in codes


def test_the_functions_for_programs_go_through_the_same(plain, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    called: list[str] = []
    real = session_monitor.archive_transcript
    monkeypatch.setattr(
        session_monitor,
        "archive_transcript",
        lambda *values, **named: called.append("archive") or real(*values, **named),
    )
    path = plain.project_dir / f"{plain.session_id}.jsonl"
    archive = session_monitor.archive_session(
        jsonl_path=path, conversations_dir=tmp_path / "kept", format="agent-sdk"
    )
    assert called == ["archive"]
    assert "Gladly." in archive.read_text()
