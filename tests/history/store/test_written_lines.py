"""Hashes of the lines that items wrote: made by ingest, found by text.

They are gone with forgotten items, and hidden with excluded ones.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from records import append, as_written, user, write
from store_scene import Scene

from session_memory.common.text.written_lines import (
    added_lines,
    here_documents,
    line_hashes,
    line_in,
)
from session_memory.extras.team import postgres
from session_memory.history.store.ingest.values import Batch, NewTool
from session_memory.history.store.sqlite import engine
from session_memory.history.store.sqlite.engine import SqliteStore
from session_memory.history.store.sqlite.unread_lines import add_missing
from session_memory.history.store.sqlite.written_lines import _key_path, known_key, writers
from session_memory.history.store.values import ITEM_BITS, key_of

LINE = "total = price * (1 + tax_rate)"


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def wrote(name: str, call: str, **given: object) -> dict[str, object]:
    block = {"type": "tool_use", "id": call, "name": name, "input": given}
    return {
        "type": "assistant",
        "uuid": f"of-{call}",
        "sessionId": "a",
        "cwd": "/srv/agent",
        "timestamp": "2026-05-28T20:26:41.000Z",
        "message": {"id": f"m-{call}", "role": "assistant", "content": [block]},
    }


def edit(call: str = "c1", before: str = "total = price", after: str = LINE) -> dict[str, object]:
    return wrote("Edit", call, file_path="/srv/agent/cart.py", old_string=before, new_string=after)


def changed(call: str, *hunks: tuple[int, list[str]]) -> dict[str, object]:
    """The result of an edit as Claude Code 2.1.332 writes it: with each changed line whole."""
    patch = [
        {"oldStart": at, "oldLines": 3, "newStart": at, "newLines": 3, "lines": lines}
        for at, lines in hunks
    ]
    result = {"filePath": "/srv/agent/cart.py", "structuredPatch": patch, "userModified": False}
    block = {"type": "tool_result", "tool_use_id": call, "content": "The file has been updated."}
    return as_written(user([block], session="a", toolUseResult=result))


def found(scene: Scene, line: str = LINE) -> list[str]:
    hashes = line_hashes([line], known_key(str(scene.database)))
    return [one.argument for one in writers(scene.store, hashes)]


def test_lines_that_an_edit_adds_are_found_whatever_their_indentation(scene):
    scene.write(
        "a", user("compute the tax", session="a"), edit(after=f"    {LINE}\n    return total")
    )
    scene.ingest()
    assert found(scene) == ["/srv/agent/cart.py"]


def test_an_edit_of_a_part_of_a_line_wrote_the_whole_line(scene):
    hunks = (
        (1, [" import taxes", "-total = price * tax_rate", f"+{LINE}", " x = 1"]),
        (9, ["-y = tax_rate", "+y = 2", " x = 1"]),
    )
    scene.write("a", edit(before="tax_rate", after="(1 + tax_rate)"), changed("c1", *hunks))
    scene.ingest()
    assert found(scene) == found(scene, line_in("cart.py", "y = 2")) == ["/srv/agent/cart.py"]
    for line in ("(1 + tax_rate)", "import taxes", line_in("cart.py", "x = 1")):
        assert found(scene, line) == []


def test_a_file_that_is_written_again_wrote_only_the_lines_that_changed(scene):
    content = f"import all_the_taxes\n{LINE}\n"
    scene.write(
        "a",
        wrote("Write", "c1", file_path="/srv/agent/cart.py", content=content),
        changed("c1", (1, [" import all_the_taxes", f"+{LINE}"])),
    )
    scene.ingest()
    assert found(scene) == ["/srv/agent/cart.py"]
    assert found(scene, "import all_the_taxes") == []


def test_the_lines_of_a_new_file_are_those_of_its_call_whose_result_has_no_patch(scene):
    given = {"file_path": "/srv/agent/cart.py", "content": f"{LINE}\n"}
    scene.write("a", wrote("Write", "c1", **given), changed("c1"))
    scene.ingest()
    assert found(scene) == ["/srv/agent/cart.py"]


def test_a_result_that_comes_later_has_the_whole_line(scene):
    path = scene.write("a", edit(before="tax_rate", after="(1 + tax_rate)"))
    scene.ingest()
    assert found(scene, "(1 + tax_rate)") == ["/srv/agent/cart.py"]
    append(path, changed("c1", (1, [f"+{LINE}"])))
    scene.ingest()
    assert found(scene) == ["/srv/agent/cart.py"]
    assert found(scene, "(1 + tax_rate)") == []


def test_a_store_with_parts_of_lines_gets_the_whole_lines(scene):
    part = edit(before="tax_rate", after="(1 + tax_rate)")
    scene.write("a", part, changed("c1", (1, [f"+{LINE}"])))
    scene.ingest()
    scene.store.connection.execute("""
        DELETE FROM memory_written_lines;
        DELETE FROM memory_unread_lines;
        DELETE FROM migrations WHERE name = 'read_whole_lines';
    """)
    scene.store.close()
    store = SqliteStore(str(scene.database))
    add_missing(store, 10)
    hashes = line_hashes([LINE], known_key(str(scene.database)))
    assert [line.argument for line in writers(store, hashes)] == ["/srv/agent/cart.py"]
    store.close()


def test_lines_of_a_written_file_and_of_a_here_document_are_found(scene):
    command = (
        f"cat > pay.py <<'EOF'\n{LINE}  # paid\nEOF\ngit commit -F- <<EOF\n{LINE} message\nEOF"
    )
    scene.write(
        "a",
        wrote("Write", "c1", file_path="/srv/agent/cart.py", content=f"{LINE}\n"),
        wrote("Bash", "c2", command=command),
    )
    scene.ingest()
    assert found(scene) == ["/srv/agent/cart.py"]
    assert found(scene, f"{LINE} # paid") == [command]
    assert found(scene, f"{LINE} message") == []


def test_what_an_edit_keeps_and_short_lines_are_not_its_own():
    assert added_lines(
        f"{LINE}\nx = 1", f"  {LINE}\nx = 22\nnumber_of_items  =  3\nnumber_of_items = 3"
    ) == ["number_of_items = 3"]


def test_only_what_a_patch_in_a_here_document_adds_counts():
    patch = (
        f"*** Begin Patch\n*** Update File: a.py\n@@\n-old line of the file\n+{LINE}\n*** End Patch"
    )
    assert here_documents(f"apply_patch <<'EOF'\n{patch}\nEOF") == [LINE]


def test_a_copy_of_the_stores_directory_has_no_key_and_only_its_owner_reads_it(scene):
    scene.write("a", edit())
    scene.ingest()
    path = _key_path(str(scene.database))
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    files = [one for one in scene.database.parent.rglob("*") if one.is_file()]
    assert scene.database in files
    assert not [one for one in files if known_key(str(scene.database)) in one.read_bytes()]


def test_a_key_that_lies_beside_the_store_is_moved_and_its_lines_stay_known(scene):
    scene.write("a", edit())
    scene.ingest()
    path, before = Path(_key_path(str(scene.database))), scene.database.parent / "lines.key"
    path.rename(before)
    key = before.read_bytes()
    assert found(scene) == ["/srv/agent/cart.py"]
    scene.write("b", edit("c2", after=f"{LINE}  # later"))
    scene.ingest()
    assert (before.exists(), path.read_bytes(), stat.S_IMODE(os.stat(path).st_mode)) == (
        False,
        key,
        0o600,
    )
    assert len(found(scene)) == len(found(scene, f"{LINE} # later")) == 1


def test_a_forgotten_file_leaves_no_line(scene):
    scene.write("a", edit())
    scene.ingest()
    scene.store.forget("", "-srv-agent/a.jsonl")
    assert scene.store.rows("SELECT * FROM memory_written_lines") == []


def test_forgotten_conversations_leave_no_line_and_no_index(scene, monkeypatch):
    monkeypatch.setattr(engine, "MOST_SCANS", 0)
    scene.write("a", edit())
    scene.ingest()
    scene.store.forget_conversations(scene.store.all_conversations())
    assert scene.store.rows("SELECT * FROM memory_written_lines") == []
    assert scene.store.rows("SELECT name FROM sqlite_schema WHERE name LIKE '%_by_item'") == []


def test_a_line_of_a_forgotten_original_moves_to_the_fork(scene):
    scene.write("a", edit())
    scene.write("b", edit())
    scene.ingest()
    scene.store.forget("", "-srv-agent/a.jsonl")
    assert found(scene) == ["/srv/agent/cart.py"]


def test_lines_of_an_excluded_session_are_not_found(scene):
    scene.write("a", edit())
    scene.ingest()
    [file_id] = [file_id for (file_id,) in scene.store.rows("SELECT id FROM memory_file_states")]
    scene.store.connection.execute("INSERT INTO memory_excluded_files VALUES (?, 0)", (file_id,))
    assert found(scene) == []


def test_an_excluded_session_keeps_no_line_until_no_rule_excludes_it(scene):
    path = scene.write("a", edit())
    scene.write("b", edit("c2", after=f"{LINE}  # of b"))
    scene.ingest()
    [[file_id]] = scene.store.rows("SELECT id FROM memory_file_states WHERE session_id = 'a'")
    scene.store.connection.execute("INSERT INTO memory_excluded_files VALUES (?, 0)", (file_id,))
    add_missing(scene.store, 10)
    append(path, edit("c3", after=f"{LINE}  # later"))
    scene.ingest()
    add_missing(scene.store, 10)
    [[_, item]] = scene.store.rows("SELECT * FROM memory_written_lines")
    assert item >> ITEM_BITS != file_id
    scene.store.connection.execute("DELETE FROM memory_excluded_files")
    add_missing(scene.store, 10)
    assert found(scene) == found(scene, f"{LINE} # later") == ["/srv/agent/cart.py"]


def test_an_edit_that_failed_wrote_nothing(scene):
    failed = {
        "type": "tool_result",
        "tool_use_id": "c1",
        "is_error": True,
        "content": "String to replace not found",
    }
    scene.write("a", edit(), user([failed], session="a"))
    scene.ingest()
    assert found(scene) == []


def test_a_store_without_lines_gets_them_from_its_transcripts(scene):
    scene.write("a", edit())
    scene.ingest()
    scene.store.connection.execute("DELETE FROM memory_written_lines")
    scene.store.connection.execute("UPDATE memory_unread_lines SET since = NULL")
    add_missing(scene.store, 10)
    assert found(scene) == ["/srv/agent/cart.py"]
    assert scene.store.rows("SELECT * FROM memory_unread_lines") == []


def test_a_store_of_0_3_0_reads_the_lines_that_it_lacks_and_those_of_sub_agents(scene):
    scene.write("a", edit())
    scene.write("b", edit("c2", after=f"{LINE}  # later"))
    scene.ingest()
    scene.store.connection.execute("""
        DROP TABLE memory_unread_lines;
        CREATE TABLE memory_files_without_lines (file_id INTEGER PRIMARY KEY);
        INSERT INTO memory_files_without_lines SELECT min(id) FROM memory_file_states;
        DELETE FROM migrations WHERE name = 'add_unread_lines';
    """)
    scene.store.close()
    store = SqliteStore(str(scene.database))
    assert store.rows("SELECT since FROM memory_unread_lines ORDER BY file_id") == [(None,), (0,)]
    assert store.rows("SELECT 1 FROM sqlite_schema WHERE name = 'memory_files_without_lines'") == []
    store.close()


def test_a_lost_key_is_replaced_and_the_lines_are_read_again(scene):
    scene.write("a", edit())
    scene.ingest()
    before = known_key(str(scene.database))
    os.unlink(_key_path(str(scene.database)))
    scene.write("b", user("go on", session="b"))
    scene.ingest()
    add_missing(scene.store, 10)
    assert known_key(str(scene.database)) not in (b"", before)
    assert found(scene) == ["/srv/agent/cart.py"]


def of_sub_agent(
    record: dict[str, object], at: str = "2026-05-28T20:27:00.000Z"
) -> dict[str, object]:
    return {**record, "isSidechain": True, "agentId": "1", "timestamp": at}


def sub_agent(scene: Scene, *records: dict[str, object], session: str = "a") -> Path:
    """A session whose call starts a sub-agent, with the sub-agent's transcript."""
    started = wrote("Agent", "c0", description="Write the tax", prompt="write it")
    scene.write("a", user("compute the tax", session="a"), started)
    path = scene.root / "-srv-agent" / session / "subagents" / "agent-1.jsonl"
    return write(path, *map(of_sub_agent, records))


def ingest(scene: Scene) -> None:
    scene.ingest()
    add_missing(scene.store, 10)


def test_lines_of_a_sub_agent_are_those_of_the_call_that_started_it(scene):
    sub_agent(scene, user("write it", session="a"), edit())
    ingest(scene)
    [one] = writers(scene.store, line_hashes([LINE], known_key(str(scene.database))))
    assert (one.session_id, one.argument) == ("a", "Write the tax")
    assert found(scene, line_in("cart.py", LINE)) == ["Write the tax"]
    assert found(scene, line_in("pay.py", LINE)) == []


def test_what_a_sub_agent_writes_later_is_read_as_soon_as_its_session_goes_on(scene):
    path = sub_agent(scene, edit())
    ingest(scene)
    append(path, of_sub_agent(edit("c2", after=f"{LINE}  # later")))
    scene.append("a", user("go on", session="a"))
    ingest(scene)
    assert found(scene, f"{LINE} # later") == ["Write the tax"]
    assert scene.store.rows("SELECT * FROM memory_unread_lines") == []


def test_an_edit_of_a_sub_agent_that_failed_wrote_nothing(scene):
    failed = {
        "type": "tool_result",
        "tool_use_id": "c1",
        "is_error": True,
        "content": "String to replace not found",
    }
    sub_agent(scene, edit(), user([failed], session="a"))
    ingest(scene)
    assert found(scene) == []


def test_sub_agents_of_an_excluded_session_leave_no_line_until_no_rule_excludes_it(scene):
    sub_agent(scene, edit())
    ingest(scene)
    scene.store.connection.execute(
        "INSERT INTO memory_excluded_files SELECT id, 0 FROM memory_file_states"
    )
    scene.append("a", user("go on", session="a"))
    ingest(scene)
    assert scene.store.rows("SELECT * FROM memory_written_lines") == []
    scene.store.connection.execute("DELETE FROM memory_excluded_files")
    add_missing(scene.store, 10)
    assert found(scene) == ["Write the tax"]


def test_a_transcript_outside_the_root_is_read_for_no_sub_agent(scene, tmp_path):
    path = sub_agent(scene, edit())
    path.parent.rename(tmp_path / "elsewhere")
    path.parent.symlink_to(tmp_path / "elsewhere")
    ingest(scene)
    assert found(scene) == []


def rollout(session: str, **header: object) -> list[dict[str, object]]:
    meta = {"type": "session_meta", "payload": {"id": session, "cwd": "/srv/agent", **header}}
    patch = f"*** Begin Patch\n*** Add File: cart.py\n+{LINE}  # {session}\n*** End Patch"
    call = {
        "type": "custom_tool_call",
        "call_id": "c1",
        "name": "apply_patch",
        "input": patch,
        "status": "completed",
    }
    answer = {"type": "response_item", "payload": call}
    return [
        {"timestamp": f"2026-05-28T20:2{n}:00.000Z", **one} for n, one in enumerate((meta, answer))
    ]


def of_helper(scene: Scene) -> list[tuple[str, str]]:
    """Which sessions the lines of a sub-agent with a rollout of its own are found in, and in which file."""
    some = writers(scene.store, line_hashes([f"{LINE} # helper"], known_key(str(scene.database))))
    return [(one.session_id, one.argument) for one in some]


@pytest.mark.parametrize("is_excluding", [False, True])
def test_a_sub_agent_with_a_rollout_of_its_own_is_found_by_the_session_that_it_names(
    scene, is_excluding
):
    if is_excluding:  # another session
        scene.write("a", user("go on", session="a"))
        ingest(scene)
        scene.store.connection.execute(
            "INSERT INTO memory_excluded_files SELECT id, 0 FROM memory_file_states"
        )
    scene.write("main", *rollout("main"))
    scene.write("helper", *rollout("helper", session_id="main", thread_source="subagent"))
    ingest(scene)
    assert of_helper(scene) == [("main", "cart.py")]


def test_its_lines_are_found_again_once_no_rule_excludes_its_session(scene):
    scene.write("main", *rollout("main"))
    scene.write("helper", *rollout("helper", session_id="main", thread_source="subagent"))
    ingest(scene)
    main = "INSERT INTO memory_excluded_files SELECT id, 0 FROM memory_file_states WHERE session_id = 'main'"
    scene.store.connection.execute(main)
    add_missing(scene.store, 10)
    assert scene.store.rows("SELECT * FROM memory_written_lines") == []
    scene.store.connection.execute("DELETE FROM memory_excluded_files")
    for _ in range(2):
        add_missing(scene.store, 10)
    assert of_helper(scene) == [("main", "cart.py")]


def test_a_team_gets_no_line():
    folder = Path(postgres.__path__[0])
    texts = [path.read_text() for path in folder.iterdir() if path.suffix in (".sql", ".py")]
    assert texts
    assert not [text for text in texts if "written_lines" in text]


def test_a_batch_stores_the_hashes_of_its_calls(scene):
    from store_scene import said, state

    call = NewTool(key_of("t"), 0, "Edit", "edit", "/srv/agent/cart.py", None, (5, -7))
    scene.store.write([Batch(None, state(), [said("hello", tools=(call,))], [])])
    assert [line for line, _ in scene.store.rows("SELECT * FROM memory_written_lines")] == [-7, 5]
