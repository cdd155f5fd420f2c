"""What several files say, forks, backups and conversions, is stored once."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from records import PiSession, assistant, exchange, new_id, user
from store_scene import PROJECT, Scene

from session_memory.history.store.ingest.ingestion import Ingestion
from session_memory.history.store.ingest.sources import SourceDirectory
from session_memory.history.store.values import Filter


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def test_two_sessions_that_have_one_id_and_time_for_different_texts_keep_both(scene):
    (first, answer), fork = exchange("one", "two"), user("three")
    other = {**answer, "message": assistant("another two")["message"]}
    use = {**answer, "uuid": new_id(), "message": assistant(("Bash", {"command": "ls"}))["message"]}
    other_use = {**use, "message": assistant(("Bash", {"command": "pwd"}))["message"]}
    scene.write("a", first, answer, use)
    scene.write("b", first, other, other_use)
    scene.write("c", first, other, other_use, fork)
    for _ in range(2):
        scene.ingest()
        assert sorted(scene.texts()) == sorted(
            ["one", "two", "Bash ls"] + 2 * ["one", "another two", "Bash pwd"] + ["three"]
        )
        scene.write("b", first, other, other_use, user("x" * 9))  # is read again from its beginning
        scene.write("b", first, other, other_use)
    rows = scene.store.connection.execute(
        "SELECT content FROM memory_transcript_entries ORDER BY content"
    ).fetchall()
    # what a fork copied is there once
    assert [text for (text,) in rows] == ["another two", "one", "three", "two"]


def test_a_backup_and_the_live_file_are_one_file_in_whatever_order_they_come(scene):
    scene.write("a", *exchange("one", "two"))
    backup = scene.path / "backup"
    shutil.copytree(scene.root, backup)
    scene.append("a", *exchange("three", "four"))
    scene.ingest(backup, is_backup=True)
    scene.ingest()
    scene.ingest(backup, is_backup=True)
    assert scene.texts() == ["one", "two", "three", "four"]
    assert scene.store.counts().files == 1
    state = scene.store.file_states("")[f"{PROJECT}/a.jsonl"]
    assert (state.generation, state.root) == (1, str(scene.root))


def test_the_live_file_takes_the_place_of_its_backup(scene):
    scene.write("a", *exchange("one", "two"))
    backup = scene.path / "backup"
    shutil.copytree(scene.root, backup)
    scene.ingest(backup, is_backup=True)
    for _ in range(2):
        ingestion = Ingestion(scene.store)
        ingestion.scan(SourceDirectory(str(scene.root)))
        assert scene.store.file_states("")[f"{PROJECT}/a.jsonl"].root == str(scene.root)
    assert scene.texts() == ["one", "two"]


def test_a_fork_is_stored_once_and_linked_to_both_sessions(scene):
    records = exchange("one", "two")
    scene.write("a", *records)
    scene.write("b", *records, another := user("another way"))
    scene.ingest()
    assert scene.store.counts().entries == 3
    assert scene.texts(session="b") == ["one", "two", "another way"]
    scene.write("b", *records, another, user("on"))
    scene.ingest()
    assert scene.texts(session="b") == ["one", "two", "another way", "on"]


def test_a_fork_with_new_ids_is_known_by_the_ids_of_its_origin(scene):
    records = exchange("one", "two")
    scene.write("a", *records)
    copies = [
        {**one, "uuid": new_id(), "forkedFrom": {"sessionId": "a", "messageUuid": one["uuid"]}}
        for one in records
    ]
    scene.write("b", *copies, user("another way"))
    scene.ingest()
    assert scene.store.counts().entries == 3
    assert scene.texts(session="b") == ["one", "two", "another way"]


def test_a_search_in_a_fork_says_where_what_it_copied_is_found(scene):
    records = exchange("plum jam", "two")
    scene.write("a", *records)
    scene.write("b", *records, user("another way"))
    scene.ingest()
    assert scene.store.search("plum", Filter(session="a")).notice == ""
    hits = scene.store.search("plum", Filter(session="b"))
    assert (list(hits), hits.notice) == (
        [],
        "The session copied messages from a; search finds them there.",
    )
    assert scene.store.search("plum", Filter()).notice == ""


def test_a_session_of_pi_counts_once_beside_the_transcript_of_claude_code_that_earlier_versions_made_of_it(
    scene,
):
    session = PiSession()
    session.exchange("plan a trip", "Gladly.")
    (scene.root / "pi").mkdir()
    session.write(scene.root / "pi")
    asked, answered = [
        {
            "sessionId": session.id,
            "timestamp": one["timestamp"],
            "forkedFrom": {"sessionId": session.id, "messageUuid": one["id"]},
        }
        for one in session.records[1:]
    ]
    scene.write(
        session.id,
        user("plan a trip", entrypoint="pi-converted", **asked),
        assistant("Gladly.", **answered),
    )
    scene.ingest()
    assert scene.store.counts().entries == 2
    assert sorted(state.source for state in scene.store.file_states("").values()) == [
        "pi",
        "pi-converted",
    ]
