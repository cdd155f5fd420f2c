#!/usr/bin/env bash
# A process holds a FileLock and forks.
# Guess: the child shares the open file: it sees the lock as held, and if the parent dies, the child keeps the lock.
# Seen: so it is with filelock 3.12.0. With 4.3.1 the child closes the file at the fork: its object says that it is not locked, its
# release() does nothing, acquire() raises RuntimeError, and the lock is free once the parent is dead.
set -euo pipefail
directory=$(mktemp -d); trap 'rm -rf "$directory"' EXIT; cd "$directory"
cat >seen.py <<'PY'
import os
import signal
import subprocess
import sys
import time
import filelock

OTHER = """
import filelock
try:
    filelock.FileLock("lock").acquire(timeout=0)
    print("free")
except filelock.Timeout:
    print("held")
"""


def state():
    return subprocess.run([sys.executable, "-c", OTHER], capture_output=True, text=True).stdout.strip()


reading, writing = os.pipe()
parent = os.fork()
if not parent:
    lock = filelock.FileLock("lock")
    lock.acquire()
    child = os.fork()
    if not child:
        try:
            lock.acquire(timeout=0)
            again = "works"
        except Exception as error:
            again = type(error).__name__
        os.write(writing, f"{os.getpid()} child: is_locked {lock.is_locked}, acquire {again}\n".encode())
        time.sleep(30)
    time.sleep(30)
pid, _, line = os.read(reading, 200).decode().strip().partition(" ")
print(line)
print("both live:", state())
os.kill(parent, signal.SIGKILL)
os.waitpid(parent, 0)
print("only the child lives:", state())
os.kill(int(pid), signal.SIGKILL)
PY
for version in 3.12.0 4.3.1; do
  python3 -m venv "env-$version" && "env-$version/bin/pip" install --quiet --disable-pip-version-check "filelock==$version"
  echo "filelock $version"
  "env-$version/bin/python" -W ignore seen.py
done | tee seen
diff seen - <<'END'
filelock 3.12.0
child: is_locked True, acquire works
both live: held
only the child lives: held
filelock 4.3.1
child: is_locked False, acquire RuntimeError
both live: held
only the child lives: free
END
