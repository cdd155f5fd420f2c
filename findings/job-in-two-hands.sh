#!/usr/bin/env bash
# Two jobs are in a queue in a SQLite file. Worker A takes one; while A works, worker B takes one too. Both die. Worker C starts.
# Guess: B gets the second job, and C gets the first one back, since none was acknowledged.
# Seen: with SQLiteAckQueue of persist-queue 1.1.0, B and C get the first job too, while A still has it: opening the queue takes every
# unfinished job for one of a dead worker. With litequeue 0.9 and huey 3.5.4 B gets the second job, and C gets nothing: litequeue keeps
# both as locked, and huey deletes a job when a worker takes it.
set -euo pipefail
directory=$(mktemp -d); trap 'rm -rf "$directory"' EXIT; cd "$directory"
export HOME=$directory
python3 -m venv env && env/bin/pip install --quiet --disable-pip-version-check persist-queue==1.1.0 litequeue==0.9 huey==3.5.4
cat >worker.py <<'PY'
"""worker.py LIBRARY A|B|C: take a job and die; A fills the queue first, and B runs while A works."""

import os
import subprocess
import sys

LIBRARY, WHO = sys.argv[1:]
if LIBRARY == "persist-queue":
    from persistqueue import Empty, SQLiteAckQueue

    queue = SQLiteAckQueue("persist")
    put = queue.put

    def take():
        try:
            return queue.get(block=False)
        except Empty:
            return None

elif LIBRARY == "litequeue":
    from litequeue import LiteQueue

    queue = LiteQueue("lite.db")
    put = queue.put

    def take():
        message = queue.pop()
        return message and message.data

else:
    from huey import SqliteHuey

    queue = SqliteHuey("shop", filename="huey.db")
    put = queue.task()(lambda name: name)

    def take():
        task = queue.dequeue()
        return task and task.args[0]


if WHO == "A":
    put("job 1")
    put("job 2")
print(f"{LIBRARY}: {WHO} takes {take()}", flush=True)
if WHO == "A":
    subprocess.run([sys.executable, __file__, LIBRARY, "B"])
os._exit(1)
PY
for library in persist-queue litequeue huey; do
    for worker in A C; do env/bin/python worker.py "$library" "$worker" || true; done
done | tee seen
diff seen - <<'END'
persist-queue: A takes job 1
persist-queue: B takes job 1
persist-queue: C takes job 1
litequeue: A takes job 1
litequeue: B takes job 2
litequeue: C takes None
huey: A takes job 1
huey: B takes job 2
huey: C takes None
END
