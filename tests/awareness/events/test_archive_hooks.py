"""The hooks around archives, as the runtime starts them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from archives_scene import messages
from hooks_scene import PlainUser, run
from records import NamedHome, append, exchange, line, new_id, register, tool_result, write
from transcripts_scene import write_transcript

from session_memory.history.archives.writer import archive_group_session
from session_memory.sessions.settings.registry import register_host

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def plain(tmp_path):
    user = PlainUser(tmp_path)
    write(
        user.project_dir / f"{user.session_id}.jsonl", *exchange("plan a trip to Japan", "Gladly.")
    )
    return user


def archives(user):
    return sorted((user.place / "conversations").glob("*.md"))


def wait_for(condition):
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)


class TestPreCompact:
    def test_keeps_the_conversation_and_prints_nothing(self, plain):
        assert (
            plain.run(
                "pre_compact",
                hook_event_name="PreCompact",
                trigger="auto",
                custom_instructions=None,
            )
            == b""
        )
        (path,) = archives(plain)
        assert messages(path) == [
            ("User", "plan a trip to Japan"),
            ("Assistant", "Gladly."),
        ]

    def test_works_in_an_agent_home_for_a_session_without_a_name(self, tmp_path):
        home = NamedHome(tmp_path / "agent", person=tmp_path)
        session_id = new_id()
        path = write(home.project_dir / f"{session_id}.jsonl", *exchange("hello", "hi"))
        event = {
            "session_id": session_id,
            "transcript_path": str(path),
            "hook_event_name": "PreCompact",
        }
        assert run(event, tmp_path, "pre_compact", CLAUDE_PROJECT_DIR=str(home.root)) == b""
        assert len(list((home.root / "conversations").glob("*-hello.md"))) == 1

    @pytest.mark.parametrize("event", ["pre_compact", "session_end"])
    def test_leaves_the_archive_of_a_group_to_its_host(self, layout, tmp_path, event):
        group = layout.group("garden")
        Path(layout.database).touch()
        register_host(layout.root, {"HOME": str(tmp_path)})
        Path(layout.config_file).parent.mkdir(parents=True)
        Path(layout.config_file).write_text("assistant_name: Rose\n")
        path = write_transcript(group, new_id())
        archive_group_session(group, path.stem, time.time())
        [archive] = Path(group.conversations_dir).glob("*.md")
        before = archive.read_bytes()
        fields = {
            "cwd": group.root,
            "hook_event_name": "SessionEnd",
            "reason": "other",
            "trigger": "auto",
        }
        event_fields = {"session_id": path.stem, "transcript_path": str(path), **fields}
        assert run(event_fields, tmp_path, event, CLAUDE_PROJECT_DIR=group.root) == b""
        # of the process that it leaves behind, it waits half a second for the transcript
        time.sleep(1.5)
        assert archive.read_bytes() == before
        assert b'"group": "garden"' in before

    def test_is_silent_on_a_session_that_has_no_transcript(self, plain):
        assert (
            plain.run("pre_compact", transcript_path=str(plain.project_dir / "never.jsonl")) == b""
        )
        assert archives(plain) == []
        assert plain.log() == []

    def test_is_silent_on_bad_stdin(self, plain):
        for stdin in (b"", b"{", b"[]"):
            assert run(stdin, plain.root, "pre_compact") == b""

    def test_a_folder_that_is_in_the_way_is_one_line_in_the_log(self, plain):
        plain.place.mkdir()
        (plain.place / "conversations").write_text("in the way")
        assert plain.run("pre_compact", hook_event_name="PreCompact") == b""
        assert len(plain.log()) == 1

    def test_a_full_disk_is_one_line_in_the_log(self, plain):
        append(
            plain.project_dir / f"{plain.session_id}.jsonl", *exchange("more " * 500, "text " * 500)
        )
        plain.state_dir.mkdir(parents=True)

        def no_space():
            import resource
            import signal

            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (400, 400))

        assert (
            run(
                plain.event(hook_event_name="PreCompact"),
                plain.root,
                "pre_compact",
                preexec_fn=no_space,
            )
            == b""
        )
        assert len(plain.log()) == 1
        assert [
            path for path in (plain.place / "conversations").iterdir() if path.name != ".lock"
        ] == []

    def test_the_settings_say_how_archives_look(self, plain):
        plain.config("assistant_name: G2\narchive_message_characters: 10\n")
        plain.run("pre_compact")
        assert messages(archives(plain)[0]) == [
            ("User", "plan a…\n\n[14 more characters]"),
            ("G2", "Gladly."),
        ]


class TestSessionEnd:
    def test_on_clear_the_work_goes_on_after_the_hook_has_ended(self, plain):
        """The hook must return at once; a transcript of 60 MB takes longer than that."""
        path = plain.project_dir / f"{plain.session_id}.jsonl"
        with path.open("ab") as file:
            for _ in range(600):
                file.write(line(tool_result("x" * 100_000)))
        append(path, *exchange("the last words", "yes"))
        assert plain.run("session_end", hook_event_name="SessionEnd", reason="clear") == b""
        wait_for(lambda: archives(plain))
        assert ("User", "the last words") in messages(archives(plain)[0])

    @pytest.mark.parametrize("reason", ["prompt_input_exit", "logout", "other"])
    def test_at_the_end_of_the_program_it_is_written_too(self, plain, reason):
        assert plain.run("session_end", hook_event_name="SessionEnd", reason=reason) == b""
        wait_for(lambda: archives(plain))

    def test_what_is_excluded_is_archived_where_nobody_else_looks(self, plain):
        plain.config('sessions: {"*": {ignore: true}}\n')
        assert plain.run("pre_compact", hook_event_name="PreCompact") == b""
        assert archives(plain) == []
        (path,) = (plain.place / ".private-conversations").glob("*.md")
        said = plain.run("session_start", source="compact", hook_event_name="SessionStart")
        assert str(path) in said.decode()

    def test_it_survives_the_end_of_its_process_group(self, plain):
        path = plain.project_dir / f"{plain.session_id}.jsonl"
        with path.open("ab") as file:
            for _ in range(300):
                file.write(line(tool_result("x" * 100_000)))
        hook = subprocess.Popen(
            [sys.executable, "-I", "-S", ROOT / "hooks" / "session_end.py"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={"HOME": str(plain.root)},
            start_new_session=True,
        )
        hook.communicate(json.dumps(plain.event(reason="clear")).encode(), timeout=60)
        with pytest.raises(ProcessLookupError):
            os.killpg(hook.pid, 9)
        wait_for(lambda: archives(plain))

    @pytest.mark.parametrize("leads", ["nothing", "a group", "a session"])
    def test_the_work_of_a_hook_has_its_own_process_group_when_the_hook_ends(self, leads, tmp_path):
        groups = tmp_path / "groups"
        code = (
            f"import os, sys, time; sys.path.insert(0, {str(ROOT)!r})\n"
            "from session_memory.awareness.events import upkeep_start\n"
            "fork = upkeep_start.os.fork\n"
            "upkeep_start.os.fork = lambda: fork() or time.sleep(0.3) or 0\n"
            "upkeep_start.os.pipe = upkeep_start.os.read = None  # it waits for no other process\n"
            f"if upkeep_start.detach(): open({str(groups)!r}, 'w').write(f'{{os.getpgrp()}}.')\n"
        )
        hook = subprocess.Popen(
            [sys.executable, "-I", "-c", code],
            start_new_session=leads == "a session",
            preexec_fn=os.setpgrp if leads == "a group" else None,
        )
        assert hook.wait(60) == 0
        with pytest.raises(ProcessLookupError):
            os.killpg(hook.pid, 9)
        wait_for(lambda: groups.exists() and groups.read_text().endswith("."))
        assert groups.read_text() not in (f"{os.getpgrp()}.", f"{hook.pid}.")

    def test_a_session_that_is_left_for_an_older_one_is_not_archived(self, plain):
        assert plain.run("session_end", reason="resume") == b""
        time.sleep(0.3)
        assert archives(plain) == []


class TestSessionStart:
    def start(self, plain, source, **fields):
        output = plain.run("session_start", hook_event_name="SessionStart", source=source, **fields)
        if not output:
            return None
        answer = json.loads(output)["hookSpecificOutput"]
        assert answer["hookEventName"] == "SessionStart"
        return answer["additionalContext"]

    def test_after_a_compaction_points_to_the_archive(self, plain):
        plain.run("pre_compact")
        told = self.start(plain, "compact")
        assert str(archives(plain)[0]) in told
        assert len(told.splitlines()) <= 2

    def test_after_a_compaction_without_an_archive_says_nothing(self, plain):
        assert self.start(plain, "compact") is None

    def test_a_fresh_start_says_nothing_by_default(self, plain):
        plain.run("pre_compact")
        assert self.start(plain, "startup", session_id=new_id()) is None

    def test_a_fresh_start_lists_the_last_conversations_of_the_project_when_asked_for(self, plain):
        plain.run("pre_compact")
        for number in range(12):
            session_id = new_id()
            fields = {"at": time.time() - 86400 * (number + 1)}
            if number == 3:
                fields["cwd"] = "/srv/elsewhere"
            write(
                plain.project_dir / f"{session_id}.jsonl",
                *exchange(f"an older conversation, number {number}", "yes", **fields),
            )
            plain.run(
                "pre_compact",
                session_id=session_id,
                transcript_path=str(plain.project_dir / f"{session_id}.jsonl"),
            )
        plain.config("recent_conversations: 8\n")
        told = self.start(plain, "startup", session_id=new_id())
        assert len(told) <= 500
        lines = told.splitlines()
        assert lines[1].startswith("- plan a trip to Japan (")
        assert "number 3" not in told
        assert [row.split(" (")[0] for row in lines[2:4]] == [
            "- an older conversation, number 0",
            "- an older conversation, number 1",
        ]


class TestPi:
    def event(self, home, **fields):
        header = {
            "type": "session",
            "version": 3,
            "id": "s-1",
            "timestamp": "2026-09-21T14:13:00.000Z",
            "cwd": "/srv/agent",
        }
        message = {"role": "user", "content": "plan a trip", "timestamp": 1}
        entry = {
            "type": "message",
            "id": "aaaa0001",
            "parentId": None,
            "timestamp": "2026-09-21T14:13:01.000Z",
            "message": message,
        }
        directory = home / ".session-memory" / "pi-sessions" / "main"
        path = write(directory / "2026_s-1.jsonl", header, entry)
        return {
            "runtime": "pi",
            "session_id": "s-1",
            "transcript_path": str(path),
            "session_dir": str(directory),
            "cwd": str(home),
            **fields,
        }

    @pytest.mark.parametrize(
        ("fields", "is_kept"),
        [
            ({"hook_event_name": "session_before_compact", "reason": "threshold"}, True),
            ({"hook_event_name": "session_shutdown", "reason": "new"}, True),
            ({"hook_event_name": "session_shutdown", "reason": "quit"}, True),
            ({"hook_event_name": "session_shutdown", "reason": "resume"}, False),
        ],
    )
    def test_keeps_what_is_compacted_or_left_for_a_new_session(self, tmp_path, fields, is_kept):
        home = tmp_path / "agent"
        register(home, tmp_path)
        assert run(self.event(home, **fields), tmp_path, "pi_archive") == b""
        if is_kept:
            wait_for(lambda: list((home / "conversations").glob("2026-09-21-plan-a-trip.md")))
        else:
            time.sleep(1)  # a hook waits for half a second until the transcript is quiet
            assert not (home / "conversations").exists()
