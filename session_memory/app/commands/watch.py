"""`session-memory watch`: keeps the store up to date while it runs."""

from __future__ import annotations

import argparse
import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from ...common.errors import ConfigError, LockedError
from ...common.system.terminal import Terminal, byte_size
from ...common.text.format import counted
from ...history.store.ingest.ingestion import IngestReport
from ...history.store.ingest.sources import told_roots
from ...history.store.location import StoreLocation, find_location
from ...history.store.sqlite.engine import SqliteStore
from ...history.store.sqlite.unread_lines import add_missing
from ..upkeep._runs import watch_lock
from ..upkeep.rules import follow_rules
from ..upkeep.runner import do_upkeep
from ..upkeep.watch import Watcher
from .arguments import add_home

SUMMARY = "keep the store up to date while sessions run, until you stop it"
REDACTION_SECONDS = 2.0  # a stop waits for no more


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--once", action="store_true", help="do the pending work once and exit, for cron"
    )
    add_home(parser)


def run(arguments: argparse.Namespace) -> int:
    terminal = Terminal(os.environ)
    location = find_location(arguments.home, os.environ)
    try:
        with watch_lock(location.database):
            is_done = _watch(
                location, lambda: _understood(arguments.home), terminal, is_once=arguments.once
            )
    except LockedError as error:
        if not arguments.once:
            raise
        _Log(terminal).say(terminal.short(str(error)))
        return 0
    return 0 if is_done else 1


def _understood(path: str | None) -> StoreLocation:
    """Return the store for the current settings.

    Raises ConfigError for invalid settings; the earlier ones then stay in force."""
    location = find_location(path, os.environ)
    faults = location.home.settings().faults
    if faults:
        raise ConfigError(faults[0])
    return location


def _watch(
    location: StoreLocation, find: Callable[[], StoreLocation], terminal: Terminal, *, is_once: bool
) -> bool:
    """Watch; return False if `is_once` and something could not be ingested."""
    stop = threading.Event()
    log = _Log(terminal)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())

    def redact(store: SqliteStore, _: StoreLocation) -> None:
        store.redact_again(REDACTION_SECONDS)
        add_missing(store, REDACTION_SECONDS)

    def place_files(_: SqliteStore, location: StoreLocation) -> None:
        follow_rules(location, log.say_once)

    def keep_up(_: SqliteStore, location: StoreLocation) -> None:
        run = None
        if location.home.settings().upkeep == "watch":
            with suppress(LockedError):  # another process does it
                run = do_upkeep(location.home.path, os.environ, stop.is_set)
        if run and (run.archived or run.memories):
            log.say(
                f"{counted(run.archived, 'archive')}, {counted(run.memories, 'memory', 'memories')}"
            )
        for problem in (run.problem, *run.stopped) if run else ():
            log.say_once(problem)

    watcher = Watcher(find, stop, log.say_once, log.tell, steps=[redact, place_files, keep_up])
    if is_once:
        return watcher.poll()
    log.say("watching " + ", ".join(map(terminal.short, told_roots(location.watched))))
    watcher.run()
    log.say("stopped")
    return True


class _Log:
    """A log of lines, each with the time of day."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._said: set[str] = set()

    def say(self, text: str) -> None:
        self._terminal.line(f"{time.strftime('%H:%M:%S')}  {self._terminal.short(text)}")

    def say_once(self, text: str) -> None:
        """Print a line that is true at every poll, but only once."""
        if text not in self._said:
            self._said.add(text)
            self.say(text)

    def tell(self, report: IngestReport) -> None:
        """Report new entries, if any, and each problem once."""
        if report.bytes:
            amount = f"{counted(report.entries, 'entry', 'entries')} from {byte_size(report.bytes)}"
            self.say(f"{counted(report.changed, 'file')}: {amount}")
        if report.gone:
            self.say(f"{counted(report.gone, 'file')} gone")
        for path, why in report.problems:
            self.say_once(f"{path}: {why}")
