"""OpenCode's database, which changes its rows, and the mirrors that are made of it, to which lines are added alone."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from opencode_scene import OpenCodeDatabase, text, tool
from runtimes.opencode_story import write_story

from session_memory.runtimes import runtime
from session_memory.runtimes.opencode import database as statements
from session_memory.runtimes.opencode import files
from session_memory.runtimes.opencode.mirrors import PROMPT_MESSAGES
from session_memory.system import files as system
from session_memory.transcripts.entries import Entry
from session_memory.transcripts.log import last_entries
from session_memory.transcripts.reader import TranscriptReader

FIXTURES = Path(__file__).parent / "fixtures" / "opencode"
OPENCODE = runtime("opencode")
SHARED = Path(__file__).resolve().parents[3] / "shared"
EXPORTS = sorted((SHARED / "transcripts" / "opencode").rglob("ses_*.jsonl"))  # made by `opencode export`
CAPTURES = SHARED / "captures" / "opencode"


class OpenCodeUser:
    """Somebody who uses OpenCode in `/srv/app`."""

    def __init__(self, root: Path) -> None:
        self.data_dir = root / ".local" / "share" / "opencode"
        self.database = OpenCodeDatabase(self.data_dir)
        self.root = root

    def refresh(self, *, everything: bool = False) -> None:
        files.refresh(str(self.data_dir), everything)

    def mirror(self, session_id: str) -> Path:
        (path,) = (self.root / ".session-memory" / "state" / "opencode").rglob(f"{session_id}.jsonl")
        return path

    def entries(self, session_id: str) -> list[Entry]:
        """What counts in the mirror of a session, brought up to date."""
        self.refresh()
        path = str(self.mirror(session_id))
        descriptor = os.open(path, os.O_RDONLY)
        try:
            reader = TranscriptReader(OPENCODE, Path(path).read_bytes().partition(b"\n")[0])
            found = [entry for entry in reader.conversation(descriptor) if entry]
        finally:
            os.close(descriptor)
        backward, unreadable = last_entries(OPENCODE, path, 1000)
        assert [entry.id for entry in backward] == [entry.id for entry in found]
        self.unreadable = unreadable
        return found

    def said(self, session_id: str) -> list[str]:
        return [entry.text or entry.tools[0].argument for entry in self.entries(session_id)]


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> OpenCodeUser:
    monkeypatch.setitem(system.os.environ, b"HOME", os.fsencode(tmp_path))
    return OpenCodeUser(tmp_path)


@pytest.mark.parametrize("export", EXPORTS, ids=lambda path: path.stem[:20])
def test_a_real_session_is_told_whole_and_in_order(user, export):
    content = json.loads(export.read_text())
    session = user.database.take_export(content)
    user.refresh(everything=True)
    expected = [
        (one["info"]["role"], part["text"].strip() if part["type"] == "text" else part["tool"])
        for one in content["messages"]
        for part in one["parts"]
        if part["type"] == "tool" or (part["type"] == "text" and part["text"].strip() and not part.get("synthetic"))
    ]
    found = user.entries(session)
    assert [(entry.role, entry.text or entry.tools[0].name) for entry in found] == expected
    assert user.unreadable == 0
    assert all(entry.cwd and entry.timestamp for entry in found)


def test_the_captured_sessions_are_told_whole_and_in_order(user):
    if not CAPTURES.is_dir():
        pytest.skip("there are no captures beside the repository")
    shutil.copyfile(CAPTURES / "opencode.db", user.database.path)
    user.refresh(everything=True)
    with closing(sqlite3.connect(user.database.path)) as connection:
        rows = connection.execute(
            "SELECT message.session_id, json_extract(part.data, '$.text') FROM part"
            " JOIN message ON message.id = message_id JOIN session ON session.id = message.session_id"
            " WHERE json_extract(part.data, '$.type') = 'text' AND json_extract(part.data, '$.text') != ''"
            " AND json_extract(part.data, '$.synthetic') IS NULL AND json_extract(message.data, '$.summary') IS NOT 1"
            " AND parent_id IS NULL ORDER BY message.session_id, message.time_created, part.id"
        ).fetchall()
    expected: dict[str, list[str]] = {}
    for session, said in rows:
        expected.setdefault(session, []).append(said.strip())
    assert len(expected) > 5
    for session, texts in expected.items():
        assert [entry.text for entry in user.entries(session) if entry.text] == texts


def settle(directory: Path) -> None:
    """Has all files in a directory be some time old: an age of less than two seconds proves nothing."""
    for path in directory.iterdir():
        os.utime(path, (1_700_000_000, 1_700_000_000))


def test_the_fixtures_are_what_the_rows_of_the_story_become(tmp_path, monkeypatch):
    monkeypatch.setitem(system.os.environ, b"HOME", os.fsencode(tmp_path))
    data_dir = tmp_path / ".local" / "share" / "opencode"
    sessions = write_story(data_dir)
    files.refresh(str(data_dir), everything=True)
    for name, session_id in sessions.items():
        (path,) = (tmp_path / ".session-memory").rglob(f"{session_id}.jsonl")
        assert path.read_text() == (FIXTURES / name).read_text()
        assert path.stat().st_mode & 0o777 == 0o600


class TestRowsThatChange:
    def test_a_text_is_there_once_it_has_ended_and_a_call_once_it_was_answered(self, user):
        session = user.database.session("/srv/app")
        prompt = user.database.user(session, "fix it")
        message = user.database.begin(session, prompt)
        said = user.database.part(session, message, {"type": "text", "text": "", "time": {"start": 1}})
        call = tool("bash", {"command": "make"})
        begun = {**call, "state": {"status": "running", "input": call["state"]["input"], "time": {"start": 2}}}
        ran = user.database.part(session, message, begun)
        assert user.said(session) == ["fix it"]
        user.database.change_part(said, text("I will."))
        assert user.said(session) == ["fix it", "I will."]
        user.database.change_part(ran, call)
        user.database.end(message, "tool-calls")
        assert user.said(session) == ["fix it", "I will.", "make"]
        user.database.assistant(session, prompt, text("Done."))
        assert user.said(session) == ["fix it", "I will.", "make", "Done."]

    def test_lines_are_added_and_none_is_changed(self, user):
        session = user.database.exchange("/srv/app", "one", "first")
        user.refresh()
        before = user.mirror(session).read_bytes()
        user.database.turn(session, "two", "second")
        user.refresh()
        assert user.mirror(session).read_bytes().startswith(before)
        assert user.said(session) == ["one", "first", "two", "second"]

    def test_what_a_killed_run_left_unfinished_is_there_with_the_next_answer(self, user):
        session = user.database.session("/srv/app")
        killed = user.database.begin(session, user.database.user(session, "one"))
        running = {
            "type": "tool",
            "tool": "bash",
            "callID": "c",
            "state": {"status": "running", "input": {"command": "make"}},
        }
        user.database.part(session, killed, running)
        assert user.said(session) == ["one"]
        user.database.turn(session, "two", "second")
        assert user.said(session) == ["one", "make", "two", "second"]

    def test_a_prompt_that_was_typed_while_the_agent_worked_ends_nothing(self, user):
        session = user.database.session("/srv/app")
        prompt = user.database.user(session, "one")
        message = user.database.begin(session, prompt)
        part = user.database.part(session, message, {"type": "text", "text": "", "time": {"start": 1}})
        user.database.user(session, "and two")
        assert user.said(session) == ["one", "and two"]
        user.database.change_part(part, text("first"))
        assert sorted(user.said(session)) == ["and two", "first", "one"]

    def test_the_title_that_a_model_made_later_is_its_title(self, user):
        session = user.database.exchange("/srv/app", "one", "first")
        user.refresh()
        user.database.run("UPDATE session SET title = 'Fix the door' WHERE id = ?", session)
        user.refresh()
        assert b'{"type": "title", "title": "Fix the door"}' in user.mirror(session).read_bytes()

    def test_a_row_that_cannot_be_read_costs_itself_and_is_counted(self, user):
        session = user.database.exchange("/srv/app", "one", "first")
        user.database.turn(session, "two", "second")
        user.database.run("UPDATE part SET data = '{\"type\":' WHERE data LIKE '%first%'")
        assert user.said(session) == ["one", "two", "second"]
        assert user.unreadable == 1


class TestUndo:
    def test_what_is_undone_counts_no_more_and_what_is_done_again_counts_again(self, user):
        session = user.database.exchange("/srv/app", "one", "first")
        second = user.database.turn(session, "two", "second")
        third = user.database.turn(session, "three", "third")
        assert len(user.said(session)) == 6
        ids = [entry.id for entry in user.entries(session)]
        user.database.revert(session, third)
        assert user.said(session) == ["one", "first", "two", "second"]
        user.database.revert(session, second)
        assert user.said(session) == ["one", "first"]
        user.database.revert(session, third)
        assert user.said(session) == ["one", "first", "two", "second"]
        user.database.revert(session)
        assert [entry.id for entry in user.entries(session)] == ids

    def test_a_prompt_behind_what_was_undone_takes_its_place(self, user):
        session = user.database.exchange("/srv/app", "one", "first")
        user.database.revert(session, user.database.turn(session, "two", "second"))
        assert user.said(session) == ["one", "first"]
        user.database.clean_up(session)
        user.database.turn(session, "other", "third")
        assert user.said(session) == ["one", "first", "other", "third"]

    def test_so_it_does_where_nobody_looked_meanwhile(self, user):
        session = user.database.exchange("/srv/app", "one", "first")
        second = user.database.turn(session, "two", "second")
        assert len(user.said(session)) == 4
        for prompt, answer in (("other", "third"), ("yet another", "fourth")):
            user.database.revert(session, second)
            user.database.clean_up(session)
            second = user.database.turn(session, prompt, answer)
            assert user.said(session) == ["one", "first", prompt, answer]

    def test_a_part_of_a_message_can_be_undone(self, user):
        session = user.database.session("/srv/app")
        prompt = user.database.user(session, "one")
        message = user.database.begin(session, prompt)
        user.database.part(session, message, text("first"))
        later = user.database.part(session, message, text("second"))
        user.database.end(message)
        assert user.said(session) == ["one", "first", "second"]
        user.database.revert(session, message, later)
        assert user.said(session) == ["one", "first"]
        user.database.revert(session)
        assert user.said(session) == ["one", "first", "second"]


class TestForks:
    def test_what_a_fork_of_a_fork_copied_has_the_ids_that_it_had_at_first(self, user):
        session = user.database.exchange("/srv/app", "one", "first")
        fork = user.database.fork(session, "x (fork #1)")
        user.database.turn(fork, "two", "second")
        again = user.database.fork(fork, "x (fork #2)")
        user.database.turn(again, "three", "third")
        ids = [entry.id for entry in user.entries(session)]
        forked, twice = user.entries(fork), user.entries(again)
        assert [entry.id for entry in forked[:2]] == ids
        assert [entry.id for entry in twice[:4]] == [entry.id for entry in forked]
        assert [entry.is_copy for entry in twice] == [True] * 4 + [False] * 2

    def test_of_a_session_that_was_deleted_it_has_copies_all_the_same(self, user):
        session = user.database.exchange("/srv/app", "one", "first")
        fork = user.database.fork(session, "x (fork #1)")
        user.database.delete(session)
        assert [(entry.text, entry.is_copy) for entry in user.entries(fork)] == [("one", True), ("first", True)]


class TestFiles:
    def test_what_was_cut_off_by_a_kill_is_taken_away_and_read_again(self, user):
        session = user.database.exchange("/srv/app", "one", "first")
        user.refresh()
        path = user.mirror(session)
        whole = path.read_bytes()
        for end in (len(whole) - 1, whole.rindex(b'{"type": "mirrored"'), 40):
            path.write_bytes(whole[:end])
            user.database.run("UPDATE session SET time_updated = time_updated + 1")
            user.refresh(everything=True)
            assert path.read_bytes() == whole

    def test_a_mirror_that_is_gone_is_made_anew_as_it_was(self, user):
        session = user.database.exchange("/srv/app", "one", "first")
        user.refresh(everything=True)
        path = user.mirror(session)
        before = path.read_bytes()
        path.unlink()
        user.database.exchange("/srv/app", "two", "second")
        user.refresh(everything=True)
        assert path.read_bytes() == before

    def test_the_mirror_of_a_session_that_was_deleted_goes_with_it(self, user):
        session = user.database.exchange("/srv/app", "one", "first")
        child = user.database.session("/srv/app", parent=session)
        user.database.turn(child, "count", "three")
        other = user.database.exchange("/srv/app", "two", "second")
        user.refresh()
        paths = [user.mirror(one) for one in (session, child, other)]
        user.database.delete(session)
        user.database.delete(child)
        user.refresh(everything=True)
        assert [path.exists() for path in paths] == [False, False, True]
        user.database.delete(other)
        user.refresh(everything=True)
        assert paths[2].exists()  # the whole database may have been lost

    def test_a_mirror_is_as_old_as_what_was_written_last_in_its_session(self, user):
        session = user.database.exchange("/srv/app", "one", "first")
        user.refresh()
        with closing(sqlite3.connect(user.database.path)) as connection:
            (updated,) = connection.execute("SELECT time_updated FROM session").fetchone()
        assert user.mirror(session).stat().st_mtime_ns == updated * 1_000_000

    def test_the_mirror_of_a_sub_agent_lies_beside_that_of_its_session(self, user):
        session = user.database.exchange("/srv/app", "one", "first")
        child = user.database.session("/srv/app/sub", parent=session)
        below = user.database.session("/srv/app", parent=child)
        for one in (child, below):
            user.database.turn(one, "count", "three")
        user.refresh()
        assert files.sub_agents(str(user.mirror(session))) == [str(user.mirror(child)), str(user.mirror(below))]
        assert user.said(child) == []

    def test_a_directory_with_a_path_longer_than_a_name_may_be_has_a_folder(self, user):
        directory = "/srv" + "/a-long-name" * 40
        assert user.said(user.database.exchange(directory, "one", "first")) == ["one", "first"]
        (folder,) = files.folders_below(str(user.data_dir), directory)
        assert folder == files.project_dir(str(user.data_dir), directory)


class TestReading:
    def test_a_database_that_has_not_changed_is_not_opened(self, user):
        user.database.exchange("/srv/app", "one", "first")
        settle(user.data_dir)
        user.refresh(everything=True)
        stamps = [path.stat() for path in user.data_dir.iterdir()]
        user.database.path.write_bytes(b"?" * stamps[0].st_size)
        os.utime(user.database.path, ns=(stamps[0].st_mtime_ns, stamps[0].st_mtime_ns))
        state = user.root / ".session-memory" / "state" / "opencode" / ".mirrored"
        before = state.stat().st_mtime_ns
        user.refresh()
        user.refresh(everything=True)
        assert state.stat().st_mtime_ns == before

    def test_one_that_nobody_writes_to_is_left_as_it_lies_there(self, user):
        session = user.database.exchange("/srv/app", "one", "first")
        assert [path.name for path in user.data_dir.iterdir()] == ["opencode.db"]
        user.data_dir.chmod(0o500)
        try:
            assert user.said(session) == ["one", "first"]
            assert [path.name for path in user.data_dir.iterdir()] == ["opencode.db"]
        finally:
            user.data_dir.chmod(0o700)

    def test_while_it_is_written_to_what_was_committed_is_read(self, user):
        session = user.database.exchange("/srv/app", "one", "first")
        with closing(sqlite3.connect(user.database.path)) as writer:
            writer.execute("BEGIN IMMEDIATE")
            writer.execute("DELETE FROM part")
            assert user.said(session) == ["one", "first"]
            writer.rollback()

    def test_one_that_is_locked_has_nothing_new_until_it_is_free(self, user):
        session = user.database.exchange("/srv/app", "one", "first")
        user.refresh()
        user.database.turn(session, "two", "second")
        with closing(sqlite3.connect(user.database.path)) as owner:
            owner.execute("PRAGMA locking_mode = exclusive")
            owner.execute("UPDATE session SET version = '2'")
            owner.commit()
            assert user.said(session) == ["one", "first"]
        assert user.said(session) == ["one", "first", "two", "second"]

    @pytest.mark.parametrize("content", [b"", b"no database", b"SQLite format 3\0" + bytes(100)])
    def test_what_is_no_database_of_opencode_has_no_sessions(self, user, content):
        user.database.path.write_bytes(content)
        user.refresh(everything=True)
        assert list(files.folders_below(str(user.data_dir), "/srv/app")) == []

    def test_rows_that_were_numbered_anew_or_deleted_hide_nothing(self, user):
        first = user.database.exchange("/srv/app", "one", "first")
        second = user.database.exchange("/srv/app", "two", "second")
        user.refresh()
        user.database.run("DELETE FROM message WHERE session_id = ?", second)
        with closing(sqlite3.connect(user.database.path)) as connection:
            connection.execute("VACUUM")
        user.database.turn(first, "three", "third")
        assert user.said(first) == ["one", "first", "three", "third"]

    def test_a_prompt_leaves_a_long_session_that_has_no_mirror_to_upkeep(self, user):
        session = user.database.session("/srv/app")
        for number in range(PROMPT_MESSAGES // 2 + 1):
            user.database.turn(session, f"question {number}", "answer")
        short = user.database.exchange("/srv/app", "one", "first")
        user.refresh()
        assert user.mirror(short).exists()
        assert list(user.root.rglob(f"{session}.jsonl")) == []
        user.refresh(everything=True)
        assert len(user.entries(session)) == PROMPT_MESSAGES + 2
        user.database.turn(session, "another", "answer")
        assert user.said(session)[-2:] == ["another", "answer"]

    def test_a_session_of_long_ago_waits_for_upkeep_and_goes_on_with_a_prompt(self, user):
        session = user.database.session("/srv/app", at=1_700_000_000)
        user.database.turn(session, "one", "first", at=1_700_000_000)
        user.refresh()
        assert list(user.root.rglob(f"{session}.jsonl")) == []
        user.database.turn(session, "two", "second")
        assert user.said(session) == ["one", "first", "two", "second"]

    def test_no_statement_reads_a_table_of_what_was_said_from_end_to_end(self, user):
        asked: list[str] = []

        class Watched(statements.DatabaseReader):
            def __enter__(self) -> Any:
                super().__enter__()
                self._connection.set_trace_callback(asked.append)
                return self

        session = user.database.exchange("/srv/app", "one", "first")
        fork = user.database.fork(session, "x (fork #1)")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("session_memory.runtimes.opencode.mirrors.DatabaseReader", Watched)
            user.refresh(everything=True)
            user.database.turn(fork, "two", "second")
            user.refresh()
        with closing(sqlite3.connect(user.database.path)) as connection:
            plans = [
                row[3]
                for statement in asked
                if statement.lstrip().startswith("SELECT") and "ORDER BY rowid DESC LIMIT 1" not in statement
                for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}")
            ]
        assert len(plans) > 10
        assert [plan for plan in plans if plan.startswith(("SCAN message", "SCAN part"))] == []
