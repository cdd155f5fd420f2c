#!/usr/bin/env bash
# apsw and the standard library's sqlite3 in one process, on one database. Each brings its own copy of SQLite.
# Guess: they lock each other out as two processes do, so nobody else writes during a transaction that apsw holds.
# Seen (apsw 3.54.1.0; with a rollback journal and with WAL): once sqlite3 has read the database and closed it, apsw's lock is gone,
# because closing a descriptor drops all POSIX locks of its process on the file. Another process writes in the middle of the
# transaction, both commit, and its write is lost: 10 less 1 less 1 is 9. No error, and the integrity check passes.
set -euo pipefail
directory=$(mktemp -d); trap 'rm -rf "$directory"' EXIT; cd "$directory"
python3 -m venv env && env/bin/pip install --quiet --disable-pip-version-check apsw==3.54.1.0
cat >seen.py <<'PY'
import pathlib
import sqlite3
import subprocess
import sys

import apsw

SELL = "import sqlite3; c = sqlite3.connect('shop.db', timeout=0); c.execute('UPDATE stock SET n = n - 1'); c.commit()"


def other_process():
    done = subprocess.run([sys.executable, "-c", SELL], capture_output=True, text=True)
    return done.stderr.strip().splitlines()[-1].rpartition(": ")[2] if done.returncode else "writes"


for mode in ("delete", "wal"):
    for path in pathlib.Path().glob("shop.db*"):
        path.unlink()
    connection = apsw.Connection("shop.db")
    connection.execute(f"PRAGMA journal_mode = {mode}").fetchall()
    connection.execute("CREATE TABLE stock (n); INSERT INTO stock VALUES (10)").fetchall()
    connection.execute("BEGIN IMMEDIATE")
    (count,) = connection.execute("SELECT n FROM stock").fetchone()
    before = other_process()
    reader = sqlite3.connect("shop.db")
    reader.execute("SELECT n FROM stock").fetchone()
    reader.close()
    after = other_process()
    connection.execute("UPDATE stock SET n = ?", (count - 1,))
    connection.execute("COMMIT")
    connection.close()
    with sqlite3.connect("shop.db") as database:
        ((left,),) = database.execute("SELECT n FROM stock")
        ((health,),) = database.execute("PRAGMA integrity_check")
    print(f"{mode}: before, another process: {before}; after sqlite3's close: {after}; left {left}, {health}")
PY
env/bin/python seen.py | tee seen
diff seen - <<'END'
delete: before, another process: database is locked; after sqlite3's close: writes; left 9, ok
wal: before, another process: database is locked; after sqlite3's close: writes; left 9, ok
END
