"""Ingesting transcripts: nothing is lost or doubled, whatever happens to a file."""

from __future__ import annotations

import gc
import json
import os
import shutil
from pathlib import Path

import apsw
import pytest
import share
from records import (
    PiSession,
    append,
    assistant,
    droid_exchange,
    droid_message,
    droid_start,
    exchange,
    line,
    lines,
    record,
    tool_result,
    user,
)
from store_scene import EVERYTHING, PROJECT, Scene

from session_memory.common.system.sqlite import CorruptDatabaseError
from session_memory.history.store.ingest import ingestion as ingestion_module
from session_memory.history.store.ingest.ingestion import Ingestion
from session_memory.history.store.ingest.sources import SourceDirectory, SourceFile
from session_memory.history.store.sqlite.engine import SqliteStore
from session_memory.sessions.runtimes.table import runtime
from session_memory.sessions.transcripts.lines import first_line
from session_memory.sessions.transcripts.reader import TranscriptReader

TRANSCRIPTS = Path(__file__).resolve().parents[4] / "shared" / "transcripts"
SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def test_the_first_import_takes_everything_that_was_said(scene):
    scene.write("a", *exchange("plan a trip", "to Japan?"), *exchange("yes", "fine"))
    report = scene.ingest()
    assert (report.files, report.changed, report.entries) == (1, 1, 4)
    assert scene.texts() == ["plan a trip", "to Japan?", "yes", "fine"]


def test_a_first_import_succeeds_if_the_store_is_busy_when_it_would_be_compacted(
    scene, monkeypatch
):
    """Another process writes, or the disk is full: only the form of the file would change."""
    original = SqliteStore.compact

    def compact(store):
        store.connection.set_busy_timeout(10)
        other = apsw.Connection(store.path)
        other.execute("BEGIN IMMEDIATE")
        try:
            original(store)
        finally:
            other.close()

    monkeypatch.setattr(SqliteStore, "compact", compact)
    monkeypatch.setattr(ingestion_module, "COMPACTED_BYTES", 1)
    scene.write("a", *exchange("one", "two"))
    ingestion = Ingestion(scene.store)
    ingestion.scan(SourceDirectory(str(scene.root)))
    ingestion.finish()
    assert (ingestion.report.entries, scene.texts()) == (2, ["one", "two"])


def test_a_damaged_store_that_is_compacted_is_reported(scene, monkeypatch):
    def compact(store):
        raise CorruptDatabaseError("malformed")

    monkeypatch.setattr(SqliteStore, "compact", compact)
    monkeypatch.setattr(ingestion_module, "COMPACTED_BYTES", 1)
    scene.write("a", *exchange("one", "two"))
    ingestion = Ingestion(scene.store)
    ingestion.scan(SourceDirectory(str(scene.root)))
    with pytest.raises(CorruptDatabaseError):
        ingestion.finish()


def test_a_file_that_did_not_change_is_not_opened(scene, monkeypatch):
    path = scene.write("a", *exchange("one", "two"))
    os.utime(path, (1_700_000_000, 1_700_000_000))
    scene.ingest()
    monkeypatch.setattr(SourceFile, "open", None)
    assert scene.ingest().changed == 0


def test_of_a_file_that_grew_only_what_is_new_is_read(scene):
    path = scene.write("a", *exchange("one", "two"))
    scene.ingest()
    size = path.stat().st_size
    scene.append("a", *exchange("three", "four"))
    assert scene.ingest().bytes == path.stat().st_size - size
    assert scene.texts() == ["one", "two", "three", "four"]


def test_a_record_that_is_being_written_waits_until_it_is_whole(scene):
    path = scene.write("a", user("one"))
    whole = line(assistant("two"))
    with path.open("ab") as file:
        file.write(whole[:40])
    scene.ingest()
    assert scene.texts() == ["one"]
    with path.open("ab") as file:
        file.write(whole[40:])
    scene.ingest()
    assert scene.texts() == ["one", "two"]


def test_a_record_behind_one_that_was_torn_anywhere_is_stored(scene):
    torn, whole = line(assistant("torn", ("Bash", {"command": "ls"}))), line(user("whole"))
    for number, cut in enumerate(range(1, len(torn) - 1, 7)):
        scene.file(f"s{number}").write_bytes(
            line(user("one")) + torn[:cut] + whole + line(assistant("two"))
        )
    report = scene.ingest()
    assert report.unreadable == number + 1
    assert scene.texts() == ["one", "whole", "two"] * (number + 1)


def test_a_last_record_without_a_line_feed_counts_and_counts_once(scene):
    path = scene.write("a", user("one"))
    path.write_bytes(path.read_bytes() + line(assistant("two")).rstrip())
    scene.ingest()
    assert scene.texts() == ["one", "two"]
    with path.open("ab") as file:
        file.write(b"\n" + line(user("three")))
    scene.ingest()
    assert scene.texts() == ["one", "two", "three"]


def test_what_was_truncated_away_stays_and_what_comes_then_is_added(scene):
    first, second = exchange("one", "two"), exchange("three", "four")
    scene.write("a", *first, *second)
    scene.ingest()
    scene.write("a", *first, user("five"))
    scene.ingest()
    assert scene.texts() == ["one", "two", "three", "four", "five"]


def test_a_file_that_was_replaced_is_read_anew_without_doubling_what_is_known(scene, tmp_path):
    records = exchange("one", "two")
    path = scene.write("a", *records)
    scene.ingest()
    other = tmp_path / "other"
    other.write_bytes(lines(user("zero"), *records, user("three")))
    os.replace(other, path)
    scene.ingest()
    assert sorted(scene.texts()) == ["one", "three", "two", "zero"]
    assert scene.store.file_states("")[f"{PROJECT}/a.jsonl"].generation == 2


def test_a_file_that_is_deleted_is_marked_gone_and_comes_back_as_it_was(scene):
    path = scene.write("a", *exchange("one", "two"))
    content = path.read_bytes()
    scene.ingest()
    path.unlink()
    assert scene.ingest().gone == 1
    assert scene.ingest().gone == 0
    path.write_bytes(content)
    scene.ingest()
    assert scene.store.counts().gone == 0
    assert scene.texts() == ["one", "two"]


def test_a_root_that_cannot_be_read_makes_nothing_gone(scene):
    scene.write("a", *exchange("one", "two"))
    scene.ingest()
    scene.root.rename(scene.path / "elsewhere")
    report = scene.ingest()
    assert [where for where, _ in report.problems] == [str(scene.root)]
    assert scene.store.counts().gone == 0


def test_the_text_and_the_tool_uses_of_one_record_are_one_message(scene):
    said = assistant("I look", ("Bash", {"command": "ls"}), ("Bash", {"command": "pwd"}))
    del said["message"]["id"]
    scene.write("a", user("look around"), said)
    scene.ingest()
    assert [one.entry_count for one in scene.conversations()] == [2]


def test_a_tool_use_has_its_outcome_and_the_size_of_its_result(scene):
    use = assistant(("Bash", {"command": "make"}))
    call = use["message"]["content"][0]["id"]
    failed = tool_result()
    block = {
        "tool_use_id": call,
        "type": "tool_result",
        "content": "Exit code 2\nmake: no rule\nmore",
        "is_error": True,
    }
    failed["message"]["content"] = [block]
    scene.write("a", user("build it"), use, failed)
    scene.ingest()
    [_, item] = scene.items(scene.conversations()[0])
    assert (item.tool, item.text, item.outcome, item.error) == (
        "Bash",
        "make",
        "error",
        "Exit code 2: make: no rule",
    )
    assert (item.result_size, item.result_lines) == (len(block["content"]), 3)


def test_a_result_that_comes_with_a_later_run_finds_its_tool_use(scene):
    use = assistant(("Bash", {"command": "make"}))
    call = use["message"]["content"][0]["id"]
    block = {
        "tool_use_id": call,
        "type": "tool_result",
        "content": [{"type": "text", "text": "ok"}],
    }
    scene.write("a", user("build it"), use)
    scene.ingest()
    scene.append("a", user([block]))
    scene.ingest()
    assert [item.outcome for item in scene.items(scene.conversations()[0])] == ["", "ok"]


@pytest.mark.parametrize("is_later", [False, True])
@pytest.mark.parametrize(("has_failed", "outcome"), [(False, "ok"), (True, "error")])
def test_the_one_result_of_a_patch_is_that_of_each_of_its_files(
    scene, is_later, has_failed, outcome
):
    names = ("a.py", "b.py", "c.py")
    files = "".join([f"*** Update File: /srv/{name}\n@@\n-1\n+2\n" for name in names])
    given = {"input": f"*** Begin Patch\n{files}*** End Patch\n"}
    call = {"type": "tool_use", "id": "call_1", "name": "ApplyPatch", "input": given}
    ended = {"type": "tool_result", "tool_use_id": "call_1", "is_error": has_failed, "content": "x"}
    begun = [*droid_exchange("change all", "I will."), droid_message("assistant", call)]
    scene.write("a", droid_start("a", "/srv"), *begun)
    if is_later:
        scene.ingest()
    scene.append("a", droid_message("user", ended))
    scene.ingest()
    [conversation] = scene.conversations()
    calls = [(item.text, item.outcome) for item in scene.items(conversation) if item.tool]
    assert calls == [(f"/srv/{name}", outcome) for name in names]


@pytest.mark.parametrize("batch_bytes", [1, 10_000_000])
def test_call_ids_that_repeat_in_a_session_each_get_their_own_result(scene, batch_bytes):
    def call(command):
        use = assistant(("Bash", {"command": command}))
        use["message"]["content"][0]["id"] = "call_0"
        return use

    def result(text, **fields):
        return user([{"tool_use_id": "call_0", "type": "tool_result", "content": text, **fields}])

    scene.write(
        "a",
        user("go"),
        call("ls"),
        result("a"),
        call("sleep"),
        call("cat"),
        result("none", is_error=True),
    )
    scene.ingest(batch_bytes=batch_bytes)
    scene.append("a", call("pwd"), result("/srv/agent"), call("date"))
    scene.ingest(batch_bytes=batch_bytes)
    scene.append("a", result("noon"))
    scene.ingest(batch_bytes=batch_bytes)
    tools = [
        (item.text, item.outcome, item.result_size)
        for item in scene.items(scene.conversations()[0])
    ][1:]
    assert tools == [
        ("ls", "ok", 1),
        ("sleep", "", None),
        ("cat", "error", 4),
        ("pwd", "ok", 10),
        ("date", "ok", 4),
    ]


def test_of_a_tree_the_store_has_what_the_archive_has_whatever_was_stored_before(scene):
    session = PiSession()
    session.exchange("one", "two")
    left = session.exchange("three", "four")
    for change in (
        lambda: None,
        lambda: session.back_to(session.records[2]["id"]),
        lambda: session.exchange("five", "six"),
        lambda: (session.back_to(left), session.exchange("seven", "eight")),
        lambda: session.edit(left),
        lambda: session.exchange("nine", "ten"),
    ):
        change()
        path = session.write(scene.root / "--srv-agent--")
        scene.ingest()
        with path.open("rb") as file:
            reader = TranscriptReader(runtime("pi"), first_line(file.fileno()))
            live = [entry.text for entry in reader.conversation(file.fileno()) if entry]
        assert scene.texts() == live
    assert live == ["one", "two", "three", "seven", "eight", "nine", "ten"]
    assert [hit.entry.text for hit in scene.store.search("five four", EVERYTHING)] == []


def test_secrets_are_not_written(scene):
    use = assistant(("Bash", {"command": f"curl -H 'Authorization: {SECRET}'"}))
    call = use["message"]["content"][0]["id"]
    block = {
        "tool_use_id": call,
        "type": "tool_result",
        "content": f"bad token {SECRET}",
        "is_error": True,
    }
    scene.write(
        "a",
        user(f"my token is {SECRET}"),
        use,
        user([block]),
        record("custom-title", customTitle=f"Use {SECRET}"),
    )
    scene.ingest()
    scene.store.close()
    held = b"".join(path.read_bytes() for path in scene.database.parent.iterdir())
    assert SECRET.encode() not in held
    assert b"[redacted: github token]" in held


def test_what_is_injected_meta_or_from_side_chains_is_left_out(scene):
    attachment = {"type": "hook_additional_context", "content": ["[Session Activity]"]}
    meta, side = user("meta", isMeta=True), user("side", isSidechain=True)
    scene.write("a", meta, side, record("attachment", attachment=attachment), user("real"))
    scene.ingest()
    assert scene.texts() == ["real"]


def test_lines_that_cannot_be_read_are_counted_and_cost_nothing_else(scene):
    path = scene.write("a", user("one"))
    path.write_bytes(path.read_bytes() + b'{"type":"user", broken\n' + line(user("two")))
    assert scene.ingest().unreadable == 1
    assert scene.texts() == ["one", "two"]


def test_a_lone_surrogate_does_not_stop_the_file(scene):
    path = scene.write("a", user("one"))
    path.write_bytes(path.read_bytes() + line(user("two SUR")).replace(b"SUR", b"\\ud83d"))
    scene.ingest()
    assert scene.texts() == ["one", "two \ufffd"]


def test_a_file_larger_than_a_batch_goes_in_piece_by_piece(scene):
    records = [
        one for number in range(200) for one in exchange(f"question {number}", f"answer {number}")
    ]
    scene.write("a", *records)
    scene.ingest(batch_bytes=4096)
    assert len(scene.texts()) == 400
    assert scene.store.counts().conversations == {"active": 1}


def test_an_ingestion_that_stopped_between_batches_goes_on_where_it_was(scene):
    scene.write("a", *[user(f"number {number}") for number in range(100)])

    class Stop(Exception):
        pass

    def stop(path: str, size: int) -> None:
        if scene.store.counts().entries:
            raise Stop

    with pytest.raises(Stop):
        scene.ingest(progress=stop, batch_bytes=4096)
    assert scene.store.counts().ingesting == 1
    scene.ingest()
    assert scene.texts() == [f"number {number}" for number in range(100)]
    assert scene.store.counts().ingesting == 0


def test_what_is_appended_while_a_file_is_read_is_for_the_next_time(scene):
    scene.write("a", user("one"))
    grown = []

    def grow(path: str, size: int) -> None:
        if not grown:
            grown.append(scene.append("a", user("two")))

    scene.ingest(progress=grow)
    assert scene.texts() == ["one"]
    scene.ingest()
    assert scene.texts() == ["one", "two"]


def test_of_two_ingestions_at_once_the_slower_one_stores_nothing_twice(scene):
    scene.write("a", *exchange("one", "two"))
    other = scene.open()
    slower = Ingestion(other)
    scene.ingest()
    slower.scan(SourceDirectory(str(scene.root)))
    assert slower.report.problems == []
    assert scene.texts() == ["one", "two"]
    other.close()


def test_files_of_other_programs_and_of_sub_agents_are_left_alone(scene):
    scene.file("other").write_text('{"kind":"event","payload":{"id":"x"}}\n')
    below = scene.root / PROJECT / "a" / "subagents" / "agent-1.jsonl"
    below.parent.mkdir(parents=True)
    below.write_bytes(lines(user("deep")))
    (scene.root / PROJECT / "link.jsonl").symlink_to(below)
    assert scene.ingest().changed == 0


def test_pi_sessions_are_read_as_they_are(scene):
    time = "2026-02-21T03:00:00.000Z"
    call = {"type": "toolCall", "id": "call_0", "name": "bash", "arguments": {"command": "ls"}}
    told = {"toolCallId": "call_0", "isError": False, "content": [{"type": "text", "text": "a\nb"}]}
    records = [
        {"type": "session", "version": 3, "id": "01a1", "timestamp": time, "cwd": "/work/proj"}
    ]
    for id, parent, role, message in (
        ("c9abe0e4", None, "user", {"content": "list it"}),
        ("4b8d5bf0", "c9abe0e4", "assistant", {"content": [call]}),
        ("f26575c7", "4b8d5bf0", "toolResult", told),
    ):
        said = {
            "type": "message",
            "id": id,
            "parentId": parent,
            "timestamp": time.replace("00.000", "01.000"),
        }
        records.append({**said, "message": {"role": role, **message}})
    path = scene.root / "--work-proj--" / "2026-02-21T03-00-00-000Z_01a1.jsonl"
    path.parent.mkdir()
    path.write_bytes(b"".join(json.dumps(one).encode() + b"\n" for one in records))
    scene.ingest()
    [conversation] = scene.conversations()
    assert (conversation.runtime, conversation.session_id, conversation.cwd) == (
        "pi",
        "01a1",
        "/work/proj",
    )
    assert [(item.tool, item.text, item.outcome) for item in scene.items(conversation)] == [
        ("", "list it", ""),
        ("bash", "ls", "ok"),
    ]


def test_groups_are_kept_apart_in_one_store(scene):
    records = exchange("one", "two")
    for group in ("red", "blue"):
        root = scene.path / group
        (root / PROJECT).mkdir(parents=True)
        append(root / PROJECT / "a.jsonl", *records)
        scene.ingest(root, group)
    for group in ("red", "blue"):
        with scene.seen_by(group):
            assert scene.texts() == ["one", "two"]
    assert scene.store.counts().entries == 4


def parts_of_index(scene: Scene) -> int:
    [(parts,)] = scene.store.rows("SELECT count(DISTINCT segid) FROM memory_search_idx")
    return int(parts)


def test_all_files_of_a_batch_share_one_part_of_the_index(scene):
    for name in ("a", "b", "c"):
        scene.write(name, *exchange(f"plan a trip {name}", "to Japan?"))
    scene.ingest()
    assert parts_of_index(scene) == 1


@pytest.mark.parametrize("is_large", [False, True])
def test_a_large_first_import_leaves_a_compact_store(scene, monkeypatch, is_large):
    monkeypatch.setattr(ingestion_module, "COMPACTED_BYTES", 1 if is_large else 1 << 30)
    for name in ("a", "b", "c"):
        scene.write(name, *exchange(f"plan a trip {name}", "to Japan?"))
    ingestion = Ingestion(scene.store, batch_bytes=1)
    ingestion.scan(SourceDirectory(str(scene.root)))
    ingestion.finish()
    assert parts_of_index(scene) == (1 if is_large else 6)
    assert len(scene.store.search("trip", EVERYTHING)) == 3
    scene.write("d", *exchange("plan a trip d", "to Japan?"))
    later = Ingestion(scene.store)
    later.scan(SourceDirectory(str(scene.root)))
    later.finish()
    assert parts_of_index(scene) == (2 if is_large else 7)


@pytest.mark.skipif(not TRANSCRIPTS.exists(), reason="the real transcripts are not here")
def test_real_transcripts_go_in_whole_piece_by_piece_and_twice_alike(scene):
    for name in ("claude", "pi"):
        paths = sorted((TRANSCRIPTS / name).rglob("*.jsonl"))
        for number, path in enumerate(paths[:: 1 if share.is_all else 3]):
            directory = scene.root / f"{name}-{number}"
            directory.mkdir()
            shutil.copy(path, directory)
    report = scene.ingest(batch_bytes=50_000)
    assert report.problems == []
    once = scene.store.counts()
    assert once.entries > 500
    scene.store.close()
    scene.database.unlink()
    scene.store = scene.open()
    scene.ingest()
    again = scene.store.counts()
    assert once._replace(database_bytes=0) == again._replace(database_bytes=0)
    for path in scene.root.rglob("*.jsonl"):
        os.utime(path)
    assert scene.ingest().entries == 0


def test_no_garbage_is_looked_for_while_files_are_read_even_if_one_is_interrupted(scene):
    scene.write("a", *exchange("plan a trip", "to Japan?"))
    enabled = []

    def stop(path: str, size: int) -> None:
        enabled.append(gc.isenabled())
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        scene.ingest(progress=stop)
    assert enabled == [False]
    assert gc.isenabled()
    scene.ingest()
    assert gc.isenabled()
    assert scene.texts() == ["plan a trip", "to Japan?"]
