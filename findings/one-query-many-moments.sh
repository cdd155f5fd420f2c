#!/usr/bin/env bash
# DuckDB reads a table of a SQLite file (WAL) while another process moves numbers between its rows, each move in one transaction. So the
# sum of all rows is the same at every moment.
# Guess: a query sees one moment, since the file is read in one transaction; at the latest inside BEGIN.
# Seen (DuckDB 1.5.5 with its SQLite extension): the sum is often wrong, also inside BEGIN. With several threads, each part of the table
# of about 120,000 rows is read at another moment. With `SET threads = 1` the sum is right. SQLite itself always gives the right one.
set -euo pipefail
directory=$(mktemp -d); trap 'rm -rf "$directory"' EXIT; cd "$directory"
export HOME=$directory
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check duckdb==1.5.5 duckdb-extension-sqlite==1.5.5
cat >seen.py <<'PY'
import pathlib
import shutil
import sqlite3
import subprocess
import sys
import time

import duckdb
import duckdb_extension_sqlite

ROWS, SUM = 500_000, "SELECT sum(n) FROM {}stock"
MOVE = f"""
import random, sqlite3
database = sqlite3.connect("shop.db", timeout=30, isolation_level=None)
while True:
    taken, given = random.sample(range({ROWS}), 2)
    database.execute("BEGIN IMMEDIATE")
    database.execute("UPDATE stock SET n = n - 1000 WHERE id = ?", (taken,))
    database.execute("UPDATE stock SET n = n + 1000 WHERE id = ?", (given,))
    database.execute("COMMIT")
"""

with sqlite3.connect("shop.db") as database:
    database.execute("PRAGMA journal_mode = wal")
    database.execute("CREATE TABLE stock (id INTEGER PRIMARY KEY, n INTEGER)")
    database.executemany("INSERT INTO stock VALUES (?, 100)", ((number,) for number in range(ROWS)))
(extension,) = pathlib.Path(duckdb_extension_sqlite.__file__).parent.rglob("*.duckdb_extension")
shutil.copy(extension, "sqlite_scanner.duckdb_extension")
reader = duckdb.connect()
reader.execute("LOAD './sqlite_scanner.duckdb_extension'")
reader.execute("ATTACH 'shop.db' AS shop (TYPE sqlite, READ_ONLY)")


def sums(program, table, most):
    """Say whether the sum is right each time, asking until it is wrong, at most so many times."""
    for _ in range(most):
        if program.execute(SUM.format(table)).fetchone()[0] != 100 * ROWS:
            return "wrong"
    return "right"


reader.execute("SET threads = 4")
print("nobody writes, DuckDB, 4 threads:", sums(reader, "shop.", 10))
mover = subprocess.Popen([sys.executable, "-c", MOVE])
time.sleep(1)
print("DuckDB, 4 threads:", sums(reader, "shop.", 200))
reader.execute("BEGIN")
print("DuckDB, 4 threads, in a transaction:", sums(reader, "shop.", 200))
reader.execute("ROLLBACK")
reader.execute("SET threads = 1")
print("DuckDB, 1 thread:", sums(reader, "shop.", 30))
print("SQLite:", sums(database, "", 30))
assert mover.poll() is None
mover.kill()
PY
env/bin/python seen.py | tee seen
diff seen - <<'END'
nobody writes, DuckDB, 4 threads: right
DuckDB, 4 threads: wrong
DuckDB, 4 threads, in a transaction: wrong
DuckDB, 1 thread: right
SQLite: right
END
