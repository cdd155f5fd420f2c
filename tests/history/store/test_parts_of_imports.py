"""A large transcript is read in parts: the store has the same, wherever the parts are cut."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from records import (
    as_written,
    assistant,
    codex_exchange,
    codex_line,
    copilot_exchange,
    copilot_start,
    droid_exchange,
    droid_message,
    droid_start,
    lines,
    user,
    write,
)
from store_scene import PROJECT, Scene

from session_memory.common.system.files import Opened
from session_memory.history.store.ingest import ingestion
from session_memory.history.store.sqlite.written_lines import KEY_BYTES
from session_memory.sessions.runtimes.table import all_runtimes, runtime
from session_memory.sessions.transcripts.lines import first_line
from session_memory.sessions.transcripts.reader import TranscriptReader

FIXTURES = Path(__file__).parents[2] / "sessions" / "runtimes" / "fixtures"
EDIT = {"file_path": "/srv/agent/a.py", "content": "apples = 3\npears = 4\n"}
COMMAND = "cat > b.py <<EOF\nplums_in_the_basket = 5\nEOF"
COMMITTED = "[main 1234567] count the plums\n 1 file changed, 1 insertion(+)"
RUNTIMES = [runtime.name for runtime in all_runtimes()]


def tables(database: Path) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of all tables, without a random number and the bytes of the search index."""
    with closing(sqlite3.connect(database)) as connection:
        connection.row_factory = sqlite3.Row
        names = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
        return {
            name: sorted(
                [dict(row) for row in connection.execute(f"SELECT * FROM {name}")], key=repr
            )
            for (name,) in names
            if name not in ("memory_store", "migrations")
            and (not name.startswith(("memory_search", "memories_search")) or "docsize" in name)
        }


def imported(path: Path, root: Path, batch_bytes: int) -> dict[str, Any]:
    """Return the tables of a new store with the transcripts, read in parts of about this size."""
    scene = Scene(path)
    (path / "lines.key").write_bytes(b"k" * KEY_BYTES)
    scene.ingest(root, batch_bytes=batch_bytes)
    scene.store.close()
    return tables(scene.database)


def is_same(path: Path, root: Path) -> None:
    """Check parts that are stored one by one, and parts of one transaction."""
    whole = imported(path / "whole", root, 1 << 30)
    assert whole["memory_transcript_entries"]
    for size, batch_bytes in ((1, 1), (700, 700), (700, 1 << 30)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(ingestion, "SPAN_BYTES", size)
            parts = imported(path / f"{size}-{batch_bytes}", root, batch_bytes)
        for table, rows in whole.items():
            assert parts[table] == rows, table


@pytest.mark.parametrize("name", RUNTIMES)
def test_the_fixtures_of_a_runtime_are_stored_the_same(tmp_path: Path, name: str) -> None:
    root = tmp_path / "transcripts"
    (root / PROJECT).mkdir(parents=True)
    fixtures = FIXTURES / name
    for each in sorted([*fixtures.glob("*.jsonl"), *fixtures.glob("cases/*.jsonl")]):
        shutil.copy2(each, root / PROJECT / each.name)
    is_same(tmp_path, root)


def ended(call: str, text: str, **fields: Any) -> dict[str, Any]:
    return user([{"tool_use_id": call, "type": "tool_result", "content": text, **fields}])


@pytest.mark.parametrize("has_failed", [False, True])
def test_calls_whose_results_come_later_are_stored_the_same(
    tmp_path: Path, *, has_failed: bool
) -> None:
    """Lines of a failed call are not stored, nor the commits that its output names."""
    root = tmp_path / "transcripts"
    blocks = [
        {"type": "tool_use", "id": "edit", "name": "Write", "input": EDIT},
        {"type": "tool_use", "id": "bash", "name": "Bash", "input": {"command": COMMAND}},
    ]
    records = [user("write it"), assistant("I will.", message_id="msg_1")]
    records += [assistant(block, message_id="msg_1") for block in blocks]
    records += [ended(call, COMMITTED, is_error=has_failed) for call in ("edit", "bash")]
    for record in records[:2]:
        del record["cwd"]
    write(root / PROJECT / "a.jsonl", *records, user("next"), assistant("done"))
    is_same(tmp_path, root)


@pytest.mark.parametrize("order", [as_written, dict])
def test_whole_lines_of_a_result_that_comes_later_are_stored_the_same(
    tmp_path: Path, order: Callable[[dict[str, Any]], dict[str, Any]]
) -> None:
    root = tmp_path / "transcripts"
    given = {"file_path": "/srv/agent/a.py", "old_string": "= 2", "new_string": "= the_sum_of(3)"}
    call = {"type": "tool_use", "id": "edit", "name": "Edit", "input": given}
    lines = [" import apples", "-apples = 2", "+apples = the_sum_of(3)", "+x = 1"]
    patch = [{"oldStart": 1, "oldLines": 2, "newStart": 1, "newLines": 3, "lines": lines}]
    result = ended("edit", "updated")
    result["toolUseResult"] = {"filePath": given["file_path"], "structuredPatch": patch}
    records = user("write it"), assistant(call), order(result), user("next")
    write(root / PROJECT / "a.jsonl", *records)
    is_same(tmp_path, root)


@pytest.mark.parametrize("has_failed", [False, True])
def test_a_patch_of_several_files_is_stored_the_same(tmp_path: Path, *, has_failed: bool) -> None:
    root = tmp_path / "transcripts"
    files = "".join([f"*** Add File: {name}.py\n+x = {name!r}\n" for name in "abc"])
    given = {"input": f"*** Begin Patch\n{files}*** End Patch\n"}
    call = {"type": "tool_use", "id": "call_1", "name": "ApplyPatch", "input": given}
    result = {
        "type": "tool_result",
        "tool_use_id": "call_1",
        "is_error": has_failed,
        "content": "x",
    }
    begun = [*droid_exchange("change all", "I will."), droid_message("assistant", call)]
    after = [droid_message("user", result), *droid_exchange("next", "done")]
    write(root / PROJECT / "a.jsonl", droid_start("a", "/srv"), *begun, *after)
    is_same(tmp_path, root)


def test_the_turns_of_a_session_in_several_directories_are_stored_the_same(tmp_path: Path) -> None:
    root = tmp_path / "transcripts"
    header = {"id": "a", "session_id": "a", "cwd": "/srv/app", "thread_source": "user"}
    turns = [
        record
        for directory in ("/srv/app", "/srv/private", "/srv/app")
        for record in codex_exchange("count", f"in {directory}", cwd=directory)
    ]
    path = root / PROJECT / "a.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(lines(codex_line("session_meta", header), *turns))
    is_same(tmp_path, root)


def test_the_messages_of_a_copilot_session_that_moves_are_stored_the_same(tmp_path: Path) -> None:
    root = tmp_path / "transcripts"
    moves = [
        {"type": "session.context_changed", "id": directory, "data": {"cwd": directory}}
        for directory in ("/srv/private", "/srv/app")
    ]
    records = [copilot_start("a", "/srv/app", at=1.8e9), *copilot_exchange("one", "first")]
    for move in moves:
        records += [move, *copilot_exchange("count", f"in {move['id']}")]
    path = root / PROJECT / "a.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(lines(*records))
    is_same(tmp_path, root)
    with Opened(str(path)) as descriptor:
        reader = TranscriptReader(runtime("copilot"), first_line(descriptor))
        read = [(entry.text, entry.cwd) for entry in reader.from_end(descriptor)]
    assert ("in /srv/private", "/srv/private") in read
    assert ("in /srv/app", "/srv/app") in read
