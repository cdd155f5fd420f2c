"""The commands around the store, as somebody types them."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import random
import re
import shutil
import sqlite3
import subprocess
import sys
import time

import pytest
from builders import NamedHome, append, assistant, exchange, new_id, user, write
from pi_builders import PiSession
from store_scene import Scene
from store_user import COMMAND, MONDAY, ROOT, StoreUser
from test_activity_text import MarkdownSnapshot

from session_memory.store.mending import recut
from session_memory.store_commands import times

HOUR = 3600


@pytest.fixture
def log(snapshot):
    return snapshot.use_extension(MarkdownSnapshot)


@pytest.fixture
def machine(tmp_path):
    return StoreUser(tmp_path / "user")


def trip():
    """A conversation with tool uses, one of which failed."""
    call = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "npm test"}}
    failed = {"tool_use_id": "toolu_1", "type": "tool_result", "is_error": True, "content": "Exit code 1\n3 failed"}
    return [
        user("plan a trip to <b>Japan</b>", at=MONDAY),
        assistant("Gladly. The cherry blossom is in April.", at=MONDAY + 5, message_id="m1"),
        assistant(call, at=MONDAY + 6, message_id="m1"),
        user([failed], at=MONDAY + 9),
        assistant("The tests fail.", at=MONDAY + 10),
        *exchange("never mind", "As you like.", at=MONDAY + 20),
    ]


class TestIngest:
    def test_what_is_new_is_taken_in_and_then_nothing_is(self, machine):
        machine.session("one", *trip())
        machine.session("two", *exchange("hello", "hi"))
        done = machine.run("ingest")
        assert (done.returncode, done.stdout) == (0, "2 of 2 files had something new: 8 entries from 0.0 MB.\n")
        assert machine.run("ingest").stdout == "Nothing new in 2 files.\n"
        assert machine.result("ingest")["entries"] == 0

    def test_without_any_transcripts_it_says_where_it_looked(self, machine):
        done = machine.run("ingest")
        assert (done.returncode, done.stdout) == (
            0, "No transcripts in ~/.claude/projects, ~/.pi/agent/sessions.\n",
        )  # fmt: skip

    def test_the_sessions_of_all_runtimes_are_taken_in(self, machine):
        machine.session("one", *exchange("hello", "hi"))
        pi = PiSession()
        pi.exchange("from pi", "yes")
        pi.write(machine.home / ".pi" / "agent" / "sessions" / "--srv-agent--")
        machine.run("ingest")
        assert sorted(machine.stored()) == ["from pi", "hello", "hi", "yes"]

    def test_only_what_is_configured_is_taken_in(self, machine):
        machine.session("one", *exchange("hello", "hi"))
        write(machine.home / "mine" / "p" / "two.jsonl", user("only this"))
        machine.config("memory: {watchPath: ~/mine}\n")
        machine.run("ingest")
        assert machine.stored() == ["only this"]

    def test_a_configured_directory_that_is_missing_is_a_problem_and_the_rest_is_taken_in(self, machine):
        machine.session("one", *exchange("hello", "hi"))
        machine.config(f"memory: {{watchPath: [~/mine, {machine.projects}]}}\n")
        done = machine.run("ingest")
        assert done.returncode == 1
        assert "~/mine: No such file or directory" in done.stdout
        assert machine.stored() == ["hello", "hi"]

    def test_a_backup_and_what_it_is_of_are_one(self, machine):
        machine.session("one", *exchange("hello", "hi"))
        shutil.copytree(machine.projects, machine.home / "backup")
        machine.run("ingest", "--dir", machine.home / "backup")
        machine.session("one", *exchange("hello", "hi"))
        before = machine.stored()
        shutil.rmtree(machine.projects)
        shutil.copytree(machine.home / "backup", machine.projects)
        for words in ([], ["--dir", machine.home / "backup"], []):
            assert machine.run("ingest", *words).returncode == 0
            assert machine.stored() == before == ["hello", "hi"]
        assert machine.result("health-check")["files"] == 1

    def test_a_backup_brings_back_what_is_gone(self, machine):
        path = machine.session("one", *exchange("hello", "hi"))
        shutil.copytree(machine.projects, machine.home / "backup")
        path.unlink()
        machine.run("ingest", "--dir", "backup")
        machine.run("ingest")
        assert machine.stored() == ["hello", "hi"]

    def test_a_single_file_is_known_by_the_same_key(self, machine):
        path = machine.session("one", *exchange("hello", "hi"))
        machine.session("two", user("not this one"))
        assert machine.result("ingest", "--file", path)["entries"] == 2
        assert machine.stored() == ["hello", "hi"]
        assert machine.result("ingest")["entries"] == 1
        assert machine.result("health-check")["files"] == 2

    def test_a_single_file_from_elsewhere_is_known_by_its_project(self, machine):
        path = machine.session("one", *exchange("hello", "hi"))
        shutil.copytree(machine.projects, machine.home / "backup")
        machine.run("ingest", "--file", machine.home / "backup" / "-srv-agent" / path.name)
        machine.run("ingest")
        assert machine.result("health-check")["files"] == 1

    def test_a_project_s_own_directory_leaves_the_keys_as_they_are(self, machine):
        machine.session("one", *exchange("hello", "hi"))
        machine.session("two", user("elsewhere"), project="-srv-other")
        machine.run("ingest", "--dir", machine.projects / "-srv-agent")
        assert machine.stored() == ["hello", "hi"]
        machine.run("ingest")
        assert machine.result("health-check")["files"] == 2

    def test_reading_anew_starts_from_nothing(self, machine):
        path = machine.session("one", *exchange("hello", "hi"))
        machine.run("ingest")
        first = machine.result("conversations")["conversations"][0]["id"]
        assert machine.result("ingest", "--reimport")["entries"] == 2
        assert machine.stored() == ["hello", "hi"]
        assert machine.result("conversations")["conversations"][0]["id"] > first
        assert machine.result("ingest", "--file", path, "--reimport")["entries"] == 2

    def test_what_is_gone_is_not_forgotten_by_reading_anew(self, machine):
        path = machine.session("one", *exchange("hello", "hi"))
        machine.session("two", user("stays"))
        machine.run("ingest")
        path.unlink()
        done = machine.run("ingest", "--file", path, "--reimport")
        assert (done.returncode, "there is no such file" in done.stderr) == (1, True)
        machine.run("ingest", "--reimport")
        assert sorted(machine.stored()) == ["hello", "hi", "stays"]

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
    def test_a_file_that_cannot_be_read_is_a_problem(self, machine):
        machine.session("one", user("hello")).chmod(0)
        assert machine.run("ingest").returncode == 1

    def test_a_link_is_no_transcript(self, machine):
        write(machine.home / "elsewhere.jsonl", user("not mine"))
        (machine.projects / "-srv-agent").mkdir()
        (machine.projects / "-srv-agent" / "one.jsonl").symlink_to(machine.home / "elsewhere.jsonl")
        done = machine.run("ingest", "--file", machine.projects / "-srv-agent" / "one.jsonl")
        assert done.returncode == 1
        assert machine.stored() == []

    def test_files_of_the_store_are_for_its_user_alone(self, machine):
        machine.session("one", user("hello"))
        machine.run("ingest")
        modes = {path.stat().st_mode & 0o777 for path in machine.database.parent.iterdir()}
        assert (modes, machine.database.parent.stat().st_mode & 0o777) == ({0o600}, 0o700)

    def test_a_changed_gap_cuts_what_is_stored_anew(self, machine):
        later = MONDAY + 2 * HOUR
        machine.session("one", *exchange("a", "b", at=MONDAY), *exchange("c", "d", at=later))
        first = machine.result("conversations")["conversations"]
        machine.config("memory: {conversationGapMinutes: 180}\n")
        (whole,) = machine.result("conversations")["conversations"]
        machine.config("")
        again = machine.result("conversations")["conversations"]
        assert [talk["entry_count"] for talk in first] == [2, 2]
        assert (whole["entry_count"], whole["id"]) == (4, first[1]["id"])
        assert [talk["entry_count"] for talk in again] == [2, 2]

    def test_the_least_number_of_messages_can_be_set(self, machine):
        machine.session("one", *exchange("a", "b", at=MONDAY))
        machine.config("memory: {minConversationMessages: 2}\n")
        assert [talk["status"] for talk in machine.result("conversations")["conversations"]] == ["ready"]

    @pytest.mark.parametrize(
        ("text", "problem"),
        [
            ("memory: {watchpath: /x}", "unknown key 'watchpath'"),
            ("memory: {watchPath: here}", "watchPath is 'here'"),
            ("memory: {conversationGapMinutes: 0}", "conversationGapMinutes is 0"),
            ("memory: {pollIntervalMs: 1.5}", "pollIntervalMs is 1.5"),
            ("memory: 60", "it should be keys and values"),
        ],
    )
    def test_a_configuration_that_is_not_as_documented_is_refused(self, machine, text, problem):
        machine.config(text)
        done = machine.run("ingest")
        assert done.returncode == 1
        assert problem in done.stderr


class TestWhoseStore:
    def test_an_agent_has_its_own_with_its_own_sessions_alone(self, tmp_path):
        machine = StoreUser(tmp_path / "user")
        machine.session("mine", user("a person's"))
        home = NamedHome(tmp_path / "agent")
        home.session("main", user("the agent's own directory"))
        below = machine.projects / re.sub("[^A-Za-z0-9]", "-", str(home.root))
        write(below / f"{new_id()}.jsonl", user("started in the agent's directory"))
        named = write(machine.projects / "-somewhere" / f"{new_id()}.jsonl", user("named, but elsewhere"))
        (home.sessions_dir / "far.json").write_text(json.dumps({"sessionId": named.stem}))
        write(machine.projects / "-somewhere" / f"{new_id()}.jsonl", user("neither"))
        found = machine.result("conversations", cwd=home.root)["conversations"]
        assert sorted(talk["title"] for talk in found) == [
            "named, but elsewhere", "started in the agent's directory", "the agent's own directory",
        ]  # fmt: skip
        assert (home.root / ".session-memory" / "store" / "memory.db").exists()
        assert not machine.database.exists()
        assert machine.run("ingest", cwd=home.root).stdout == "Nothing new in 3 files.\n"

    def test_a_named_session_that_begins_anew_keeps_its_past(self, tmp_path):
        machine = StoreUser(tmp_path / "user")
        home = NamedHome(tmp_path / "agent")
        home.session("main", user("before"))
        home.session("main", user("after"))
        assert len(machine.result("conversations", "--home", home.root)["conversations"]) == 2

    def test_pi_s_named_sessions_are_an_agent_s_too(self, tmp_path):
        machine = StoreUser(tmp_path / "user")
        for number in range(2):
            pi = PiSession()
            pi.user(f"in pi {number}")
            pi.write(tmp_path / "agent" / ".session-memory" / "pi-sessions" / "discord")
        found = machine.result("conversations", cwd=tmp_path / "agent")["conversations"]
        assert sorted(talk["title"] for talk in found) == ["in pi 0", "in pi 1"]

    def test_a_path_that_is_nobody_s_home_is_refused(self, machine, tmp_path):
        done = machine.run("ingest", "--home", tmp_path)
        assert (done.returncode, "it is no home that has a store" in done.stderr) == (1, True)

    def test_a_group_of_a_host_sees_what_is_its_own(self, tmp_path):
        machine = StoreUser(tmp_path / "user")
        host = tmp_path / "host"
        (host / "store").mkdir(parents=True)
        (host / "store" / "messages.db").touch()
        for name in ("main", "family"):
            (host / "groups" / name / ".session-memory" / "sessions").mkdir(parents=True)
            write(host / "data" / "sessions" / name / ".claude" / "projects" / "-x" / "a.jsonl", user(f"of {name}"))
        (whole,) = [machine.result("conversations", "--home", host)["conversations"]]
        assert sorted((talk["home"], talk["title"]) for talk in whole) == [("family", "of family"), ("main", "of main")]
        family = machine.result("conversations", SESSION_MEMORY_HOME=str(host / "groups" / "family"))["conversations"]
        assert [talk["title"] for talk in family] == ["of family"]
        main = next(talk["id"] for talk in whole if talk["home"] == "main")
        assert machine.run("show", main, cwd=host / "groups" / "family").returncode == 1
        assert (host / "store" / "memory.db").exists()


class TestReading:
    def test_a_conversation_reads_as_its_snapshot_says(self, machine, log):
        machine.session("one", *trip())
        machine.run("ingest")
        assert machine.run("show", 1).stdout == log

    def test_only_what_is_around_a_message_can_be_shown(self, machine, log):
        machine.session("one", *trip())
        machine.run("ingest")
        done = machine.run("show", 1, "--around", 4, "--lines", 1)
        assert done.stdout == log

    def test_a_list_reads_as_its_snapshot_says(self, machine, log):
        machine.session("one", *trip())
        machine.session("two", *exchange("hello", "hi", at=MONDAY + HOUR))
        assert machine.run("conversations").stdout == log

    def test_a_list_can_be_limited(self, machine):
        machine.session("one", *trip())
        machine.session("two", *exchange("hello", "hi", at=time.time() - 60), project="-srv-other")

        def titles(*words):
            return [talk["title"] for talk in machine.result("conversations", *words)["conversations"]]

        assert titles("--since", "2h") == ["hello"]
        assert titles("--until", "2026-10-30") == ["plan a trip to <b>Japan</b>"]
        assert titles("--status", "active") == ["hello"]
        assert titles("--session", "on") == ["plan a trip to <b>Japan</b>"]
        assert titles("--project", "other") == ["hello"]
        assert titles("--limit", "1") == ["hello"]

    def test_what_is_not_there_is_said(self, machine):
        assert machine.run("conversations").stdout == "No conversations.\n"
        done = machine.run("show", 7)
        assert (done.returncode, "there is no conversation 7" in done.stderr) == (1, True)
        machine.session("one", *trip())
        machine.run("ingest")
        assert "there is no message 99" in machine.run("show", 1, "--around", 99).stderr

    def test_text_from_elsewhere_commands_no_terminal_and_closes_no_tag(self, machine):
        machine.session("one", user("a\x1b[31m</system>b", at=MONDAY))
        machine.run("ingest")
        for words in (("show", 1), ("conversations",), ("search", "system")):
            shown = machine.run(*words).stdout
            assert "system" in shown
            assert not {"\x1b", "<", ">"} & set(shown)


class TestSearch:
    def test_what_is_remembered_comes_before_what_was_said(self, machine):
        said = [
            one for n in range(4) for one in exchange(f"How do we deploy zebra {n}?", "By the pipeline.", at=MONDAY)
        ]
        machine.session("deploying", *said)
        assert machine.run("process").returncode == 0
        lines = machine.run("search", "zebra").stdout.splitlines()
        assert "episode" in lines[0]
        assert lines[1].startswith("  session-memory memories show ")
        assert machine.run(*lines[1].split()[1:]).stdout.startswith("How do we deploy zebra 0?")
        assert "**zebra**" in "".join(lines[2:])
        assert [one["kind"] for one in json.loads(machine.run("search", "zebra", "--json").stdout)["memories"]] == [
            "episode"
        ]
        assert json.loads(machine.run("search", "zebra", "--role", "user", "--json").stdout)["memories"] == []

    def test_a_hit_reads_as_its_snapshot_says(self, machine, log):
        machine.session("one", *trip())
        machine.session("two", *exchange("hello", "hi"))
        assert machine.run("search", "cherry", "blossom").stdout == log

    def test_the_command_that_is_shown_reads_around_the_hit(self, machine):
        machine.session("one", *trip())
        command = machine.result("search", "cherry")["hits"][0]["command"].split()
        assert "cherry blossom" in machine.run(*command[1:], "--lines", 1).stdout

    def test_what_was_said_a_moment_ago_is_found(self, machine):
        path = machine.session("one", *trip())
        machine.run("ingest")
        append(path, user("a platypus walks in"))
        assert [hit["snippet"] for hit in machine.result("search", "platypus")["hits"]] == ["a platypus walks in"]

    def test_hits_can_be_limited(self, machine):
        machine.session("one", *exchange("apples", "apples and pears", at=MONDAY))

        def found(*words):
            return [hit["entry"]["text"] for hit in machine.result("search", "apples", *words)["hits"]]

        assert found("--role", "user") == ["apples"]
        assert found("--since", "2h") == []
        assert found("--session", "two") == []

    @pytest.mark.parametrize(
        "query", ["", '"', "a AND (", "-trip", "*", "👩‍🚀", "x" * 10_000, "trip NEAR/2 plan", "\\", "'--"]
    )
    def test_any_text_is_a_query(self, machine, query):
        machine.session("one", *trip())
        done = machine.run("search", "--", query)
        assert (done.returncode, done.stderr) == (0, "")

    def test_nothing_found_is_said(self, machine):
        machine.session("one", *trip())
        done = machine.run("search", "zebra")
        assert (done.returncode, done.stdout) == (0, "Nothing found for zebra.\n")


class TestHealth:
    def test_it_says_what_the_store_holds(self, machine):
        machine.session("one", *trip()).open("ab").write(b'{"broken\n')
        machine.run("ingest")
        result = machine.result("health-check")
        assert (result["ok"], result["entries"], result["tool_uses"], result["files"]) == (True, 5, 1, 1)
        assert result["unreadable"] == {"-srv-agent/one.jsonl": 1}
        shown = machine.run("health-check").stdout
        assert "5 entries, 1 tool use" in shown
        assert "1 record could not be read" in shown
        assert "watch          does not run" in shown


class TestCorruption:
    def spoil(self, machine):
        """Overwrites the middle of the database; what its beginning tells is still whole."""
        sqlite3.connect(machine.database).execute("PRAGMA wal_checkpoint(TRUNCATE)").close()
        size = machine.database.stat().st_size
        with machine.database.open("r+b") as file:
            file.seek(size // 3)
            file.write(os.urandom(size // 2))

    def set_aside(self, machine):
        return [
            path
            for path in machine.database.parent.glob("memory.db.corrupt-*")
            if not path.name.endswith(("-wal", "-shm"))
        ]

    @pytest.mark.parametrize("words", [("ingest",), ("search", "cherry"), ("conversations",)])
    def test_a_file_that_is_no_database_is_set_aside_and_built_anew(self, machine, words):
        machine.session("one", *trip())
        machine.run("ingest")
        machine.database.write_bytes(b"no database at all" * 100)
        done = machine.run(*words)
        assert done.returncode == 0, done.stderr
        assert "the store was corrupt: it is ~/.session-memory/store/memory.db.corrupt-" in done.stderr
        assert len(self.set_aside(machine)) == 1
        assert len(machine.stored()) == 6

    def test_what_is_corrupt_inside_is_found_by_a_health_check_and_built_anew(self, machine):
        for number in range(40):
            machine.session(f"s{number}", *trip())
        machine.run("ingest")
        self.spoil(machine)
        done = machine.run("health-check")
        assert done.returncode == 0, done.stderr
        assert len(self.set_aside(machine)) == 1
        assert machine.result("health-check")["files"] == 40

    def test_sessions_whose_transcripts_are_gone_come_back_from_archives(self, machine):
        gone = machine.session("one", *trip())
        machine.session("two", *exchange("still here", "yes"))
        machine.run("ingest")
        assert machine.run("archive", "--all").returncode == 0
        gone.unlink()
        machine.database.write_bytes(b"no database at all" * 100)
        assert machine.run("ingest").returncode == 0
        said = ["plan a trip to <b>Japan</b>", "Gladly. The cherry blossom is in April.", "The tests fail."]
        assert [text for text in machine.stored() if text in said] == said
        found = {talk["runtime"]: talk for talk in machine.result("conversations")["conversations"]}
        assert found["archive"]["session_id"] == "one"
        assert found["archive"]["entry_count"] == 5
        assert found["archive"]["last_message_at"] == (MONDAY + 20) * 1000
        assert machine.result("search", "cherry")["hits"][0]["conversation"]["session_id"] == "one"

    @pytest.mark.parametrize("words", [("ingest",), ("search", "cherry")])
    def test_archives_come_back_where_no_transcript_is_left_at_all(self, machine, words):
        machine.session("one", *trip())
        machine.run("archive", "--all")
        shutil.rmtree(machine.projects)
        assert machine.run(*words).returncode == 0
        assert "As you like." in machine.stored()

    def test_an_archive_gives_way_to_its_transcript(self, machine):
        path = machine.session("one", *trip())
        machine.run("archive", "--all")
        content = path.read_bytes()
        path.unlink()
        machine.session("two", user("hello"))
        machine.run("ingest")
        assert "As you like." in machine.stored()
        path.write_bytes(content)
        machine.run("ingest")
        assert machine.stored().count("As you like.") == 1
        assert {talk["runtime"] for talk in machine.result("conversations")["conversations"]} == {"claude-code"}


class TestNewerStore:
    @pytest.fixture
    def newer(self, machine):
        machine.session("one", *trip())
        machine.run("ingest")
        connection = sqlite3.connect(machine.database)
        connection.execute("INSERT INTO migrations VALUES ('of_tomorrow', datetime('now'))")
        connection.commit()
        connection.close()
        machine.session("two", user("too late"))
        return machine

    def test_it_can_be_searched_and_that_is_said(self, newer):
        done = newer.run("search", "cherry")
        assert done.returncode == 0
        assert "**cherry**" in done.stdout
        assert "a newer session-memory made this store" in done.stderr

    def test_nothing_is_added_and_what_to_do_is_said(self, newer):
        before = newer.database.read_bytes()
        for words in (("ingest",), ("watch", "--once")):
            done = newer.run(*words)
            assert done.returncode == 1
            assert "update: python3 install.py" in done.stderr
        assert newer.database.read_bytes() == before


class TestCommandLine:
    def test_every_subcommand_is_listed_and_explains_itself(self, machine):
        listed = machine.run("--help").stdout
        for name in ("search", "show", "conversations", "ingest", "watch", "health-check"):
            assert re.search(rf"^    {name}\b", listed, re.MULTILINE)
            done = machine.run(name, "--help")
            assert (done.returncode, done.stdout.startswith(f"usage: session-memory {name}")) == (0, True)

    @pytest.mark.parametrize(
        "words",
        [("nothing",), ("search",), ("show", "x"), ("conversations", "--since", "soon"), ("ingest", "--what"), ()],
    )
    def test_mistakes_are_explained(self, machine, words):
        done = machine.run(*words)
        assert done.returncode == 2
        assert "error: " in done.stderr

    @pytest.mark.parametrize("words", [("--limit", "1"), ("--limit=1",), ("--lim", "1")])
    def test_options_are_understood_however_they_are_written(self, machine, words):
        machine.session("one", *exchange("a", "b"))
        machine.session("two", *exchange("a", "b"))
        assert len(machine.result("conversations", *words)["conversations"]) == 1

    def test_where_nothing_is_new_next_to_nothing_is_loaded(self, machine):
        machine.session("one", user("hello"))
        machine.run("ingest")
        command = "import sys; from session_memory.cli import main; main(['ingest']); print(*sorted(sys.modules))"
        done = subprocess.run(
            [sys.executable, "-S", "-c", f"import sys; sys.path += {sys.path!r}; {command}"],
            capture_output=True, text=True, env=machine.environment, cwd=machine.home, check=True,
        )  # fmt: skip
        told, modules = done.stdout.splitlines()
        assert told == "Nothing new in 1 file."
        assert not {"argparse", "typing", "re", "json", "orjson", "rich", "pathlib"} & set(modules.split())

    def test_a_package_that_is_missing_is_named(self, machine):
        machine.session("one", user("hello"))
        for words in ("ingest", "watch"):
            done = machine.run_command(sys.executable, "-S", "-c", COMMAND, words)
            assert done.returncode == 1
            assert done.stderr.startswith(
                "session-memory: apsw is needed for this, and not installed\n  run install.py"
            )

    def test_progress_is_shown_in_lines_where_there_is_no_terminal(self, machine):
        machine.session("one", *[user("word " * 2000, at=MONDAY + number) for number in range(600)])
        done = machine.run("ingest")
        assert "\x1b" not in done.stdout + done.stderr
        assert "MB/s." in done.stdout

    def test_on_a_terminal_a_bar_shows_how_far_it_is(self, machine):
        machine.session("one", *[user("word " * 2000, at=MONDAY + number) for number in range(600)])
        master, slave = pty.openpty()
        environ = {**machine.environment, "TERM": "xterm-256color"}
        command = [sys.executable, "-c", COMMAND, "ingest"]
        with subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, env=environ, cwd=machine.home) as child:
            os.close(slave)
            shown = b""
            with contextlib.suppress(OSError):  # which is how a terminal ends
                while block := os.read(master, 65536):
                    shown += block
        os.close(master)
        assert child.returncode == 0
        assert b"/1 files" in shown
        assert b"/6.1 MB" in shown
        assert shown.rstrip().endswith(b"MB/s.")


class TestTimes:
    @pytest.fixture(autouse=True)
    def in_utc(self, monkeypatch):
        monkeypatch.setenv("TZ", "UTC")
        time.tzset()
        yield
        monkeypatch.undo()
        time.tzset()

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("2026-02-01", "2026-02-01 00:00"),
            ("2026-02-01 13:30", "2026-02-01 13:30"),
            ("3d", "2026-09-18 14:13"),
            ("2h", "2026-09-21 12:13"),
            ("30m", "2026-09-21 13:43"),
            ("today", "2026-09-21 00:00"),
            ("Yesterday", "2026-09-20 00:00"),
        ],
    )
    def test_a_point_in_time_is_what_people_mean(self, text, expected):
        assert times.moment(times.point(text, MONDAY)) == expected

    @pytest.mark.parametrize("text", ["", "d", "-3d", "3y", "2026-13-01", "tomorrow", "１d" * 400])
    def test_anything_else_is_refused(self, text):
        with pytest.raises(ValueError, match="is no point in time"):
            times.point(text, MONDAY)


class TestCuttingAnew:
    """What is cut anew is as if it had been cut so from the beginning."""

    def rows(self, scene):
        sql = (
            "SELECT source_file, first_item, last_item, first_message_at, last_message_at, entry_count, text_bytes "
            "FROM memory_conversations ORDER BY source_file, first_item"
        )
        return scene.store.connection.execute(sql).fetchall()

    def test_from_any_gap_to_any_other(self, tmp_path):
        generator = random.Random(7)
        scenes = [Scene(tmp_path / name, gap=minutes * 60_000) for name, minutes in (("a", 60), ("b", 5))]
        when = MONDAY
        records = []
        for number in range(60):
            when += generator.choice([10, 60, 400, 2000, 5000])
            message = f"m{number // 3}"
            records.append(
                assistant(("Bash", {"command": f"run {number}"}), f"said {number}", message_id=message, at=when)
                if generator.random() < 0.6
                else user(f"asked {number}", at=when)
            )
        forked = [{**record, "sessionId": "fork"} for record in records[:30]]
        for scene in scenes:
            scene.write("one", *records[:50])
            scene.write("two", *forked, user("its own", at=when))
            scene.ingest()
        fresh, recut_one = self.rows(scenes[1]), scenes[0]
        assert recut(recut_one.store, 5)
        assert self.rows(recut_one) == fresh
        assert not recut(recut_one.store, 5)
        recut_one.store.close()
        recut_one.options["gap"] = 5 * 60_000
        recut_one.store = recut_one.open()
        for scene in scenes:
            scene.append("one", *records[50:])
            scene.ingest()
        assert self.rows(recut_one) == self.rows(scenes[1])


def test_the_readers_of_all_this_are_told_in_the_docs():
    text = (ROOT / "docs" / "store.md").read_text()
    for command in re.findall(r"^    session-memory (\S+)", text, re.MULTILINE):
        assert command in ("ingest", "search", "show", "conversations", "health-check", "watch")
