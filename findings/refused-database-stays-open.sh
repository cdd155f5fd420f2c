#!/usr/bin/env bash
# A program opens an embedded database that another process has open, is refused, and tries again, three times.
# Guess: an open that raises leaves no file open, in none of these.
# Seen: so it is with DuckDB 2.0.1, LevelDB (plyvel 1.5.1) and RocksDB (rocksdict 0.3.29). Kuzu 0.11.3 and its successor
# real_ladybug 0.15.3 keep a descriptor for each refused open until the process ends, also after garbage collection.
set -euo pipefail
directory=$(mktemp -d); trap 'rm -rf "$directory"' EXIT; cd "$directory"
cat >seen.py <<'PY'
import gc
import os
import subprocess
import sys

OPEN = {
    "kuzu": "import kuzu; held = kuzu.Database(path)",
    "real_ladybug": "import real_ladybug; held = real_ladybug.Database(path)",
    "duckdb": "import duckdb; held = duckdb.connect(path)",
    "plyvel": "import plyvel; held = plyvel.DB(path, create_if_missing=True)",
    "rocksdict": "import rocksdict; held = rocksdict.Rdict(path)",
}
HOLD = "import sys; path = sys.argv[1]\n{}\nprint('open', flush=True); sys.stdin.read()"


def left_open(path):
    paths = (f"/proc/self/fd/{number}" for number in os.listdir("/proc/self/fd"))
    return sum(os.readlink(link).startswith(path) for link in paths if os.path.lexists(link))


name = sys.argv[1]
path = os.path.realpath(f"{name}-data")
holder = subprocess.Popen([sys.executable, "-c", HOLD.format(OPEN[name]), path],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
assert holder.stdout.readline() == "open\n"
refused = 0
for _ in range(3):
    try:
        exec(OPEN[name], {"path": path})
    except Exception as error:
        assert "lock" in str(error).lower(), error
        refused += 1
gc.collect()
print(f"{name}: refused {refused} of 3, files left open {left_open(path)}")
holder.communicate()
PY
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check kuzu==0.11.3 real_ladybug==0.15.3 duckdb==2.0.1 plyvel==1.5.1 rocksdict==0.3.29
for name in kuzu real_ladybug duckdb plyvel rocksdict; do env/bin/python -W ignore seen.py "$name"; done | tee seen
diff seen - <<'END'
kuzu: refused 3 of 3, files left open 3
real_ladybug: refused 3 of 3, files left open 3
duckdb: refused 3 of 3, files left open 0
plyvel: refused 3 of 3, files left open 0
rocksdict: refused 3 of 3, files left open 0
END
