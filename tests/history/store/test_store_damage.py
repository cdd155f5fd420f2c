"""Commands with a damaged memory.db or neighbouring files.

They report it in one line, repair it or set it aside, and answer. Content that no transcript has is
kept.
"""

from __future__ import annotations

import os
import random
import shutil
import socket
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from records import exchange
from store_scene import MONDAY, StoreUser, trip

from bench.scratch import remove_tree
from session_memory.common.text.timestamps import now_milliseconds
from session_memory.history.store.sqlite.corruption import quarantine_if_corrupt
from session_memory.history.store.sqlite.queue import StoredQueue
from session_memory.history.store.values import Usage

SPENT = 200
NOTHING_WAITS = (
    "Nothing waits: a conversation is ready after an hour of silence "
    "(store.conversation_gap_minutes)."
)
Damage = Callable[[Path], None]


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> tuple[StoreUser, Path]:
    """A user with memories of four conversations, one of which they have forgotten, and a copy of
    all that is kept.

    The transcripts of two are gone: one of them is in the archives, one in the store alone."""
    machine = StoreUser(tmp_path_factory.mktemp("damage") / "user")
    machine.session("here", *trip())
    talks = {name: talk(name) for name in ("archived", "lost", "forgotten")}
    paths = {name: machine.session(name, *records) for name, records in talks.items()}
    assert machine.run("process").returncode == 0
    assert machine.run("archive", "--all").returncode == 0
    for archive in (machine.home / ".session-memory" / "conversations").glob("*.md"):
        if "lost" in archive.read_text():
            archive.unlink()
    paths["archived"].unlink()
    paths["lost"].unlink()
    assert machine.run("ingest").returncode == 0
    forgotten = next(one for one in memories(machine) if "forgotten" in one["title"])
    assert machine.run("memories", "forget", forgotten["id"]).returncode == 0
    with closing(StoredQueue(str(machine.database))) as queue:
        account = queue.accounts.open("other", 99, Usage(), now_milliseconds(), 10_000)
        queue.accounts.settle(account, Usage(SPENT))
    kept = machine.home / "kept"
    shutil.copytree(machine.home / ".session-memory", kept)
    return machine, kept


@pytest.fixture
def machine(before: tuple[StoreUser, Path]) -> StoreUser:
    machine, kept = before
    remove_tree(machine.home / ".session-memory")
    shutil.copytree(kept, machine.home / ".session-memory")
    return machine


def talk(name: str) -> list[dict[str, object]]:
    return [
        record
        for turn in range(3)
        for record in exchange(
            f"question {turn} about what is {name}", f"the {name} answer {turn}", at=MONDAY + turn
        )
    ]


def memories(machine: StoreUser) -> list[dict[str, str]]:
    return machine.result("memories")["memories"]


def overwritten(start: float, length: int, content: bytes = b"") -> Damage:
    """So many bytes from a share of the file on are other ones."""

    def damage(path: Path) -> None:
        whole = bytearray(path.read_bytes())
        at = int(len(whole) * start)
        whole[at : at + length] = (content or random.Random(7).randbytes(length))[: len(whole) - at]
        path.write_bytes(whole)

    return damage


def cut_to(size: Callable[[int], int]) -> Damage:
    def damage(path: Path) -> None:
        os.truncate(path, size(path.stat().st_size))

    return damage


def sql(*statements: str) -> Damage:
    def damage(path: Path) -> None:
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("PRAGMA writable_schema = on")
            for statement in statements:
                connection.execute(statement)

    return damage


def replaced(suffix: str, make: Callable[[Path], object], *, only: bool = True) -> Damage:
    """Something else stands at the database's path, or beside it."""

    def damage(path: Path) -> None:
        place = Path(f"{path}{suffix}")
        place.unlink(missing_ok=True)
        make(place)

    return damage


def listening(path: Path) -> None:
    here = Path.cwd()
    os.chdir(path.parent)  # a socket's path may not be long
    try:
        socket.socket(socket.AF_UNIX).bind(path.name)
    finally:
        os.chdir(here)


def another_program_s(path: Path) -> None:
    path.unlink()
    sql("CREATE TABLE notes (text)", "INSERT INTO notes VALUES ('mine')")(path)


def both(*damages: Damage) -> Damage:
    def damage(path: Path) -> None:
        for one in damages:
            one(path)

    return damage


def left_in_log(path: Path) -> None:
    """The process that wrote last was killed: what it wrote is in the log."""
    code = (
        "import os, sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('DELETE FROM "
        "memory_pages'); c.commit(); os._exit(0)"
    )
    done = os.spawnlp(os.P_WAIT, "python3", "python3", "-c", code, str(path))
    assert done == 0
    assert Path(f"{path}-wal").stat().st_size


SET_ASIDE: dict[str, Damage] = {
    "a FIFO": replaced("", os.mkfifo),
    "a directory": replaced("", Path.mkdir),
    "a directory with files": replaced(
        "", lambda place: (place.mkdir(), (place / "x").write_text("x"))
    ),
    "a socket": replaced("", listening),
    "a text": replaced("", lambda place: place.write_text("no database at all\n" * 1000)),
    "half a header": cut_to(lambda size: 50),
    "a header": cut_to(lambda size: 100),
    "half a page": cut_to(lambda size: 2048),
    "a page": cut_to(lambda size: 4096),
    "a quarter": cut_to(lambda size: size // 4),
    "half": cut_to(lambda size: size // 2),
    "all but a page": cut_to(lambda size: size - 4096),
    "a header of zeros": overwritten(0, 100, bytes(100)),
    "a first page of zeros": overwritten(0, 4096, bytes(4096)),
    "zeros": overwritten(0, 10**9, bytes(10**7)),
    "noise": overwritten(0.1, 10**9, random.Random(3).randbytes(10**7)),
    "another program's database": another_program_s,
    "no migrations": sql("DROP TABLE migrations"),
    "migrations without a row": sql("DELETE FROM migrations"),
    "migrations with other columns": sql("ALTER TABLE migrations RENAME COLUMN name TO title"),
    "migrations with other names": sql(
        "UPDATE migrations SET name = x'00ff' WHERE name = 'create_store'"
    ),
    "a migration that is no name": sql("INSERT INTO migrations VALUES ('�?\n', '')"),
    "migrations of an earlier version": sql(
        "UPDATE migrations SET name = 'create_tables' WHERE name = 'create_store'"
    ),
    "no conversations": sql("DROP TABLE memory_conversations"),
    "no transcripts": sql("DROP TABLE memory_file_states"),
    "no entries": sql("DROP TABLE memory_transcript_entries"),
    "no memories": sql("DROP TABLE memories"),
    "no search index": sql("DROP TABLE memory_search"),
    "a search index without its rows": sql("DELETE FROM memory_search_data WHERE id > 10"),
    "a search index of noise": sql("UPDATE memory_search_data SET block = x'ff00ff00ff00ff'"),
    "a search index without a table": sql("DROP TABLE memory_search_idx"),
    "a column less": sql("ALTER TABLE memory_conversations DROP COLUMN reason"),
    "a schema that is no SQL": sql(
        "UPDATE sqlite_schema SET sql = 'CREATE nonsense' WHERE name = 'entries'"
    ),
}
WHY = {
    "another program's database": "foreign",
    "no migrations": "foreign",
    "migrations without a row": "foreign",
    "migrations of an earlier version": "outdated",
}
BESIDE = [
    ("a log", "-wal", "FIFO", os.mkfifo),
    ("a log", "-wal", "directory", Path.mkdir),
    ("an index of the log", "-shm", "directory", Path.mkdir),
    ("a journal", "-journal", "FIFO", os.mkfifo),
]
HEALED: dict[str, Damage] = {
    **{f"{name} that is a {kind}": replaced(suffix, make) for name, suffix, kind, make in BESIDE},
    "a schema of noise": overwritten(0.002, 3000),
    "all but a byte": cut_to(lambda size: size - 1),
    "one byte": cut_to(lambda size: 1),
    "nothing there": replaced("", lambda place: None),
    "zero bytes": cut_to(lambda size: 0),
    "nothing there but the log": both(left_in_log, Path.unlink),
    "a log that was left": left_in_log,
    "a log of noise": replaced(
        "-wal", lambda place: place.write_bytes(random.Random(5).randbytes(100_000))
    ),
    "a log of half": both(left_in_log, lambda path: os.truncate(f"{path}-wal", 1000)),
    "an index of the log of noise": replaced(
        "-shm", lambda place: place.write_bytes(random.Random(5).randbytes(32768))
    ),
    "an index of the log that was left": replaced(
        "-shm", lambda place: place.write_bytes(bytes(32768))
    ),
    "no view": sql("DROP VIEW entries"),
    "no index": sql("DROP INDEX memory_conversations_time"),
    "another application id": sql("PRAGMA application_id = 77"),
    "a rollback journal": sql("PRAGMA journal_mode = delete"),
}


@pytest.mark.sample(14)
@pytest.mark.parametrize("kind", [*SET_ASIDE, *HEALED])
def test_a_search_answers_and_says_what_became_of_the_store(machine, kind):
    {**SET_ASIDE, **HEALED}[kind](machine.database)
    done = machine.run("search", "cherry blossom")
    assert (done.returncode, "**cherry**" in done.stdout) == (0, True), done.stderr
    assert len(done.stderr.splitlines()) <= 2, done.stderr
    checked = machine.run("health-check")
    assert checked.returncode == 0, checked.stdout + checked.stderr
    said = done.stderr + checked.stderr
    assert "Traceback" not in said
    if kind in SET_ASIDE:
        assert said.count("session-memory: the store was ") == 1
        assert ("the store was made by an earlier version; the old file is now " in said) == (
            WHY.get(kind) == "outdated"
        )
        assert (
            f"the old file is now ~/.session-memory/store/memory.db.{WHY.get(kind, 'corrupt')}-"
            in said
        )
        assert list(machine.database.parent.glob(f"memory.db.{WHY.get(kind, 'corrupt')}-*"))
    assert "the archived answer 2" in machine.stored()
    with closing(sqlite3.connect(machine.database)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("SELECT count(*) FROM entries").fetchone()[0] > 10


@pytest.mark.parametrize(
    "kind",
    [
        "a text",
        "noise",
        "no memories",
        "migrations of an earlier version",
        "zero bytes",
        "a log that was left",
    ],
)
def test_nothing_is_lost_that_no_transcript_tells(machine, kind):
    {**SET_ASIDE, **HEALED}[kind](machine.database)
    titles = sorted(one["title"] for one in memories(machine))
    assert len(titles) == 3
    # nothing is remembered twice, and what was forgotten does not come back
    done = machine.run("process")
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, NOTHING_WAITS), (
        done.stdout + done.stderr
    )
    assert f"Tokens today: {SPENT}" in done.stdout
    assert sorted(one["title"] for one in memories(machine)) == titles


@pytest.mark.parametrize(("suffix", "make"), [(suffix, make) for _, suffix, _, make in BESIDE])
def test_what_is_in_the_place_of_a_log_is_moved_away_and_the_store_stays(machine, suffix, make):
    replaced(suffix, make)(machine.database)
    inode = machine.database.stat().st_ino
    done = machine.run("search", "cherry blossom")
    assert (done.returncode, "**cherry**" in done.stdout) == (0, True), done.stderr
    moved = f"is now ~/.session-memory/store/memory.db{suffix}.corrupt-"
    assert done.stderr.startswith(
        f"session-memory: a file of the store was not an SQLite file and {moved}"
    )
    assert machine.database.stat().st_ino == inode
    assert list(machine.database.parent.glob("memory.db.corrupt-*")) == []


def test_a_newer_schema_is_not_corruption(machine):
    """A program that was running while a newer one migrated the store finds columns missing."""
    sql(
        "INSERT INTO migrations VALUES ('of_tomorrow', '')",
        "ALTER TABLE memory_conversations DROP COLUMN reason",
    )(machine.database)
    assert quarantine_if_corrupt(str(machine.database)) == ""
    assert machine.database.exists()


@pytest.mark.parametrize("kind", ["nothing there", "zero bytes", "one byte"])
def test_a_store_that_was_emptied_is_built_anew_and_that_is_said(machine, kind):
    HEALED[kind](machine.database)
    said = machine.run("search", "cherry").stderr
    assert said == (
        "session-memory: the store was empty: it is rebuilt from transcripts and, if these are "
        "gone, archives\n"
    )


def test_a_queue_that_cannot_be_read_stops_nothing_but_what_it_is_for(machine):
    machine.queue.write_bytes(b"no database" * 999)
    assert "**cherry**" in machine.run("search", "cherry blossom").stdout
    fault = (
        "memory.db.queue: damaged (file is not a database), so today's token budget counts as spent"
    )
    done = machine.run("process")
    assert (done.returncode, done.stdout) == (1, "")
    assert fault in done.stderr
    assert "restore it from a backup, or move it away" in done.stderr
    status = machine.result("status")
    assert fault in " ".join(status["problems"])
    assert status["spent"] is None
    assert fault in " ".join(machine.run("costs").stdout.split())
    assert machine.run("ingest").returncode == 0
    machine.queue.unlink()
    assert machine.run("process").stdout.splitlines()[0] == NOTHING_WAITS
