"""The log of upkeep's last runs for a home: `upkeep.json` beside the home's log."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ...common.errors import LockedError
from ...common.system.files import Closing, is_locked, lock, read_whole, write_atomically
from ...common.system.json import decode, encode
from ...history.store.location import StoreLocation
from ...sessions.settings.homes import Home

FILE = "/upkeep.json"
KEPT_RUNS = 20
BROKEN_OFF = "it was ended before it had finished"


@dataclass
class UpkeepRun:
    """One run of upkeep.

    `began` and `ended` are in seconds since the epoch (0.0 for not yet). `files` counts the files
    with new content, `bytes` their new content, `archived` conversations, `kept` sessions with new
    content, and `memories` those that were made. `is_cut_short` means that the limit left work
    undone. `stopped` maps strategies that could not continue to the reason. `problem` is the run's
    error ('' for none)."""

    began: float
    ended: float = 0.0
    cpu_seconds: float = 0.0
    files: int = 0
    bytes: int = 0
    archived: int = 0
    kept: int = 0
    memories: int = 0
    is_cut_short: bool = False
    stopped: list[str] = field(default_factory=list)
    problem: str = ""


class RunLog:
    """The last runs of a home, the oldest first. A corrupt file counts as empty.

    `archived_until` and `history_archived_at` are the times, in seconds since the epoch, when all
    new sessions and when all of the history were archived."""

    def __init__(self, home: Home) -> None:
        self._path = home.state_dir + FILE
        self.runs: list[UpkeepRun] = []
        self.archived_until = 0.0
        self.history_archived_at = 0.0
        try:
            stored: Any = decode(read_whole(self._path).decode())
            self.archived_until = float(stored["archived_until"])
            self.history_archived_at = float(stored.get("history_archived_at", 0.0))
            self.runs = [_run_of(values) for values in stored["runs"]]
        except (OSError, ValueError, KeyError, TypeError):
            pass

    def save(self) -> None:
        """Write the last KEPT_RUNS. Raises OSError."""
        self.runs = self.runs[-KEPT_RUNS:]
        content = {
            "archived_until": self.archived_until,
            "history_archived_at": self.history_archived_at,
            "runs": [vars(run) for run in self.runs],
        }
        write_atomically(self._path, encode(content).encode())

    def note_broken_off(self) -> None:
        """Mark unfinished runs as interrupted. Call this only if no run is in progress."""
        for run in self.runs:
            if not run.ended and not run.problem:
                run.problem = BROKEN_OFF


class UpkeepRuns(NamedTuple):
    """The `mode` of upkeep, its past and its next run.

    It has the process id of the watcher (0 for none), the past runs, the oldest first, and the
    earliest time of the next run in seconds since the epoch (0.0 for now)."""

    mode: str
    watcher: int
    runs: list[UpkeepRun]
    not_before: float


def past_runs(home: Home) -> list[UpkeepRun]:
    """Return the last runs of a home, the oldest first."""
    log = RunLog(home)
    if not (os.path.exists(home.upkeep_lock) and is_locked(home.upkeep_lock)):
        log.note_broken_off()
    return log.runs


def upkeep_runs(location: StoreLocation) -> UpkeepRuns:
    """Return the runs for the store's home."""
    home = location.home
    settings = home.settings()
    try:
        status = os.stat(home.upkeep_lock)
        not_before = status.st_mtime + settings.upkeep_seconds if status.st_size else 0.0
    except OSError:
        not_before = 0.0
    return UpkeepRuns(settings.upkeep, watcher_of(location.database), past_runs(home), not_before)


def _run_of(values: dict[str, Any]) -> UpkeepRun:
    run = UpkeepRun(float(values["began"]))
    for name, default in vars(run).items():
        value = values.get(name, default)
        setattr(run, name, value if type(value) is type(default) else type(default)(value))
    return run


def cpu_seconds() -> float:
    """Return the CPU time of this process and its finished children."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


WAIT_SECONDS = 1.0  # longer than `watcher_of` holds it
UNKNOWN = -1


@contextmanager
def watch_lock(database: str) -> Iterator[None]:
    """Hold the lock of a store until the block ends. Raises LockedError, OSError."""
    try:
        held = lock(_lock_file(database), WAIT_SECONDS)
    except LockedError:
        raise LockedError(
            f"{database}: process {watcher_of(database)} is already watching it"
        ) from None
    with Closing(held):
        write_atomically(_process_file(database), str(os.getpid()).encode())
        yield


def watcher_of(database: str) -> int:
    """Return the id of the process that watches a store.

    Return UNKNOWN if it did not record its id, 0 if there is none."""
    if not os.path.lexists(_lock_file(database)) or not is_locked(_lock_file(database)):
        return 0
    try:
        return int(read_whole(_process_file(database)))
    except (OSError, ValueError):
        return UNKNOWN


def _lock_file(database: str) -> str:
    return f"{os.path.dirname(database)}/watch.lock"


def _process_file(database: str) -> str:
    return f"{os.path.dirname(database)}/watch.pid"
