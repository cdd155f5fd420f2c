"""The model's thinking in a record of each runtime."""

from __future__ import annotations

import json

from session_memory.sessions.runtimes.table import runtime

RECORDS = {
    "agent-sdk": {
        "message": {
            "content": [{"type": "thinking", "thinking": "look"}, {"type": "text", "text": "no"}]
        }
    },
    "pi": {"message": {"content": [{"type": "thinking", "thinking": "look"}, 1]}},
    "codex": {
        "payload": {"type": "reasoning", "summary": [{"type": "summary_text", "text": "look"}]}
    },
    "gemini": {"thoughts": [{"subject": "Plan", "description": "look"}]},
    "qwen": {"message": {"parts": [{"text": "look", "thought": True}, {"text": "no"}]}},
    "opencode": {"data": {"type": "reasoning", "text": "look"}},
    "copilot": {"data": {"reasoningText": "look"}},
}


ODD = (
    {},
    {"message": None},
    {"payload": 1},
    {"data": []},
    {"message": {"content": [1], "parts": [1]}},
    {"thoughts": 1},
)


def test_thinking_is_found_in_lines_that_have_its_mark_and_in_no_others() -> None:
    for format, record in RECORDS.items():
        records = runtime(format).records
        assert records.thinking(record) == ("Plan\nlook" if format == "gemini" else "look")
        assert records.THINKING in json.dumps(record, separators=(",", ":")).encode()
        assert [odd for odd in ODD if records.thinking(odd) != ""] == []
