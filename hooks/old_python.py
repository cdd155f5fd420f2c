"""Ends a hook in silence if its Python is too old, with a line in the log.

This file itself, like the beginnings of all hooks and scripts, runs on any Python from 2.7 on."""

import os
import sys
import time

TEXT = "session-memory needs Python 3.10 or newer, and %s is %d.%d, so no hook runs\n"


def end():  # type: () -> None
    """Writes the line, unless it is the log's last already, and ends the process with 0."""
    try:
        text = TEXT % ((sys.executable or "python",) + tuple(sys.version_info[:2]))
        directory = os.environ.get("SESSION_MEMORY_DIR") or os.path.join(
            os.path.expanduser("~"), ".session-memory"
        )
        path = os.path.join(directory, "state", "hook.log")
        if not os.path.isdir(os.path.dirname(path)):
            os.makedirs(os.path.dirname(path), 0o700)
        with os.fdopen(os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600), "r+") as log:
            if not log.read().endswith(text):
                log.write(time.strftime("%Y-%m-%dT%H:%M:%SZ ", time.gmtime()) + text)
    except Exception:  # nobody can be told, and the prompt must not wait for it
        pass
    os._exit(0)
