"""`costs` and `proof` read a transcript once, and again only after it has changed."""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from proof_scene import CWD, INSTALLED, Scene, heeds
from records import append, assistant, user, write
from store_scene import MONDAY, StoreUser

from session_memory.history.store.sqlite import counted_files

TOKENS = {"input_tokens": 1000, "output_tokens": 10, "cache_read_input_tokens": 5}
COMMANDS = (("costs", "--by", "session"), ("costs", "--by", "day"), ("proof",))


def answer(id: str, at: float, **usage: int) -> dict[str, Any]:
    about = {"model": "claude-opus-5", "usage": {**TOKENS, **usage}}
    return assistant("Done.", at=at, message_id=id, message=about)


@pytest.fixture
def machine(tmp_path: Path) -> StoreUser:
    """A user with told sessions, a fork, a sub-agent, and transcripts that are an hour old."""
    machine = StoreUser(tmp_path)
    Scene(machine, heeds, seed=3).pairs(3, INSTALLED, is_told=True)
    path = machine.session("a", user("Bake", at=MONDAY), answer("m1", MONDAY))
    write(
        path.parent / "a" / "subagents" / "agent-1.jsonl",
        {**user("Knead", at=MONDAY), "isSidechain": True},
        {**answer("m2", MONDAY), "isSidechain": True},
    )
    copied = [json.loads(line) for line in path.read_text().splitlines()]
    machine.session("b", *copied, answer("m3", MONDAY + 60))
    age(machine)
    return machine


def age(machine: StoreUser) -> None:
    then = time.time() - 3600
    for path in machine.projects.rglob("*.jsonl"):
        os.utime(path, (then, then))


def results(machine: StoreUser) -> list[Any]:
    return [machine.result(*words) for words in COMMANDS]


@contextmanager
def opened(machine: StoreUser) -> Iterator[sqlite3.Connection]:
    """The store's database, whose changes are committed."""
    with closing(sqlite3.connect(machine.database)) as database, database:
        yield database


def rows(machine: StoreUser, table: str = "counted_files") -> int:
    with opened(machine) as database:
        return int(database.execute(f"SELECT count(*) FROM memory_{table}").fetchone()[0])


def forbid_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(*_: object) -> None:
        raise AssertionError("a transcript is read again")

    monkeypatch.setattr("session_memory.history.costs.answers_in", read)
    monkeypatch.setattr("session_memory.history.told._notes_in", read)


def test_an_unchanged_transcript_is_read_once_with_the_same_results(
    machine: StoreUser, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = results(machine)
    assert first[0]["total"]["input_tokens"] == 3000
    assert first[2]["told"]["updates"] == 3
    forbid_reading(monkeypatch)
    assert results(machine) == first


def test_only_a_changed_transcript_is_read_again(
    machine: StoreUser, monkeypatch: pytest.MonkeyPatch
) -> None:
    results(machine)
    append(machine.projects / "-srv-agent" / "b.jsonl", answer("m4", MONDAY + 120, input_tokens=7))
    agent = machine.projects / "-srv-agent" / "a" / "subagents" / "agent-1.jsonl"
    append(agent, {**answer("m5", MONDAY + 130, input_tokens=70), "isSidechain": True})
    read: list[str] = []
    original = counted_files.CountedFiles.keep

    def keep(self: Any, path: str, stamp: Any, counted: Any) -> None:
        read.append(path.rpartition("/")[2])
        original(self, path, stamp, counted)

    monkeypatch.setattr(counted_files.CountedFiles, "keep", keep)
    assert machine.result("costs")["total"]["input_tokens"] == 3077
    assert set(read) == {"b.jsonl", "agent-1.jsonl"}


def test_a_transcript_that_just_changed_is_not_trusted(machine: StoreUser) -> None:
    path = machine.session("c", user("Bake", at=MONDAY), answer("m6", MONDAY))
    os.utime(path)
    machine.run("costs")
    before = rows(machine)
    os.utime(path, (time.time() - 10, time.time() - 10))
    machine.run("costs")
    assert rows(machine) == before + 1


def test_forgetting_a_session_deletes_all_counts(machine: StoreUser) -> None:
    results(machine)
    assert (rows(machine) > 0, rows(machine, "counted_answers")) == (True, 4)
    machine.run("forget", "b", "--yes")
    assert (rows(machine), rows(machine, "counted_answers")) == (0, 0)


def test_the_rows_have_no_text(machine: StoreUser) -> None:
    results(machine)
    with opened(machine) as database:
        told = [text for (text,) in database.execute("SELECT notes FROM memory_counted_files")]
    kept = "".join(filter(None, told))
    assert "src/" in kept  # the files that `!` lines name
    for text in ("Mend the shop", "other-", "edited 5m ago", CWD):
        assert text not in kept


def test_a_store_of_an_earlier_version_gets_the_tables(machine: StoreUser) -> None:
    first = results(machine)
    with opened(machine) as database:
        database.execute("DROP TABLE memory_counted_files")
        database.execute("DROP TABLE memory_counted_answers")
        database.execute("DELETE FROM migrations WHERE name = 'add_counted_files'")
    assert results(machine) == first
    assert rows(machine) > 0


def test_counts_of_another_version_and_of_an_unknown_runtime_are_made_again(
    machine: StoreUser,
) -> None:
    first = results(machine)
    with opened(machine) as database:
        database.execute("UPDATE memory_counted_answers SET input = 0")
        database.execute("UPDATE memory_counted_files SET version = 0 WHERE id % 2")
        database.execute("UPDATE memory_counted_files SET runtime = 'cobol' WHERE NOT id % 2")
    assert results(machine) == first


def test_a_store_that_cannot_be_written_gives_the_same_counts(
    machine: StoreUser, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = results(machine)
    with opened(machine) as database:
        database.execute("DELETE FROM memory_counted_files")
        database.execute("INSERT INTO migrations VALUES ('of_tomorrow', datetime('now'))")
    assert results(machine) == first
    assert rows(machine) == 0


def test_reads_that_another_session_repeats_later_count(machine: StoreUser) -> None:
    """A read counts only once another session reads the file; then the first is read again."""
    scene = Scene(machine, heeds, seed=5)
    path = f"{CWD}/src/menu.py"

    def reading(name: str, at: float) -> None:
        call = scene.call("Read", at, file_path=path, result="1\tbread\n2\trolls" * 50)
        machine.session(name, user("Read it", at=at - 1), *call)
        age(machine)

    reading("first", MONDAY)
    assert machine.result("proof")["sums"]["identical"] == 0
    reading("second", MONDAY + 60)
    sums = machine.result("proof")["sums"]
    assert sums["identical"] > 0
    assert machine.result("proof")["sums"] == sums
