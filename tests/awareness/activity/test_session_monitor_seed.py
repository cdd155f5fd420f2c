"""The cases of the seed that names session_monitor's functions, with the seed's expectations.

Two are different on purpose: `ran 1 command` is singular, and the log has a speaker and a time on a
line of their own."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest
from records import append, assistant, exchange, line, stamp, user, write

from session_memory.session_monitor import (
    Entry,
    ToolUse,
    archive_session,
    encode_cwd,
    get_session_updates,
    parse_jsonl_entries,
    read_session_log,
    resolve_agent_sdk_jsonl,
    resolve_pi_jsonl,
    summarize_entries,
)


def claude(role: str, *blocks: object) -> dict[str, object]:
    """A record as the seed shows it: nothing but the type, the message and the time."""
    content = [
        {"type": "text", "text": block} if isinstance(block, str) else block for block in blocks
    ]
    return {
        "type": role,
        "message": {"role": role, "content": content},
        "timestamp": stamp(time.time()),
    }


def pi(role: str, *blocks: object) -> dict[str, object]:
    return {**claude(role, *blocks), "type": "message"}


def call(name: str, **arguments: str) -> dict[str, object]:
    return {"type": "tool_use", "name": name, "input": arguments}


def pi_call(name: str, **arguments: str) -> dict[str, object]:
    return {"type": "toolCall", "name": name, "arguments": arguments}


def parsed(*records: dict[str, object], format: str = "agent-sdk") -> list[Entry]:
    return parse_jsonl_entries([json.dumps(one, separators=(",", ":")) for one in records], format)


class Monitored:
    """Sessions in a directory of pointers, as `main` is told of them."""

    def __init__(self, root: Path) -> None:
        self.sessions_dir = root / "sessions"
        self.cursor_file = root / "session-cursors.json"
        self.sessions_dir.mkdir()

    def path(self, name: str) -> Path:
        return self.sessions_dir / f"{name}.jsonl"

    def session(self, name: str, *records: dict[str, object]) -> Path:
        (self.sessions_dir / f"{name}.json").write_text(json.dumps({"sessionId": f"{name}-id"}))
        return write(self.path(name), *records)

    def updates(self, current: str = "main") -> str | None:
        return get_session_updates(
            current_session=current,
            sessions_dir=self.sessions_dir,
            cursor_file=self.cursor_file,
            jsonl_resolver=self.path,
            format="agent-sdk",
        )


@pytest.fixture(autouse=True)
def _home(tmp_path, monkeypatch):
    (tmp_path / "person").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "person"))


@pytest.fixture
def monitored(tmp_path):
    return Monitored(tmp_path)


def test_the_first_call_looks_back_as_far_as_it_is_told(monitored):
    for hours, current in ((0.5, "main"), (3, "email")):
        monitored.session("discord", user("old", at=time.time() - 2 * 3600))
        told = get_session_updates(
            current_session=current,
            sessions_dir=monitored.sessions_dir,
            cursor_file=monitored.cursor_file,
            jsonl_resolver=monitored.path,
            format="agent-sdk",
            first_sight_hours=hours,
        )
        assert bool(told) == (hours == 3)
    for wrong in (-1, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="first_sight_hours is"):
            get_session_updates(
                current_session="main",
                sessions_dir=monitored.sessions_dir,
                cursor_file=monitored.cursor_file,
                jsonl_resolver=monitored.path,
                format="agent-sdk",
                first_sight_hours=wrong,
            )


class TestParsing:
    def test_claude_s_messages_and_calls_become_entries(self):
        question, answer = parsed(
            claude("user", "hello"), claude("assistant", "hi", call("Edit", file_path="/a/b.py"))
        )
        assert (question.role, question.text) == ("user", "hello")
        assert (answer.role, answer.text, answer.tools) == (
            "assistant",
            "hi",
            (ToolUse("Edit", "/a/b.py", "edit"),),
        )

    def test_pi_s_messages_and_calls_become_entries(self):
        question, answer = parsed(
            pi("user", "hello"), pi("assistant", "hi", pi_call("exec", command="ls")), format="pi"
        )
        assert (question.role, question.text) == ("user", "hello")
        assert [(tool.name, tool.argument, tool.kind) for tool in answer.tools] == [
            ("exec", "ls", "command")
        ]

    def test_a_content_that_is_a_text_is_that_text(self):
        assert (
            parsed({"type": "user", "message": {"role": "user", "content": "hello"}})[0].text
            == "hello"
        )

    def test_thinking_results_progress_and_metadata_are_skipped(self):
        entries = parsed(
            {"type": "progress", "data": {}},
            {"type": "file-history-snapshot", "snapshot": {}},
            claude("user", {"type": "tool_result", "tool_use_id": "t", "content": "a result"}),
            claude("assistant", {"type": "thinking", "thinking": "a thought"}, "said"),
        )
        assert [entry.text for entry in entries] == ["said"]

    def test_lines_that_are_no_records_are_skipped(self):
        lines = ["", "{", "no JSON", json.dumps(claude("user", "hello"), separators=(",", ":"))]
        assert [entry.text for entry in parse_jsonl_entries(lines, "agent-sdk")] == ["hello"]

    def test_no_lines_are_no_entries(self):
        assert parse_jsonl_entries([], "agent-sdk") == []


class TestSummary:
    def test_nothing_has_no_summary(self):
        assert summarize_entries([]) is None

    def test_the_first_user_text_and_the_last_assistant_text_are_in_it(self):
        summary = summarize_entries(
            parsed(
                claude("user", "first"),
                claude("assistant", "one"),
                claude("user", "second"),
                claude("assistant", "two"),
            )
        )
        assert (summary.first_user_text, summary.last_assistant_text, summary.messages) == (
            "first",
            "two",
            4,
        )

    def test_calls_are_counted_by_category(self):
        summary = summarize_entries(
            parsed(
                claude(
                    "assistant",
                    call("Edit", file_path="/a"),
                    call("Write", file_path="/b"),
                    call("Read", file_path="/c"),
                    call("Grep", pattern="needle"),
                    call("Glob", pattern="*.py"),
                    call("Bash", command="ls"),
                    call("Bash", command="pwd"),
                )
            )
        )
        assert (len(summary.edited_files), summary.files_read, summary.commands) == (2, 3, 2)

    def test_the_searches_of_pi_are_reads_too(self):
        summary = summarize_entries(
            parsed(pi("assistant", pi_call("grep", pattern="needle")), format="pi")
        )
        assert summary.files_read == 1

    def test_the_span_of_time_is_in_it(self):
        summary = summarize_entries(
            [Entry("user", "a", timestamp=10.0), Entry("user", "b", timestamp=70.0)]
        )
        assert (summary.first_timestamp, summary.last_timestamp) == (10.0, 70.0)


class TestUpdates:
    def test_new_activity_is_one_line_for_each_session(self, monitored):
        edits = [call("Edit", file_path=f"/{number}") for number in range(2)]
        commands = [call("Bash", command=f"run {number}") for number in range(3)]
        monitored.session(
            "discord",
            claude("user", "how do I deploy this?"),
            claude("assistant", *edits, *commands),
        )
        told = monitored.updates()
        head, activity = told.splitlines()
        assert head == "[Session Activity]"
        assert activity.startswith(
            '- discord (just now, 2 messages): "how do I deploy this?" -> edited '
        )
        assert activity.endswith("ran 3 commands")

    def test_one_command_is_singular(self, monitored):
        monitored.session(
            "discord", claude("user", "try it"), claude("assistant", call("Bash", command="make"))
        )
        assert "ran 1 command" in monitored.updates()
        assert "1 commands" not in (monitored.updates("email") or "")

    def test_without_other_sessions_there_is_nothing(self, monitored):
        assert monitored.updates() is None

    def test_a_directory_of_sessions_that_does_not_exist_tells_nothing(self, monitored):
        monitored.sessions_dir.rmdir()
        assert monitored.updates() is None

    def test_the_current_session_is_left_out(self, monitored):
        monitored.session("main", claude("user", "hello"))
        assert monitored.updates() is None

    def test_what_was_told_is_not_told_again(self, monitored):
        path = monitored.session("discord", claude("user", "hello"))
        assert "hello" in monitored.updates()
        assert monitored.updates() is None
        append(path, claude("user", "more"))
        told = monitored.updates()
        assert "more" in told
        assert "hello" not in told

    def test_cursors_are_kept_for_each_pair(self, monitored):
        path = monitored.session("discord", claude("user", "hello"))
        monitored.updates()
        assert (
            json.loads(monitored.cursor_file.read_text())["main"]["discord"]["offset"]
            == path.stat().st_size
        )
        assert "hello" in monitored.updates("email")

    def test_a_transcript_that_does_not_exist_yet_is_skipped(self, monitored):
        monitored.session("email", claude("user", "hello"))
        monitored.session("discord").unlink()
        assert "hello" in monitored.updates()

    def test_an_offset_past_the_end_is_reset(self, monitored):
        monitored.session("discord", claude("user", "hello"))
        monitored.cursor_file.write_text('{"main": {"discord": {"offset": 99999}}}')
        assert "hello" in monitored.updates()

    @pytest.mark.parametrize(
        "content",
        [
            "{",
            "[]",
            "null",
            '{"main": 7}',
            '{"main": {"discord": 7}}',
            '{"main": {"discord": {"offset": "x"}}}',
            '{"main": {"discord": {"offset": -5}}}',
            '{"main": {"discord": {"offset": 1e400}}}',
            "\x00",
            b"\xff\xfe",
        ],
    )
    def test_a_corrupt_or_impossible_cursor_file_is_started_again(self, monitored, content):
        monitored.session("discord", claude("user", "hello"))
        monitored.cursor_file.write_bytes(
            content if isinstance(content, bytes) else content.encode()
        )
        assert "hello" in monitored.updates()
        assert monitored.updates() is None
        assert sorted(os.listdir(monitored.cursor_file.parent)) == [
            "person",
            "session-cursors.json",
            "session-cursors.json.lock",
            "sessions",
        ]

    def test_a_directory_in_place_of_the_cursor_file_stays(self, monitored):
        monitored.session("discord", claude("user", "hello"))
        (monitored.cursor_file / "mine").mkdir(parents=True)
        with pytest.raises(OSError, match="not a regular file"):
            monitored.updates()
        assert (monitored.cursor_file / "mine").is_dir()
        assert not list(monitored.cursor_file.parent.glob("*corrupt*"))

    def test_a_link_to_the_cursor_file_stays(self, monitored, tmp_path):
        monitored.session("discord", claude("user", "hello"))
        (tmp_path / "kept").mkdir()
        monitored.cursor_file.symlink_to(tmp_path / "kept" / "cursors.json")
        assert "hello" in monitored.updates()
        assert monitored.updates() is None
        assert monitored.cursor_file.is_symlink()

    def test_the_text_has_at_most_500_characters(self, monitored):
        for number in range(20):
            monitored.session(
                f"session-{number}", *exchange("a long question " * 20, "a long answer " * 20)
            )
        assert len(monitored.updates()) <= 500

    def test_a_line_that_is_being_written_is_told_when_it_is_complete(self, monitored):
        path = monitored.session("discord", claude("user", "first"))
        monitored.updates()
        whole = line(claude("user", "second"))
        path.write_bytes(path.read_bytes() + whole[:40])
        assert monitored.updates() is None
        path.write_bytes(path.read_bytes() + whole[40:])
        assert "second" in monitored.updates()


class TestLog:
    def test_texts_and_calls_are_in_it_and_the_rest_is_not(self, tmp_path):
        path = write(
            tmp_path / "a.jsonl",
            claude("user", "the whole question"),
            claude(
                "assistant",
                {"type": "thinking", "thinking": "a thought"},
                "the whole answer",
                call("Edit", file_path="home/MEMORY.md"),
                call("Bash", command="npm test"),
            ),
            claude("user", {"type": "tool_result", "tool_use_id": "t", "content": "a result"}),
        )
        log = read_session_log(jsonl_path=path, format="agent-sdk")
        for text in (
            "the whole question",
            "the whole answer",
            "[Edit home/MEMORY.md]",
            "[Bash npm test]",
        ):
            assert text in log
        assert "a thought" not in log
        assert "a result" not in log

    def test_the_log_of_pi_has_its_calls(self, tmp_path):
        path = write(
            tmp_path / "a.jsonl",
            pi("user", "hello"),
            pi("assistant", pi_call("exec", command="ls -l")),
        )
        assert "[exec ls -l]" in read_session_log(jsonl_path=path, format="pi")

    def test_only_the_last_entries_are_in_it_if_asked(self, tmp_path):
        path = write(
            tmp_path / "a.jsonl", *[claude("user", f"message {number}") for number in range(9)]
        )
        log = read_session_log(jsonl_path=path, format="agent-sdk", lines=2)
        assert [f"message {number}" in log for number in (6, 7, 8)] == [False, True, True]

    @pytest.mark.parametrize("path", ["gone.jsonl", "no/such/directory/a.jsonl", "", None])
    def test_an_absent_path_says_so(self, tmp_path, path):
        absent = tmp_path / path if path else path
        assert read_session_log(jsonl_path=absent, format="agent-sdk") == "No session log found."


class TestResolvers:
    def test_a_directory_is_encoded_as_claude_code_does(self):
        assert encode_cwd("/Users/foo/home") == "-Users-foo-home"

    def test_a_pointer_resolves_to_the_transcript_even_if_that_does_not_exist_yet(
        self, monitored, tmp_path
    ):
        monitored.session("discord")
        expected = tmp_path / "person" / ".claude" / "projects" / "-srv-agent" / "discord-id.jsonl"
        assert resolve_agent_sdk_jsonl(monitored.sessions_dir, "discord", "/srv/agent") == expected
        assert resolve_agent_sdk_jsonl(monitored.sessions_dir, "email", "/srv/agent") is None

    def test_pi_s_latest_transcript_is_the_session_s(self, tmp_path):
        older, newer = (
            write(tmp_path / "discord" / "b.jsonl"),
            write(tmp_path / "discord" / "a.jsonl"),
        )
        os.utime(older, (1, 1))
        assert resolve_pi_jsonl(tmp_path, "discord") == newer
        assert resolve_pi_jsonl(tmp_path, "email") is None


class TestArchive:
    def test_a_transcript_is_archived_and_updated_in_the_same_file(self, tmp_path):
        path = write(tmp_path / "a.jsonl", user("plan the trip"), assistant("Here is a plan."))
        archive = archive_session(
            jsonl_path=path, conversations_dir=tmp_path / "conversations", format="agent-sdk"
        )
        assert archive.parent == tmp_path / "conversations"
        assert "plan the trip" in archive.read_text()
        append(path, *exchange("and the hotel?", "Booked."))
        again = archive_session(
            jsonl_path=path, conversations_dir=tmp_path / "conversations", format="agent-sdk"
        )
        assert again == archive
        assert "Booked." in archive.read_text()

    def test_a_title_names_the_file(self, tmp_path):
        path = write(tmp_path / "a.jsonl", *exchange("plan the trip", "done"))
        archive = archive_session(
            jsonl_path=path,
            conversations_dir=tmp_path / "conversations",
            format="agent-sdk",
            title="Summer in Japan",
        )
        assert archive.name.endswith("-summer-in-japan.md")

    def test_what_the_person_excludes_is_archived_beside_the_folder(self, tmp_path):
        path = write(tmp_path / "secret.jsonl", *exchange("my diagnosis", "I see."))
        settings = tmp_path / "person" / ".session-memory" / "config.yaml"
        settings.parent.mkdir()
        settings.write_text("sessions: {secret: {ignore: true}}\n")
        archive = archive_session(
            jsonl_path=path, conversations_dir=tmp_path / "conversations", format="agent-sdk"
        )
        assert archive.parent == tmp_path / ".private-conversations"
        assert not list((tmp_path / "conversations").glob("*.md"))

    @pytest.mark.parametrize("path", ["gone.jsonl", "", None])
    def test_an_absent_path_is_not_archived(self, tmp_path, path):
        absent = tmp_path / path if path else path
        directory = tmp_path / "conversations"
        assert (
            archive_session(jsonl_path=absent, conversations_dir=directory, format="agent-sdk")
            is None
        )


def test_the_example_of_the_documentation_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    sessions = tmp_path / "agent" / ".session-memory" / "sessions"
    sessions.mkdir(parents=True)
    (sessions / "discord.json").write_text('{"sessionId": "abc-1"}')
    write(tmp_path / "person/.claude/projects/-srv-agent/abc-1.jsonl", *exchange("hello", "hi"))
    page = Path(__file__).parents[3] / "docs" / "inside" / "session-monitor.md"
    found: dict[str, object] = {}
    exec(page.read_text().split("```python\n")[1].split("```")[0], found)
    assert '- discord (just now, 2 messages): "hello"' in str(found["text"])
    assert "hello" in str(found["log"])
    assert "hello" in Path(str(found["archive"])).read_text()
