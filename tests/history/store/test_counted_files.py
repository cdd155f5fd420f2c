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

from session_memory.common.system.files import stamp_of
from session_memory.history import costs
from session_memory.history.store.sqlite import counted_files
from session_memory.history.store.sqlite.counted_files import (
    CountedFile,
    CountedFiles,
    CountedTranscript,
)
from session_memory.history.store.sqlite.engine import SqliteStore
from session_memory.sessions.runtimes.claude import RUNTIME as CLAUDE

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

    def keep(self: Any, transcript: Any, counted: Any) -> None:
        read.append(transcript.path.rpartition("/")[2])
        original(self, transcript, counted)

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


@contextmanager
def counting(machine: StoreUser) -> Iterator[tuple[Any, Any]]:
    """Counts of the machine's store, and the transcript of session b."""
    path = machine.projects / "-srv-agent" / "b.jsonl"
    with closing(SqliteStore(str(machine.database))) as store, CountedFiles(store) as counted:
        transcript = CountedTranscript(str(path), stamp_of(os.lstat(path)), str(path))
        yield counted, transcript


def test_counts_that_waited_while_a_session_was_forgotten_are_not_written(
    machine: StoreUser,
) -> None:
    results(machine)
    with counting(machine) as (counted, transcript):
        counted.keep(transcript, CountedFile(CLAUDE, "[]"))
        machine.run("forget", "b", "--yes")
    assert rows(machine) == 0


def test_notes_of_a_session_of_which_a_part_was_forgotten_are_not_kept(machine: StoreUser) -> None:
    """The session continues, and its transcript still has the forgotten part."""
    merge = "CONFLICT (content): Merge conflict in secret-plan.md"

    def clash(at: float) -> tuple[dict[str, Any], ...]:
        scene = Scene(machine, heeds, seed=4)
        return tuple(scene.call("Bash", at, fails=True, result=merge, command="git merge x"))

    path = machine.session("c", user("Merge", at=MONDAY), *clash(MONDAY + 5))
    age(machine)
    sessions = results(machine)[2]["sessions"]
    assert "secret-plan.md" in all_notes(machine)
    machine.run("forget", "c", "--yes")
    append(path, user("Go on", at=time.time() + 60), *clash(time.time() + 70))
    age(machine)
    assert results(machine)[2]["sessions"] == sessions
    assert "secret-plan.md" not in all_notes(machine)
    assert rows(machine) > 0


def all_notes(machine: StoreUser) -> str:
    with opened(machine) as database:
        told = [text for (text,) in database.execute("SELECT notes FROM memory_counted_files")]
    return "".join(filter(None, told))


def test_counts_of_earlier_rules_for_secrets_are_deleted_when_the_store_is_redacted_again(
    machine: StoreUser,
) -> None:
    results(machine)
    with opened(machine) as database:
        database.execute("DELETE FROM memory_redaction")
        database.execute("UPDATE memory_counted_files SET version = 0, notes = 'a-' || 'secret'")
    with closing(SqliteStore(str(machine.database))) as store:
        store.redact_again(60)
    assert (rows(machine), rows(machine, "counted_answers")) == (0, 0)
    kept = [Path(f"{machine.database}{end}") for end in ("", "-wal")]
    assert not any(b"a-secret" in path.read_bytes() for path in kept if path.exists())


def test_counts_of_a_deleted_transcript_and_its_sub_agents_are_deleted(machine: StoreUser) -> None:
    results(machine)
    before = rows(machine), rows(machine, "counted_answers")
    (machine.projects / "-srv-agent" / "a.jsonl").unlink()
    machine.run("ingest")
    assert (rows(machine), rows(machine, "counted_answers")) == (before[0] - 2, before[1] - 2)


def test_a_store_forgets_the_counts_of_a_file_with_it(machine: StoreUser) -> None:
    results(machine)
    before = rows(machine)
    with closing(SqliteStore(str(machine.database))) as store:
        store.forget("", "-srv-agent/a.jsonl")
    assert rows(machine) == before - 2


def test_counts_under_the_old_name_of_a_file_are_deleted(machine: StoreUser) -> None:
    results(machine)
    before = rows(machine)
    with closing(SqliteStore(str(machine.database))) as store:
        [root] = {state.root for state in store.file_states("").values()}
        names = {"-srv-agent/a.jsonl": "-srv-bread/a.jsonl"}
        store.rename_files("", root, names, ())
        assert "-srv-bread/a.jsonl" in store.file_states("")
    assert rows(machine) == before - 2


def test_notes_and_answers_are_kept_apart(machine: StoreUser) -> None:
    """Notes alone do not write the answers again, whether these were stored or still wait."""
    results(machine)
    with counting(machine) as (counted, transcript):
        known = counted.find(transcript, with_answers=True)
        assert (len(known.answers), known.notes) == (2, "")
        counted.keep(transcript, CountedFile(CLAUDE, "[1]"))
        waiting = counted.find(transcript, with_answers=True)
        assert (waiting.notes, waiting.answers) == ("[1]", known.answers)
    with opened(machine) as database:
        database.execute("CREATE TABLE written (at)")
        database.execute(
            "CREATE TRIGGER t AFTER INSERT ON memory_counted_answers "
            "BEGIN INSERT INTO written VALUES (1); END"
        )
    with counting(machine) as (counted, transcript):
        counted.keep(transcript, CountedFile(CLAUDE, "[2]"))
    with counting(machine) as (counted, transcript):
        after = counted.find(transcript, with_answers=True)
    assert (after.notes, after.answers) == ("[2]", known.answers)
    with opened(machine) as database:
        assert database.execute("SELECT count(*) FROM written").fetchone() == (0,)


def test_the_row_and_the_answers_are_of_one_state(
    machine: StoreUser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process replaces both while they are read."""
    results(machine)
    original = counted_files.fetch

    def fetch(connection: Any, sql: str, values: Any) -> Any:
        result = original(connection, sql, values)
        if "notes, models" in sql:
            with closing(SqliteStore(str(machine.database))) as other:
                other.connection.execute("DELETE FROM memory_counted_answers")
        return result

    monkeypatch.setattr(counted_files, "fetch", fetch)
    with counting(machine) as (counted, transcript):
        assert len(counted.find(transcript, with_answers=True).answers) == 2


@pytest.mark.parametrize("dumped", ["[[[1, 2, null, []]], [], [], []]", "[1]", "{", "7"])
def test_notes_of_another_form_are_made_again(machine: StoreUser, dumped: str) -> None:
    first = results(machine)
    with opened(machine) as database:
        database.execute("UPDATE memory_counted_files SET notes = ?", (dumped,))
    assert results(machine) == first


def test_counts_made_by_other_code_are_made_again(
    machine: StoreUser, monkeypatch: pytest.MonkeyPatch
) -> None:
    results(machine)
    with counting(machine) as (counted, transcript):
        assert counted.find(transcript) is not None
    monkeypatch.setattr(counted_files, "COUNTS_VERSION", counted_files.COUNTS_VERSION + 1)
    with counting(machine) as (counted, transcript):
        assert counted.find(transcript) is None


def test_names_in_the_rows_are_redacted(machine: StoreUser) -> None:
    """An invisible character does not hide a secret in the name of a file or model."""
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    hidden = token[:9] + "\u200b" + token[9:]
    merge = f"CONFLICT (content): Merge conflict in {hidden}.md"
    scene = Scene(machine, heeds, seed=4)
    call = scene.call("Bash", MONDAY + 5, fails=True, result=merge, command="git merge x")
    about = {"model": hidden, "usage": TOKENS}
    spent = assistant("Done.", at=MONDAY, message_id="m9", message=about)
    machine.session("c", user("Merge", at=MONDAY), *call, spent)
    age(machine)
    results(machine)
    with opened(machine) as database:
        models = [text for (text,) in database.execute("SELECT models FROM memory_counted_files")]
    kept = all_notes(machine) + "".join(filter(None, models))
    kept = kept.replace("\u200b", "").replace("\\u200b", "")
    assert ".md" in kept
    assert token not in kept


def test_the_answers_before_a_read_error_count(
    machine: StoreUser, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = costs.answers_in

    def failing(*given: Any) -> Iterator[Any]:
        yield from original(*given)
        raise OSError(5, "Input/output error")

    whole = machine.result("costs")["total"]
    with opened(machine) as database:
        database.execute("DELETE FROM memory_counted_files")
        database.execute("DELETE FROM memory_counted_answers")
    monkeypatch.setattr(costs, "answers_in", failing)
    assert machine.result("costs")["total"] == whole
    assert rows(machine, "counted_answers") == 0


def test_the_rows_have_no_messages(machine: StoreUser) -> None:
    results(machine)
    kept = all_notes(machine)
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


def test_counts_without_advisors_are_made_again(machine: StoreUser) -> None:
    first = results(machine)
    with opened(machine) as database:
        database.execute("ALTER TABLE memory_counted_answers DROP COLUMN is_advisor")
        database.execute("DELETE FROM migrations WHERE name = 'add_advisors'")
    assert results(machine) == first
    assert rows(machine) > 0
