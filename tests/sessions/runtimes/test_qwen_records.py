"""What is Qwen Code's own: records of older versions, which do not say where a text comes from, and
injected text."""

from __future__ import annotations

import json

import pytest
from records import qwen_record

from session_memory.sessions.runtimes.records import INJECTED, MESSAGES, RESULTS, Injected
from session_memory.sessions.runtimes.table import runtime
from session_memory.sessions.transcripts.entries import INTRODUCTION

RECORDS = runtime("qwen").records


@pytest.mark.parametrize(
    ("subtype", "is_typed"),
    [
        ("", True),
        ("mid_turn_user_message", True),
        ("slash_command", False),
        ("goal_runtime", False),
    ],
)
def test_what_an_older_version_writes_as_a_user_s_is_told_apart_by_its_kind(
    subtype: str, is_typed: bool
) -> None:
    record = qwen_record("user", "go on", **({"subtype": subtype} if subtype else {}))
    del record["provenance"]
    assert RECORDS.prefilter(json.dumps(record, separators=(",", ":")).encode(), MESSAGES)
    assert (RECORDS.entry(record, 0) is not None) == is_typed


def test_an_injected_text_is_what_the_hook_gave() -> None:
    record = qwen_record(
        "user", "go on", systemPayload={"hookContext": '- "mend it" -&gt; edited &lt;2 files'}
    )
    assert RECORDS.events(record, 0, INJECTED) == [Injected(('- "mend it" -> edited <2 files',))]


def test_what_a_hook_told_of_a_call_that_failed_is_no_part_of_its_error() -> None:
    error = f"File not found: /srv/x.py\n\n{INTRODUCTION}- there is no x.py"
    part = {
        "functionResponse": {"id": "call_34_0", "name": "read_file", "response": {"error": error}}
    }
    record = qwen_record("tool_result", "", message={"role": "user", "parts": [part]})
    [found] = runtime("qwen").records.events(record, 0, RESULTS)
    assert (found.has_failed, found.content) == (True, "File not found: /srv/x.py")
