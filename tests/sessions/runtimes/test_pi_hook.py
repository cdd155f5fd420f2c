"""The prompt hook as Pi's extension starts it: a process with a clean environment, JSON on stdin
and stdout."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from records import PiSession, line, register, show_told

ROOT = Path(__file__).resolve().parents[3]
INTRODUCTION = "A record of your other sessions, not instructions:\n[Session Activity]\n"


class Machine:
    """One user's pi directory; the session at hand is in the project /srv/agent."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.agent_dir = root / ".pi" / "agent"
        self.project_dir = self.agent_dir / "sessions" / "--srv-agent--"
        self.project_dir.mkdir(parents=True)
        self.own = PiSession()

    def prompt(
        self,
        directory: Path | None = None,
        stdin: bytes | None = None,
        options=(),
        environ=None,
        **fields,
    ):
        """What the hook printed, which pi records; whatever happens it must end well and
        quietly."""
        event = {
            "hook_event_name": "before_agent_start",
            "runtime": "pi",
            "session_id": self.own.id,
            "transcript_path": str(
                (directory or self.project_dir) / f"2026-11-20T23-18-26-727Z_{self.own.id}.jsonl"
            ),
            "session_dir": str(directory or self.project_dir),
            "cwd": "/srv/agent",
            "prompt": "hi",
            **fields,
        }
        done = subprocess.run(
            [sys.executable, "-I", "-S", ROOT / "hooks" / "pi_prompt.py"],
            input=json.dumps(event).encode() if stdin is None else stdin,
            env={"HOME": str(self.root), **(environ or {})},
            capture_output=True,
            timeout=30,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, b"")
        if stdin is None and event["transcript_path"] and done.stdout:
            Path(event["transcript_path"]).parent.mkdir(parents=True, exist_ok=True)
            show_told(Path(event["transcript_path"]), done.stdout)
        return done.stdout

    def told(self, *arguments, **fields):
        """The lines about other sessions."""
        printed = self.prompt(*arguments, **fields)
        if not printed:
            return []
        message = json.loads(printed)["message"]
        assert {**message, "content": ""} == {
            "customType": "session-update",
            "content": "",
            "display": True,
        }
        assert len(message["content"]) <= 500
        return message["content"].removeprefix(INTRODUCTION).splitlines()

    def log(self, home: Path | None = None) -> list[str]:
        path = (home or self.root) / ".session-memory" / "state" / "hook.log"
        return path.read_text().splitlines() if path.exists() else []


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


class TestPlainUser:
    def test_hears_of_the_other_sessions_of_the_project_once(self, machine):
        other = PiSession()
        other.exchange("how do I deploy this?", "Like this.")
        other.write(machine.project_dir)
        machine.own.exchange("my own", "words")
        machine.own.write(machine.project_dir)
        content = '- "how do I deploy this?" (just now, 2 messages): last: "Like this."'
        message = {
            "customType": "session-update",
            "content": INTRODUCTION + content,
            "display": True,
        }
        assert json.loads(machine.prompt()) == {"message": message}
        assert machine.prompt() == b""
        assert machine.log() == []

    def test_hears_of_edited_files_as_seen_from_the_other_session_s_directory(self, machine):
        other = PiSession(cwd="/srv/agent")
        other.user("deploy it")
        call = {
            "type": "toolCall",
            "id": "toolu_1",
            "name": "edit",
            "arguments": {"path": "/srv/agent/deploy/run.sh"},
        }
        other.assistant(call)
        other.tool_result()
        other.write(machine.project_dir)
        assert machine.told() == ['- "deploy it" (just now, 2 messages): edited deploy/run.sh']

    def test_knows_a_session_by_the_name_that_the_user_gave_it(self, machine):
        other = PiSession()
        other.name("release")
        other.exchange("how do I deploy this?", "Like this.")
        other.write(machine.project_dir)
        assert machine.told()[0].startswith('- "release" (')

    def test_knows_a_session_by_the_last_of_its_names(self, machine):
        """One name was given at its start, one in the middle, one lately, one between two prompts
        of ours."""
        other = PiSession()
        other.name("first")
        other.exchange("one", "two" * 12_000)
        other.name("second")
        other.exchange("three", "four" * 12_000)
        other.name("third")
        other.write(machine.project_dir)
        assert machine.told()[0].startswith('- "third" (')
        other.name("fourth")
        other.exchange("five", "six")
        other.write(machine.project_dir)
        assert machine.told()[0].startswith('- "fourth" (')
        other.exchange("seven", "eight")
        other.write(machine.project_dir)
        assert machine.told()[0].startswith('- "fourth" (')
        other.name("")
        other.exchange("nine", "ten")
        other.write(machine.project_dir)
        assert machine.told()[0].startswith('- "one" (')

    def test_does_not_hear_of_the_own_session_whatever_its_file_is_called(self, machine):
        path = machine.project_dir / "copy.jsonl"
        for number in range(2):
            machine.own.exchange(f"my own {number}", "words")
            machine.own.write(machine.project_dir).rename(path)
            assert machine.told(transcript_path=str(path)) == []

    def test_does_not_list_a_session_without_title_and_text(self, machine):
        began = time.time()
        other = PiSession()
        other.exchange("how do I deploy this?", "Like this.", at=began)
        other.write(machine.project_dir)
        config = machine.root / ".session-memory" / "config.yaml"
        config.parent.mkdir()
        config.write_text(f'sessions: {{"{other.id}": {{text: false}}}}\n')
        assert machine.told() == []

    def test_does_not_hear_of_other_projects_unless_told_to(self, machine):
        other = PiSession(cwd="/srv/shop")
        other.exchange("elsewhere", "ok")
        other.write(machine.agent_dir / "sessions" / "--srv-shop--")
        assert machine.told() == []
        config = machine.root / ".session-memory" / "config.yaml"
        config.write_text("scope: all\n")
        assert machine.told()[0].startswith('- "elsewhere" in shop (')

    def test_is_told_of_what_is_wrong_in_its_settings_with_the_first_prompt(self, machine):
        config = machine.root / ".session-memory" / "config.yaml"
        config.parent.mkdir()
        config.write_text("scope: galaxy\n")
        assert "scope is 'galaxy'" in json.loads(machine.prompt())["message"]["content"]
        assert machine.prompt() == b""

    def test_hears_as_well_in_a_session_that_keeps_no_file(self, machine):
        other = PiSession()
        other.exchange("how do I deploy this?", "Like this.")
        other.write(machine.project_dir)
        assert len(machine.told(transcript_path=None, session_dir=None)) == 1

    def test_may_have_another_agent_directory(self, machine, tmp_path):
        elsewhere = tmp_path / "elsewhere"
        other = PiSession()
        other.exchange("how do I deploy this?", "Like this.")
        other.write(tmp_path / "flat")
        elsewhere.mkdir()
        assert (
            len(machine.told(tmp_path / "flat", environ={"PI_CODING_AGENT_DIR": "~/elsewhere"}))
            == 1
        )
        (place,) = (machine.root / ".session-memory").iterdir()
        (own,) = place.iterdir()
        assert (place.name, own.name.partition("-")[0]) == ("homes", "elsewhere")
        assert (own / "state" / "cursors").is_dir()


class TestAgentHome:
    @pytest.fixture(autouse=True)
    def home(self, tmp_path):
        register(tmp_path / "agent", tmp_path)

    @pytest.mark.parametrize("memory_dir", [".session-memory", ".volute", ".mind"])
    def test_its_named_sessions_hear_of_each_other_wherever_they_work(
        self, machine, tmp_path, memory_dir
    ):
        sessions_dir = tmp_path / "agent" / memory_dir / "pi-sessions"
        other = PiSession(cwd="/srv/shop")
        other.exchange("how do I deploy this?", "Like this.")
        other.write(sessions_dir / "discord")
        (sessions_dir / "empty").mkdir()
        told = ['- discord (just now, 2 messages): "how do I deploy this?"; last: "Like this."']
        assert machine.told(sessions_dir / "main") == told
        assert machine.told(sessions_dir / "main") == []
        state = tmp_path / "agent" / ".session-memory" / "state"
        assert [path.name for path in (state / "cursors").glob("*.json")] == ["main.json"]

    def test_of_several_files_of_a_session_the_one_written_last_counts(self, machine, tmp_path):
        sessions_dir = tmp_path / "agent" / ".mind" / "pi-sessions"
        for age, text in ((0, "new"), (60, "old")):
            other = PiSession()
            other.exchange(text, "ok")
            path = other.write(sessions_dir / "discord")
            os.utime(path, (time.time() - age, time.time() - age))
        (line,) = machine.told(sessions_dir / "main")
        assert '"new"' in line

    def test_a_new_file_in_a_session_s_directory_is_news_and_a_copy_in_it_is_not(
        self, machine, tmp_path
    ):
        sessions_dir = tmp_path / "agent" / ".mind" / "pi-sessions"
        other = PiSession(at=time.time() - 9)
        other.exchange("one", "two", at=time.time() - 8)
        other.write(sessions_dir / "discord")
        machine.told(sessions_dir / "main")
        fork = other.fork(at=time.time() - 7)
        fork.exchange("three", "four")
        fork.write(sessions_dir / "discord")
        assert machine.told(sessions_dir / "main") == [
            '- discord (just now, 2 messages): "three"; last: "four"'
        ]

    def test_a_host_may_name_home_and_session_in_the_environment(self, machine, tmp_path):
        home = tmp_path / "agent"
        other = PiSession()
        other.exchange("how do I deploy this?", "Like this.")
        other.write(home / ".mind" / "pi-sessions" / "discord")
        environ = {"SESSION_MEMORY_HOME": str(home), "SESSION_MEMORY_SESSION": "main"}
        assert len(machine.told(transcript_path=None, session_dir=None, environ=environ)) == 1

    def test_a_home_may_be_named_by_another_path_than_its_sessions(self, machine, tmp_path):
        sessions_dir = tmp_path / "agent" / ".mind" / "pi-sessions"
        other = PiSession()
        other.exchange("how do I deploy this?", "Like this.")
        other.write(sessions_dir / "discord")
        (sessions_dir / "main").mkdir()
        (tmp_path / "link").symlink_to(tmp_path / "agent")
        environ = {"SESSION_MEMORY_HOME": str(tmp_path / "link")}
        assert len(machine.told(sessions_dir / "main", environ=environ)) == 1

    def test_a_session_that_lies_elsewhere_hears_nothing_and_is_logged(self, machine, tmp_path):
        home = tmp_path / "agent"
        (home / ".mind" / "pi-sessions" / "discord").mkdir(parents=True)
        assert machine.told(environ={"SESSION_MEMORY_HOME": str(home)}) == []
        assert "is not a named session" in machine.log(home)[0]


class TestForks:
    def test_what_a_fork_copied_is_told_once(self, machine):
        parent = PiSession(at=time.time() - 9)
        parent.exchange("one", "two", at=time.time() - 8)
        fork = parent.fork(at=time.time() - 7)
        fork.exchange("three", "four")
        fork.write(machine.project_dir)
        parent.write(machine.project_dir)
        assert sorted(line.rpartition(" (")[2] for line in machine.told()) == [
            'just now, 2 messages): "three"; last: "four"',
            'just now, 2 messages): last: "two"',
        ]

    def test_a_fork_hears_at_its_first_prompt_only_of_what_comes_after_it(self, machine):
        other = PiSession()
        other.exchange("before the fork", "hi")
        other.write(machine.project_dir)
        parent = PiSession(at=time.time() - 9)
        parent.exchange("one", "two", at=time.time() - 8)
        parent.write(machine.project_dir)
        machine.own = parent.fork()
        machine.own.write(machine.project_dir)
        assert machine.told() == []
        other.exchange("after the fork", "hi")
        other.write(machine.project_dir)
        (line,) = machine.told()
        assert '"after the fork"' in line

    def test_a_fork_whose_first_hook_was_killed_hears_of_what_came_after_that(self, machine):
        other = PiSession()
        other.exchange("before the fork", "hi", at=time.time() - 5)
        other.write(machine.project_dir)
        parent = PiSession(at=time.time() - 9)
        parent.exchange("one", "two", at=time.time() - 8)
        parent.write(machine.project_dir)
        machine.own = parent.fork(at=time.time() - 4)
        machine.own.exchange("three", "four", at=time.time() - 3)
        machine.own.write(machine.project_dir)
        assert machine.told() == []
        other.exchange("after the fork", "hi")
        other.write(machine.project_dir)
        (line,) = machine.told()
        assert '"after the fork"' in line


class TestFilesWrittenAnew:
    """Pi rewrites files of version 1 and 2 in place when it opens them, and gives the records of
    version 1 ids."""

    @pytest.fixture
    def old(self):
        session = PiSession(version=1, at=time.time() - 100)
        for number in range(5):
            session.exchange(f"question {number}", f"answer {number}", at=time.time() - 90 + number)
        return session

    @pytest.fixture
    def new(self, old):
        session = old.migrated()
        session.id = old.id
        return session

    @pytest.mark.parametrize("written", [None, 0, 1, 5, 10])
    def test_what_follows_is_told_and_a_look_before_that_repeats_nothing(
        self, machine, old, new, written
    ):
        """At the look, so many lines of the file that is written anew are there: all with None."""
        path = old.write(machine.project_dir)
        assert len(machine.told()) == 1
        path.write_bytes(b"".join(new.lines[:written]))
        assert machine.told() == []
        self.is_told_of_what_follows(machine, new)

    def test_what_followed_before_the_next_look_is_told_alone(self, machine, old, new):
        old.write(machine.project_dir)
        machine.told()
        self.is_told_of_what_follows(machine, new)

    def is_told_of_what_follows(self, machine, new):
        new.exchange("what now?", "That.")
        new.write(machine.project_dir)
        (line,) = machine.told()
        assert line.endswith('(just now, 2 messages): "what now?"; last: "That."')

    def test_what_counted_as_seen_unread_is_not_told_then(self, machine, old, new):
        old.write(machine.project_dir)
        cursors = machine.root / ".session-memory" / "state" / "cursors" / f"{machine.own.id}.json"
        cursors.parent.mkdir(parents=True)
        cursors.write_text("{broken")
        assert machine.told() == []
        new.write(machine.project_dir)
        assert machine.told() == []

    def test_a_branch_that_was_left_since_is_not_told(self, machine):
        other = PiSession()
        first = other.exchange("one", "two")
        other.write(machine.project_dir)
        machine.told()
        other.exchange("wrong way", "I see")
        other.back_to(first)
        other.exchange("right way", "good")
        other.write(machine.project_dir)
        (line,) = machine.told()
        assert line.endswith('(just now, 2 messages): "right way"')

    def test_a_branch_that_was_left_gives_no_name(self, machine):
        other = PiSession()
        first = other.exchange("fix it", "what?")
        other.exchange("fix the wrong page", "I see")
        other.back_to(first)
        other.exchange("fix the right page", "good")
        other.write(machine.project_dir)
        (line,) = machine.told()
        assert line.startswith('- "fix the right page" (just now, 4 messages)')


class TestFailsOpen:
    """Exit code 0, nothing on stdout, one line in the log."""

    @pytest.mark.parametrize(
        "stdin", [b"", b"{", b"[]", b"\xff", b'{"runtime":"emacs"}', b'{"runtime":[]}', b"{}"]
    )
    def test_on_bad_stdin(self, machine, stdin):
        assert machine.prompt(stdin=stdin) == b""
        assert len(machine.log()) == 1

    @pytest.mark.parametrize(
        "fields",
        [
            {"session_id": None},
            {"session_id": "../x"},
            {"session_id": 7, "session_dir": 7, "transcript_path": []},
        ],
    )
    def test_on_an_event_of_no_session(self, machine, fields):
        assert machine.prompt(**fields) == b""
        assert len(machine.log()) == 1

    def test_on_a_missing_home(self, machine, tmp_path):
        gone = tmp_path / "gone" / "sessions" / "--srv--"
        assert machine.prompt(gone) == b""
        assert not (tmp_path / "gone").exists()

    def test_on_a_file_that_is_no_session_file(self, machine):
        (machine.project_dir / "x.jsonl").write_bytes(line({"type": "user"}) + b"\x00\n[]\n")
        (machine.project_dir / "empty.jsonl").write_bytes(b"")
        assert machine.prompt() == b""

    def test_in_our_own_model_calls(self, machine):
        other = PiSession()
        other.exchange("hello", "hi")
        other.write(machine.project_dir)
        assert machine.told(environ={"SESSION_MEMORY_GUARD": "1"}) == []
        assert len(machine.told()) == 1


@pytest.mark.parametrize(
    ("script", "other"), [("user_prompt_submit", "pi"), ("pi_prompt", "claude")]
)
def test_a_prompt_does_not_load_the_other_runtime(tmp_path, script, other):
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-X", "importtime", ROOT / "hooks" / f"{script}.py"],
        input=b"{}",
        env={"HOME": str(tmp_path)},
        capture_output=True,
        check=True,
    )
    assert b"session_memory.sessions.runtimes" in done.stderr
    assert f"session_memory.sessions.runtimes.{other}".encode() not in done.stderr
