"""The pointers to sessions: what is asked and changed, by several at once, over a crash between any two steps."""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from session_memory.archive import find_archive
from session_memory.database import connect, migrate, writing
from session_memory.errors import SessionMemoryError
from session_memory.host.layout import Group, GroupNameError, Layout
from session_memory.pointers import LOST, MIGRATIONS, HistoryEntry, NoSessionError, SessionManager

REPOSITORY = Path(__file__).resolve().parent.parent
# The seed's, word for word.
SEED_TABLES = {
    "sessions": "CREATE TABLE sessions (\n  group_folder TEXT PRIMARY KEY,\n  session_id TEXT NOT NULL\n)",
    "session_history": (
        "CREATE TABLE session_history (\n  id INTEGER PRIMARY KEY AUTOINCREMENT,\n  group_folder TEXT NOT NULL,\n"
        "  session_id TEXT NOT NULL,\n  name TEXT NOT NULL,\n  created_at TEXT NOT NULL,\n  archived_at TEXT NOT NULL\n)"
    ),
}
BEGAN = "2026-02-21T03:39:07.123Z"


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    layout = Layout(tmp_path / "host")
    layout.make()
    for name in ("main", "garden"):
        layout.group(name).make()
    return layout


@pytest.fixture
def sessions(layout: Layout) -> Iterator[SessionManager]:
    sessions = SessionManager(layout.database, layout.group)
    yield sessions
    sessions.close()


def write_transcript(group: Group, session_id: str, text: str = "plan the garden") -> Path:
    """A transcript with one exchange."""
    path = Path(group.transcript(session_id))
    path.parent.mkdir(parents=True, exist_ok=True)
    records = [
        {"type": "user", "uuid": f"{session_id}-u", "message": {"role": "user", "content": text}},
        {
            "type": "assistant", "uuid": f"{session_id}-a",
            "message": {"id": "m1", "role": "assistant", "content": [{"type": "text", "text": "Beans."}]},
        },
    ]  # fmt: skip
    lines = [{**record, "timestamp": BEGAN, "sessionId": session_id, "cwd": group.root} for record in records]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def state(sessions: SessionManager, group: str = "main") -> tuple[str | None, list[tuple[str, str]]]:
    """The group's pointer, and session and name of each entry of its history."""
    return sessions.get(group), [(entry.session_id, entry.name) for entry in sessions.get_history(group)]


def test_the_tables_are_those_of_the_seed(layout: Layout, sessions: SessionManager) -> None:
    seed = REPOSITORY / "../shared/seeds/g2-memory-system.md"
    rows = apsw.Connection(layout.database).execute("SELECT name, sql FROM sqlite_schema WHERE type = 'table'")
    found = dict(rows)
    assert {name: found[name] for name in SEED_TABLES} == SEED_TABLES
    if seed.exists():
        assert all(f"{sql};" in seed.read_text() for sql in SEED_TABLES.values())


def test_a_group_has_the_session_that_was_set_until_it_is_deleted(sessions: SessionManager) -> None:
    assert sessions.get("main") is None
    sessions.set("main", "s1")
    sessions.set("garden", "g1")
    sessions.set("main", "s2")
    assert (sessions.get("main"), sessions.get("garden")) == ("s2", "g1")
    sessions.delete("main")
    assert sessions.all() == {"garden": "g1"}


def test_archiving_copies_the_pointer_and_restoring_moves_the_entry_back(
    layout: Layout, sessions: SessionManager
) -> None:
    write_transcript(layout.group("main"), "s1")
    sessions.set("main", "s1")
    entry = sessions.archive("main", "  Tax\nresearch ")
    assert state(sessions) == ("s1", [("s1", "Tax research")])
    sessions.set("main", "s2")
    assert sessions.restore("main", entry) == "s1"
    assert state(sessions) == ("s1", [])


def test_an_entry_tells_when_its_session_began_and_was_archived(layout: Layout) -> None:
    write_transcript(layout.group("main"), "s1")
    sessions = SessionManager(layout.database, layout.group, now=lambda: 1_800_000_000.5)
    sessions.set("main", "s1")
    entry = sessions.archive("main", "tax")
    assert sessions.get_history("main") == [
        HistoryEntry(entry, "main", "s1", "tax", BEGAN, "2027-01-15T08:00:00.500Z"),
    ]
    sessions.close()


def test_the_history_has_the_last_archived_first_and_only_the_groups_own(sessions: SessionManager) -> None:
    for group, session_id in (("main", "s1"), ("garden", "g1"), ("main", "s2")):
        sessions.set(group, session_id)
        sessions.archive(group, f"about {session_id}")
    assert state(sessions)[1] == [("s2", "about s2"), ("s1", "about s1")]
    assert state(sessions, "garden")[1] == [("g1", "about g1")]


def test_an_entry_of_another_group_is_not_restored(layout: Layout, sessions: SessionManager) -> None:
    write_transcript(layout.group("garden"), "g1")
    write_transcript(layout.group("main"), "g1")
    sessions.set("garden", "g1")
    entry = sessions.archive("garden", "beans")
    with pytest.raises(NoSessionError, match=f"{entry} is no session of main"):
        sessions.restore("main", entry)
    assert state(sessions, "garden") == ("g1", [("g1", "beans")])


@pytest.mark.parametrize("name", ["..", "../main", "/etc", "global", "", "a" * 65, "mаin", "main\0", ".hidden", "a/b"])
def test_what_is_no_groups_name_gets_no_pointer(sessions: SessionManager, name: str) -> None:
    with pytest.raises(GroupNameError):
        sessions.set(name, "s1")
    assert sessions.all() == {}


@pytest.mark.parametrize("session_id", ["../s1", "", "s 1", "/etc/passwd", "s" * 65, "s1\n"])
def test_what_is_no_sessions_id_is_not_set(sessions: SessionManager, session_id: str) -> None:
    with pytest.raises(NoSessionError):
        sessions.set("main", session_id)
    assert sessions.get("main") is None


@pytest.mark.parametrize("name", ["", "  ", "\x1b[2J", "\u200b"])
def test_a_session_is_not_put_by_without_a_name(layout: Layout, sessions: SessionManager, name: str) -> None:
    write_transcript(layout.group("main"), "s1")
    sessions.set("main", "s1")
    for put_by in (lambda: sessions.archive("main", name), lambda: sessions.clear("main", name)):
        with pytest.raises(NoSessionError, match="needs a name"):
            put_by()
    assert state(sessions) == ("s1", [])
    assert not Path(layout.group("main").conversations_dir).exists()


class TestLostTranscripts:
    def test_a_pointer_whose_transcript_is_gone_is_noticed_on_use(
        self, layout: Layout, sessions: SessionManager
    ) -> None:
        path = write_transcript(layout.group("main"), "s1")
        sessions.set("main", "s1")
        assert sessions.usable("main") == "s1"
        path.unlink()
        assert sessions.usable("main") is None
        assert state(sessions) == (None, [("s1", LOST)])

    def test_looking_at_a_pointer_does_not_remove_it(self, sessions: SessionManager) -> None:
        sessions.set("main", "just-begun")
        assert (sessions.get("main"), sessions.get("main")) == ("just-begun", "just-begun")

    def test_a_session_whose_transcript_is_gone_is_not_resumed(self, layout: Layout, sessions: SessionManager) -> None:
        write_transcript(layout.group("main"), "s2")
        sessions.set("main", "s1")
        entry = sessions.archive("main", "tax")
        sessions.set("main", "s2")
        for resume in (lambda: sessions.restore("main", entry), lambda: sessions.resume("main", entry, "garden")):
            with pytest.raises(NoSessionError, match=r"the transcript of 'tax' .* is gone"):
                resume()
        assert state(sessions) == ("s2", [("s1", "tax")])

    def test_a_transcript_that_is_a_link_counts_as_gone(self, layout: Layout, sessions: SessionManager) -> None:
        elsewhere = write_transcript(layout.group("garden"), "g1")
        own = Path(layout.group("main").transcript("s1"))
        own.parent.mkdir(parents=True)
        own.symlink_to(elsewhere)
        sessions.set("main", "s1")
        assert sessions.usable("main") is None


class TestClearAndResume:
    def test_clearing_writes_the_archive_keeps_the_entry_and_takes_the_pointer(
        self, layout: Layout, sessions: SessionManager
    ) -> None:
        main = layout.group("main")
        write_transcript(main, "s1")
        sessions.set("main", "s1")
        kept = sessions.clear("main", "beans")
        assert state(sessions) == (None, [("s1", "beans")])
        assert kept.archive is not None
        assert "plan the garden" in Path(kept.archive).read_text()
        assert Path(kept.archive).parent == Path(main.conversations_dir)
        assert [entry.id for entry in sessions.get_history("main")] == [kept.history_id]

    def test_clearing_without_a_session_says_so(self, sessions: SessionManager) -> None:
        with pytest.raises(NoSessionError, match="main has no active session"):
            sessions.clear("main", "beans")

    def test_an_archive_that_cannot_be_written_leaves_all_as_it_was(
        self, layout: Layout, sessions: SessionManager
    ) -> None:
        write_transcript(layout.group("main"), "s1")
        sessions.set("main", "s1")
        Path(layout.group("main").conversations_dir).write_text("in the way")
        with pytest.raises((OSError, SessionMemoryError)):
            sessions.clear("main", "beans")
        assert state(sessions) == ("s1", [])

    def test_resuming_under_a_name_keeps_the_session_that_was_active(
        self, layout: Layout, sessions: SessionManager
    ) -> None:
        for session_id in ("s1", "s2"):
            write_transcript(layout.group("main"), session_id, f"about {session_id}")
        sessions.set("main", "s1")
        entry = sessions.clear("main", "first").history_id
        assert entry is not None
        sessions.set("main", "s2")
        kept = sessions.resume("main", entry, save_as="second")
        assert state(sessions) == ("s1", [("s2", "second")])
        assert kept is not None
        assert kept.archive is not None
        assert "about s2" in Path(kept.archive).read_text()

    def test_resuming_without_a_name_lists_it_no_more_but_archives_it(
        self, layout: Layout, sessions: SessionManager
    ) -> None:
        for session_id in ("s1", "s2"):
            write_transcript(layout.group("main"), session_id)
        sessions.set("main", "s1")
        entry = sessions.archive("main", "first")
        sessions.set("main", "s2")
        sessions.resume("main", entry)
        assert state(sessions) == ("s1", [])
        assert find_archive(layout.group("main").conversations_dir, "s2")

    def test_resuming_what_is_not_there_leaves_all_as_it_was(self, layout: Layout, sessions: SessionManager) -> None:
        write_transcript(layout.group("main"), "s1")
        sessions.set("main", "s1")
        with pytest.raises(NoSessionError, match="99 is no session of main"):
            sessions.resume("main", 99, "kept")
        assert state(sessions) == ("s1", [])

    def test_clearing_twice_at_once_puts_the_session_by_once(self, layout: Layout) -> None:
        write_transcript(layout.group("main"), "s1")
        managers = [SessionManager(layout.database, layout.group) for _ in range(4)]
        managers[0].set("main", "s1")
        done: list[str] = []

        def clear(sessions: SessionManager) -> None:
            try:
                sessions.clear("main", "beans")
                done.append("cleared")
            except NoSessionError:
                done.append("nothing there")

        threads = [threading.Thread(target=clear, args=(one,)) for one in managers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(done) == ["cleared", *["nothing there"] * 3]
        assert state(managers[0]) == (None, [("s1", "beans")])
        for one in managers:
            one.close()


# Clears or resumes in one directory after the other; in the n-th it dies before the n-th step of the file system or the
# database. Prints how each ended, up to the first that was not killed.
CRASHING = """
import os, signal, sys
from session_memory.host.layout import Layout
from session_memory.pointers import SessionManager

def work(root, left):
    layout = Layout(root)
    sessions = SessionManager(layout.database, layout.group)
    (entry,) = sessions.get_history("main")
    def step(*_):
        nonlocal left
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return True
    sessions._connection.exec_trace = step
    sys.addaudithook(lambda event, _: event in ("open", "os.rename", "os.remove", "os.mkdir") and step())
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
def test_a_crash_before_any_step_leaves_the_old_state_or_the_new(tmp_path: Path, action: str) -> None:
    layouts = [_with_two_sessions(tmp_path / f"host{number}") for number in range(MOST_STEPS)]
    command = [sys.executable, "-c", CRASHING, action, *[layout.root for layout in layouts]]
    done = subprocess.run(command, capture_output=True, text=True, cwd=REPOSITORY, check=True)
    ends = [int(line) for line in done.stdout.split()]
    assert ends == [signal.SIGKILL] * (len(ends) - 1) + [0]
    old = ("s2", [("s1", "first")])
    new = (None, [("s2", "beans"), ("s1", "first")]) if action == "clear" else ("s1", [("s2", "second")])
    states = []
    for layout, _ in zip(layouts, ends):
        sessions = SessionManager(layout.database, layout.group)
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
    sessions = SessionManager(layout.database, layout.group)
    sessions.set("main", "s1")
    sessions.archive("main", "first")
    sessions.set("main", "s2")
    sessions.close()
    return layout


def _set_many(root: str, group: str, count: int) -> None:
    layout = Layout(root)
    sessions = SessionManager(layout.database, layout.group)
    for number in range(count):
        sessions.set(group, f"{group}-{number}")
        if sessions.get(group) != f"{group}-{number}":
            os._exit(1)
        sessions.archive(group, f"entry {number}")
    sessions.close()


class TestSeveralProcesses:
    def test_what_another_connection_wrote_is_seen_at_once(self, layout: Layout, sessions: SessionManager) -> None:
        other = SessionManager(layout.database, layout.group)
        assert sessions.get("main") is None
        other.set("main", "s1")
        assert sessions.get("main") == "s1"
        sessions.set("main", "s2")
        assert other.all() == {"main": "s2"}
        other.delete("main")
        assert sessions.get("main") is None
        other.close()

    def test_nothing_is_read_again_while_nothing_has_changed(self, layout: Layout, sessions: SessionManager) -> None:
        sessions.set("main", "s1")
        sessions.get("main")
        statements: list[str] = []
        sessions._connection.exec_trace = lambda cursor, sql, bindings: statements.append(sql) or True
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

    def test_processes_that_begin_at_once_and_write_at_once_lose_nothing(self, tmp_path: Path) -> None:
        layout = Layout(tmp_path / "host")
        layout.make()
        groups = ["main", "garden", "kitchen"]
        context = multiprocessing.get_context("spawn")
        children = [context.Process(target=_set_many, args=(layout.root, group, 20)) for group in groups]
        for child in children:
            child.start()
        for child in children:
            child.join(60)
        assert [child.exitcode for child in children] == [0] * len(groups)
        sessions = SessionManager(layout.database, layout.group)
        assert sessions.all() == {group: f"{group}-19" for group in groups}
        assert [len(sessions.get_history(group)) for group in groups] == [20] * len(groups)
        sessions.close()


class TestTheFile:
    def test_the_database_is_for_this_user_alone(self, layout: Layout, sessions: SessionManager) -> None:
        sessions.set("main", "s1")
        store = Path(layout.database).parent
        assert {stat.S_IMODE(path.stat().st_mode) for path in store.iterdir()} == {0o600}
        assert stat.S_IMODE(store.stat().st_mode) == 0o700

    def test_a_link_in_its_place_is_not_followed(self, tmp_path: Path) -> None:
        (tmp_path / "elsewhere.db").write_bytes(b"")
        (tmp_path / "messages.db").symlink_to(tmp_path / "elsewhere.db")
        with pytest.raises(OSError):  # noqa: PT011
            connect(str(tmp_path / "messages.db"))

    def test_a_migration_is_applied_once_and_whole(self, tmp_path: Path) -> None:
        connection = connect(str(tmp_path / "x.db"))
        attempts = []

        def create_things(connection: apsw.Connection) -> None:
            attempts.append(1)
            connection.execute("CREATE TABLE things (name)")
            if len(attempts) == 1:
                raise OSError("the disk is full")

        with pytest.raises(OSError, match="full"):
            migrate(connection, [create_things])
        migrate(connection, [create_things])
        migrate(connection, [create_things])
        assert len(attempts) == 2
        names = [name for (name,) in connection.execute("SELECT name FROM migrations")]
        assert names == ["create_things"]

    def test_the_migrations_have_the_names_of_their_functions(self, layout: Layout, sessions: SessionManager) -> None:
        rows = apsw.Connection(layout.database).execute("SELECT name FROM migrations ORDER BY rowid")
        assert [name for (name,) in rows] == [migration.__name__ for migration in MIGRATIONS]

    def test_a_transaction_that_fails_leaves_nothing(self, tmp_path: Path) -> None:
        connection = connect(str(tmp_path / "x.db"))
        connection.execute("CREATE TABLE things (name)")
        with pytest.raises(apsw.SQLError), writing(connection):
            connection.execute("INSERT INTO things VALUES (1); INSERT INTO nothing VALUES (1)")
        assert connection.execute("SELECT * FROM things").fetchall() == []
