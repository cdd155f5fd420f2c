#!/usr/bin/env bash
# Four lock libraries, each in its own process, lock one file: while one holds it, the others ask for it without waiting.
# Guess: whichever holds it, the three others are refused; that is what a lock file is for.
# Seen (Linux): filelock 4.3.1, portalocker 4.4.2 and zc.lockfile 4.0 refuse each other, because they use flock. fasteners 0.20 uses lockf,
# so it gets the file while any of them holds it, and they get it from fasteners. Nobody sees an error.
set -euo pipefail
directory=$(mktemp -d); trap 'rm -rf "$directory"' EXIT; cd "$directory"
export HOME=$directory
[ "$(uname)" = Linux ] || { echo "only on Linux: elsewhere the two kinds of lock may know each other"; exit 0; }
python3 -m venv env && env/bin/pip install --quiet --disable-pip-version-check filelock==4.3.1 portalocker==4.4.2 zc.lockfile==4.0 fasteners==0.20
cat >seen.py <<'PY'
import subprocess
import sys

import fasteners
import filelock
import portalocker
import zc.lockfile


def by_filelock(path):
    lock = filelock.FileLock(path)
    lock.acquire(timeout=0)
    return lock.release


def by_portalocker(path):
    lock = portalocker.Lock(path, fail_when_locked=True)
    lock.acquire()
    return lock.release


def by_zc(path):
    return zc.lockfile.LockFile(path).close


def by_fasteners(path):
    lock = fasteners.InterProcessLock(path)
    if not lock.acquire(blocking=False):
        raise RuntimeError("held")
    return lock.release


TAKERS = {"filelock": by_filelock, "portalocker": by_portalocker, "zc.lockfile": by_zc, "fasteners": by_fasteners}
if sys.argv[1:]:
    try:
        TAKERS[sys.argv[1]](sys.argv[2])
    except (filelock.Timeout, portalocker.LockException, zc.lockfile.LockError, RuntimeError):
        sys.exit(1)
    sys.exit(0)
for number, (holder, take) in enumerate(TAKERS.items()):
    path = f"{number}.lock"
    release = take(path)
    others = [asking for asking in TAKERS if not subprocess.run([sys.executable, __file__, asking, path]).returncode]
    print(f"{holder} holds it, and also gets it:", ", ".join(others) or "nobody")
    release()
PY
env/bin/python seen.py | tee seen
diff seen - <<'END'
filelock holds it, and also gets it: fasteners
portalocker holds it, and also gets it: fasteners
zc.lockfile holds it, and also gets it: fasteners
fasteners holds it, and also gets it: filelock, portalocker, zc.lockfile
END
