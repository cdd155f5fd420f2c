"""Opening a store and updating it, as commands and tools do; its messages are calls."""

from __future__ import annotations

import sqlite3
from contextlib import contextmanager

import pytest
from records import exchange, user
from store_scene import MONDAY, StoreUser

from session_memory.common.system.files import stamp_of
from session_memory.common.system.sqlite import DatabaseError
from session_memory.common.text.timestamps import now_milliseconds
from session_memory.history.store import refresh as refreshing
from session_memory.history.store.ingest.intake import pending
from session_memory.history.store.location import find_location
from session_memory.history.store.refresh import NEWER, open_store, refresh, use_store
from session_memory.history.store.sqlite.unchanged import unchanged_files


@pytest.fixture
def machine(tmp_path):
    machine = StoreUser(tmp_path / "user")
    machine.session("one", *exchange("hello", "hi", at=MONDAY))
    return machine


def place_of(machine):
    return find_location(None, {"HOME": str(machine.home)})


def refreshed(machine, notes, shown=None):
    location = place_of(machine)
    store = open_store(location)
    try:
        refresh(store, location, notes.append, shown)
    finally:
        store.close()


def test_the_first_time_everything_is_taken_in_and_its_progress_is_shown(machine):
    shown = []

    @contextmanager
    def progress(store):
        yield lambda path, size: shown.append((path, size))

    notes = []
    refreshed(machine, notes, progress)
    path = machine.projects / "-srv-agent" / "one.jsonl"
    assert shown == [(str(path), 0), (str(path), path.stat().st_size)]
    assert (machine.stored(), notes) == (["hello", "hi"], [])


def test_what_is_new_is_counted_with_one_look_at_the_files_of_a_group(machine, monkeypatch):
    location = place_of(machine)
    store = open_store(location)
    asked = []
    known = store.file_states
    monkeypatch.setattr(store, "file_states", lambda home: asked.append(home) or known(home))
    try:
        assert pending(store, location.watched)[::2] == (1, 1)
    finally:
        store.close()
    assert (asked, len(location.watched) > 1) == ([""], True)


def test_what_is_new_later_is_taken_in_without_showing_it(machine):
    refreshed(machine, [])
    machine.session("two", user("more", at=MONDAY))
    refreshed(machine, [], shown=None)
    assert machine.stored() == ["hello", "hi", "more"]


def test_where_time_runs_out_the_rest_is_left_for_the_next_time(machine, monkeypatch):
    refreshed(machine, [])
    for name in ("two", "three"):
        machine.session(name, user(name, at=MONDAY))
    monkeypatch.setattr(refreshing, "REFRESH_SECONDS", -1)
    notes = []
    refreshed(machine, notes)
    assert notes == [
        "2 of 3 sessions are not complete in the store yet; session-memory ingest completes them"
    ]
    assert machine.stored() == ["hello", "hi"]
    monkeypatch.undo()
    refreshed(machine, notes)
    assert sorted(machine.stored()) == ["hello", "hi", "three", "two"]


def test_what_cannot_be_taken_in_is_noted_and_the_store_answers(machine, monkeypatch):
    refreshed(machine, [])
    machine.session("two", user("more", at=MONDAY))

    def is_full(*_):
        raise DatabaseError("memory.db: the disk is full")

    monkeypatch.setattr("session_memory.history.store.sqlite.engine.SqliteStore.write", is_full)
    notes = []
    refreshed(machine, notes)
    assert notes == ["new transcripts could not be ingested: memory.db: the disk is full"]
    assert machine.stored() == ["hello", "hi"]


def test_work_is_done_again_with_a_store_that_was_made_anew(machine):
    refreshed(machine, [])
    machine.database.write_bytes(b"no database at all" * 100)
    notes = []
    seen = use_store(
        place_of(machine),
        lambda store, is_rebuilt: (store.counts().entries, is_rebuilt),
        notes.append,
    )
    assert seen == (2, True)
    [note] = notes
    assert note.startswith(
        f"the store was corrupt; the old file is now {machine.database}.corrupt-"
    )


def test_to_a_newer_store_nothing_is_added(machine):
    refreshed(machine, [])
    sqlite3.connect(machine.database, isolation_level=None).execute(
        "INSERT INTO migrations VALUES ('of_tomorrow', '')"
    )
    machine.session("two", user("more", at=MONDAY))
    notes = []
    location = place_of(machine)

    def work(store, is_rebuilt):
        refresh(store, location, notes.append)
        return store.counts().entries

    assert (use_store(location, work, notes.append), notes) == (2, [NEWER])


class TestUnchanged:
    def test_files_are_counted_where_nothing_is_new(self, machine):
        refreshed(machine, [])
        assert unchanged_files(place_of(machine), now_milliseconds()) == 1

    @pytest.mark.parametrize("change", ["appended", "deleted", "added"])
    def test_a_change_is_seen(self, machine, change):
        refreshed(machine, [])
        path = machine.projects / "-srv-agent" / "one.jsonl"
        if change == "deleted":
            path.unlink()
        elif change == "appended":
            with path.open("ab") as file:
                file.write(b"\n")
        else:
            machine.session("two", user("more"))
        assert unchanged_files(place_of(machine), now_milliseconds()) is None

    def test_what_is_no_transcript_is_nothing_new(self, machine):
        refreshed(machine, [])
        (machine.projects / "-srv-agent" / "notes.jsonl").write_text('{"todo": "buy milk"}\n')
        refreshed(machine, [])
        assert unchanged_files(place_of(machine), now_milliseconds()) == 2

    def test_what_lies_deeper_belongs_to_sub_agents_and_is_not_looked_at(self, machine):
        refreshed(machine, [])
        machine.session("sub", user("a task"), project="-srv-agent/one/subagents")
        assert unchanged_files(place_of(machine), now_milliseconds()) == 1

    def test_a_file_s_stamp_is_its_inode_size_and_time(self, machine):
        path = machine.session("two", user("more"))
        status = path.stat()
        assert stamp_of(status) == (
            status.st_ino,
            path.stat().st_size,
            status.st_mtime_ns // 1_000_000,
        )
