"""The writing methods of each machine's own engine, SQLite.

test_store_contract.py has the part that every engine shares.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import apsw
import pytest
from store_scene import EVERYTHING, MINUTE, START, Scene, put, said, state, tool

from session_memory.history.store.ingest.values import Batch
from session_memory.sessions.settings import forgotten


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def test_the_state_of_a_file_is_kept_as_it_was_written_with_its_id_and_the_next_ordinal(scene):
    written = put(
        scene,
        None,
        state(offset=7, file_size=9, inode=3, head=4, tail=5, title="T", title_rank=2),
        said("hello"),
    )
    assert written.id > 0
    assert written.next_ordinal == 1
    assert scene.store.file_states("") == {"-srv-agent/a.jsonl": written}


def test_a_batch_is_not_stored_if_somebody_else_has_read_the_file_on(scene):
    put(scene, None, state(offset=10), said("hello"))
    assert scene.store.write([Batch(None, state(offset=20), [said("again", key="other")], [])]) == [
        None
    ]
    assert scene.texts() == ["hello"]


def test_batches_are_stored_all_or_none(scene):
    with pytest.raises(Exception, match="CHECK"):
        scene.store.write(
            [
                Batch(None, state(), [said("hello")], []),
                Batch(None, state("b"), [said("x", role="nobody")], []),
            ]
        )
    assert scene.store.file_states("") == {}
    assert scene.conversations() == []


def test_an_entry_that_is_known_is_stored_once_and_shows_in_both_files(scene):
    put(scene, None, state("a"), said("hello"), said("answer", 1, "assistant"))
    put(
        scene, None, state("b"), said("hello"), said("answer", 1, "assistant"), said("other way", 2)
    )
    assert scene.store.counts().entries == 3
    assert [len(scene.items(one)) for one in scene.conversations()] == [2, 3]
    assert scene.texts(session="b") == ["hello", "answer", "other way"]


def test_what_a_fork_shares_stays_when_the_original_is_forgotten(scene):
    put(scene, None, state("a"), said("hello", tools=(tool("ls"),)), said("mine", 1))
    put(scene, None, state("b"), said("hello", tools=(tool("ls"),)), said("other way", 2))
    scene.store.forget("", "-srv-agent/a.jsonl")
    assert scene.texts() == ["hello", "Bash ls", "other way"]
    assert [hit.conversation.session_id for hit in scene.store.search("hello", EVERYTHING)] == ["b"]


def test_a_forgotten_file_leaves_nothing(scene):
    put(scene, None, state("a"), said("hello", tools=(tool("ls"),)))
    scene.store.forget("", "-srv-agent/a.jsonl")
    counts = scene.store.counts()
    assert (counts.files, counts.entries, counts.tool_uses, counts.conversations) == (0, 0, 0, {})
    assert scene.store.search("hello", EVERYTHING) == []


def test_many_forgotten_files_leave_nothing_and_take_no_scan_each(scene):
    for number in range(30):
        put(scene, None, state(f"s{number}"), said(f"hello {number}"), said("to all", 1))
    plans: list[str] = []
    scene.store.connection.trace_v2(apsw.SQLITE_TRACE_STMT, lambda one: plans.append(one["sql"]))
    scene.store.forget("", *[f"-srv-agent/s{number}.jsonl" for number in range(29)])
    scene.store.connection.trace_v2(0, None)
    assert [sql for sql in plans if sql.startswith("CREATE INDEX memory_item_keys_by_id")] != []
    assert scene.texts() == ["hello 29", "to all"]
    assert scene.store.rows("SELECT name FROM sqlite_schema WHERE name LIKE '%_by_i%'") == []


def test_what_is_forgotten_while_a_batch_waits_for_the_store_is_not_stored(scene, monkeypatch):
    transaction = scene.store.transaction

    def after_a_forget():
        forgotten.add(str(scene.database), [forgotten.session_tombstone("", "a", START + MINUTE)])
        return transaction()

    monkeypatch.setattr(scene.store, "transaction", after_a_forget)
    put(scene, None, state("a"), said("hello"), said("later", 2))
    assert scene.texts() == ["later"]


def test_a_silent_conversation_becomes_ready_or_is_skipped_as_too_short(scene):
    put(scene, None, state("a"), *[said(f"a{n}", n) for n in range(5)])
    put(scene, None, state("b"), *[said(f"b{n}", n) for n in range(4)])
    assert scene.store.mark_ready(START + 64 * MINUTE) == 1
    assert scene.store.mark_ready(START + 70 * MINUTE) == 1
    assert {one.session_id: (one.status, one.reason) for one in scene.conversations()} == {
        "a": ("ready", ""),
        "b": ("skipped", "too short"),
    }


def test_a_conversation_that_grows_is_active_again_and_the_others_keep_their_status(scene):
    first = put(
        scene,
        None,
        state(),
        *[said(f"a{n}", n) for n in range(5)],
        *[said(f"b{n}", 100 + n) for n in range(5)],
    )
    scene.store.mark_ready(START + 1000 * MINUTE)
    put(scene, first, first._replace(offset=5), said("b5", 110))
    assert [one.status for one in scene.conversations()] == ["ready", "active"]


def test_a_file_that_is_gone_keeps_its_entries(scene):
    put(scene, None, state(), said("hello"))
    scene.store.mark_gone("", ["-srv-agent/a.jsonl"])
    assert scene.store.file_states("")["-srv-agent/a.jsonl"].status == "gone"
    assert scene.texts() == ["hello"]


def test_two_stores_over_one_database_see_what_the_other_writes(scene):
    other = scene.open()
    put(scene, None, state(), said("hello"))
    [conversation] = other.conversations(EVERYTHING)
    assert [item.text for item in other.entries(conversation.id)] == ["hello"]
    other.close()


@pytest.mark.parametrize(
    ("module", "late"),
    [
        ("refresh", "session_memory.history.store.ingest.ingestion"),
        ("ingest.ingestion", "concurrent.futures.process"),
    ],
)
def test_what_ingests_and_starts_processes_is_not_imported_before_it_is_needed(module, late):
    code = f"import sys, session_memory.history.store.{module}; sys.exit({late!r} in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
