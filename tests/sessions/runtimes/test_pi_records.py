"""Records of Pi's session files become entries, or are left out."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest
from records import PiSession, spaced

from session_memory.awareness.activity.session_edits import SessionCalls
from session_memory.session_monitor import parse_jsonl_entries, read_session_log
from session_memory.sessions.runtimes.pi import encode_cwd
from session_memory.sessions.runtimes.table import runtime
from session_memory.sessions.transcripts.entries import Session
from session_memory.sessions.transcripts.gate import describe
from session_memory.sessions.transcripts.lines import first_line
from session_memory.sessions.transcripts.log import last_entries
from session_memory.sessions.transcripts.reader import TranscriptReader

SHARED = Path(__file__).resolve().parents[4] / "shared"
REAL_FILES = sorted(
    [*SHARED.glob("transcripts/pi/**/*.jsonl"), *SHARED.glob("captures/pi/**/*.jsonl")]
)

PI = runtime("pi")


def entries(session):
    return parse_jsonl_entries(session.lines, "pi")


def texts(session):
    return [entry.text for entry in entries(session)]


@pytest.fixture(params=[1, 2, 3], ids=["version 1", "version 2", "version 3"])
def session(request):
    return PiSession(version=request.param)


class TestEntries:
    def test_user_text_is_read_as_a_string_and_as_blocks(self, session):
        session.user("one")
        session.user([{"type": "text", "text": "two"}, {"type": "text", "text": "three"}])
        assert texts(session) == ["one", "two\n\nthree"]

    def test_an_image_in_a_prompt_shows_as_a_mark(self, session):
        session.user(
            [
                {"type": "text", "text": "what is this?"},
                {"type": "image", "data": "", "mimeType": "image/png"},
            ]
        )
        assert texts(session) == ["what is this?\n\n[image]"]

    def test_an_assistant_message_has_text_and_tools_with_their_primary_argument(self, session):
        session.assistant(
            "Looking.",
            ("edit", {"oldText": "a", "path": "x.py"}),
            ("bash", {"command": "ls", "timeout": 3}),
            ("mail", {"count": 2, "to": "a@example.org"}),
        )
        (entry,) = entries(session)
        assert (entry.role, entry.text) == ("assistant", "Looking.")
        assert [(tool.name, tool.argument, tool.kind) for tool in entry.tools] == [
            ("edit", "x.py", "edit"),
            ("bash", "ls", "command"),
            ("mail", "a@example.org", "other"),
        ]

    def test_a_command_that_the_user_ran_is_a_command_run(self, session):
        session.bash("make test")
        (entry,) = entries(session)
        assert (entry.role, entry.text) == ("user", "")
        assert [(tool.name, tool.argument, tool.kind) for tool in entry.tools] == [
            ("bash", "make test", "command")
        ]

    def test_a_command_that_the_user_kept_from_the_agent_is_left_out(self, session):
        session.bash("cat secret", excludeFromContext=True)
        assert entries(session) == []

    def test_what_an_aborted_attempt_had_said_is_kept(self, session):
        session.assistant("Half of", stop="aborted")
        assert texts(session) == ["Half of"]

    def test_an_entry_knows_time_directory_and_byte_offset(self, session):
        session.user("one")
        session.assistant("two", at=1_700_000_000.25)
        entry = entries(session)[1]
        assert (entry.timestamp, entry.cwd) == (1_700_000_000.25, "/srv/agent")
        assert entry.offset == sum(len(line) for line in session.lines[:2])

    def test_an_entry_has_the_id_of_its_record_from_version_2_on(self):
        session = PiSession()
        entry_id = session.user("one")
        assert [entry.id for entry in entries(session)] == [entry_id]
        old = PiSession(version=1)
        old.user("one")
        assert [entry.id for entry in entries(old)] == [""]

    AS_TYPED = [
        (
            '<skill name="sessions" location="/s/SKILL.md">\nDo.\n</skill>\n\nlist them',
            "/skill:sessions list them",
        ),
        ('<skill name="sessions" location="/s/SKILL.md">\nDo.\n</skill>', "/skill:sessions"),
        (
            '<file name="/a.md">\nlong\n</file>\n<file name="/b.md"></file>\ncompare',
            "@/a.md @/b.md compare",
        ),
        ('<file name="/a.md"> is how it begins', '<file name="/a.md"> is how it begins'),
        ("<b>bold</b>", "<b>bold</b>"),
    ]

    def test_a_skill_or_file_that_pi_put_into_a_prompt_shows_as_it_was_typed(self, session):
        for stored, _ in self.AS_TYPED:
            session.user([{"type": "text", "text": stored}])
        assert texts(session) == [typed for _, typed in self.AS_TYPED]


class TestLeftOut:
    UNSAID = [
        (
            "message",
            {"message": {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}]}},
        ),
        ("message", {"message": {"role": "assistant", "content": [], "stopReason": "aborted"}}),
        (
            "message",
            {
                "message": {
                    "role": "assistant",
                    "content": [{"type": "text", "text": "x"}],
                    "stopReason": "error",
                }
            },
        ),
        (
            "message",
            {"message": {"role": "toolResult", "content": [{"type": "text", "text": "the file"}]}},
        ),
        ("message", {"message": {"role": "system", "content": "You are", "sections": {}}}),
        ("message", {"message": {"role": "hookMessage", "content": "injected"}}),
        ("message", {"message": {"role": "custom", "content": "injected"}}),
        ("message", {"message": {"role": "user", "content": None}}),
        (
            "message",
            {"message": {"role": "bashExecution", "command": "x", "excludeFromContext": True}},
        ),
        ("message", {"message": None}),
        (
            "custom_message",
            {"customType": "session-update", "content": "[Session Activity]", "display": True},
        ),
        ("custom", {"customType": "state", "data": {"message": {"role": "user", "content": "x"}}}),
        ("compaction", {"summary": "a summary", "firstKeptEntryId": "x"}),
        ("branch_summary", {"summary": "a summary", "fromId": "x"}),
        ("model_change", {"provider": "p", "modelId": "m"}),
        ("label", {"targetId": "x", "label": "checkpoint"}),
        ("user", {"message": {"role": "user", "content": "of another runtime"}}),
    ]

    def test_what_nobody_said(self, session):
        for kind, fields in self.UNSAID:
            session.add(kind, **fields)
            assert entries(session) == [], (kind, fields)

    def test_an_entry_that_an_edit_took_out_of_the_context(self):
        session = PiSession()
        target = session.user("forget this")
        session.user("keep this")
        session.edit(target)
        assert texts(session) == ["keep this"]

    def test_but_not_one_whose_last_edit_only_replaces_what_the_model_sees(self):
        session = PiSession()
        target = session.user("long")
        session.edit(target)
        session.edit(target, {"content": "short"})
        assert texts(session) == ["long"]


class TestBranches:
    """The live branch is the one that ends at the last record."""

    def test_a_branch_that_was_left_is_left_out(self):
        session = PiSession()
        session.user("one")
        fork = session.assistant("two")
        session.exchange("wrong way", "I see")
        session.tool_result()
        session.back_to(fork)
        session.exchange("right way", "good")
        assert texts(session) == ["one", "two", "right way", "good"]

    def test_a_branch_that_was_returned_to_counts_again(self):
        session = PiSession()
        first = session.exchange("one", "two")
        left = session.exchange("aside", "yes")
        session.back_to(first)
        session.exchange("on", "and on")
        session.back_to(left)
        session.add("label", targetId=left, label="here")
        assert texts(session) == ["one", "two", "aside", "yes"]

    def test_a_session_begun_anew_leaves_all_before_it(self):
        session = PiSession()
        session.exchange("one", "two")
        session.back_to(None)
        session.exchange("three", "four")
        assert texts(session) == ["three", "four"]

    def test_an_edit_on_a_branch_that_was_left_takes_nothing_out(self):
        session = PiSession()
        target = session.user("one")
        session.edit(target)
        session.back_to(target)
        session.user("two")
        assert texts(session) == ["one", "two"]

    def test_a_title_counts_wherever_it_was_given(self, tmp_path):
        session = PiSession()
        first = session.exchange("one", "two")
        session.name("My title")
        session.back_to(first)
        session.exchange("three", "four")
        assert describe(PI, str(session.write(tmp_path))).title == "My title"

    def test_one_pass_from_the_beginning_finds_the_same(self, tmp_path):
        """As archives are made."""
        session = PiSession()
        first = session.exchange("one", "two")
        session.name("My title")
        session.exchange("wrong way", "I see")
        session.back_to(first)
        session.exchange("right way", "good")
        descriptor = os.open(session.write(tmp_path), os.O_RDONLY)
        try:
            reading = TranscriptReader(PI, first_line(descriptor))
            assert list(reading.conversation(descriptor)) == entries(session)
            assert reading.title == (3, "My title")
        finally:
            os.close(descriptor)

    def test_a_file_that_another_program_wrote_is_followed_as_well(self):
        session = PiSession(version=2)
        first = session.exchange("one", "two")
        removed = session.user("forget this")
        session.back_to(first)
        session.user("three")
        session.back_to(session.user("four"))
        session.edit(removed)
        lines = [spaced(line) for line in session.lines]
        assert [entry.text for entry in parse_jsonl_entries(lines, "pi")] == [
            "one",
            "two",
            "three",
            "four",
        ]

    def test_records_whose_chain_cannot_be_followed_are_all_kept(self):
        """Version 1 has no ids; a fork of such a file has a new header, and ids without parents
        from there on."""
        session = PiSession(version=1)
        session.exchange("one", "two")
        session.records[0]["version"] = 3
        session.records.append(
            {"type": "message", "id": "aaaa0001", "message": {"role": "user", "content": "three"}}
        )
        assert texts(session) == ["one", "two", "three"]

    def test_an_unreadable_record_at_the_end_does_not_hide_the_rest(self):
        session = PiSession()
        session.exchange("one", "two")
        found = parse_jsonl_entries([*session.lines, b'{"type":"message","id":"0000\n'], "pi")
        assert ([entry.text for entry in found], found.unreadable) == (["one", "two"], 1)

    def test_an_unreadable_record_in_the_middle_does_not_hide_what_is_before_it(self):
        session = PiSession()
        session.exchange("one", "two")
        session.user("torn")
        session.assistant("three")
        *before, torn, last = session.lines
        found = parse_jsonl_entries([*before, torn[:30] + b"\n", last], "pi")
        assert ([entry.text for entry in found], found.unreadable) == (["one", "two", "three"], 1)

    def test_a_branch_is_followed_through_records_that_are_glued_together(self):
        session = PiSession()
        first = session.exchange("one", "two")
        session.exchange("wrong way", "I see")
        session.back_to(first)
        session.exchange("three", "four")
        session.user("five")
        *before, three, four, five = session.lines
        found = parse_jsonl_entries([*before, three.rstrip() + four, five], "pi")
        assert [entry.text for entry in found] == ["one", "two", "three", "four", "five"]

    def test_of_a_file_s_end_what_can_be_told_there_is_told(self, tmp_path):
        """The last 100 KB, in windows, hold a branch that was left and nothing of where it
        began."""
        session = PiSession()
        fork = session.exchange("first", "answer")
        session.tool_result("x" * 200_000)
        session.exchange("wrong way", "I see" + "x" * 40_000)
        session.back_to(fork)
        session.exchange("right way", "good")
        path = str(session.write(tmp_path))
        assert [entry.text for entry in last_entries(PI, path, 2, None)[0]] == ["right way", "good"]
        assert [entry.text for entry in last_entries(PI, path, 9, None)[0]] == [
            "first",
            "answer",
            "right way",
            "good",
        ]

    def test_what_a_fork_copied_is_marked_as_a_copy(self):
        parent = PiSession()
        parent.exchange("one", "two", at=1_700_000_000)
        fork = parent.fork(at=1_700_000_100)
        fork.exchange("three", "four", at=1_700_000_200)
        assert [entry.is_copy for entry in entries(fork)] == [True, True, False, False]
        assert [entry.is_copy for entry in entries(parent)] == [False, False]


def test_exec_is_a_command():
    session = PiSession()
    session.assistant(("exec", {"command": "npm test"}))
    assert [(tool.kind, tool.argument) for entry in entries(session) for tool in entry.tools] == [
        ("command", "npm test")
    ]


def test_the_last_title_is_the_title_and_it_can_be_taken_away(tmp_path):
    session = PiSession()
    session.exchange("deploy it", "Done.")
    titles = []
    for name in ("Old", "New", ""):
        session.name(name)
        titles.append(describe(PI, str(session.write(tmp_path))).title)
    assert titles == ["Old", "New", "deploy it"]


def test_a_log_shows_edited_files_as_seen_from_the_session_s_directory(tmp_path):
    session = PiSession(cwd="/srv/agent")
    session.assistant(("edit", {"path": "/srv/agent/home/MEMORY.md"}))
    assert "[edit home/MEMORY.md]" in read_session_log(
        jsonl_path=session.write(tmp_path), format="pi"
    )


def test_a_directory_is_encoded_as_pi_does():
    encoded = {
        "/srv/proj": "--srv-proj--",
        "/srv/my_app.v2": "--srv-my_app.v2--",
        "/a:b/é": "--a-b-é--",
    }
    assert {directory: encode_cwd(directory) for directory in encoded} == encoded


@pytest.mark.skipif(not REAL_FILES, reason="no real transcripts beside the repository")
def test_an_independent_walk_through_a_real_session_file_agrees():
    """By other means: whole records, parents looked up in a table, from the last record to the
    root."""
    for path in REAL_FILES:
        found = parse_jsonl_entries(path.read_bytes().splitlines(keepends=True), "pi")
        assert [entry.role for entry in found] == roles_in(
            _records(path.read_text(errors="replace"))
        ), path.name


def roles_in(records):
    tree = [record for record in records if record["type"] != "session"]
    by_id = {record["id"]: record for record in tree if "id" in record}
    live, record = [], tree[-1] if tree else None
    while by_id and record:
        live.insert(0, record)
        record = by_id.get(record["parentId"])
    removed = {record["targetId"] for record in live if record["type"] == "context_edit"}
    said = []
    for record in live or tree:
        message = record["message"] if record["type"] == "message" else {}
        content = message.get("content", "")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        kinds = {b["type"] for b in blocks if b.get("text", "x").strip()} - {"thinking"}
        is_said = (
            message.get("role") in ("user", "assistant")
            and message.get("stopReason") != "error"
            and kinds
        )
        if (is_said or message.get("role") == "bashExecution") and record.get("id") not in removed:
            said.append(message["role"].replace("bashExecution", "user"))
    return said


def _records(content):
    """All records, also where two stand glued together on a line."""
    records = []
    for line in content.split("\n"):
        at = 0
        while at < len(line):
            try:
                record, at = json.JSONDecoder(strict=False).raw_decode(line, at)
            except ValueError:
                break
            records.append(record)
    return records


def nested(form: str, session: PiSession) -> None:
    """Adds the call of codemode whose script edits a file, runs two commands and fails to write
    another."""
    calls = [
        ("edit", {"path": "cm.txt", "oldText": "a", "newText": "a line of the script"}, "ok"),
        ("bash", {"command": "sed -i s/1/2/ more.txt"}, "ok"),
        ("bash", {"command": "sed -i s/1/2/ none.txt"}, "error"),
        ("write", {"path": "refused.txt", "content": "no"}, "error"),
    ]
    session.user("Go on")
    session.assistant(("codemode", {"code": "await tools.edit()"}), at=time.time() - 5)
    call_id = session.records[-1]["message"]["content"][0]["id"]
    listed = []
    for number, (name, arguments, status) in enumerate(calls, 1):
        given = (
            {"arguments": arguments} if form == "nestedCalls" else {"args": json.dumps(arguments)}
        )
        failed = (
            {"error": "Command exited with code 1" if name == "bash" else "refused"}
            if status == "error"
            else {}
        )
        listed.append(
            {
                "id": f"{call_id}/{number}",
                "name": name,
                "status": status,
                "durationMs": 3,
                **given,
                **failed,
            }
        )
    kept = (
        {"nestedCalls": {"calls": listed, "complete": True}}
        if form == "nestedCalls"
        else {"details": {"calls": listed}}
    )
    done = [{"type": "text", "text": "Script completed"}]
    session.message(
        "toolResult", toolCallId=call_id, toolName="codemode", content=done, isError=False, **kept
    )


@pytest.mark.parametrize("form", ["nestedCalls", "details"])
def test_what_a_script_of_codemode_called_counts_as_called(form, tmp_path):
    session = PiSession(cwd="/srv/agent")
    nested(form, session)
    path = session.write(tmp_path)
    found, _ = last_entries(PI, str(path), 10, None)
    [entry] = [one for one in found if any(tool.name == "edit" for tool in one.tools)]
    assert [(tool.name, tool.kind, tool.argument) for tool in entry.tools] == [
        ("edit", "edit", "cm.txt"),
        ("bash", "command", "sed -i s/1/2/ more.txt"),
        ("bash", "command", "sed -i s/1/2/ none.txt"),
        ("write", "edit", "refused.txt"),
    ]
    record = json.loads(path.read_bytes().splitlines()[-1])
    assert PI.records.edits(record, entry.tools[0].call_id) == [("a", "a line of the script")]
    edits = SessionCalls(Session(session.id, str(path)), PI, found).edits
    assert [one.path for one in edits] == ["/srv/agent/cm.txt", "/srv/agent/more.txt"]
    assert edits[0].began < edits[0].ended
