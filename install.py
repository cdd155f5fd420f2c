"""Installs session-memory: `python3 install.py`, with any bare Python from 3.10 on; any other from
2.7 on says so."""

import os
import sys

if sys.version_info < (3, 10):
    names = ["python3.%d" % minor for minor in range(20, 9, -1)]
    paths = [
        os.path.join(path, name)
        for name in names
        for path in os.environ.get("PATH", "").split(os.pathsep)
    ]
    newer = [path for path in paths if os.access(path, os.X_OK)] + [
        "install a newer one, then: python3"
    ]
    text = "session-memory needs Python 3.10 or newer, and this is %d.%d.%d; try: %s install.py"
    sys.exit(text % (tuple(sys.version_info[:3]) + (newer[0],)))
sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from session_memory.common.system.terminal import main_of

if __name__ == "__main__":
    sys.exit(main_of("app.install.command", sys.argv[0], sys.argv[1:]))
