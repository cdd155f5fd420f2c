"""The removed and added texts of an edit, from each runtime's record."""

from __future__ import annotations

import json

import pytest

from session_memory.sessions.runtimes.records import CallResult
from session_memory.sessions.runtimes.table import runtime
from session_memory.sessions.transcripts.edits import (
    diff_edits,
    edited_files,
    part_id,
    part_number,
    patch_edits,
)
from session_memory.sessions.transcripts.entries import NOTHING

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
    return {
        "message": {"content": [{"type": "tool_use", "id": "c1", "name": tool, key: arguments}]}
    }


EDITS = [
    ("agent-sdk", blocks("Edit", "input", {"old_string": "a", "new_string": "b"})),
    (
        "agent-sdk",
        blocks("MultiEdit", "input", {"edits": [{"old_string": "a", "new_string": "b"}]}),
    ),
    ("pi", blocks("edit", "arguments", {"oldText": "a", "newText": "b"})),
    (
        "qwen",
        {
            "message": {
                "parts": [
                    {"functionCall": {"id": "c1", "args": {"old_string": "a", "new_string": "b"}}}
                ]
            }
        },
    ),
    (
        "copilot",
        {
            "data": {
                "toolRequests": [
                    {"toolCallId": "c1", "arguments": {"old_str": "a", "new_str": "b"}}
                ]
            }
        },
    ),
    (
        "opencode",
        {"data": {"callID": "c1", "state": {"input": {"oldString": "a", "newString": "b"}}}},
    ),
    ("codex", {"payload": {"call_id": "c1", "input": "*** Update File: x\n@@\n-a\n+b"}}),
    (
        "codex",
        {
            "payload": {
                "call_id": "c1",
                "arguments": json.dumps({"command": "*** Update File: x\n@@\n-a\n+b"}),
            }
        },
    ),
]
ODD = ({}, {"message": None}, {"payload": 1}, {"data": []}, {"message": {"content": [1]}})


def test_an_edit_is_a_pair_of_texts_and_what_is_none_has_none() -> None:
    for format, record in EDITS:
        edits = runtime(format).records.edits
        assert edits(record, "c1") == [("a", "b")], format
        assert edits(record, "c2") == []
        assert [odd for odd in ODD if edits(odd, "c1") != []] == []


PATCHES = [
    ("codex", {"payload": {"call_id": "c1", "input": PATCH}}),
    ("droid", blocks("ApplyPatch", "input", {"input": PATCH})),
    (
        "opencode",
        {
            "data": {
                "callID": "c1",
                "tool": "apply_patch",
                "state": {"input": {"patchText": PATCH}},
            }
        },
    ),
    (
        "copilot",
        {
            "data": {
                "toolRequests": [
                    {"toolCallId": "c1", "name": "apply_patch", "arguments": {"input": PATCH}}
                ]
            }
        },
    ),
    (
        "atif",
        {
            "tool_calls": [
                {"tool_call_id": "c0", "arguments": {"path": "z", "content": "other"}},
                {"tool_call_id": "c1", "arguments": {"input": PATCH}},
            ]
        },
    ),
    (
        "omp",
        {
            "message": {
                "content": [
                    {"type": "toolCall", "id": "c1", "name": "edit", "arguments": {"input": PATCH}}
                ]
            }
        },
    ),
]


@pytest.mark.parametrize("own_id", ["c1", "functions.edit:0"])
def test_the_parts_of_a_call_are_found_also_by_an_id_with_a_colon(own_id: str) -> None:
    """Kimi K2 numbers its calls: `functions.edit:0`."""
    for format, record in EDITS:
        named = json.loads(json.dumps(record).replace("c1", own_id))
        assert runtime(format).records.edits(named, own_id) == [("a", "b")], format
    for format, record in PATCHES:
        named = json.loads(json.dumps(record).replace("c1", own_id))
        found = [runtime(format).records.edits(named, part_id(own_id, at)) for at in range(3)]
        assert found == [patch_edits(PATCH, at) for at in range(3)], format
        assert runtime(format).records.edits(named, "functions.edit:1") == [], format


def test_a_part_of_a_call_is_not_taken_for_one_of_another_call() -> None:
    assert [part_number(part_id("c", at), "c") for at in range(12)] == [*range(12)]
    assert part_number("functions.edit:0", "functions.edit:0") == 0
    assert part_number("functions.edit:0:2", "functions.edit:0") == 2
    for call_id, own_id in (("cd:1", "c"), ("c:", "c"), ("c:x", "c"), ("c", "c:1"), (":1", "")):
        assert part_number(call_id, own_id) is None


def test_calls_numbered_by_their_list_have_only_their_own_texts() -> None:
    calls = [
        {"tool_call_id": id, "arguments": {"path": id, "content": f"text of {id}"}}
        for id in ("c1", "c1:1")
    ]
    edits = runtime("atif").records.edits
    assert edits({"tool_calls": calls}, "c1:1") == [("", "text of c1:1")]


def test_a_file_that_is_written_whole_has_nothing_before() -> None:
    record = blocks("Write", "input", {"file_path": "x", "content": "all of it"})
    assert runtime("agent-sdk").records.edits(record, "c1") == [("", "all of it")]


def test_a_patch_has_the_edits_of_each_of_its_files() -> None:
    assert patch_edits(PATCH, 0) == [("keep\nold", "keep\nnew"), ("last", "")]
    assert patch_edits(PATCH, 1) == [("", "first\nsecond")]
    assert patch_edits(PATCH, 2) == []


def test_a_unified_diff_has_an_edit_for_each_hunk() -> None:
    assert diff_edits("--- a\n+++ b\n@@ -1 +1 @@\n-x\n+y\n\\ No newline at end of file") == [
        ("x", "y")
    ]


HUNKS = [
    (
        "agent-sdk",
        {
            "message": {"content": [{"type": "tool_result", "tool_use_id": "c1"}]},
            "toolUseResult": {
                "structuredPatch": [{"oldStart": 7, "newStart": 9, "lines": [" k", "-a", "+b"]}]
            },
        },
    ),
    (
        "codex",
        {
            "payload": {
                "type": "patch_apply_end",
                "call_id": "c1",
                "changes": {
                    "x": {"type": "update", "unified_diff": "@@ -7,2 +9,2 @@\n k\n-a\n+b\n"}
                },
            }
        },
    ),
]
RESULT = {"message": {"content": [{"tool_use_id": "c1"}]}}
NO_HUNKS = (
    {**RESULT, "toolUseResult": "text"},
    {
        **RESULT,
        "toolUseResult": {
            "structuredPatch": [1, {"lines": [1]}, {"lines": ["+a"], "oldStart": "x"}]
        },
    },
    {"payload": {"call_id": "c1", "changes": {"x": {"unified_diff": "@@ nothing\n+a"}, "y": 1}}},
)


def test_a_record_says_where_in_the_file_an_edit_was_if_that_can_be_read() -> None:
    for format, record in HUNKS:
        hunks = runtime(format).records.hunks
        assert hunks(record, "c1") == [("k\na", "k\nb", 7, 9)]
        assert hunks(record, "c2") == []
        assert [odd for odd in NO_HUNKS if hunks(odd, "c1") != []] == []


@pytest.mark.parametrize(
    ("command", "files", "files_if_it_failed"),
    [
        ("sed -i 's/a/b/' a.py && git commit -qam Change", ["/srv/a.py"], ["/srv/a.py"]),
        ("sed -i 's/a/b/' a.py", ["/srv/a.py"], []),
        ("echo more >> README.md; npm test", ["/srv/README.md"], ["/srv/README.md"]),
        ("cd lib && cat > b.py <<'END'\nit's\nEND", ["/srv/lib/b.py"], []),
        ("npm test > /tmp/log 2>&1", [], []),
        ("test -f a.py && sed -i 's/a/b/' a.py", [], []),
        ("python3 rewrite.py a.py", [], []),
    ],
)
def test_a_command_edits_the_files_that_it_shows_and_a_failed_one_what_others_follow(
    command: str, files: list[str], files_if_it_failed: list[str]
) -> None:
    assert edited_files("command", command, "/srv", "ok") == files
    assert edited_files("command", command, "/srv", "error") == files_if_it_failed
    assert edited_files("command", command, "/srv", NOTHING) == []


def test_an_editing_tool_edits_its_file_unless_it_failed() -> None:
    assert edited_files("edit", "lib/../a.py", "/srv") == ["/srv/a.py"]
    assert [edited_files("edit", "a.py", "/srv", outcome) for outcome in ("error", NOTHING)] == [
        [],
        [],
    ]
    assert edited_files("read", "a.py", "/srv") == []


def test_a_part_of_a_call_has_its_own_result_or_else_that_of_the_call() -> None:
    results = [CallResult("c1", True, "x"), CallResult("c1:1", False, "y")]
    assert CallResult.of_call("c1", results) is results[0]
    assert CallResult.of_call("c1:1", results) is results[1]
    assert CallResult.of_call("c1:2", results) is results[0]
    assert CallResult.of_call("c1:1", results[:1]) is results[0]
    assert CallResult.of_call("c2", results) is CallResult.of_call("c12", results) is None
