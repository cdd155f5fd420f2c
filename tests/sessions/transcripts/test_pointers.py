"""The pointers to sessions: reading and changing them, by several at once and across crashes."""

from __future__ import annotations

import threading
from pathlib import Path

import apsw
import pytest
from transcripts_scene import BEGAN, state, write_transcript

from session_memory.common.errors import SessionMemoryError
from session_memory.history.archives.list import find_archive, former_names
from session_memory.history.archives.writer import open_sessions
from session_memory.sessions.settings.host_layout import GroupNameError, Layout
from session_memory.sessions.transcripts.pointers import (
    LOST,
    HistoryEntry,
    NoSessionError,
    SessionManager,
)
from session_memory.sessions.transcripts.sessions import find_sessions

REPOSITORY = Path(__file__).resolve().parents[3]
# The seed's, word for word.
SEED_TABLES = {
    "sessions": "CREATE TABLE sessions (\n  group_folder TEXT PRIMARY KEY,\n  session_id TEXT NOT NULL\n)",
    "session_history": (
        "CREATE TABLE session_history (\n  id INTEGER PRIMARY KEY AUTOINCREMENT,\n  group_folder "
        "TEXT NOT NULL,\n"
        "  session_id TEXT NOT NULL,\n  name TEXT NOT NULL,\n  created_at TEXT NOT NULL,\n  "
        "archived_at TEXT NOT NULL\n)"
    ),
}


def test_the_tables_are_those_of_the_seed(layout: Layout, sessions: SessionManager) -> None:
    seed = REPOSITORY / "../shared/seeds/g2-memory-system.md"
    rows = apsw.Connection(layout.database).execute(
        "SELECT name, sql FROM sqlite_schema WHERE type = 'table'"
    )
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
    sessions = open_sessions(layout, now=lambda: 1_800_000_000.5)
    sessions.set("main", "s1")
    entry = sessions.archive("main", "tax")
    assert sessions.get_history("main") == [
        HistoryEntry(entry, "main", "s1", "tax", BEGAN, "2027-01-15T08:00:00.500Z"),
    ]
    sessions.close()


def test_the_history_has_the_last_archived_first_and_only_the_groups_own(
    sessions: SessionManager,
) -> None:
    for group, session_id in (("main", "s1"), ("garden", "g1"), ("main", "s2")):
        sessions.set(group, session_id)
        sessions.archive(group, f"about {session_id}")
    assert state(sessions)[1] == [("s2", "about s2"), ("s1", "about s1")]
    assert state(sessions, "garden")[1] == [("g1", "about g1")]


def test_an_entry_of_another_group_is_not_restored(
    layout: Layout, sessions: SessionManager
) -> None:
    write_transcript(layout.group("garden"), "g1")
    write_transcript(layout.group("main"), "g1")
    sessions.set("garden", "g1")
    entry = sessions.archive("garden", "beans")
    with pytest.raises(NoSessionError, match=f"{entry} is not a session of main"):
        sessions.restore("main", entry)
    assert state(sessions, "garden") == ("g1", [("g1", "beans")])


@pytest.mark.parametrize(
    "name", ["..", "../main", "/etc", "global", "", "a" * 65, "mаin", "main\0", ".hidden", "a/b"]
)
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
def test_a_session_is_not_put_by_without_a_name(
    layout: Layout, sessions: SessionManager, name: str
) -> None:
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

    def test_a_session_whose_transcript_is_gone_is_not_resumed(
        self, layout: Layout, sessions: SessionManager
    ) -> None:
        write_transcript(layout.group("main"), "s2")
        sessions.set("main", "s1")
        entry = sessions.archive("main", "tax")
        sessions.set("main", "s2")
        for resume in (
            lambda: sessions.restore("main", entry),
            lambda: sessions.resume("main", entry, "garden"),
        ):
            with pytest.raises(NoSessionError, match=r"the transcript of 'tax' .* is gone"):
                resume()
        assert state(sessions) == ("s2", [("s1", "tax")])

    def test_a_transcript_that_is_a_link_counts_as_gone(
        self, layout: Layout, sessions: SessionManager
    ) -> None:
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

    def test_the_session_reader_knows_it_by_the_name_that_it_was_cleared_under(
        self, layout: Layout, sessions: SessionManager
    ) -> None:
        main = layout.group("main")
        write_transcript(main, "s1")
        sessions.set("main", "s1")
        sessions.clear("main", "beans")
        write_transcript(main, "s2")
        Path(main.memory_home.sessions_dir, "main.json").write_text('{"sessionId": "s2"}')
        environ = {"HOME": main.home, "CLAUDE_CONFIG_DIR": main.config_dir}
        found = find_sessions(main.root, False, environ, former_names=former_names)
        assert sorted((one.id, one.name) for one in found) == [("s1", "beans"), ("s2", "main")]

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

    def test_resuming_what_is_not_there_leaves_all_as_it_was(
        self, layout: Layout, sessions: SessionManager
    ) -> None:
        write_transcript(layout.group("main"), "s1")
        sessions.set("main", "s1")
        with pytest.raises(NoSessionError, match="99 is not a session of main"):
            sessions.resume("main", 99, "kept")
        assert state(sessions) == ("s1", [])

    def test_clearing_twice_at_once_puts_the_session_by_once(self, layout: Layout) -> None:
        write_transcript(layout.group("main"), "s1")
        managers = [open_sessions(layout) for _ in range(4)]
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
