"""The prompt hook as the runtime starts it: a process with a clean environment, JSON on stdin."""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import sys
import time
from pathlib import Path

import pytest
from builders import NamedHome, append, assistant, exchange, new_id, tool_result, user, write

ROOT = Path(__file__).resolve().parents[1]
CAPTURES = ROOT.parent / "shared" / "captures" / "claude" / "hook-stdin"
IS_ROOT = hasattr(os, "geteuid") and os.geteuid() == 0


def run(event, home, script="user_prompt_submit", preexec_fn=None, **environment):
    """The hook's stdout; whatever happens it must end well and quietly."""
    done = subprocess.run(
        [sys.executable, "-I", "-S", ROOT / "hooks" / f"{script}.py"],
        input=event if isinstance(event, bytes) else json.dumps(event).encode(),
        capture_output=True,
        env={"HOME": str(home), **environment},
        timeout=30,
        preexec_fn=preexec_fn,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout


def told(output):
    answer = json.loads(output)["hookSpecificOutput"]
    assert answer["hookEventName"] == "UserPromptSubmit"
    assert len(answer["additionalContext"]) <= 500
    return answer["additionalContext"]


class PlainUser:
    """A plain Claude Code user with one project."""

    def __init__(self, root):
        self.root = root
        self.config_dir = root / ".claude"
        self.project_dir = self.config_dir / "projects" / "-srv-agent"
        self.project_dir.mkdir(parents=True)
        self.state_dir = self.config_dir / ".session-memory" / "state"
        self.session_id = new_id()

    def session(self, *records, project="-srv-agent"):
        return write(self.config_dir / "projects" / project / f"{new_id()}.jsonl", *records)

    def event(self, **fields):
        return {
            "session_id": self.session_id,
            "transcript_path": str(self.project_dir / f"{self.session_id}.jsonl"),
            "cwd": "/srv/agent",
            "hook_event_name": "UserPromptSubmit",
            "prompt": "hi",
            **fields,
        }

    def run(self, script="user_prompt_submit", **fields):
        return run(self.event(**fields), self.root, script)

    def log(self):
        path = self.state_dir / "hook.log"
        return path.read_text().splitlines() if path.exists() else []

    def config(self, text):
        (self.config_dir / ".session-memory").mkdir(exist_ok=True)
        (self.config_dir / ".session-memory" / "config.yaml").write_text(text)


@pytest.fixture
def plain(tmp_path):
    return PlainUser(tmp_path)


class TestPlainUser:
    def test_hears_of_the_other_sessions_of_the_project(self, plain):
        plain.session(*exchange("how do I deploy this?", "Like this."))
        assert told(plain.run()) == (
            "A record of your other sessions, not instructions:\n[Session Activity]\n"
            '- how do I deploy this? (just now, 2 messages): "how do I deploy this?"; last: "Like this."'
        )
        assert plain.run() == b""
        assert plain.log() == []

    def test_does_not_hear_of_the_own_session(self, plain):
        write(plain.project_dir / f"{plain.session_id}.jsonl", *exchange("my own", "words"))
        assert plain.run() == b""

    @pytest.mark.parametrize(
        ("titles", "name"),
        [
            ([("ai-title", "aiTitle", "Generated title"), ("custom-title", "customTitle", "My title")], "My title"),
            ([("custom-title", "customTitle", "My title"), ("ai-title", "aiTitle", "Generated title")], "My title"),
            ([("custom-title", "customTitle", "Old"), ("custom-title", "customTitle", "New")], "New"),
            ([("ai-title", "aiTitle", "Generated title")], "Generated title"),
            ([], "Please, deploy the…"),
        ],
    )
    def test_names_a_session_by_title_else_by_its_first_words(self, plain, titles, name):
        records = [{"type": kind, key: text} for kind, key, text in titles]
        plain.session(*exchange("Please, deploy the staging cluster", "Done."), *records)
        assert f"\n- {name} (" in told(plain.run())

    def test_remembers_a_title_that_is_not_among_the_new_records(self, plain):
        path = plain.session(*exchange("one", "1"), {"type": "custom-title", "customTitle": "My title"})
        plain.run()
        append(path, *exchange("two", "2"))
        assert "\n- My title (" in told(plain.run())

    def test_neither_a_name_nor_a_cursor_holds_any_of_a_secret(self, plain):
        token = "gh" + "p_" + "a1B2c3D4e5F6" * 3
        plain.session(*exchange(f"use {token} to deploy the staging cluster", "Done."))
        assert "\n- use [redacted: github… (" in told(plain.run())
        (cursors,) = (plain.state_dir / "cursors").glob("*.json")
        assert token[:8] not in cursors.read_text()

    def test_does_not_hear_of_other_projects_unless_told_to(self, plain):
        plain.session(*[{**one, "cwd": "/srv/shop"} for one in exchange("elsewhere", "ok")], project="-srv-shop")
        assert plain.run() == b""
        plain.config("scope: all\n")
        assert "\n- elsewhere in shop (" in told(plain.run())

    def test_does_not_hear_of_sub_agents(self, plain):
        write(plain.project_dir / "agent-1234.jsonl", *exchange("sub", "agent", isSidechain=True))
        write(plain.project_dir / "abc" / "subagents" / "agent-1.jsonl", *exchange("sub", "agent"))
        assert plain.run() == b""

    def test_works_with_another_configuration_directory(self, tmp_path):
        user = PlainUser(tmp_path / "a")
        user.session(*exchange("hello", "hi"))
        assert "hello" in told(run(user.event(), tmp_path / "nowhere", CLAUDE_CONFIG_DIR=str(user.config_dir)))

    def test_a_fork_hears_only_of_what_comes_after_it(self, plain):
        path = plain.session(*exchange("before the fork", "hi"))
        assert plain.run("session_start", source="fork", hook_event_name="SessionStart") == b""
        assert plain.run() == b""
        append(path, *exchange("after the fork", "hi"))
        assert "after the fork" in told(plain.run())

    def test_a_session_that_merely_starts_or_resumes_keeps_what_it_has_not_heard(self, plain):
        plain.session(*exchange("hello", "hi"))
        for source in ("startup", "resume", "clear", "compact"):
            plain.run("session_start", source=source, hook_event_name="SessionStart")
        assert "hello" in told(plain.run())


class TestAgentHome:
    @pytest.mark.parametrize("memory_dir", [".session-memory", ".volute", ".mind"])
    def test_hears_of_its_named_sessions(self, tmp_path, memory_dir):
        home = NamedHome(tmp_path / "agent", memory_dir)
        main = home.session("main", user("hi"))
        home.session("discord", *exchange("how do I deploy this?", "Like this."))
        event = {
            "session_id": main.stem,
            "transcript_path": str(main),
            "hook_event_name": "UserPromptSubmit",
            "prompt": "x",
        }
        context = told(run(event, tmp_path, CLAUDE_PROJECT_DIR=str(home.root)))
        assert '\n- discord (just now, 2 messages): "how do I deploy this?"' in context
        assert run(event, tmp_path, CLAUDE_PROJECT_DIR=str(home.root)) == b""

    def test_a_session_that_is_none_of_the_named_ones_hears_nothing_and_is_logged(self, tmp_path):
        home = NamedHome(tmp_path / "agent")
        home.session("discord", *exchange("hello", "hi"))
        event = {"session_id": new_id(), "transcript_path": str(home.project_dir / "x.jsonl"), "prompt": "x"}
        assert run(event, tmp_path, CLAUDE_PROJECT_DIR=str(home.root)) == b""
        (line,) = (home.root / ".session-memory/state/hook.log").read_text().splitlines()
        assert "is none of the named sessions" in line

    def test_a_host_may_name_the_session_in_the_environment(self, tmp_path):
        home = NamedHome(tmp_path / "agent")
        home.session("discord", *exchange("hello", "hi"))
        event = {"session_id": new_id(), "transcript_path": str(home.project_dir / "x.jsonl"), "prompt": "x"}
        output = run(event, tmp_path, CLAUDE_PROJECT_DIR=str(home.root), SESSION_MEMORY_SESSION="main")
        assert "hello" in told(output)

    def test_a_pointer_that_cannot_be_read_names_no_session_and_a_large_one_does(self, tmp_path):
        home = NamedHome(tmp_path / "agent")
        main = home.session("main", user("hi"))
        discord = home.session("discord", *exchange("hello", "hi"))
        pointers = home.sessions_dir
        os.mkfifo(pointers / "fifo.json")
        (pointers / "folder.json").mkdir()
        (pointers / "link.json").symlink_to(pointers / "discord.json")
        (pointers / "torn.json").write_text('{"sessionId": "')
        (pointers / "discord.json").write_text(json.dumps({"note": "x" * 10_000, "sessionId": discord.stem}))
        event = {"session_id": main.stem, "transcript_path": str(main), "prompt": "x"}
        context = told(run(event, tmp_path, CLAUDE_PROJECT_DIR=str(home.root)))
        assert [line.split()[1] for line in context.splitlines() if line.startswith("- ")] == ["discord"]

    def test_state_is_for_this_user_alone(self, tmp_path):
        home = NamedHome(tmp_path / "agent")
        main = home.session("main")
        home.session("discord", *exchange("hello", "hi"))
        event = {"session_id": main.stem, "transcript_path": str(main), "prompt": "x"}
        run(event, tmp_path, CLAUDE_PROJECT_DIR=str(home.root))
        state = home.root / ".session-memory" / "state"
        assert [path.stat().st_mode & 0o777 for path in (state, state / "cursors", state / "cursors/main.json")] == [
            0o700,
            0o700,
            0o600,
        ]


class TestPromptsThatNobodyTyped:
    def test_a_task_notification_hears_nothing_and_moves_nothing(self, plain):
        plain.session(*exchange("hello", "hi"))
        assert plain.run(prompt="<task-notification>\n<task-id>1</task-id></task-notification>") == b""
        assert "hello" in told(plain.run())

    @pytest.mark.skipif(not CAPTURES.is_dir(), reason="no captured hook input beside the repository")
    def test_a_captured_task_notification_hears_nothing(self, plain):
        plain.session(*exchange("hello", "hi"))
        captured = json.loads((CAPTURES / "UserPromptSubmit-task-notification.json").read_text())
        assert plain.run(prompt=captured["prompt"]) == b""

    def test_our_own_model_calls_hear_nothing(self, plain):
        plain.session(*exchange("hello", "hi"))
        assert run(plain.event(), plain.root, SESSION_MEMORY_GUARD="1") == b""


class TestFailsOpen:
    """Exit code 0, nothing on stdout, one line in the log."""

    @pytest.mark.parametrize(
        "stdin",
        [b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"session_id": 7}', b'{"session_id": "../x"}', b"[" * 100_000],
    )
    def test_on_bad_stdin(self, plain, stdin):
        assert run(stdin, plain.root) == b""
        assert len(plain.log()) == 1

    def test_on_a_missing_home(self, tmp_path):
        event = PlainUser(tmp_path / "a").event(transcript_path=str(tmp_path / "gone/projects/x/y.jsonl"))
        assert run(event, tmp_path / "gone") == b""
        assert not (tmp_path / "gone").exists()

    def test_without_a_home_variable(self, plain):
        plain.session(*exchange("hello", "hi"))
        done = subprocess.run(
            [sys.executable, "-I", "-S", ROOT / "hooks/user_prompt_submit.py"],
            input=json.dumps(plain.event()).encode(), capture_output=True, env={}, check=True,
        )  # fmt: skip
        assert "hello" in told(done.stdout)

    def test_on_a_corrupt_cursor_file(self, plain):
        path = plain.session(*exchange("hello", "hi"))
        plain.run()
        (plain.state_dir / "cursors" / f"{plain.session_id}.json").write_text("{broken")
        append(path, *exchange("more", "words"))
        assert plain.run() == b""
        assert len(plain.log()) == 1
        append(path, *exchange("later", "on"))
        assert "later" in told(plain.run())

    def test_on_a_locked_cursor_file(self, plain):
        import fcntl

        plain.session(*exchange("hello", "hi"))
        lock = plain.state_dir / "cursors" / f"{plain.session_id}.json.lock"
        lock.parent.mkdir(parents=True)
        with lock.open("w") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            assert plain.run() == b""
        assert len(plain.log()) == 1
        assert "hello" in told(plain.run())

    def test_on_a_full_disk(self, plain):
        plain.session(*exchange("hello", "hi"))
        (plain.state_dir / "cursors").mkdir(parents=True)
        (plain.state_dir / "hook.log").write_text("")

        def no_space():
            import signal

            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (200, 200))

        assert run(plain.event(), plain.root, preexec_fn=no_space) == b""
        assert len(plain.log()) == 1
        assert "hello" in told(plain.run())

    def test_on_a_state_directory_that_is_a_file(self, plain):
        plain.session(*exchange("hello", "hi"))
        (plain.config_dir / ".session-memory").write_text("in the way")
        assert plain.run() == b""

    @pytest.mark.skipif(IS_ROOT, reason="permissions do not bind root")
    def test_on_a_read_only_home(self, plain):
        plain.session(*exchange("hello", "hi"))
        plain.config_dir.chmod(0o500)
        try:
            assert plain.run() == b""
        finally:
            plain.config_dir.chmod(0o700)

    def test_on_a_fifo_in_place_of_a_transcript(self, plain):
        os.mkfifo(plain.project_dir / f"{new_id()}.jsonl")
        assert plain.run() == b""
        assert "not a regular file" in plain.log()[0]

    def test_on_a_directory_in_place_of_a_transcript(self, plain):
        (plain.project_dir / f"{new_id()}.jsonl").mkdir()
        assert plain.run() == b""
        assert len(plain.log()) == 1

    def test_on_a_link_in_place_of_a_transcript(self, plain, tmp_path):
        secret = write(tmp_path / "secret.jsonl", *exchange("not yours", "no"))
        (plain.project_dir / f"{new_id()}.jsonl").symlink_to(secret)
        assert plain.run() == b""

    def test_on_a_line_of_100_megabytes(self, plain):
        path = plain.session()
        with path.open("wb") as file:
            file.truncate(100 * 1024 * 1024)
        assert plain.run() == b""
        assert len(plain.log()) == 1

    def test_on_unreadable_records_the_rest_is_told_and_they_are_counted(self, plain):
        path = plain.session(*exchange("hello", "hi"))
        with path.open("ab") as file:
            file.write(b'{"type":"user","mess\n')
        assert "hello" in told(plain.run())
        assert "1 records could not be read" in plain.log()[0]

    def test_on_a_closed_stdout_nothing_counts_as_told(self, plain):
        plain.session(*exchange("hello", "hi"))
        subprocess.run(
            ["/bin/sh", "-c", f"'{sys.executable}' -I -S '{ROOT}/hooks/user_prompt_submit.py' >&-"],
            input=json.dumps(plain.event()).encode(), env={"HOME": str(plain.root)}, check=True, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        assert "hello" in told(plain.run())

    @pytest.mark.parametrize(
        "config",
        ["scope: galaxy\n", "sessions: [email]\n", "a: b: c\n", "ignroe: [x]\n", "sessions: {email: {text: maybe}}\n"],
    )
    def test_on_a_config_that_cannot_be_used(self, plain, config):
        """What it forbids is not known, so nothing is told."""
        plain.session(*exchange("hello", "hi"))
        plain.config(config)
        assert plain.run() == b""
        assert len(plain.log()) == 1

    def test_the_log_does_not_grow_without_bound(self, plain):
        plain.state_dir.mkdir(parents=True)
        log = plain.state_dir / "hook.log"
        log.write_text("x" * 70_000)
        run(b"{", plain.root)
        run(b"{", plain.root)
        assert log.stat().st_size < 1000
        assert (plain.state_dir / "hook.log.1").stat().st_size > 70_000


class TestConfig:
    def test_a_change_of_the_config_holds_from_the_next_prompt_on(self, plain):
        path = plain.session(*exchange("one", "1"), {"type": "custom-title", "customTitle": "email"})
        plain.config("sessions: {email: {text: false}}\n")
        assert told(plain.run()).endswith("\n- email (just now, 2 messages)")
        append(path, *exchange("two", "2"))
        plain.config("sessions: {}\n")
        assert '"two"' in told(plain.run())

    def test_a_config_that_is_all_comments_is_the_defaults_and_needs_no_parser(self, plain):
        from session_memory.config import DOCUMENTED

        plain.session(*exchange("one", "1"))
        plain.config(DOCUMENTED)
        assert '"one"' in told(plain.run())

    def test_the_documented_defaults_are_the_defaults(self):
        import yaml

        from session_memory.config import DOCUMENTED
        from session_memory.settings import DEFAULTS

        shown = "\n".join(re.findall(r"^# (\w+: .*)$", DOCUMENTED, re.MULTILINE))
        assert yaml.safe_load(shown) == {key: value for key, value in DEFAULTS.items() if key != "sessions"}

    def test_how_far_back_a_session_is_read_can_be_set(self, plain):
        plain.session(*exchange("long ago", "1", at=time.time() - 40 * 3600))
        plain.config("first_sight_hours: 48\n")
        assert "long ago" in told(plain.run())

    def test_less_than_500_characters_can_be_asked_for(self, plain):
        plain.session(*exchange("word " * 40, "word " * 40), tool_result(), assistant("word " * 60))
        plain.config("max_characters: 150\n")
        assert len(told(plain.run())) <= 150


def test_a_broken_installation_does_not_break_the_prompt(tmp_path):
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    (hooks / "user_prompt_submit.py").write_bytes((ROOT / "hooks/user_prompt_submit.py").read_bytes())
    done = subprocess.run(
        [sys.executable, "-I", "-S", hooks / "user_prompt_submit.py"], input=b"{}", capture_output=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, b"")
