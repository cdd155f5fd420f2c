"""Something odd in one session, runtime or repository affects only that; all others are reported."""

from __future__ import annotations

import errno
import json
import os
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
from hooks_scene import ROOT, told
from opencode_scene import OpenCodeDatabase, text
from records import append, assistant, codex_line, exchange, new_id, stamp, user, write

from session_memory.awareness.activity.actions import FileAction
from session_memory.awareness.activity.collisions._evidence import Evidence
from session_memory.common.errors import SessionMemoryError
from session_memory.common.system import files
from session_memory.sessions.runtimes.table import runtime
from session_memory.sessions.settings.homes import person_home

ODD_TEXTS = ["a\0b", "\ud800", "\udcff"]


@pytest.mark.timeout(20)
def test_a_patch_over_several_files_without_an_id_has_no_result(tmp_path: Path) -> None:
    path = write(
        tmp_path / "own.jsonl", codex_line("response_item", {"type": "message"}), *[user("x")] * 9
    )
    evidence = Evidence({"": runtime("codex")}, {"": str(path)}, None, "")
    assert evidence.end("", FileAction("edit", "/a", (0.0, 0, ":1"))) == (None, False)


ODD_ROWS = {
    "no title": "UPDATE session SET title = NULL WHERE id = ?",
    "a blob for a title": "UPDATE session SET title = x'ff00' WHERE id = ?",
    "a blob for a directory": "UPDATE session SET directory = x'ff00' WHERE id = ?",
    "no directory": "UPDATE session SET directory = NULL WHERE id = ?",
    "NUL in the directory": "UPDATE session SET directory = '/srv' || char(0) || 'agent' WHERE id = ?",
    "a text for a time": "UPDATE session SET time_updated = 'soon', time_created = 'late' WHERE id = ?",
    "an infinite time": "UPDATE session SET time_updated = 9e999, time_created = 9e999 WHERE id = ?",
    "a number for what was reverted": "UPDATE session SET revert = 5 WHERE id = ?",
    "a blob for its parent": "UPDATE session SET parent_id = x'00' WHERE id = ?",
    "itself as its parent": "UPDATE session SET parent_id = id WHERE id = ?",
    "no id": "UPDATE session SET id = NULL WHERE id = ?",
    "an infinite time of a message": "UPDATE message SET time_created = 9e999 WHERE session_id = ?",
    "a text for the time of a message": "UPDATE message SET time_created = 'x' WHERE session_id = ?",
    "a blob for a message": "UPDATE message SET data = x'ff' WHERE session_id = ?",
    "a blob for the id of a message": "UPDATE message SET id = CAST(id AS blob) WHERE session_id = ?",
    "no id of a part": "UPDATE part SET id = NULL WHERE session_id = ?",
    "nothing in a part": "UPDATE part SET data = NULL WHERE session_id = ?",
}


class TestOpenCode:
    @pytest.fixture
    def database(self, plain):
        """A database with a session of which nothing is odd; the columns take anything, as where
        NOT NULL was added later."""
        database = OpenCodeDatabase(plain.root / ".local" / "share" / "opencode")
        with closing(sqlite3.connect(database.path)) as connection:
            connection.execute("PRAGMA writable_schema = on")
            connection.execute("UPDATE sqlite_master SET sql = replace(sql, ' NOT NULL', '')")
            connection.commit()
        database.exchange("/srv/agent", "usual question", "usual answer")
        return database

    @pytest.mark.parametrize("change", ODD_ROWS.values(), ids=ODD_ROWS)
    def test_an_odd_row_costs_its_session_alone(self, plain, database, change):
        plain.session(*exchange("hello", "hi"))
        odd = database.exchange("/srv/agent", "odd question", "odd answer", text("and more"))
        database.run(change, odd)
        answer = told(plain.run())
        assert "hello" in answer
        assert "usual question" in answer

    def test_a_python_without_sqlite3_reads_no_opencode_and_all_else(self, plain, database):
        plain.session(*exchange("hello", "hi"))
        without = (
            "import sys; sys.modules.update({'_sqlite3': None, 'sqlite3': None, 'apsw': None}); "
        )
        hook = f"{without} sys.path.insert(0, {str(ROOT)!r}); from session_memory.awareness.events.main import user_prompt_submit as run; run()"
        done = subprocess.run(
            [sys.executable, "-c", hook],
            input=json.dumps(plain.event()).encode(),
            env={"HOME": str(plain.root)},
            capture_output=True,
            check=True,
            timeout=30,
        )
        assert done.stderr == b""
        assert "hello" in told(done.stdout)


@pytest.mark.parametrize("odd", ODD_TEXTS)
class TestOddPaths:
    def test_in_a_call_of_the_session_itself(self, plain, odd):
        own = plain.project_dir / f"{plain.session_id}.jsonl"
        at = time.time() - 100
        append(
            own, user("edit", at=at), assistant(("Edit", {"file_path": f"/srv/agent/{odd}"}), at=at)
        )
        plain.session(*exchange("hello", ("Edit", {"file_path": "/srv/agent/x"})))
        assert "hello" in told(plain.run())
        other = plain.session(
            *exchange("more", ("Bash", {"command": f"sed -i s/a/b/ '{odd}' && git stash"}))
        )
        assert "more" in told(plain.run())
        append(other, *exchange("again", ("Edit", {"file_path": f"/srv/agent/{odd}"})))
        assert "again" in told(plain.run())
        assert plain.log() == []

    def test_in_a_call_that_the_hook_is_asked_about(self, plain, odd):
        plain.config("collisions: ask\n")
        plain.session(*exchange("hello", ("Edit", {"file_path": f"/srv/agent/{odd}"})))
        event = {"hook_event_name": "PreToolUse", "tool_use_id": "toolu_1"}
        plain.run(
            "pre_tool_use", **event, tool_name="Edit", tool_input={"file_path": f"/srv/agent/{odd}"}
        )
        plain.run(
            "pre_tool_use", **event, tool_name="Bash", tool_input={"command": f"git add '{odd}'"}
        )
        assert plain.log() == []

    def test_as_the_directory_of_another_session(self, plain, odd):
        plain.session(*exchange("hello", "hi"))
        odd_session = plain.session(
            *exchange("odd", "hi", cwd=f"/srv/{odd}"), project="-srv-agent-b"
        )
        assert "hello" in told(plain.run())
        assert odd_session.is_file()
        assert plain.log() == []


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS])
def test_a_file_system_without_locks_gives_them_to_everybody(
    tmp_path: Path, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    import fcntl

    def flock(*_: object) -> None:
        raise OSError(number, "not here")

    monkeypatch.setattr(fcntl, "flock", flock)
    path = str(tmp_path / "lock")
    with files.Closing(files.lock(path, 0)) as one, files.Closing(files.lock(path, 0)) as other:
        assert one != other


def test_nothing_is_made_for_somebody_without_a_home_directory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import pwd

    def unknown(uid: int) -> None:
        raise KeyError(uid)

    monkeypatch.delenv("HOME")
    monkeypatch.setattr(pwd, "getpwuid", unknown)
    with pytest.raises(SessionMemoryError, match="no home directory is known"):
        person_home({})
    assert person_home({"SESSION_MEMORY_DIR": "/srv/memory"}).memory_dir == "/srv/memory"


def test_a_link_among_the_transcripts_is_logged_once_a_day(plain):
    (plain.project_dir / f"{new_id()}.jsonl").symlink_to("/dev/null")
    for number in range(3):
        plain.session(*exchange(f"question {number}", "hi"))
        assert f"question {number}" in told(plain.run())
    assert len(plain.log()) == 1
    log = plain.state_dir / "hook.log"
    log.write_text(log.read_text().replace(stamp(time.time())[:10], "2020-01-01"))
    plain.run()
    assert len(plain.log()) == 2
    for path in plain.project_dir.iterdir():
        os.utime(path, (time.time() - 3600,) * 2, follow_symlinks=False)
    for _ in range(3):
        plain.run()
    (state,) = plain.state_dir.glob("cursors/*.json")
    assert " standstill" in json.loads(state.read_text())  # nothing is read again for its sake
