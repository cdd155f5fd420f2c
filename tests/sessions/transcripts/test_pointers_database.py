"""The database of pointers: several processes at once, crashes between any two steps, migrations,
permissions."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import stat
import subprocess
import sys
from pathlib import Path

import apsw
import pytest
from transcripts_scene import state, write_transcript

from session_memory.common.system.sqlite import _connect, _migrate, writing
from session_memory.history.archives.list import find_archive
from session_memory.history.archives.writer import open_sessions
from session_memory.sessions.settings.host_layout import Layout
from session_memory.sessions.transcripts.pointers import MIGRATIONS, SessionManager

REPOSITORY = Path(__file__).resolve().parents[3]
# Clears or resumes in one directory after the other; in the n-th it dies before the n-th step of
# the file system or the database. Prints how each ended, up to the first that was not killed.
CRASHING = """
import os, signal, sys
from session_memory.sessions.settings.host_layout import Layout
from session_memory.history.archives.writer import open_sessions

def work(root, left):
    layout = Layout(root)
    sessions = open_sessions(layout)
    (entry,) = sessions.get_history("main")
    def step(*_):
        nonlocal left
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return True
    sessions._connection.exec_trace = step
    is_step = lambda event, given: event in ("open", "os.rename", "os.remove", "os.mkdir") and str(given[0]).startswith(root)
    sys.addaudithook(lambda event, given: is_step(event, given) and step())
    sessions.clear("main", "beans") if sys.argv[1] == "clear" else sessions.resume("main", entry.id, "second")

for number, root in enumerate(sys.argv[2:]):
    child = os.fork()
    if not child:
        work(root, number)
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    print(status)
    if status == 0:
        break
"""
MOST_STEPS = 60


@pytest.mark.parametrize("action", ["clear", "resume"])
def test_a_crash_before_any_step_leaves_the_old_state_or_the_new(
    tmp_path: Path, action: str
) -> None:
    layouts = [_with_two_sessions(tmp_path / f"host{number}") for number in range(MOST_STEPS)]
    command = [sys.executable, "-c", CRASHING, action, *[layout.root for layout in layouts]]
    done = subprocess.run(command, capture_output=True, text=True, cwd=REPOSITORY, check=True)
    ends = [int(line) for line in done.stdout.split()]
    assert ends == [signal.SIGKILL] * (len(ends) - 1) + [0]
    old = ("s2", [("s1", "first")])
    new = (
        (None, [("s2", "beans"), ("s1", "first")])
        if action == "clear"
        else ("s1", [("s2", "second")])
    )
    states = []
    for layout, _ in zip(layouts, ends):
        sessions = open_sessions(layout)
        states.append(state(sessions))
        sessions.close()
        if states[-1] == new:
            found = find_archive(layout.group("main").conversations_dir, "s2")
            assert found
            assert "plan the garden" in Path(found[0]).read_text()
    assert states.count(old) > 8, "the steps between the archive and the commit were not tried"
    assert states == [old] * states.count(old) + [new] * states.count(new)
    assert states[-1] == new


def _with_two_sessions(root: Path) -> Layout:
    """A host whose main is in s2, and has s1 in its history as `first`."""
    layout = Layout(root)
    layout.make()
    main = layout.group("main")
    main.make()
    for session_id in ("s1", "s2"):
        write_transcript(main, session_id)
    first = root.parent / "host0" / "store"
    if root.name != "host0":
        shutil.copytree(first, layout.store_dir, dirs_exist_ok=True)
        return layout
    sessions = open_sessions(layout)
    sessions.set("main", "s1")
    sessions.archive("main", "first")
    sessions.set("main", "s2")
    sessions.close()
    return layout


def _set_many(root: str, group: str, count: int) -> None:
    layout = Layout(root)
    sessions = open_sessions(layout)
    for number in range(count):
        sessions.set(group, f"{group}-{number}")
        if sessions.get(group) != f"{group}-{number}":
            os._exit(1)
        sessions.archive(group, f"entry {number}")
    sessions.close()


class TestSeveralProcesses:
    def test_what_another_connection_wrote_is_seen_at_once(
        self, layout: Layout, sessions: SessionManager
    ) -> None:
        other = open_sessions(layout)
        assert sessions.get("main") is None
        other.set("main", "s1")
        assert sessions.get("main") == "s1"
        sessions.set("main", "s2")
        assert other.all() == {"main": "s2"}
        other.delete("main")
        assert sessions.get("main") is None
        other.close()

    def test_nothing_is_read_again_while_nothing_has_changed(
        self, layout: Layout, sessions: SessionManager
    ) -> None:
        sessions.set("main", "s1")
        sessions.get("main")
        statements: list[str] = []
        sessions._connection.exec_trace = lambda cursor, sql, bindings: (
            statements.append(sql) or True
        )
        assert sessions.get("main") == "s1"
        assert not [sql for sql in statements if "sessions" in sql]

    def test_what_failed_is_not_remembered(self, layout: Layout, sessions: SessionManager) -> None:
        sessions.set("main", "s1")
        sessions._connection.execute(
            "CREATE TRIGGER refuse BEFORE INSERT ON session_history BEGIN SELECT raise(ABORT, 'no'); END"
        )
        write_transcript(layout.group("main"), "s1")
        with pytest.raises(apsw.Error):
            sessions.clear("main", "beans")
        assert sessions.get("main") == "s1"

    def test_processes_that_begin_at_once_and_write_at_once_lose_nothing(
        self, tmp_path: Path
    ) -> None:
        layout = Layout(tmp_path / "host")
        layout.make()
        groups = ["main", "garden", "kitchen"]
        context = multiprocessing.get_context("spawn")
        children = [
            context.Process(target=_set_many, args=(layout.root, group, 20)) for group in groups
        ]
        for child in children:
            child.start()
        for child in children:
            child.join(60)
        assert [child.exitcode for child in children] == [0] * len(groups)
        sessions = open_sessions(layout)
        assert sessions.all() == {group: f"{group}-19" for group in groups}
        assert [len(sessions.get_history(group)) for group in groups] == [20] * len(groups)
        sessions.close()


class TestTheFile:
    def test_the_database_is_for_this_user_alone(
        self, layout: Layout, sessions: SessionManager
    ) -> None:
        sessions.set("main", "s1")
        store = Path(layout.database).parent
        assert {stat.S_IMODE(path.stat().st_mode) for path in store.iterdir()} == {0o600}
        assert stat.S_IMODE(store.stat().st_mode) == 0o700

    def test_a_link_in_its_place_is_not_followed(self, tmp_path: Path) -> None:
        (tmp_path / "elsewhere.db").write_bytes(b"")
        (tmp_path / "messages.db").symlink_to(tmp_path / "elsewhere.db")
        with pytest.raises(OSError):  # noqa: PT011
            _connect(str(tmp_path / "messages.db"))

    def test_a_migration_is_applied_once_and_whole(self, tmp_path: Path) -> None:
        connection = _connect(str(tmp_path / "x.db"))
        attempts = []

        def create_things(connection: apsw.Connection) -> None:
            attempts.append(1)
            connection.execute("CREATE TABLE things (name)")
            if len(attempts) == 1:
                raise OSError("the disk is full")

        with pytest.raises(OSError, match="full"):
            _migrate(connection, [create_things])
        _migrate(connection, [create_things])
        _migrate(connection, [create_things])
        assert len(attempts) == 2
        names = [name for (name,) in connection.execute("SELECT name FROM migrations")]
        assert names == ["create_things"]

    def test_the_migrations_have_the_names_of_their_functions(
        self, layout: Layout, sessions: SessionManager
    ) -> None:
        rows = apsw.Connection(layout.database).execute(
            "SELECT name FROM migrations ORDER BY rowid"
        )
        assert [name for (name,) in rows] == [migration.__name__ for migration in MIGRATIONS]

    def test_a_transaction_that_fails_leaves_nothing(self, tmp_path: Path) -> None:
        connection = _connect(str(tmp_path / "x.db"))
        connection.execute("CREATE TABLE things (name)")
        with pytest.raises(apsw.SQLError), writing(connection):
            connection.execute("INSERT INTO things VALUES (1); INSERT INTO nothing VALUES (1)")
        assert connection.execute("SELECT * FROM things").fetchall() == []
