"""A store that has to be rebuilt keeps what no transcript tells: what strategies have done, and what that cost."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from memories_scene import QueueScene, Scripted
from stored import HOUR, START, Stored, talk

from session_memory.memories.strategy import StrategyError, Usage
from session_memory.store.sqlite.engine import SqliteStore
from session_memory.store.sqlite.queue import StoredQueue
from session_memory.store.sqlite.queue_copy import path_of
from session_memory.store.sqlite.repair import set_aside_if_corrupt
from session_memory.store.values import Batch, FileState, Filter, NewEntry

COST = Usage(70, 30, 0, "model")
NAMES = ("archived", "skipped", "paid", "failed", "new")


def truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 3])


def zeroed(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2 :] = bytes(len(content) - len(content) // 2)
    path.write_bytes(content)


def without_header(path: Path) -> None:
    path.write_bytes(b"\0" * 100 + path.read_bytes()[100:])


def no_database(path: Path) -> None:
    path.write_bytes(b"no database at all" * 100)


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def deleted(path: Path) -> None:
    path.unlink()


def of_an_earlier_version(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE migrations SET name = 'create_tables' WHERE name = 'create_store'")


def with_a_damaged_end(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[:-40_000] + b"\xff" * 40_000)


DAMAGES = [truncated, zeroed, without_header, no_database, emptied, deleted, of_an_earlier_version]


CORRUPTING = [truncated, zeroed, without_header, no_database, with_a_damaged_end]


class Paying(Scripted):
    """A strategy that tells what it will spend at most."""

    def estimate(self, *_: object) -> Usage:
        return COST


def fill(machine: QueueScene) -> None:
    """A conversation for each of NAMES, in the state that the name tells. 200 tokens are spent today."""
    for number, name in enumerate(NAMES[:4]):
        machine.stored.add(*talk(name), name=name, at=START + number * HOUR)
    machine.run(Paying("scripted"), limit=1)
    machine.run(Paying("scripted", StrategyError("cannot be done")), limit=1)
    machine.keep_fails = [OSError(28, "No space left on device")]
    machine.run(Paying("scripted"), limit=1)
    machine.run(Paying("scripted", StrategyError("529", is_temporary=True)), limit=1)
    machine.stored.add(*talk("new"), name="new", at=START + 4 * HOUR)
    spend(machine, 200)


def spend(machine: QueueScene, tokens: int) -> None:
    account = machine.work.accounts.open("other", 99, Usage(), machine.now(), 10_000)
    assert account is not None
    machine.work.accounts.settle(account, Usage(tokens))


def rebuilt(path: Path, damage: Callable[[Path], None]) -> QueueScene:
    """The store at `path` after the damage, its transcripts taken in anew."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    for suffix in ("-wal", "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)
    damage(path)
    if damage in CORRUPTING:
        assert set_aside_if_corrupt(str(path))
    machine = QueueScene(path)
    for number, name in enumerate(NAMES):
        machine.stored.add(*talk(name), name=name, at=START + number * HOUR)
    return machine


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "store.db"
    with closing(QueueScene(path)) as machine:
        fill(machine)
    return path


def statuses(machine: QueueScene) -> dict[str, str]:
    return {talk.session_id: talk.status for talk in machine.stored.store.conversations(Filter(limit=99))}


@pytest.mark.parametrize("damage", DAMAGES)
class TestDamage:
    def test_nothing_is_paid_for_twice(self, path, damage):
        with closing(rebuilt(path, damage)) as machine:
            machine.later = 24 * HOUR
            strategy = Scripted("scripted")
            machine.run(strategy)
            assert sorted(said[0].split()[3] for _, said in strategy.seen) == ["failed", "new"]
            assert len(machine.kept) == 3  # with what was paid for before and could not be kept
            assert statuses(machine) == dict.fromkeys(NAMES, "archived") | {"skipped": "skipped"}

    def test_the_spending_of_the_day_counts(self, path, damage):
        before = _spent(path)
        assert before >= 200
        with closing(rebuilt(path, damage)) as machine:
            assert machine.work.accounts.of_day(machine.now()) == before

    def test_failures_and_their_pauses_count(self, path, damage):
        with closing(rebuilt(path, damage)) as machine:
            machine.later = -HOUR  # when it failed
            machine.run(Scripted("scripted"))
            assert statuses(machine)["failed"] == "ready"
            machine.later = 24 * HOUR
            machine.run(Scripted("scripted", StrategyError("529", is_temporary=True)), attempts=2)
            [failed] = [
                one
                for one in machine.stored.store.conversations(Filter(limit=99))
                if one.status == "skipped" and "529" in one.reason
            ]
            assert failed.reason == "failed 2 times: 529"


def _spent(path: Path) -> int:
    with closing(StoredQueue(str(path))) as queue:
        return queue.accounts.of_day(START + 5 * HOUR)


@pytest.mark.parametrize("damage", [of_an_earlier_version, with_a_damaged_end])
def test_what_can_be_read_of_a_damaged_file_is_kept_where_there_is_no_copy(path, damage):
    with closing(Stored(path)) as stored:
        stored.add(*["nothing but text " * 200] * 40, name="large", at=START + 9 * HOUR, ready=False)
    Path(path_of(str(path))).unlink()
    before = _spent(path)
    with closing(rebuilt(path, damage)) as machine:
        strategy = Scripted("scripted")
        machine.later = 24 * HOUR
        machine.run(strategy)
        assert len(strategy.seen) == 2
        assert machine.work.accounts.of_day(START + 5 * HOUR) == before


def test_a_copy_that_is_cut_off_or_broken_loses_no_more_than_those_lines(path):
    copy = Path(path_of(str(path)))
    with copy.open("ab") as file:
        file.write(b'\n["memory_work", {"conversation_id": "x"}]\nnonsense\n["memory_spending", {"id": 7, "da')
    with closing(StoredQueue(str(path))) as queue:
        account = queue.accounts.open("other", 99, Usage(), START + 5 * HOUR, 10_000)
        queue.accounts.settle(account, Usage(5))
    before = _spent(path)
    with closing(rebuilt(path, deleted)) as machine:
        assert machine.work.accounts.of_day(machine.now()) == before


def test_the_copy_is_for_its_user_alone_and_does_not_grow_with_what_is_over(tmp_path):
    path = tmp_path / "store.db"
    with closing(QueueScene(path)) as machine:
        machine.stored.add(*talk("a"), name="a")
        for _ in range(800):
            spend(machine, 0)
        copy = Path(path_of(str(path)))
        before = copy.stat().st_size
        machine.run(Scripted("scripted"))
        assert copy.stat().st_size < before / 20
        assert copy.stat().st_mode & 0o777 == 0o600
        rows = [json.loads(line) for line in copy.read_text().splitlines() if line]
        assert rows[-1][1]["outcome"] == "archived"


def test_what_was_made_of_a_conversation_stays_in_the_copy_no_longer_than_in_the_queue(tmp_path):
    path = tmp_path / "store.db"
    copy = Path(path_of(str(path)))
    with closing(QueueScene(path)) as machine:
        one = machine.stored.add(*talk("a"), name="a")
        machine.run(Scripted("scripted"))
        assert f"about {one}" in copy.read_text()
    assert f"about {one}" not in copy.read_text()
    assert '"archived"' in copy.read_text()


def test_where_a_transcript_is_gone_its_archive_is_not_paid_for_again(path):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    deleted(path)
    with closing(Stored(path)) as stored:
        end = START + 4 * 60_000
        state = FileState("", "conversations/a.md", "/root", "archive", "archived", last_entry_timestamp=end)
        said = [NewEntry(10**6 + n, 0, n, "user", f"said {n}", end - 1 if n == 4 else None, "/srv") for n in range(5)]
        stored.store.write([Batch(None, state, said, [])])
        stored.store.mark_ready(START + 99 * HOUR)
    with closing(QueueScene(path)) as machine:
        strategy = Scripted("scripted")
        machine.run(strategy)
        assert strategy.seen == []
        assert statuses(machine) == {"archived": "archived"}


def test_a_transcript_that_is_imported_anew_keeps_a_result_that_was_paid_for(path):
    with closing(QueueScene(path)) as machine:
        machine.stored.store.forget("", "paid.jsonl")
        machine.stored.add(*talk("paid"), name="paid", at=START + 2 * HOUR)
        machine.later = 24 * HOUR
        strategy = Scripted("scripted")
        machine.run(strategy)
        assert not any("paid" in said[0] for _, said in strategy.seen)
        assert statuses(machine)["paid"] == "archived"


WRONG = [5, -1, 1 << 62, 1 << 80, 1.5, True, None, "x", "\ud800", [], {"a": 1}]


def test_lines_of_the_copy_that_are_of_another_shape_cost_themselves(tmp_path: Path) -> None:
    row = {"conversation_id": 7, "strategy": "good", "home": "", "source_file": "a.jsonl", "first_item": 0}
    account = {
        "id": 3,
        "at": 0,
        "day": "2026-02-01",
        "strategy": "good",
        "conversation_id": 7,
        "model": "m",
        "reserved": 1,
        "calls": 1,
        "input_tokens": 5,
        "is_settled": 1,
    }
    lines: list[object] = [
        *WRONG,
        [5, row],
        [["memory_work"], row],
        ["no_table", row],
        ["memory_work", [row]],
        ["memory_work"],
    ]
    for number, wrong in enumerate(WRONG):
        for column in row:
            lines.append(["memory_work", {**row, "strategy": f"{column} {number}", column: wrong}])
        for column in account:
            lines.append(["memory_spending", {**account, "id": 1000 + number, column: wrong}])
    lines += [["memory_work", row], ["memory_spending", account]]
    database = tmp_path / "memory.db"
    Path(path_of(str(database))).write_text("".join(f"\n{json.dumps(line)}" for line in lines))
    with closing(SqliteStore(str(database))) as store:
        assert store.unread_files("") == {}
    with closing(sqlite3.connect(database)) as connection:
        kinds = connection.execute(
            "SELECT DISTINCT typeof(conversation_id), typeof(strategy) FROM memory_work"
        ).fetchall()
        assert kinds == [("integer", "text")]
        assert ("good",) in connection.execute("SELECT strategy FROM memory_work").fetchall()
        assert (3, 5) in connection.execute("SELECT id, input_tokens FROM memory_spending").fetchall()
        [(highest,)] = connection.execute(
            "SELECT seq FROM sqlite_sequence WHERE name = 'memory_conversations'"
        ).fetchall()
        assert highest < 1 << 53
