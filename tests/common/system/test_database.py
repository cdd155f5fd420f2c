"""SQLite files of ours, whatever state they are found in."""

from __future__ import annotations

import multiprocessing
import os
import re
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import apsw
import pytest

from bench.crashes import failing_files
from session_memory.common.system import sqlite as database
from session_memory.common.system.files import DATABASE_SUFFIXES, NotAFileError
from session_memory.common.system.sqlite import (
    CorruptDatabaseError,
    Database,
    DatabaseError,
    NewerDatabaseError,
    SharedDatabase,
)

PROGRAM = Path(__file__).resolve().parents[3] / "session_memory"


def make_notes(connection: apsw.Connection) -> None:
    connection.execute("CREATE TABLE notes (text TEXT)")


def add_dates(connection: apsw.Connection) -> None:
    connection.execute("ALTER TABLE notes ADD COLUMN date TEXT")


def fill_notes(connection: apsw.Connection) -> None:
    connection.executemany("INSERT INTO notes VALUES (?)", [("x" * 1000,)] * 2000)


def empty_notes(connection: apsw.Connection) -> None:
    connection.execute("DELETE FROM notes WHERE rowid > 200")


def break_down(connection: apsw.Connection) -> None:
    connection.execute("CREATE TABLE half (x)")
    raise RuntimeError("in the middle")


def insert_and_fail(made: Database) -> None:
    with made.transaction() as connection:
        connection.execute("INSERT INTO notes VALUES ('x')")
        raise ZeroDivisionError


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "memory.db"


def opened(path: Path, *migrations: object) -> Database:
    return Database(str(path), migrations or (make_notes,))


def test_the_file_and_its_directory_are_for_the_user_alone(path):
    with opened(path).transaction() as connection:
        connection.execute("INSERT INTO notes VALUES ('x')")
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()} == {0o600}


def test_a_migration_runs_once_and_later_ones_are_added(path):
    opened(path).close()
    opened(path, make_notes, add_dates).close()
    assert (
        opened(path, make_notes, add_dates)
        .connection.execute("SELECT text, date FROM notes")
        .fetchall()
        == []
    )


def test_a_migration_that_fails_leaves_nothing_behind(path):
    opened(path).close()
    with pytest.raises(RuntimeError):
        opened(path, make_notes, break_down)
    tables = (
        opened(path)
        .connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
        .fetchall()
    )
    assert ("half",) not in tables


def test_what_a_migration_frees_is_given_back(path):
    opened(path, make_notes, fill_notes).close()
    before = path.stat().st_size
    made = opened(path, make_notes, fill_notes, empty_notes)
    assert made.connection.pragma("freelist_count") == 0
    assert made.connection.pragma("temp_store") == 2
    made.close()
    assert path.stat().st_size < before / 4


def test_little_that_is_free_is_left_to_be_used_again(path):
    opened(path, make_notes, fill_notes).close()
    with opened(path, make_notes, fill_notes).transaction() as connection:
        connection.execute("DELETE FROM notes WHERE rowid > 1800")
        free = connection.pragma("freelist_count")
    assert (
        opened(path, make_notes, fill_notes, add_dates).connection.pragma("freelist_count")
        == free
        > 0
    )


def test_what_is_free_stays_where_another_process_writes(path):
    other = opened(path, make_notes, fill_notes)
    with other.transaction() as connection:
        connection.execute("DELETE FROM notes")
    with writing_elsewhere(path):
        database.give_back(other.connection)
    assert other.connection.pragma("freelist_count") > 100
    with other.transaction() as connection:
        assert connection.execute("PRAGMA busy_timeout").get == database.BUSY_MILLISECONDS
    database.give_back(other.connection)
    assert other.connection.pragma("freelist_count") == 0


@pytest.mark.parametrize("kind", [apsw.FullError, apsw.IOError])
def test_whatever_fails_while_pages_are_given_back_the_database_is_whole_and_usable(path, kind):
    with failing_files() as files:
        made = opened(path, make_notes, fill_notes, empty_notes)
        for number in range(0, 40, 3):
            with made.transaction() as connection:
                fill_notes(connection)
                empty_notes(connection)
            files.fail_at(number, kind)
            database.give_back(made.connection)
            assert files.has_failed
            files.fail_at(None, kind)
            assert made.connection.execute("PRAGMA integrity_check").get == "ok"
            assert made.connection.execute("SELECT count(*) FROM notes").get == 200
        made.close()


@contextmanager
def writing_elsewhere(path: Path) -> Iterator[None]:
    """Another connection has begun to write."""
    other = apsw.Connection(str(path))
    other.execute("BEGIN IMMEDIATE")
    yield
    other.execute("ROLLBACK")
    other.close()


def test_many_processes_may_open_a_new_database_at_once(path):
    fork = multiprocessing.get_context("fork").Process
    processes = [fork(target=lambda: opened(path, make_notes, add_dates).close()) for _ in range(6)]
    for one in processes:
        one.start()
    for one in processes:
        one.join()
    assert [one.exitcode for one in processes] == [0] * 6


def test_a_database_that_no_byte_can_be_written_beside_is_read(path):
    opened(path).close()
    read = f"print(Database({str(path)!r}, (make_notes,)).connection.execute('SELECT count(*) FROM notes').get)"
    script = f"from test_database import *; from session_memory.common.system.sqlite import Database; {read}"
    code = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); {script}"
    done = subprocess.run(
        ["sh", "-c", 'ulimit -f 0; exec "$@"', "sh", sys.executable, "-c", code],
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, b"0\n"), done.stderr


@pytest.mark.parametrize(
    "content",
    [b"this is no database, but long enough to be read as one" * 100, b"SQLite format 3\0"],
)
def test_a_corrupt_database_is_an_error_until_it_is_moved_away(path, content):
    path.parent.mkdir()
    path.write_bytes(content)
    with pytest.raises(CorruptDatabaseError):
        opened(path)
    assert Path(database.quarantine(str(path))).read_bytes() == content
    assert opened(path).connection.execute("SELECT count(*) FROM notes").get == 0


def test_a_newer_database_is_read_and_not_written(path):
    with opened(path, make_notes, add_dates).transaction() as connection:
        connection.execute("INSERT INTO notes VALUES ('from the future', '2030')")
    older = opened(path, make_notes)
    assert older.is_newer
    assert older.connection.execute("SELECT text FROM notes").get == "from the future"
    with pytest.raises(NewerDatabaseError, match="newer version"):
        older.transaction().__enter__()


def test_a_shared_database_keeps_the_tables_and_migrations_of_others(path):
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as other, other:
        other.execute("CREATE TABLE chats (name)")
    SharedDatabase(str(path), (make_notes,)).close()

    def make_tasks(connection: apsw.Connection) -> None:
        connection.execute("CREATE TABLE tasks (text)")

    SharedDatabase(str(path), (make_tasks,)).close()
    with closing(SharedDatabase(str(path), (make_notes, add_dates))) as made:
        with made.transaction() as connection:
            connection.execute("INSERT INTO notes VALUES ('x', '2026')")
        assert made.connection.pragma("synchronous") == 2
        assert made.connection.execute("SELECT count(*) FROM chats, tasks").get == 0


def test_a_shared_database_that_is_corrupt_is_an_error_that_says_what_to_do(path):
    path.parent.mkdir()
    path.write_bytes(b"this is no database, but long enough to be read as one" * 100)
    with pytest.raises(CorruptDatabaseError) as error:
        SharedDatabase(str(path), (make_notes,))
    assert error.value.hint == "restore it from a backup, or move it away to start a new one"


def test_a_database_that_another_keeps_locked_is_an_error_that_says_so(path, monkeypatch):
    monkeypatch.setattr(database, "BUSY_MILLISECONDS", 50)
    first, second = opened(path), opened(path)
    with first.transaction(), pytest.raises(DatabaseError, match="locked"):
        second.transaction().__enter__()


def test_what_goes_wrong_in_a_transaction_undoes_all_of_it(path):
    made = opened(path)
    with pytest.raises(ZeroDivisionError):
        insert_and_fail(made)
    assert made.connection.execute("SELECT count(*) FROM notes").get == 0


@pytest.mark.parametrize("suffix", ["", "-wal"])
def test_a_symlink_in_place_of_the_database_or_its_log_is_refused_and_stays(path, tmp_path, suffix):
    opened(path).close()
    place = path.with_name(path.name + suffix)
    place.unlink(missing_ok=True)
    place.symlink_to(tmp_path / "elsewhere.db")
    with pytest.raises(DatabaseError, match="a symlink, which is not followed") as refused:
        opened(path).transaction().__enter__()
    assert not isinstance(refused.value, CorruptDatabaseError)
    assert place.is_symlink()
    assert not (tmp_path / "elsewhere.db").exists()


def test_a_link_on_the_way_to_the_database_is_followed(path, tmp_path):
    opened(path).close()
    (tmp_path / "link").symlink_to(path.parent)
    with opened(tmp_path / "link" / path.name).transaction() as connection:
        connection.execute("INSERT INTO notes VALUES ('x')")
    assert opened(path).connection.execute("SELECT text FROM notes").get == "x"


def test_only_one_function_connects_to_a_database_of_ours():
    """So that what it checks holds for all. A connection to `:memory:` has no file; OpenCode's is
    not ours."""
    found = {
        f"{module.relative_to(PROGRAM)}: {call}"
        for module in PROGRAM.rglob("*.py")
        for call in re.findall(
            r'(?:apsw\.Connection|sqlite3\.connect)\((?!":memory:").*', module.read_text()
        )
    }
    assert {line.partition(":")[0] for line in found} == {
        "common/system/sqlite.py",
        "common/system/_sqlite_read_only.py",
    }, found
    assert len(found) == 2


def test_a_file_that_exists_is_not_opened_beside_a_connection(path):
    """The close would drop the locks: another program that closes its connection would then delete
    the log."""
    with opened(path).transaction() as connection:
        connection.execute("INSERT INTO notes VALUES ('x')")
    held = opened(path)
    opened(path).close()
    other = "import sqlite3, sys; sqlite3.connect(sys.argv[1]).execute('SELECT * FROM notes')"
    subprocess.run([sys.executable, "-c", other, str(path)], check=True)
    assert path.with_name("memory.db-wal").exists()
    assert held.connection.execute("SELECT text FROM notes").get == "x"


@pytest.mark.parametrize("suffix", DATABASE_SUFFIXES)
def test_a_fifo_in_place_of_a_file_of_the_database_is_not_waited_for(path, suffix):
    opened(path).close()
    place = path.with_name(path.name + suffix)
    place.unlink(missing_ok=True)
    os.mkfifo(place)
    with pytest.raises(NotAFileError):
        database.open_file(str(path))
    with pytest.raises(CorruptDatabaseError):
        opened(path)
    content = path.read_bytes() if suffix else b""
    assert Path(database.quarantine(str(path))).is_fifo()
    assert opened(path).connection.execute("SELECT count(*) FROM notes").get == 0
    assert path.read_bytes().startswith(content)  # a healthy database stays
