"""`session-memory ingest`, and the choice of the store for commands."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from opencode_scene import OpenCodeDatabase
from records import NamedHome, PiSession, exchange, new_id, register, user, write
from store_scene import MONDAY, StoreUser, trip

from bench.scratch import remove_tree
from session_memory.app.commands import progress
from session_memory.history.archives.format import render_trailer
from session_memory.history.store.location import find_location
from session_memory.history.store.sqlite.engine import SqliteStore
from session_memory.sessions.runtimes.base import Runtime
from session_memory.sessions.runtimes.table import all_runtimes


@pytest.fixture
def machine(tmp_path):
    return StoreUser(tmp_path / "user")


class TestIngest:
    def test_what_is_new_is_taken_in_and_then_nothing_is(self, machine):
        machine.session("one", *trip())
        machine.session("two", *exchange("hello", "hi"))
        done = machine.run("ingest")
        assert (done.returncode, done.stdout) == (
            0,
            "2 of 2 files had something new: 8 entries from 3 kB.\n",
        )
        assert machine.run("ingest").stdout == "Nothing new in 2 files.\n"
        assert machine.result("ingest")["entries"] == 0

    def test_a_log_gets_a_line_of_progress_every_ten_seconds_and_a_program_none(
        self, machine, monkeypatch
    ):
        monkeypatch.setattr(progress, "LINE_SECONDS", 0.0)
        machine.session("one", *trip())
        *_, last = machine.run("ingest").stderr.splitlines()
        assert re.fullmatch(r"  1 file, 2 kB, [0-9.]+ [kM]B/s", last)
        machine.session("two", *exchange("hello", "hi"))
        assert machine.run("ingest", "--json").stderr == ""

    def test_without_any_transcripts_it_says_where_it_looked(self, machine):
        done = machine.run("ingest")
        assert (done.returncode, done.stdout) == (
            0,
            "No transcripts in ~/.claude/projects, ~/.pi/agent/sessions, ~/.codex/sessions, "
            "~/.qwen/projects, "
            "~/.copilot/session-state, ~/.session-memory/state/opencode, ~/.session-memory/state/kilo, "
            "~/.session-memory/state/gemini, ~/.factory/sessions, "
            "~/.session-memory/state/cline, ~/.session-memory/state/openclaw, ~/.omp/agent/sessions, ~/.kimi-code/sessions, ~/.session-memory/state/hermes, ~/.session-memory/state/atif.\n",
        )

    def test_the_sessions_of_all_runtimes_are_taken_in(self, machine):
        machine.session("one", *exchange("hello", "hi"))
        pi = PiSession()
        pi.exchange("from pi", "yes")
        pi.write(machine.home / ".pi" / "agent" / "sessions" / "--srv-agent--")
        OpenCodeDatabase(machine.home / ".local" / "share" / "opencode").exchange(
            "/srv/app", "from opencode", "sure"
        )
        machine.run("ingest")
        assert sorted(machine.stored()) == [
            "from opencode",
            "from pi",
            "hello",
            "hi",
            "sure",
            "yes",
        ]

    def test_of_opencode_what_a_fork_copied_is_stored_once_and_what_is_new_is_taken_in(
        self, machine
    ):
        opencode = OpenCodeDatabase(machine.home / ".local" / "share" / "opencode")
        session = opencode.exchange("/srv/app", "one", "first")
        fork = opencode.fork(session, "x (fork #1)")
        opencode.turn(fork, "two", "second")
        machine.run("ingest")
        opencode.turn(session, "three", "third")
        machine.run("ingest")
        with closing(sqlite3.connect(machine.database)) as connection:
            texts = [
                text for (text,) in connection.execute("SELECT text FROM entries ORDER BY text")
            ]
        assert texts == ["first", "one", "second", "third", "three", "two"]

    def test_only_what_is_configured_is_taken_in(self, machine):
        machine.session("one", *exchange("hello", "hi"))
        write(machine.home / "mine" / "p" / "two.jsonl", user("only this"))
        machine.config("memory: {watchPath: ~/mine}\n")
        machine.run("ingest")
        assert machine.stored() == ["only this"]

    def test_a_configured_directory_that_is_missing_is_a_problem_and_the_rest_is_taken_in(
        self, machine
    ):
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
        remove_tree(machine.projects)
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
        assert (done.returncode, "this file does not exist" in done.stderr) == (1, True)
        machine.run("ingest", "--reimport")
        assert sorted(machine.stored()) == ["hello", "hi", "stays"]

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
        later = MONDAY + 2 * 3600
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
        assert [talk["status"] for talk in machine.result("conversations")["conversations"]] == [
            "ready"
        ]

    @pytest.mark.parametrize(
        ("text", "problem"),
        [
            ("store: {watchpath: /x}", "unknown key store.watchpath, perhaps watch_path"),
            ("memory: {watchPath: here}", "store.watch_path is 'here'"),
            ("memory: {conversationGapMinutes: 0}", "conversation_gap_minutes is 0"),
            ("memory: {pollIntervalMs: 1.5}", "poll_interval_ms is 1.5"),
            ("memory: 60", "store should be keys and values"),
        ],
    )
    def test_what_is_not_understood_in_the_configuration_is_said(self, machine, text, problem):
        machine.config(text)
        done = machine.run("ingest")
        assert done.returncode == 0
        assert problem in done.stderr


class TestWhoseStore:
    def test_an_agent_has_its_own_with_its_own_sessions_alone(self, tmp_path):
        machine = StoreUser(tmp_path / "user")
        machine.session("mine", user("a person's"))
        home = NamedHome(tmp_path / "agent", person=machine.home)
        home.session("main", user("the agent's own directory"))
        below = machine.projects / re.sub("[^A-Za-z0-9]", "-", str(home.root))
        write(below / f"{new_id()}.jsonl", user("started in the agent's directory"))
        named = write(
            machine.projects / "-somewhere" / f"{new_id()}.jsonl", user("named, but elsewhere")
        )
        (home.sessions_dir / "far.json").write_text(json.dumps({"sessionId": named.stem}))
        write(machine.projects / "-somewhere" / f"{new_id()}.jsonl", user("neither"))
        found = machine.result("conversations", cwd=home.root)["conversations"]
        assert sorted(talk["title"] for talk in found) == [
            "named, but elsewhere",
            "started in the agent's directory",
            "the agent's own directory",
        ]
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
        register(tmp_path / "agent", machine.home)
        for number in range(2):
            pi = PiSession()
            pi.user(f"in pi {number}")
            pi.write(tmp_path / "agent" / ".session-memory" / "pi-sessions" / "discord")
        found = machine.result("conversations", cwd=tmp_path / "agent")["conversations"]
        assert sorted(talk["title"] for talk in found) == ["in pi 0", "in pi 1"]

    def test_a_path_that_is_nobody_s_home_is_refused(self, machine, tmp_path):
        done = machine.run("ingest", "--home", tmp_path)
        assert (done.returncode, "it is not a home with a store" in done.stderr) == (1, True)

    def test_a_group_of_a_host_sees_what_is_its_own(self, tmp_path):
        machine = StoreUser(tmp_path / "user")
        host = tmp_path / "host"
        (host / "store").mkdir(parents=True)
        (host / "store" / "messages.db").touch()
        for name in ("main", "family"):
            (host / "groups" / name / ".session-memory" / "sessions").mkdir(parents=True)
            write(
                host / "data" / "sessions" / name / ".claude" / "projects" / "-x" / "a.jsonl",
                user(f"of {name}"),
            )
        (whole,) = [machine.result("conversations", "--home", host)["conversations"]]
        assert sorted((talk["home"], talk["title"]) for talk in whole) == [
            ("family", "of family"),
            ("main", "of main"),
        ]
        family = machine.result(
            "conversations", SESSION_MEMORY_HOME=str(host / "groups" / "family")
        )["conversations"]
        assert [talk["title"] for talk in family] == ["of family"]
        main = next(talk["id"] for talk in whole if talk["home"] == "main")
        assert machine.run("show", main, cwd=host / "groups" / "family").returncode == 1
        assert (host / "store" / "memory.db").exists()


def test_of_several_named_archives_of_a_session_the_one_that_goes_on_longest_names_it(
    machine, monkeypatch
):
    folder = machine.home / ".session-memory" / "conversations"
    folder.mkdir(parents=True)
    machine.session("8f3a-trip", *trip())
    for title, last in (("Asia", "2026-11-03"), ("Korea", "2026-11-02"), ("Zebra", "2026-11-01")):
        facts = {
            "session": "8f3a-trip",
            "title": title,
            "is_named": True,
            "last": f"{last}T00:00:00.000Z",
        }
        (folder / f"{title}.md").write_text(f"# {title}\n{render_trailer(facts)}")
    for name in ("one", "two", "three"):
        machine.session(name, *exchange("hello", "hi"))
        machine.run("ingest")
        assert [one for one in titles(machine) if one in ("Asia", "Korea", "Zebra")] == ["Asia"]
    machine.session("four", *exchange("hello", "hi"))
    batches: list[object] = []
    write = SqliteStore.write
    monkeypatch.setattr(
        SqliteStore, "write", lambda self, new: batches.extend(new) or write(self, new)
    )
    machine.run("ingest")
    assert len(batches) == 1


def titles(machine):
    return [one["title"] for one in machine.result("conversations")["conversations"]]


def test_ingest_says_that_keep_none_has_forgotten_what_is_gone(tmp_path: Path) -> None:
    person = StoreUser(tmp_path / "user")
    gone = person.session("gone", *trip())
    person.session("here", *exchange("how is rye baked?", "slowly", at=MONDAY))
    person.run("ingest")
    gone.unlink()
    person.config("keep: none\n")
    said = person.run("ingest").stdout
    assert "1 file deleted: forgotten, as `keep: none` asks." in said
    assert "the store keeps" not in said
    assert person.result("ingest")["forgotten"] == 0
    assert person.stored() == ["how is rye baked?", "slowly"]


def test_an_archive_without_times_brings_back_what_a_transcript_had(tmp_path: Path) -> None:
    person = StoreUser(tmp_path / "user")
    person.config("archive_times: false\n")
    gone = person.session("8f3a-trip", *trip())
    assert person.run("archive", "8f3a-trip").returncode == 0
    gone.unlink()
    person.run("ingest")
    assert person.stored()[0] == "plan a trip to <b>Japan</b>"
    person.session("8f3a-trip", *trip())
    person.run("ingest")
    assert len([text for text in person.stored() if "plan a trip" in text]) == 1


@pytest.mark.parametrize("known", all_runtimes(), ids=lambda one: one.name)
def test_a_runtime_s_directory_is_that_of_this_runtime_wherever_it_is(
    known: Runtime, tmp_path: Path
) -> None:
    """Several have a folder of the same name for their sessions."""
    home, elsewhere = tmp_path / "home", tmp_path / "old" / known.USUAL_DIR
    for directory in (home / known.USUAL_DIR, elsewhere):
        for name in ("projects", "sessions"):
            (directory / name).mkdir(parents=True)
    environ = {"HOME": str(home)}
    own = find_location(str(home / known.USUAL_DIR), environ)
    assert own.database == find_location(str(home), environ).database
    moved = find_location(str(elsewhere), environ)
    assert {place.origin[0].name for place in moved.watched if place.origin} == {known.name}
