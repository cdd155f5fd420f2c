"""The model's thinking in a record of each runtime."""

from __future__ import annotations

import json

import pytest

from session_memory.runtimes import runtime

RECORDS = {
    "agent-sdk": {"message": {"content": [{"type": "thinking", "thinking": "look"}, {"type": "text", "text": "no"}]}},
    "pi": {"message": {"content": [{"type": "thinking", "thinking": "look"}, 1]}},
    "codex": {"payload": {"type": "reasoning", "summary": [{"type": "summary_text", "text": "look"}]}},
    "gemini": {"thoughts": [{"subject": "Plan", "description": "look"}]},
    "qwen": {"message": {"parts": [{"text": "look", "thought": True}, {"text": "no"}]}},
    "opencode": {"data": {"type": "reasoning", "text": "look"}},
    "copilot": {"data": {"reasoningText": "look"}},
}


@pytest.mark.parametrize("format", RECORDS)
def test_thinking_is_found_in_lines_that_have_its_mark(format: str) -> None:
    records = runtime(format).records
    found = records.thinking(RECORDS[format])
    assert found == ("Plan\nlook" if format == "gemini" else "look")
    assert records.THINKING in json.dumps(RECORDS[format], separators=(",", ":")).encode()


@pytest.mark.parametrize("format", RECORDS)
def test_a_record_without_thinking_has_none(format: str) -> None:
    for odd in (
        {},
        {"message": None},
        {"payload": 1},
        {"data": []},
        {"message": {"content": [1], "parts": [1]}},
        {"thoughts": 1},
    ):
        assert runtime(format).records.thinking(odd) == ""
