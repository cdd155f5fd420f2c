"""One run of upkeep, with the steps that features register in `extension_points.UPKEEP`.

It runs at low priority in its own process, or in the process of `session-memory watch`. Per store
there is at most one run at a time, at most every ten minutes, with at most a minute of CPU time. It
may be killed at any moment; the next run resumes.
"""

import os
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from importlib.util import find_spec

from ...awareness.events.log import HookLog
from ...awareness.events.upkeep_start import CONFLICTS, is_due
from ...common.errors import LockedError
from ...common.system.files import Closing, lock
from ...extension_points import UPKEEP
from ...history.store.location import NoStoreError, StoreLocation, find_location
from ...sessions.settings.program import leave_session, stay_with_version
from ._runs import UpkeepRun, cpu_seconds
from .run import Run

EVENT = "upkeep"  # in the log
CPU_SECONDS = 60.0
STUCK_CPU_SECONDS = 90  # the kernel kills a process that exceeds its allowance by this factor
LONGEST_SECONDS = 600.0
NICENESS = 10
NO_APSW = "apsw is not installed, so there is no store yet"


class TimeBudget:
    """The CPU and wall-clock time that a run has left; none once it `is_stopped`."""

    def __init__(self, is_stopped: Callable[[], bool]) -> None:
        self._is_stopped = is_stopped
        self._cpu_end = cpu_seconds() + CPU_SECONDS
        self._deadline = time.monotonic() + LONGEST_SECONDS

    def is_spent(self) -> bool:
        """Return whether the run must end."""
        return (
            self._is_stopped()
            or cpu_seconds() >= self._cpu_end
            or time.monotonic() >= self._deadline
        )


def main(words: list[str]) -> None:
    """Run upkeep for the home whose path is the first argument.

    With the second argument CONFLICTS, only search for conflicts. Errors go to the home's log."""
    _lower_priority()
    stay_with_version()
    leave_session()
    with suppress(NoStoreError, LockedError):  # nothing recorded yet; another process is running
        (_judge if CONFLICTS in words[1:] else do_upkeep)(words[0], os.environ)


def _judge(path: str, environ: Mapping[str, str]) -> None:
    """Find the conflicts of the home at `path`, as a prompt requests.

    Raises NoStoreError, LockedError, OSError."""
    location = find_location(path, environ)
    with Closing(lock(location.home.conflicts_lock, 0)) as held:
        os.utime(held)
        run = Run(location, partial(HookLog(location.home).write, EVENT))
        run.take({CONFLICTS: UPKEEP[CONFLICTS]})


def do_upkeep(
    path: str, environ: Mapping[str, str], is_stopped: Callable[[], bool] = lambda: False
) -> UpkeepRun | None:
    """Run upkeep for the store of the home at `path` if it is due, and return the run.

    It ends early once it `is_stopped`. Raises NoStoreError, LockedError."""
    location = find_location(path, environ)
    home = location.home
    try:
        held = lock(home.upkeep_lock, 0)
    except OSError as error:
        HookLog(home).write_fault(EVENT, error)
        return None
    with Closing(held):
        return _run(location, held, TimeBudget(is_stopped)) if is_due(home, time.time()) else None


def _run(location: StoreLocation, held: int, allowance: TimeBudget) -> UpkeepRun | None:
    log = HookLog(location.home)
    run = Run(location, partial(log.write, EVENT), allowance.is_spent)
    runs, record = run.runs, run.record
    before = runs.runs[-1].problem if runs.runs else ""
    runs.note_broken_off()
    if find_spec("apsw") is None:
        record.problem = NO_APSW  # stays due: a plugin may be installing it
        if before == NO_APSW:
            return None
    runs.runs.append(record)
    cpu_before = cpu_seconds()
    try:
        if not record.problem:
            os.ftruncate(held, 0)
            os.pwrite(held, str(os.getpid()).encode(), 0)  # from here on it is not due
            runs.save()
            run.take(UPKEEP)
            record.is_cut_short = run.is_spent()
    except OSError as error:
        run.fail(error)
    if record.problem and record.problem != before:
        run.note(record.problem)
    record.ended, record.cpu_seconds = time.time(), round(cpu_seconds() - cpu_before, 2)
    with suppress(OSError):
        runs.save()
    return record


def _lower_priority() -> None:
    """Lower the process's priority, and let the kernel kill it if it exceeds its allowance."""
    if hasattr(os, "nice"):
        os.nice(NICENESS)
    with suppress(OSError):  # exists only on Linux
        subprocess.run(
            ["ionice", "-c", "3", "-p", str(os.getpid())], check=False, capture_output=True
        )
    with suppress(ImportError, OSError, ValueError):
        from resource import RLIMIT_CPU, getrlimit, setrlimit

        setrlimit(RLIMIT_CPU, (STUCK_CPU_SECONDS, getrlimit(RLIMIT_CPU)[1]))
