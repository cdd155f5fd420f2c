"""The mirrors of OpenCode's sessions as files: made anew, taken away, and the database read as it
lies there."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from opencode_scene import OpenCodeUser

from session_memory.common.system import files as system
from session_memory.sessions.runtimes.opencode import RUNTIME as OPENCODE
from session_memory.sessions.runtimes.opencode import database as statements
from session_memory.sessions.runtimes.opencode import mirrors


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> OpenCodeUser:
    monkeypatch.setitem(system.os.environ, b"HOME", os.fsencode(tmp_path))
    return OpenCodeUser(tmp_path)


def settle(directory: Path) -> None:
    """Has all files in a directory be some time old: an age of less than two seconds proves
    nothing."""
    for path in directory.iterdir():
        os.utime(path, (1_700_000_000, 1_700_000_000))


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
        assert OPENCODE.sub_agents(str(user.mirror(session))) == [
            str(user.mirror(child)),
            str(user.mirror(below)),
        ]
        assert user.said(child) == []

    def test_a_directory_with_a_path_longer_than_a_name_may_be_has_a_folder(self, user):
        directory = "/srv" + "/a-long-name" * 40
        assert user.said(user.database.exchange(directory, "one", "first")) == ["one", "first"]
        (folder,) = OPENCODE.folders_below(str(user.data_dir), directory)
        assert folder == OPENCODE.project_dir(str(user.data_dir), directory)


class TestReading:
    def test_a_database_that_has_not_changed_is_not_opened(self, user):
        user.database.exchange("/srv/app", "one", "first")
        settle(user.data_dir)
        user.refresh(everything=True)
        stamps = [path.stat() for path in user.data_dir.iterdir()]
        user.database.path.write_bytes(b"?" * stamps[0].st_size)
        os.utime(user.database.path, ns=(stamps[0].st_mtime_ns, stamps[0].st_mtime_ns))
        state = user.root / ".session-memory" / "state" / "opencode" / ".state" / "mirrored"
        before = state.stat().st_mtime_ns
        user.refresh()
        user.refresh(everything=True)
        assert state.stat().st_mtime_ns == before

    def test_what_is_added_to_a_mirror_leaves_the_folder_of_the_mirrors_as_it_is(self, user):
        """By its time a prompt knows that there is no other session."""
        session = user.database.exchange("/srv/app", "one", "first")
        user.refresh()
        mirrors = user.root / ".session-memory" / "state" / "opencode"
        os.utime(mirrors, (1, 1))
        user.database.turn(session, "two", "second")
        assert user.said(session) == ["one", "first", "two", "second"]
        assert mirrors.stat().st_mtime == 1

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
        assert list(OPENCODE.folders_below(str(user.data_dir), "/srv/app")) == []

    def test_rows_that_were_numbered_anew_or_deleted_hide_nothing(self, user):
        first = user.database.exchange("/srv/app", "one", "first")
        second = user.database.exchange("/srv/app", "two", "second")
        user.refresh()
        user.database.run("DELETE FROM message WHERE session_id = ?", second)
        with closing(sqlite3.connect(user.database.path)) as connection:
            connection.execute("VACUUM")
        user.database.turn(first, "three", "third")
        assert user.said(first) == ["one", "first", "three", "third"]

    def test_a_prompt_leaves_a_long_session_that_has_no_mirror_to_upkeep(self, user, monkeypatch):
        monkeypatch.setattr(mirrors, "PROMPT_MESSAGES", 6)
        session = user.database.session("/srv/app")
        for number in range(4):
            user.database.turn(session, f"question {number}", "answer")
        short = user.database.exchange("/srv/app", "one", "first")
        user.refresh()
        assert user.mirror(short).exists()
        assert list(user.root.rglob(f"{session}.jsonl")) == []
        user.refresh(everything=True)
        assert len(user.entries(session)) == 8
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
                self.connection.set_trace_callback(asked.append)
                return self

        session = user.database.exchange("/srv/app", "one", "first")
        fork = user.database.fork(session, "x (fork #1)")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                "session_memory.sessions.runtimes.opencode.mirrors.DatabaseReader", Watched
            )
            user.refresh(everything=True)
            user.database.turn(fork, "two", "second")
            user.refresh()
        with closing(sqlite3.connect(user.database.path)) as connection:
            plans = [
                row[3]
                for statement in asked
                if statement.lstrip().startswith("SELECT")
                and "ORDER BY rowid DESC LIMIT 1" not in statement
                for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}")
            ]
        assert len(plans) > 10
        assert [plan for plan in plans if plan.startswith(("SCAN message", "SCAN part"))] == []
