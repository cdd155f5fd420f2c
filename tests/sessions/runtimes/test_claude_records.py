"""Records of Claude Code become entries, or are left out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from records import assistant, line, record, tool_result, user

from session_memory.session_monitor import parse_jsonl_entries
from session_memory.sessions.runtimes.claude import RUNTIME as CLAUDE
from session_memory.sessions.runtimes.claude import encode_cwd
from session_memory.sessions.runtimes.records import MESSAGES

SHARED = Path(__file__).resolve().parents[4] / "shared"
REAL_FILES = sorted(
    [
        *SHARED.glob("transcripts/claude/**/*.jsonl"),
        *SHARED.glob("transcripts/claude/**/.*.jsonl"),
        *SHARED.glob("captures/claude/*.jsonl"),
    ]
)


def entries(*records):
    return parse_jsonl_entries([line(one) for one in records], "agent-sdk")


def texts(*records):
    return [entry.text for entry in entries(*records)]


def test_user_text_is_read_as_a_string_and_as_blocks_in_which_an_image_shows_as_a_mark():
    blocks = [{"type": "text", "text": "two"}, {"type": "text", "text": "three"}]
    assert texts(user("one"), user(blocks)) == ["one", "two\n\nthree"]
    assert texts(user([{"type": "image", "source": {}}, blocks[0]])) == ["[image]\n\ntwo"]


def test_an_assistant_record_has_text_and_tools_with_the_argument_that_tells_most():
    used = [
        ("Edit", {"old_string": "a", "file_path": "/srv/agent/x.py"}),
        ("Bash", {"command": "ls", "description": "list"}),
        ("mcp__mail__send", {"count": 2, "to": "a@example.org"}),
    ]
    (entry,) = entries(assistant("Looking.", *used))
    assert (entry.role, entry.text) == ("assistant", "Looking.")
    assert [(tool.name, tool.argument, tool.kind) for tool in entry.tools] == [
        ("Edit", "/srv/agent/x.py", "edit"),
        ("Bash", "ls", "command"),
        ("mcp__mail__send", "a@example.org", "other"),
    ]


def test_an_entry_knows_time_ids_directory_and_byte_offset():
    first, second = user("one"), assistant("two", message_id="msg_7", at=1_700_000_000.25)
    entry = entries(first, second)[1]
    known = entry.timestamp, entry.id, entry.message_id, entry.cwd
    assert known == (1_700_000_000.25, second["uuid"], "msg_7", "/srv/agent")
    assert entry.offset == len(line(first))


UNSAID = [
    user("meta", isMeta=True),
    user("side", isSidechain=True),
    user("summary", isCompactSummary=True),
    tool_result("the file"),
    tool_result([{"type": "text", "text": "an agent's answer"}]),
    assistant({"type": "thinking", "thinking": "hm", "signature": "x"}),
    user("<command-name>/clear</command-name>\n<command-message>clear</command-message>"),
    user("<local-command-stdout>ok</local-command-stdout>"),
    user("<local-command-caveat>The command below was run directly</local-command-caveat>"),
    user("<bash-stdout>a b</bash-stdout><bash-stderr></bash-stderr>"),
    user("<task-notification>\n<task-id>1</task-id></task-notification>"),
    user("done", origin={"kind": "task-notification"}),
    user([{"type": "text", "text": "[Request interrupted by user]"}]),
    user("<user-prompt-submit-hook>injected</user-prompt-submit-hook>"),
    user("<system-reminder>injected</system-reminder>"),
    assistant("API Error: 529", isApiErrorMessage=True),
    assistant("No response requested.", message={"model": "<synthetic>"}),
    record(
        "attachment",
        attachment={"type": "hook_additional_context", "content": ["[Session Activity]"]},
    ),
    record(
        "attachment",
        attachment={
            "type": "queued_command",
            "prompt": "<task-notification>x</task-notification>",
            "commandMode": "prompt",
        },
    ),
    record(
        "attachment",
        attachment={"type": "queued_command", "prompt": "x", "commandMode": "task-notification"},
    ),
    record(
        "attachment",
        attachment={"type": "queued_command", "prompt": "x", "origin": {"kind": "coordinator"}},
    ),
    record("system", subtype="compact_boundary", content="Conversation compacted"),
    record(
        "progress",
        data={"message": {"type": "user", "message": {"role": "user", "content": "sub"}}},
    ),
    record(
        "api-request-blob",
        message={"role": "user", "content": [{"type": "text", "text": "repeated"}]},
    ),
    record("queue-operation", operation="enqueue", content="hello"),
    record("last-prompt", lastPrompt="hello"),
    {"type": "summary", "summary": "A title", "leafUuid": "x"},
]


def test_what_nobody_said_is_left_out():
    assert [left_out for left_out in UNSAID if texts(left_out) != []] == []


def test_a_prompt_typed_mid_turn_is_kept_though_it_has_no_user_record():
    queued = {
        "type": "queued_command",
        "prompt": "also do that",
        "commandMode": "prompt",
        "origin": {"kind": "human"},
        "humanTurn": True,
    }
    (entry,) = entries(record("attachment", attachment=queued))
    assert (entry.role, entry.text) == ("user", "also do that")


def test_an_editor_s_note_in_a_prompt_is_left_out_and_the_prompt_kept():
    blocks = [
        {"type": "text", "text": "<ide_opened_file>x.py</ide_opened_file>"},
        {"type": "text", "text": "fix it"},
    ]
    assert texts(user(blocks)) == ["fix it"]


def test_records_glued_together_on_one_line_are_all_read():
    glued = line(user("one")).rstrip() + line(user("two"))
    assert [entry.text for entry in parse_jsonl_entries([glued], "agent-sdk")] == ["one", "two"]


def test_unreadable_records_are_skipped_and_counted():
    found = parse_jsonl_entries(
        [
            b"{broken\n",
            line(user("one")),
            b"[1]\n",
            b"\n",
            line(user("two")).rstrip() + b'{"type":"us',
        ],
        "agent-sdk",
    )
    assert ([entry.text for entry in found], found.unreadable) == (["one", "two"], 3)


def test_a_lone_surrogate_and_invalid_utf8_do_not_stop_the_reading():
    content = line(user("half \ud83d")) + line(user("byte X")).replace(b"X", b"\xff")
    assert len(parse_jsonl_entries(content.splitlines(keepends=True), "agent-sdk")) == 2


def test_deeply_nested_json_counts_as_unreadable():
    assert parse_jsonl_entries([b"[" * 200_000], "agent-sdk").unreadable == 1


def test_titles_rank_from_the_user_s_own_to_the_generated():
    titles = [
        {"type": "summary", "summary": "c"},
        {"type": "ai-title", "aiTitle": "b"},
        {"type": "custom-title", "customTitle": "a"},
    ]
    found = [title for one in titles for title in CLAUDE.records.events(one, 0, MESSAGES)]
    assert [title.text for title in sorted(found, key=lambda title: -title.rank)] == ["a", "b", "c"]


def test_the_line_filter_keeps_a_text_beside_a_tool_result():
    mixed = user(
        [
            {"tool_use_id": "t", "type": "tool_result", "content": "x"},
            {"type": "text", "text": "and this"},
        ]
    )
    assert CLAUDE.records.prefilter(line(mixed), MESSAGES)
    assert texts(mixed) == ["and this"]


def test_a_directory_is_encoded_as_claude_code_does():
    encoded = {
        "/Users/foo/home": "-Users-foo-home",
        "/srv/my_app.v2": "-srv-my-app-v2",
        "/srv/café": "-srv-caf-",
        "/srv/😀": "-srv---",
        "/srv/" + "a" * 300: "-srv-" + "a" * 195 + "-89htrt",
    }
    assert {directory: encode_cwd(directory) for directory in encoded} == encoded


@pytest.mark.skipif(not REAL_FILES, reason="no real transcripts beside the repository")
def test_an_independent_count_of_the_prompts_in_real_transcripts_agrees():
    """Counts typed prompts by other means: string contents that no wrapper begins, outside meta,
    side and summary; commands with words, and those that the user ran; answers in dialogs, and
    reasons for a refusal."""
    for path in REAL_FILES:
        expected = 0
        for content in path.read_bytes().split(b"\n"):
            value = json.loads(content) if content.strip() else {}
            if value.get("type") == "user" and not any(
                value.get(k) for k in ("isMeta", "isSidechain", "isCompactSummary")
            ):
                said = value["message"]["content"]
                blocks = (
                    [said]
                    if isinstance(said, str)
                    else [b.get("text", "[x]") for b in said if b["type"] != "tool_result"]
                )
                expected += any(
                    b.strip() and not b.lstrip().startswith(("<", "[Request", "Caveat"))
                    for b in blocks
                )
                text = said if isinstance(said, str) else ""
                has_words = (
                    "<command-args>" in text
                    and "<command-args></" not in text
                    and "/model<" not in text
                )
                expected += has_words or text.startswith("<bash-input>")
                expected += "answers" in value.get("toolUseResult", "")
                failed = [b for b in said if b.get("is_error")] if not text else []
                expected += any("the user said:" in str(b["content"]) for b in failed)
            attachment = value.get("attachment", {})
            expected += attachment.get("type") == "queued_command" and attachment.get("origin") == {
                "kind": "human"
            }
        found = parse_jsonl_entries(path.read_bytes().splitlines(keepends=True), "agent-sdk")
        assert sum(entry.role == "user" for entry in found) == expected, path.name
