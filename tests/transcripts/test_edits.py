"""What an edit took out and put in, by the record of each runtime that made it."""

from __future__ import annotations

import json

import pytest

from session_memory.runtimes import runtime
from session_memory.transcripts.edits import diff_edits, patch_edits

PATCH = """*** Begin Patch
*** Update File: /srv/a.py
@@ def f():
 keep
-old
+new
@@
-last
*** Add File: /srv/b.py
+first
+second
*** End Patch"""


def blocks(tool: str, key: str, arguments: dict[str, object]) -> dict[str, object]:
    return {"message": {"content": [{"type": "tool_use", "id": "c1", "name": tool, key: arguments}]}}


@pytest.mark.parametrize(
    ("format", "record"),
    [
        ("agent-sdk", blocks("Edit", "input", {"old_string": "a", "new_string": "b"})),
        ("agent-sdk", blocks("MultiEdit", "input", {"edits": [{"old_string": "a", "new_string": "b"}]})),
        ("pi", blocks("edit", "arguments", {"oldText": "a", "newText": "b"})),
        (
            "qwen",
            {"message": {"parts": [{"functionCall": {"id": "c1", "args": {"old_string": "a", "new_string": "b"}}}]}},
        ),
        ("copilot", {"data": {"toolRequests": [{"toolCallId": "c1", "arguments": {"old_str": "a", "new_str": "b"}}]}}),
        ("opencode", {"data": {"callID": "c1", "state": {"input": {"oldString": "a", "newString": "b"}}}}),
        ("codex", {"payload": {"call_id": "c1", "input": "*** Update File: x\n@@\n-a\n+b"}}),
        (
            "codex",
            {"payload": {"call_id": "c1", "arguments": json.dumps({"command": "*** Update File: x\n@@\n-a\n+b"})}},
        ),
    ],
)
def test_an_edit_is_a_pair_of_texts(format: str, record: dict[str, object]) -> None:
    assert runtime(format).records.edits(record, "c1") == [("a", "b")]
    assert runtime(format).records.edits(record, "c2") == []


@pytest.mark.parametrize("format", ["agent-sdk", "pi", "qwen", "copilot", "opencode", "codex"])
def test_what_is_no_edit_has_none(format: str) -> None:
    for odd in ({}, {"message": None}, {"payload": 1}, {"data": []}, {"message": {"content": [1]}}):
        assert runtime(format).records.edits(odd, "c1") == []


def test_a_file_that_is_written_whole_has_nothing_before() -> None:
    record = blocks("Write", "input", {"file_path": "x", "content": "all of it"})
    assert runtime("agent-sdk").records.edits(record, "c1") == [("", "all of it")]


def test_a_patch_has_the_edits_of_each_of_its_files() -> None:
    assert patch_edits(PATCH, 0) == [("keep\nold", "keep\nnew"), ("last", "")]
    assert patch_edits(PATCH, 1) == [("", "first\nsecond")]
    assert patch_edits(PATCH, 2) == []


def test_a_unified_diff_has_an_edit_for_each_hunk() -> None:
    assert diff_edits("--- a\n+++ b\n@@ -1 +1 @@\n-x\n+y\n\\ No newline at end of file") == [("x", "y")]
