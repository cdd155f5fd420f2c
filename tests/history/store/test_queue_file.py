"""The queue and the token accounts in their own file, which survives a rebuilt store.

An unreadable one is neither replaced nor treated as empty.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import apsw
import pytest
from memories_scene import QueueScene, Scripted
from stored import HOUR, START, Stored, talk

from session_memory.history.store.ingest.values import Batch, FileState, NewEntry
from session_memory.history.store.sqlite.corruption import (
    aside_lines,
    quarantine_if_corrupt,
    set_aside,
)
from session_memory.history.store.sqlite.engine import SqliteStore
from session_memory.history.store.sqlite.queue import StoredQueue
from session_memory.history.store.sqlite.queue_file import UnreadableQueueError, path_of
from session_memory.history.store.values import Filter
from session_memory.memory.strategy import StrategyError, Usage

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


def with_a_damaged_end(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[:-40_000] + b"\xff" * 40_000)


DAMAGES = [truncated, zeroed, without_header, no_database, emptied, deleted]
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
    """The store at `path` after the damage, with the transcripts taken in that it lacks."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    for suffix in ("-wal", "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)
    damage(path)
    if damage in CORRUPTING:
        assert quarantine_if_corrupt(str(path))
    machine = QueueScene(path)
    known = machine.stored.store.file_states("")
    for number, name in enumerate(NAMES):
        if f"{name}.jsonl" not in known:
            machine.stored.add(*talk(name), name=name, at=START + number * HOUR)
    machine.stored.now = max(machine.stored.now, START + 6 * HOUR)
    machine.stored.store.mark_ready(machine.stored.now)
    return machine


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "store.db"
    with closing(QueueScene(path)) as machine:
        fill(machine)
    return path


def statuses(machine: QueueScene) -> dict[str, str]:
    return {
        talk.session_id: talk.status
        for talk in machine.stored.store.conversations(Filter(limit=99))
    }


@pytest.mark.parametrize("damage", DAMAGES)
def test_nothing_is_paid_for_twice_and_the_spending_of_the_day_counts(path, damage):
    before = _spent(path)
    assert before >= 200
    with closing(rebuilt(path, damage)) as machine:
        assert machine.work.accounts.of_day(machine.now()) == before
        machine.later = 24 * HOUR
        strategy = Scripted("scripted")
        machine.run(strategy)
        assert sorted(said[0].split()[3] for _, said in strategy.seen) == ["failed", "new"]
        assert len(machine.kept) == 3  # with what was paid for before and could not be kept
        assert statuses(machine) == dict.fromkeys(NAMES, "archived") | {"skipped": "skipped"}


@pytest.mark.parametrize("damage", [zeroed, deleted])
def test_failures_and_their_pauses_count(path, damage):
    with closing(rebuilt(path, damage)) as machine:
        machine.later = -HOUR  # when it failed
        machine.run(Scripted("scripted"))
        assert statuses(machine)["failed"] == "ready"
        machine.later = 24 * HOUR
        machine.run(Scripted("scripted", StrategyError("529", is_temporary=True)), attempts=2)
        reasons = [
            one.reason
            for one in machine.stored.store.conversations(Filter(limit=99))
            if one.status == "skipped"
        ]
        assert [reason for reason in reasons if "529" in reason] == ["failed 2 times: 529"]


def _spent(path: Path) -> int:
    with closing(StoredQueue(str(path))) as queue:
        return queue.accounts.of_day(START + 5 * HOUR)


def test_a_store_that_is_rebuilt_gives_no_conversation_an_id_that_the_queue_knows(path):
    with closing(rebuilt(path, deleted)) as machine:
        assert min(one.id for one in machine.stored.store.conversations(Filter(limit=99))) > 4


def test_an_older_store_that_is_put_back_gets_no_conversation_marked_as_done_that_is_not(tmp_path):
    path = tmp_path / "store.db"
    with closing(Stored(path)) as stored:
        stored.add(*talk("first"), name="first")
    backup = path.read_bytes()
    with closing(QueueScene(path)) as machine:
        machine.stored.add(*talk("second"), name="second", at=START + HOUR)
        machine.run(Scripted("scripted"))
    for suffix in ("-wal", "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)
    path.write_bytes(backup)
    with closing(QueueScene(path)) as machine:
        # with the ids that the second had
        machine.stored.add(*talk("third"), name="third", at=START + 2 * HOUR)
        machine.stored.add(*talk("second"), name="second", at=START + HOUR)
        strategy = Scripted("scripted")
        machine.run(strategy)
        assert [said[0].split()[3] for _, said in strategy.seen] == ["third"]
        assert set(statuses(machine).values()) == {"archived"}


def test_where_a_transcript_is_gone_its_archive_is_not_paid_for_again(path):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    deleted(path)
    with closing(Stored(path)) as stored:
        end = START + 4 * 60_000
        state = FileState(
            "", "conversations/a.md", "/root", "archive", "archived", last_entry_timestamp=end
        )
        said = [
            NewEntry(10**6 + n, 0, n, "user", f"said {n}", end - 1 if n == 4 else None, "/srv")
            for n in range(5)
        ]
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


def without(table: str) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute(f"DROP TABLE {table}")

    return damage


def with_another_column(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("ALTER TABLE memory_work RENAME COLUMN outcome TO ended")


def of_another_program(path: Path) -> None:
    path.unlink()
    sqlite3.connect(path).execute("CREATE TABLE notes (text)").connection.commit()


def as_fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


UNREADABLE = [
    zeroed,
    without_header,
    no_database,
    without("memory_work"),
    without("memory_spending"),
    without("migrations"),
    with_another_column,
    of_another_program,
    as_fifo,
]


def use(path: Path) -> None:
    with closing(StoredQueue(str(path))) as work:
        work.accounts.open("summary", 1, COST, START + 9 * HOUR, 10_000)
        work.waiting("scripted", START + 99 * HOUR)
        work.skipped("scripted")


@pytest.mark.parametrize("damage", UNREADABLE)
def test_an_unreadable_queue_spends_nothing_is_reported_and_never_replaced(path, damage):
    queue = Path(path_of(str(path)))
    damage(queue)
    before = queue.stat().st_ino
    with closing(Stored(path)) as stored:
        stored.add(*talk("more"), name="more", at=START + 9 * HOUR)
        with pytest.raises(
            UnreadableQueueError, match="so today's token budget counts as spent"
        ) as raised:
            use(path)
        assert str(raised.value).startswith(f"{queue}: damaged (")
        assert raised.value.hint.startswith("restore it from a backup, or move it away")
        assert len(stored.store.conversations(Filter(limit=99))) == 6
    assert queue.stat().st_ino == before
    assert [
        file.name
        for file in path.parent.iterdir()
        if "corrupt" in file.name or "foreign" in file.name
    ] == []


def test_a_damaged_store_is_not_taken_for_a_damaged_queue(path):
    with closing(StoredQueue(str(path))) as work:
        with closing(apsw.Connection(str(path))) as connection:
            connection.execute("DROP TABLE memory_conversations")
        with pytest.raises(apsw.SQLError):
            work.waiting("scripted", START)


def test_a_queue_that_a_person_moves_away_costs_no_conversation_that_is_done(path):
    Path(path_of(str(path))).unlink()
    with closing(QueueScene(path)) as machine:
        machine.later = 24 * HOUR
        strategy = Scripted("scripted")
        machine.run(strategy)
        assert sorted(said[0].split()[3] for _, said in strategy.seen) == ["failed", "new", "paid"]


def test_a_conversation_that_is_forgotten_leaves_no_byte_in_the_queue(path):
    queue = Path(path_of(str(path)))
    with closing(QueueScene(path)) as machine:
        [paid] = [
            one
            for one in machine.stored.store.conversations(Filter(limit=9))
            if one.session_id == "paid"
        ]
        assert f"about {paid.id}".encode() in queue.read_bytes() + Path(f"{queue}-wal").read_bytes()
        machine.stored.store.forget_conversations([paid])
        machine.stored.store.drop_free_pages()
    assert b"paid.jsonl" not in queue.read_bytes()
    assert f"about {paid.id}".encode() not in queue.read_bytes()


# The queue of 0.2.0, in the store and beside it
# ------------------------------------------------------------------------

IN_STORE = """
    CREATE TABLE memory_work (
        conversation_id INTEGER NOT NULL, strategy TEXT NOT NULL, home TEXT NOT NULL, source_file TEXT NOT NULL,
        first_message_at INTEGER, first_item INTEGER NOT NULL, seen_item INTEGER NOT NULL DEFAULT 0,
        seen_until INTEGER, outcome TEXT NOT NULL DEFAULT '', reason TEXT NOT NULL DEFAULT '', owner TEXT,
        lease_until INTEGER NOT NULL DEFAULT 0, longest_until INTEGER NOT NULL DEFAULT 0, until_item INTEGER,
        until_at INTEGER, result TEXT, attempts INTEGER NOT NULL DEFAULT 0, interruptions INTEGER NOT NULL DEFAULT 0,
        next_try INTEGER NOT NULL DEFAULT 0, problem TEXT NOT NULL DEFAULT '', PRIMARY KEY (conversation_id, strategy)
    ) WITHOUT ROWID;
    CREATE TRIGGER memory_work_forgets AFTER DELETE ON memory_file_states BEGIN
        UPDATE memory_work SET first_item = 0, seen_item = 0 WHERE source_file = old.file_path AND home = old.home;
    END;
    CREATE TABLE memory_spending (
        id INTEGER PRIMARY KEY, at INTEGER NOT NULL, day TEXT NOT NULL, strategy TEXT NOT NULL,
        conversation_id INTEGER NOT NULL, model TEXT NOT NULL, reserved INTEGER NOT NULL,
        calls INTEGER NOT NULL DEFAULT 0, pending INTEGER NOT NULL DEFAULT 0, input_tokens INTEGER NOT NULL DEFAULT 0,
        output_tokens INTEGER NOT NULL DEFAULT 0, cached_tokens INTEGER NOT NULL DEFAULT 0,
        is_settled INTEGER NOT NULL DEFAULT 0
    );
    DELETE FROM migrations WHERE name = 'move_queue';
"""


@pytest.fixture
def earlier(path: Path) -> Path:
    """The store as 0.2.0 would have made it, with the copy of its queue."""
    queue = Path(path_of(str(path)))
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(IN_STORE)
        connection.execute("ATTACH ? AS queue", (str(queue),))
        for table in ("memory_work", "memory_spending"):
            columns = ", ".join(
                row[1] for row in connection.execute(f"PRAGMA main.table_info({table})")
            )
            connection.execute(
                f"INSERT INTO main.{table} ({columns}) SELECT {columns} FROM queue.{table}"
            )
        connection.commit()
        connection.execute("DETACH queue")
    Path(f"{path}.queue.jsonl").write_text('["memory_work", {}]\n')
    for suffix in ("", "-wal", "-shm"):
        Path(f"{queue}{suffix}").unlink(missing_ok=True)
    return path


def test_the_queue_and_the_budget_of_an_earlier_version_move(earlier):
    with closing(QueueScene(earlier)) as machine:
        machine.later = 24 * HOUR
        strategy = Scripted("scripted")
        machine.run(strategy)
        assert sorted(said[0].split()[3] for _, said in strategy.seen) == ["failed", "new"]
        assert statuses(machine) == dict.fromkeys(NAMES, "archived") | {"skipped": "skipped"}
    assert _spent(earlier) >= 200
    assert not Path(f"{earlier}.queue.jsonl").exists()
    with closing(sqlite3.connect(earlier)) as connection:
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema")}
    assert tables.isdisjoint({"memory_work", "memory_spending", "memory_work_forgets"})


def test_a_process_that_dies_before_the_rows_of_an_earlier_store_are_copied_costs_nothing(
    earlier, monkeypatch
):
    spent = _spent_in(earlier)
    with monkeypatch.context() as patched:
        patched.setattr("session_memory.history.store.sqlite._salvage.salvage", fail)
        with pytest.raises(KeyboardInterrupt):
            SqliteStore(str(earlier))
    assert not earlier.exists()
    assert _spent(earlier) == _spent(earlier) == spent
    with closing(Stored(earlier)) as stored:
        assert len(stored.store.conversations(Filter(limit=99))) == len(NAMES)


def test_an_earlier_store_is_renamed_and_stays(earlier):
    before = _spent_in(earlier)
    SqliteStore(str(earlier)).close()
    [aside] = set_aside(str(earlier))
    assert ".outdated-" in aside
    assert _spent_in(Path(aside)) == before
    with closing(SqliteStore(str(earlier))) as store:
        [line] = aside_lines(store)
    assert line.startswith("the store was made by an earlier version, and the old file is now")
    assert "were kept: all that it had. Delete that file if nothing is missing" in line


def test_the_readable_rows_of_an_earlier_queue_are_kept_if_the_store_is_damaged(earlier):
    with closing(sqlite3.connect(earlier)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        [(root,)] = connection.execute(
            "SELECT rootpage FROM sqlite_schema WHERE name = 'memory_transcript_entries'"
        )
    content = bytearray(earlier.read_bytes())
    content[4096 * (root - 1) : 4096 * root] = b"\xff" * 4096
    earlier.write_bytes(content)
    spent = _spent_in(earlier)
    assert _spent(earlier) == spent


def fail(*_: object) -> None:
    raise KeyboardInterrupt


def _spent_in(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        [(spent,)] = connection.execute(
            "SELECT sum(input_tokens + output_tokens + cached_tokens) FROM memory_spending"
        )
        return int(spent)
