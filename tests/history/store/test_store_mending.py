"""Stores that are corrupt, from a newer version, or cut by another gap, used by the commands."""

from __future__ import annotations

import os
import random
import sqlite3
from contextlib import closing

import pytest
from records import assistant, exchange, user
from store_scene import MONDAY, Scene, StoreUser, trip

from bench.scratch import remove_tree
from session_memory.common.text.timestamps import iso_time
from session_memory.history.archives.writer import ArchiveSource, archive_transcript
from session_memory.history.store.sqlite._conversations import rebuild_conversations
from session_memory.sessions.runtimes.table import runtime
from session_memory.sessions.settings.homes import person_home


@pytest.fixture
def machine(tmp_path):
    return StoreUser(tmp_path / "user")


class TestCorruption:
    def spoil(self, machine):
        """Overwrites the middle of the database; what its beginning tells is still whole."""
        with closing(sqlite3.connect(machine.database)) as database:
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)").close()
        size = machine.database.stat().st_size
        with machine.database.open("r+b") as file:
            file.seek(size // 3)
            file.write(os.urandom(size // 2))

    def test_what_is_corrupt_inside_is_found_by_a_health_check_and_built_anew(self, machine):
        for number in range(40):
            machine.session(f"s{number}", *trip())
        machine.run("ingest")
        self.spoil(machine)
        done = machine.run("health-check")
        assert done.returncode == 0, done.stderr
        moved = [path.name for path in machine.database.parent.glob("memory.db.corrupt-*")]
        assert len([name for name in moved if not name.endswith(("-wal", "-shm"))]) == 1
        assert machine.result("health-check")["files"] == 40

    def test_sessions_whose_transcripts_are_gone_come_back_from_archives(self, machine):
        gone = machine.session("one", *trip())
        machine.session("two", *exchange("still here", "yes"))
        machine.run("ingest")
        assert machine.run("archive", "--all").returncode == 0
        gone.unlink()
        machine.database.write_bytes(b"no database at all" * 100)
        assert machine.run("ingest").returncode == 0
        said = [
            "plan a trip to <b>Japan</b>",
            "Gladly. The cherry blossom is in April.",
            "The tests fail.",
        ]
        assert [text for text in machine.stored() if text in said] == said
        found = {talk["runtime"]: talk for talk in machine.result("conversations")["conversations"]}
        assert found["archive"]["session_id"] == "one"
        assert found["archive"]["entry_count"] == 5
        assert found["archive"]["last_message_at"] == iso_time(MONDAY + 20)
        assert machine.result("search", "cherry")["hits"][0]["conversation"]["session_id"] == "one"

    @pytest.mark.parametrize("words", [("ingest",), ("search", "cherry")])
    def test_archives_come_back_where_no_transcript_is_left_at_all(self, machine, words):
        machine.session("one", *trip())
        machine.run("archive", "--all")
        remove_tree(machine.projects)
        assert machine.run(*words).returncode == 0
        assert "As you like." in machine.stored()

    def test_private_archives_come_back_hidden_until_the_rule_is_gone(self, machine):
        machine.session("one", *trip())
        machine.session("two", *exchange("still here", "yes"))
        machine.config("sessions: {one: {ignore: true}}\n")
        assert machine.run("archive", "--all").returncode == 0
        remove_tree(machine.projects)
        assert machine.result("search", "here")["hits"] != []
        assert machine.result("search", "cherry", code=1)["hits"] == []
        machine.config("")
        assert len(machine.result("search", "cherry")["hits"]) == 1
        [private] = (machine.home / ".session-memory" / ".private-conversations").glob("*.md")
        private.rename(private.parents[1] / "conversations" / private.name)
        assert len(machine.result("search", "cherry")["hits"]) == 1

    def test_a_session_that_was_archived_under_a_name_has_it_in_conversations_and_search(
        self, machine
    ):
        path = machine.session("one", *trip())
        machine.run("ingest")
        folder = machine.home / ".session-memory" / "conversations"
        settings = person_home({"HOME": str(machine.home)}).settings()
        agent = runtime("agent-sdk")
        assert archive_transcript(
            ArchiveSource("one", str(path), agent, title="Blossom tour"),
            str(folder),
            settings,
            MONDAY,
        )
        machine.session("two", user("hello"))
        machine.run("ingest")
        titles = {talk["title"] for talk in machine.result("conversations")["conversations"]}
        assert "Blossom tour" in titles
        assert (
            machine.result("search", "cherry")["hits"][0]["conversation"]["title"] == "Blossom tour"
        )

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
        assert {talk["runtime"] for talk in machine.result("conversations")["conversations"]} == {
            "claude-code"
        }


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

    @pytest.mark.parametrize("column", ["content", "timestamp"])
    def test_what_cannot_be_understood_of_it_is_no_reason_to_set_it_aside(self, newer, column):
        connection = sqlite3.connect(newer.database)
        if column == "content":
            # packed in a new way
            connection.execute("UPDATE memory_transcript_entries SET content = x'2aff00'")
        else:
            connection.execute("ALTER TABLE memory_transcript_entries RENAME timestamp TO time")
        connection.commit()
        connection.close()
        before = newer.database.read_bytes()
        done = newer.run("search", "cherry")
        assert done.returncode == 1
        assert "this version cannot read it" in done.stderr
        assert "update session-memory: python3 install.py" in done.stderr
        assert "Traceback" not in done.stderr
        assert newer.database.read_bytes() == before
        assert not list(newer.database.parent.glob("*corrupt*"))

    def test_nothing_is_added_and_what_to_do_is_said(self, newer):
        before = newer.database.read_bytes()
        for words in (("ingest",), ("watch", "--once")):
            done = newer.run(*words)
            assert done.returncode == 1
            assert "update: python3 install.py" in done.stderr
        assert newer.database.read_bytes() == before


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
        scenes = [
            Scene(tmp_path / name, gap=minutes * 60_000) for name, minutes in (("a", 60), ("b", 5))
        ]
        when = MONDAY
        records = []
        for number in range(60):
            when += generator.choice([10, 60, 400, 2000, 5000])
            message = f"m{number // 3}"
            records.append(
                assistant(
                    ("Bash", {"command": f"run {number}"}),
                    f"said {number}",
                    message_id=message,
                    at=when,
                )
                if generator.random() < 0.6
                else user(f"asked {number}", at=when)
            )
        forked = [{**record, "sessionId": "fork"} for record in records[:30]]
        for scene in scenes:
            scene.write("one", *records[:50])
            scene.write("two", *forked, user("its own", at=when))
            scene.ingest()
        fresh, rebuilt = self.rows(scenes[1]), scenes[0]
        assert rebuild_conversations(rebuilt.store, 5)
        assert self.rows(rebuilt) == fresh
        assert not rebuild_conversations(rebuilt.store, 5)
        rebuilt.store.close()
        rebuilt.options["gap"] = 5 * 60_000
        rebuilt.store = rebuilt.open()
        for scene in scenes:
            scene.append("one", *records[50:])
            scene.ingest()
        assert self.rows(rebuilt) == self.rows(scenes[1])
