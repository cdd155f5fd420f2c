"""Work in a process of its own, that may be killed."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable


def forked(work: Callable[[], object]) -> int:
    """Start a process that does some work and exits; return its id."""
    child = os.fork()
    if child:
        return child
    try:
        work()
    except BaseException:
        sys.excepthook(*sys.exc_info())
        os._exit(1)
    os._exit(0)


def is_killed(child: int, after_seconds: float) -> bool:
    """Kill a process after so long; return False if it was done before."""
    time.sleep(after_seconds)
    os.kill(child, signal.SIGKILL)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])
