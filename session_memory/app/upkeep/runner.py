"""One run of upkeep: ingests new content, writes due archives, keeps transcripts, makes memories,
pushes to the team.

In its own process, at low priority, or in that of `session-memory watch`; at most one at a time per
store, at most every ten minutes, with at most a minute of CPU time. It may be killed at any moment:
the next run resumes."""

import os
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from functools import partial
from importlib.util import find_spec

from ...awareness.events.log import HookLog
from ...awareness.events.upkeep_start import CONFLICTS, is_due, judgement_file, lock_file
from ...common.errors import LockedError, SessionMemoryError, described
from ...common.system.files import Closing, lock
from ...common.text.format import one_line
from ...common.text.sanitize import for_people
from ...common.text.timestamps import now_milliseconds
from ...history.store.location import NoStoreError, StoreLocation, find_location
from ...history.store.sqlite.engine import SqliteStore
from ...sessions.runtimes import all_runtimes
from ...sessions.settings.compiled import OFF
from ...sessions.settings.homes import ENV_GUARD
from ...sessions.settings.program import add_all_packages, stay_with_version
from ._runs import RunLog, UpkeepRun, cpu_seconds

EVENT = "upkeep"  # in the log
CPU_SECONDS = 60.0
STUCK_CPU_SECONDS = 90  # the kernel kills a process that exceeds its allowance this far
LONGEST_SECONDS = 600.0
REDACTION_SECONDS = 5.0
HISTORY_CPU_SECONDS = 30.0
HISTORY_SECONDS = 86_400.0
WORDS_SECONDS = 10.0
MOST_PROBLEMS = 3  # of transcripts that could not be kept
BATCH_BYTES = 8 * 1024 * 1024
NICENESS = 10
NO_APSW = "apsw is not installed, so that there is no store yet"


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


class _SpentError(Exception):
    """The allowance is spent before everything is ingested."""


def main(words: list[str]) -> None:
    """Run upkeep for the home whose path is the first argument; if a second one says so, only its
    search for conflicts. Errors go to the home's log."""
    _lower_priority()
    stay_with_version()
    for runtime in all_runtimes():  # a child process belongs to no session
        for name in runtime.install.hook_variables("", ""):
            os.environ.pop(name, None)
    os.environ[ENV_GUARD] = "1"
    add_all_packages(os.environ)
    with suppress(NoStoreError, LockedError):  # nothing recorded yet; another process is running
        (judge if CONFLICTS in words[1:] else do_upkeep)(words[0], os.environ)


def judge(path: str, environ: Mapping[str, str]) -> None:
    """Find the conflicts of the home at `path`, as a prompt asks for. Raises NoStoreError,
    LockedError, OSError."""
    location = find_location(path, environ)
    with Closing(lock(judgement_file(location.home), 0)) as held:
        os.utime(held)
        _find_conflicts(location, environ, HookLog(location.home))


def do_upkeep(
    path: str, environ: Mapping[str, str], is_stopped: Callable[[], bool] = lambda: False
) -> UpkeepRun | None:
    """Run upkeep for the store of the home at `path` if it is due, until it `is_stopped`; return
    the run. Raises NoStoreError, LockedError."""
    location = find_location(path, environ)
    home = location.home
    try:
        held = lock(lock_file(home), 0)
    except OSError as error:
        HookLog(home).write_fault(EVENT, error)
        return None
    with Closing(held):
        return (
            _run(location, environ, held, TimeBudget(is_stopped))
            if is_due(home, time.time())
            else None
        )


def _run(
    location: StoreLocation, environ: Mapping[str, str], held: int, allowance: TimeBudget
) -> UpkeepRun | None:
    log, runs = HookLog(location.home), RunLog(location.home)
    before = runs.runs[-1].problem if runs.runs else ""
    runs.note_broken_off()
    run = UpkeepRun(time.time())
    if find_spec("apsw") is None:
        run.problem = NO_APSW  # stays due: a plugin may be installing it
        if before == NO_APSW:
            return None
    runs.runs.append(run)
    cpu_before = cpu_seconds()
    try:
        if not run.problem:
            os.ftruncate(held, 0)
            os.pwrite(held, str(os.getpid()).encode(), 0)  # from here on it is not due
            runs.save()
            _work(location, environ, run, runs, log, allowance)
    except Exception as error:
        run.problem = _said(error)
    if run.problem and run.problem != before:
        log.write(EVENT, run.problem)
    run.ended, run.cpu_seconds = time.time(), round(cpu_seconds() - cpu_before, 2)
    with suppress(OSError):
        runs.save()
    return run


def _work(
    location: StoreLocation,
    environ: Mapping[str, str],
    run: UpkeepRun,
    runs: RunLog,
    log: HookLog,
    allowance: TimeBudget,
) -> None:
    """Do the work and record the outcome in `run`. Raises SessionMemoryError, OSError."""
    from ...history.store.refresh import use_store
    from ...history.store.sqlite.unread_lines import add_missing
    from ...history.store.sqlite.unread_words import forget_incomplete
    from . import _forget_journal as forget_journal
    from ._leftover_files import drop_excluded_titles, follow_rules, remove_leftovers

    remove_leftovers(location)

    def note(text: str) -> None:
        log.write(EVENT, text)

    def bring_up_to_date(store: SqliteStore, is_rebuilt: bool) -> None:
        if store.obstacle:
            raise store.obstacle
        for problem in forget_journal.finish(location, store, environ, note):
            note(problem)
        forget_incomplete(store, location.watched, WORDS_SECONDS)
        _ingest(store, location, run, allowance)
        store.mark_ready(now_milliseconds())
        store.redact_again(REDACTION_SECONDS)
        add_missing(store, REDACTION_SECONDS)
        if not allowance.is_spent():
            _archive(store, location, environ, run, runs, allowance, log)
        if not allowance.is_spent():
            _keep(store, location, environ, run, allowance)

    use_store(location, bring_up_to_date, note)
    follow_rules(location, environ, note)
    drop_excluded_titles(location, environ)
    if not allowance.is_spent():
        _make_memories(location, run, allowance)
    if location.home.settings().team.get("url") and not allowance.is_spent():
        _push_to_team(location, environ, allowance, log)
    if not allowance.is_spent() and location.home.settings().collisions != OFF:
        _find_conflicts(location, environ, log)
    run.is_cut_short = allowance.is_spent()


def _ingest(
    store: SqliteStore, location: StoreLocation, run: UpkeepRun, allowance: TimeBudget
) -> None:
    from ...history.store.ingest.intake import take_in

    changed: set[str] = set()

    def progress(path: str, size: int) -> None:
        if size:
            changed.add(path)
        run.files, run.bytes = len(changed), run.bytes + size
        if allowance.is_spent():
            raise _SpentError

    with suppress(_SpentError):
        take_in(store, location, progress, batch_bytes=BATCH_BYTES)


def _archive(
    store: SqliteStore,
    location: StoreLocation,
    environ: Mapping[str, str],
    run: UpkeepRun,
    runs: RunLog,
    allowance: TimeBudget,
    log: HookLog,
) -> None:
    from ...history.archives.due import archived_elsewhere, due_archives, history, write_due

    due = due_archives(store, location, runs.archived_until or run.began, environ)
    run.archived, problems = write_due(due, location, environ, allowance.is_spent)
    if not allowance.is_spent():
        runs.archived_until = run.began
        # once all is archived, look again after a day
        is_due = run.began - runs.history_archived_at >= HISTORY_SECONDS
        if is_due and location.home.settings().archive_history:
            end = cpu_seconds() + HISTORY_CPU_SECONDS

            def is_over() -> bool:
                return allowance.is_spent() or cpu_seconds() >= end

            written, more = write_due(
                history(store, location, archived_elsewhere(location, environ)),
                location,
                environ,
                is_over,
            )
            run.archived += written
            problems += more
            runs.history_archived_at = 0.0 if is_over() else run.began
    for problem in problems:
        log.write(EVENT, problem)


def _keep(
    store: SqliteStore,
    location: StoreLocation,
    environ: Mapping[str, str],
    run: UpkeepRun,
    allowance: TimeBudget,
) -> None:
    """Keep what is new in transcripts, if that is on. What fails is the problem of the run."""
    from ...history.copies.keep import keep_sessions

    try:
        run.kept, problems = keep_sessions(store, location, environ, allowance.is_spent)
    except (SessionMemoryError, OSError) as error:
        problems = [_said(error)]
    run.problem = run.problem or "; ".join(problems[:MOST_PROBLEMS])


def _make_memories(location: StoreLocation, run: UpkeepRun, allowance: TimeBudget) -> None:
    from ...memory.runner import prepared

    with prepared(location) as work:
        run.stopped = [f"{id}: {error}" for id, error in work.missing]
        for done in work.work_off(stop=allowance.is_spent):
            run.memories += len(done.memories)
            if done.status == "stopped":
                run.stopped.append(f"{done.strategy}: {one_line(for_people(done.reason))}")


def _find_conflicts(location: StoreLocation, environ: Mapping[str, str], log: HookLog) -> None:
    from ...history.conflicts import keep_conflicts

    try:
        keep_conflicts(location.home, location.home.root, environ, time.time())
    except (SessionMemoryError, OSError) as error:
        log.write(EVENT, f"conflicts: {_said(error)}")


def _push_to_team(
    location: StoreLocation, environ: Mapping[str, str], allowance: TimeBudget, log: HookLog
) -> None:
    """Push new content. On failure it waits; each problem is logged once."""
    from ...extras.team.sharing import note_problem, push_to_team
    from ...history.store.refresh import open_store

    with closing(open_store(location)) as store:
        try:
            push_to_team(store, location, environ, partial(log.write, EVENT), allowance.is_spent)
        except SessionMemoryError as error:
            if note_problem(location.home, _said(error)):
                log.write(EVENT, f"team: {_said(error)}")


def _lower_priority() -> None:
    """Lower the process's priority, and let the kernel kill it if it ignores its allowance."""
    if hasattr(os, "nice"):
        os.nice(NICENESS)
    with suppress(OSError):  # exists only on Linux
        subprocess.run(
            ["ionice", "-c", "3", "-p", str(os.getpid())], check=False, capture_output=True
        )
    with suppress(ImportError, OSError, ValueError):
        from resource import RLIMIT_CPU, getrlimit, setrlimit

        setrlimit(RLIMIT_CPU, (STUCK_CPU_SECONDS, getrlimit(RLIMIT_CPU)[1]))


def _said(error: Exception) -> str:
    """Return an error on one line, with its type unless it is ours."""
    is_foreseen = isinstance(error, SessionMemoryError | OSError)
    return one_line(
        for_people(described(error) if is_foreseen else f"{type(error).__name__}: {error}")
    )
