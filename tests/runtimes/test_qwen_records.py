"""What is Qwen Code's own: records of older versions, which do not say where a text comes from, and injected text."""

from __future__ import annotations

import json

import pytest
from records import qwen_record

from session_memory.runtimes import runtime
from session_memory.runtimes.records import INJECTED, MESSAGES, Injected

RECORDS = runtime("qwen").records


@pytest.mark.parametrize(
    ("subtype", "is_typed"),
    [("", True), ("mid_turn_user_message", True), ("slash_command", False), ("goal_runtime", False)],
)
def test_what_an_older_version_writes_as_a_user_s_is_told_apart_by_its_kind(subtype: str, is_typed: bool) -> None:
    record = qwen_record("user", "go on", **({"subtype": subtype} if subtype else {}))
    del record["provenance"]
    assert RECORDS.prefilter(json.dumps(record, separators=(",", ":")).encode(), MESSAGES)
    assert (RECORDS.entry(record, 0) is not None) == is_typed


def test_an_injected_text_is_what_the_hook_gave() -> None:
    record = qwen_record("user", "go on", systemPayload={"hookContext": '- "mend it" -&gt; edited &lt;2 files'})
    assert RECORDS.events(record, 0, INJECTED) == [Injected(('- "mend it" -> edited <2 files',))]
