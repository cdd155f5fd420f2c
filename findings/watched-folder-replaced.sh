#!/usr/bin/env bash
# A folder is watched; it is moved away and a new one takes its name, as a restore or a sync does.
# Guess: watchfiles goes on with the new folder, or reports nothing more.
# Seen (watchfiles 1.3.0 on Linux): nothing in the new folder is reported. A file made in the old folder, which has another name now,
# is reported with a path in the new one, where no such file is.
set -euo pipefail
[ "$(uname)" = Linux ] || { echo "only on Linux"; exit 0; }
directory=$(mktemp -d); trap 'rm -rf "$directory"' EXIT; cd "$directory"
python3 -m venv env && env/bin/pip install --quiet --disable-pip-version-check watchfiles==1.3.0
cat >seen.py <<'PY'
import os
import threading
import time
from watchfiles import watch

root, stop, events = os.path.abspath("watched"), threading.Event(), []
os.mkdir(root)


def watching():
    for changes in watch(root, stop_event=stop, debounce=100, step=50, rust_timeout=200):
        events.extend(sorted((kind.name, os.path.relpath(path)) for kind, path in changes))


def settle(title):
    time.sleep(2)
    print(title, events)
    events.clear()


thread = threading.Thread(target=watching)
thread.start()
time.sleep(1)
open(f"{root}/a", "w").close()
settle("a file:")
os.rename(root, f"{root}-old")
os.mkdir(root)
settle("the folder is replaced:")
open(f"{root}/b", "w").close()
settle("a file in the new folder:")
open(f"{root}-old/c", "w").close()
settle("a file in the old folder:")
print("it is there:", os.path.exists(f"{root}/c"))
stop.set()
thread.join()
PY
env/bin/python seen.py | tee seen
diff seen - <<'END'
a file: [('added', 'watched/a')]
the folder is replaced: [('deleted', 'watched')]
a file in the new folder: []
a file in the old folder: [('added', 'watched/c')]
it is there: False
END
