"""`restore` with damaged or missing parts: it restores the others, and names the missing ones."""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from kept_scene import KeptUser, delete
from records import exchange

from session_memory.history.copies import restore as restoring


@pytest.fixture
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> KeptUser:
    return KeptUser(tmp_path, monkeypatch)


def kept_and_deleted(person: KeptUser, turns: int = 1) -> tuple[Path, bytes]:
    records = [
        record
        for turn in range(turns)
        for record in exchange(f"question {turn} " + os.urandom(60_000).hex(), "yes")
    ]
    path = person.talk("a", *records)
    whole = path.read_bytes()
    person.keep()
    delete(path)
    person.keep()
    return path, whole


def no_links(*_: object, **__: object) -> None:
    raise PermissionError(1, "Operation not permitted")


def test_without_hard_links_a_session_is_restored_all_the_same(person, monkeypatch):
    path, whole = kept_and_deleted(person)
    monkeypatch.setattr(os, "link", no_links)
    assert person.run("restore", "a").returncode == 0
    assert path.read_bytes() == whole
    assert path.stat().st_mode & 0o777 == 0o600
    assert [one.name for one in path.parent.iterdir() if "restoring" in one.name] == []


def test_without_hard_links_nothing_is_overwritten(person, monkeypatch):
    path, _ = kept_and_deleted(person)

    def appears(temporary: str, target: str) -> None:
        Path(target).write_text("another program's\n")
        no_links()

    monkeypatch.setattr(os, "link", appears)
    person.run("restore", "a")
    assert path.read_text() == "another program's\n"


def test_without_hard_links_a_killed_restore_is_completed_by_the_next(person, monkeypatch):
    path, whole = kept_and_deleted(person)
    monkeypatch.setattr(os, "link", no_links)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.with_name(f".{path.name}.restoring").write_bytes(whole)
    path.write_bytes(whole[: len(whole) // 2])
    there = person.run("restore", "a")
    if "still has it" in there.stderr:  # the runtime lists the half one
        restoring._remove_unfinished(str(path), str(path.with_name(f".{path.name}.restoring")))
        there = person.run("restore", "a")
    assert there.returncode == 0, there.stderr
    assert path.read_bytes() == whole


def test_a_damaged_pack_is_named_and_the_exit_code_says_so(person):
    kept_and_deleted(person)
    with person.pack_file.open("r+b") as pack:
        pack.write(b"x" * 100)
    for words in (("restore",), ("restore", "a")):
        content = person.pack_file.read_bytes()
        done = person.run(*words)
        assert done.returncode == 1
        assert "kept.db was damaged and is now " in done.stderr
        assert "kept.db.corrupt-" in done.stderr
        person.pack_file.write_bytes(b"x" * len(content))


def test_of_a_transcript_with_a_damaged_chunk_all_other_lines_come_back(person):
    path, whole = kept_and_deleted(person, turns=12)
    with closing(sqlite3.connect(person.pack_file)) as pack:
        [(chunk, size)] = pack.execute(
            "SELECT chunk, size FROM kept_parts WHERE number = 1"
        ).fetchall()
        [(first,)] = pack.execute("SELECT size FROM kept_parts WHERE number = 0").fetchall()
        pack.execute("UPDATE kept_chunks SET content = x'00ff00ff' WHERE id = ?", (chunk,))
        pack.commit()
    done = person.run("restore", "a", "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["missing"] == [
        {"path": json.loads(done.stdout)["missing"][0]["path"], "start": first, "end": first + size}
    ]
    assert path.read_bytes() == whole[:first] + whole[first + size :]
    assert all(json.loads(line) for line in path.read_bytes().splitlines())


def test_a_read_that_the_disk_refuses_sets_no_pack_aside(person):
    """The check of a second connection decides."""
    kept_and_deleted(person)
    from session_memory.common.system.sqlite_reads import is_damaged
    from session_memory.history.copies.pack import _create_pack

    assert not is_damaged(str(person.pack_file), (_create_pack,))
