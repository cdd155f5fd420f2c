"""SQLite for a prompt gives the same results as the package, without its imports."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]

PROGRAM = """
import sys
sys.path.insert(0, {root!r})
from session_memory.common.system.quick_sqlite import Error, connect
loaded = {{"functools", "datetime", "sqlite3"}} & set(sys.modules)
connection = connect("file:{path}?mode=ro", uri=True, timeout=0, isolation_level=None)
connection.text_factory = lambda content: content.decode("utf-8", "replace")
compiled = []
connection.set_authorizer(lambda action, *_: action == 21 and compiled.append(action) or 0)  # SQLITE_SELECT
connection.execute("BEGIN")
found = [connection.execute("SELECT said FROM t WHERE n = ?", (n,)).fetchall() for n in (1, 2, 1)]
assert len(compiled) == 1, compiled
inner = "SELECT n FROM t ORDER BY n"
assert [(a, b) for (a,) in connection.execute(inner) for (b,) in connection.execute(inner)] == [(1, 1), (1, 2), (2, 1), (2, 2)]
connection.set_authorizer(None)
connection.execute("COMMIT")
try:
    connection.execute("DELETE FROM t")
except Error as error:
    print(loaded, found, error)
connection.close()
import functools
assert functools.lru_cache(4)(len)("abc") == 3
"""


def test_a_prompt_reads_a_database_without_the_modules_that_take_longest(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE t (n, said)")
    connection.executemany("INSERT INTO t VALUES (?, ?)", [(1, "one"), (2, "zwei \u00e4")])
    connection.commit()
    connection.close()
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", PROGRAM.format(root=str(ROOT), path=path)],
        capture_output=True,
        text=True,
        timeout=30,
        env={"HOME": "/nonexistent", "PYTHONIOENCODING": "utf-8"},
        check=True,
    )
    found = [[("one",)], [("zwei \u00e4",)], [("one",)]]
    assert done.stdout == f"set() {found} attempt to write a readonly database\n"


def test_where_functools_is_there_already_nothing_takes_its_place() -> None:
    import functools

    from session_memory.common.system import quick_sqlite

    assert sys.modules["functools"] is functools
    assert quick_sqlite.Error is sqlite3.Error
