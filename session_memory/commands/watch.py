"""`session-memory watch`: keeps the store up to date while it runs."""

from __future__ import annotations

import argparse
import os
import signal
import threading
import time
from collections.abc import Callable

from ..errors import ConfigError, LockedError, SessionMemoryError
from ..store.ingest.ingestion import IngestReport
from ..store.ingest.sources import told_roots
from ..store.location import StoreLocation, find_location
from ..store.refresh import NEWER, open_store
from ..store.sqlite.corruption import quarantine_notice
from ..store.sqlite.engine import SqliteStore
from ..system.terminal import Terminal
from ..text.format import counted
from ..upkeep.due_archives import DueArchives
from ..upkeep.leftover_files import follow_rules
from ..upkeep.runs import watch_lock
from ..upkeep.watch import Watcher
from .arguments import add_home
from .progress import megabytes
from .service_files import KINDS, service

SUMMARY = "keep the store up to date while sessions go on, until it is stopped"
REDACTION_SECONDS = 2.0  # a stop waits for no more


class WatchError(SessionMemoryError):
    """It cannot watch here."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--once", action="store_true", help="do the pending work once and exit: for cron")
    parser.add_argument("--print-service", choices=KINDS, help="print a file that has the system run it, and end")
    add_home(parser)


def run(arguments: argparse.Namespace) -> int:
    """Watch until SIGTERM or SIGINT; return the exit code. Raises SessionMemoryError, OSError."""
    terminal = Terminal(os.environ)
    if arguments.print_service:
        terminal.line(service(arguments.print_service, arguments.home, os.environ).rstrip("\n"))
        return 0
    location = find_location(arguments.home, os.environ)
    try:
        with watch_lock(location.database):
            is_done = _watch(location, lambda: _understood(arguments.home), terminal, is_once=arguments.once)
    except LockedError as error:
        if not arguments.once:
            raise
        _Log(terminal).say(terminal.short(str(error)))
        return 0
    return 0 if is_done else 1


def _understood(path: str | None) -> StoreLocation:
    """Return the store by the current settings. Raises ConfigError if a change made them invalid: the earlier settings
    stay in force."""
    location = find_location(path, os.environ)
    faults = location.home.settings().faults
    if faults:
        raise ConfigError(faults[0])
    return location


def _watch(location: StoreLocation, find: Callable[[], StoreLocation], terminal: Terminal, *, is_once: bool) -> bool:
    """Watch; return False if, with `is_once`, not everything could be ingested."""
    stop = threading.Event()
    log = _Log(terminal)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())

    def opened(location: StoreLocation) -> SqliteStore:
        store = open_store(location, log.say)
        if store.quarantined:
            log.say(terminal.short(quarantine_notice(store.quarantined)))
        if store.obstacle:
            store.close()
            raise WatchError(f"{terminal.short(location.database)}: {NEWER}") if store.is_newer else store.obstacle
        return store

    def redact(store: SqliteStore) -> None:
        store.redact_again(REDACTION_SECONDS)

    def place_files(_: SqliteStore) -> None:
        follow_rules(watcher.location, os.environ, log.say_once)

    def make_memories(_: SqliteStore) -> None:
        from .process import work_off_for_watch

        try:
            for line in work_off_for_watch(watcher.location, stop.is_set):
                log.say(line)
        except SessionMemoryError as error:
            log.say_once(str(error))

    archives = DueArchives()

    def archive(store: SqliteStore) -> None:
        if watcher.location.home.settings().upkeep == "watch":
            written, problems = archives.write(store, watcher.location, stop.is_set)
            if written:
                log.say(counted(written, "archive"))
            for problem in problems:
                log.say_once(terminal.short(problem))

    watcher = Watcher(find, opened, stop, log.say, log.tell, steps=[redact, place_files, archive, make_memories])
    if is_once:
        return watcher.run_once()
    log.say("watching " + ", ".join(map(terminal.short, told_roots(location.watched))))
    watcher.run()
    log.say("stopped")
    return True


class _Log:
    """A log of lines, each with the time of day."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._problems: set[tuple[str, str]] = set()

    def say(self, text: str) -> None:
        self._terminal.line(f"{time.strftime('%H:%M:%S')}  {text}")

    def say_once(self, text: str) -> None:
        """Print a line that is true at every poll, but only once."""
        if ("", text) not in self._problems:
            self._problems.add(("", text))
            self.say(text)

    def tell(self, report: IngestReport) -> None:
        """Report new entries, if any, and each problem once."""
        if report.bytes:
            amount = f"{counted(report.entries, 'entry', 'entries')} from {megabytes(report.bytes)}"
            self.say(f"{counted(report.changed, 'file')}: {amount}")
        if report.gone:
            self.say(f"{counted(report.gone, 'file')} gone")
        for path, why in report.problems:
            if (path, why) not in self._problems:
                self.say(f"{self._terminal.short(path)}: {why}")
        self._problems.update(report.problems)
