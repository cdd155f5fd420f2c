"""`session-memory watch`: keeps the store up to date while it runs."""

from __future__ import annotations

import argparse
import os
import plistlib
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from .. import NAME
from ..errors import ConfigError, LockedError, SessionMemoryError
from ..hooks.upkeep_start import path_of
from ..runtimes import all_runtimes
from ..settings.homes import ENV_HOME
from ..settings.program import program_paths
from ..store.ingest.ingestion import IngestReport
from ..store.ingest.sources import told_roots
from ..store.location import StoreLocation, find_location
from ..store.sqlite.engine import SqliteStore
from ..store.sqlite.unread_lines import add_missing
from ..system.terminal import Terminal, byte_size
from ..text.format import counted
from ..upkeep.leftover_files import follow_rules
from ..upkeep.runner import do_upkeep
from ..upkeep.runs import watch_lock
from ..upkeep.watch import Watcher
from .arguments import add_home

SUMMARY = "keep the store up to date while sessions go on, until it is stopped"
LABEL = "session-memory-watch"  # of the service
KINDS = ("systemd", "launchd")
REDACTION_SECONDS = 2.0  # a stop waits for no more


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--once", action="store_true", help="do the pending work once and exit: for cron")
    parser.add_argument("--print-service", choices=KINDS, help="print a file that has the system run it, and end")
    add_home(parser)


def run(arguments: argparse.Namespace) -> int:
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
    """Return the store by the current settings. Raises ConfigError for invalid ones: the earlier stay in force."""
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

    def redact(store: SqliteStore, _: StoreLocation) -> None:
        store.redact_again(REDACTION_SECONDS)
        add_missing(store, REDACTION_SECONDS)

    def place_files(_: SqliteStore, location: StoreLocation) -> None:
        follow_rules(location, os.environ, log.say_once)

    def make_memories(_: SqliteStore, location: StoreLocation) -> None:
        from .process import work_off_for_watch

        try:
            for line in work_off_for_watch(location, stop.is_set):
                log.say(line)
        except SessionMemoryError as error:
            log.say_once(str(error))

    def keep_up(_: SqliteStore, location: StoreLocation) -> None:
        run = None
        if location.home.settings().upkeep == "watch":
            with suppress(LockedError):  # another process does it
                run = do_upkeep(path_of(location.home), os.environ, stop.is_set)
        if run and run.archived:
            log.say(counted(run.archived, "archive"))
        if run and run.problem:
            log.say_once(run.problem)

    watcher = Watcher(find, stop, log.say_once, log.tell, steps=[redact, place_files, keep_up, make_memories])
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


def service(kind: str, home: str | None, environ: Mapping[str, str]) -> str:
    """Return the text of the file for `systemd` or `launchd`, which watches the store of `home`."""
    words = [*_command(environ), "watch", *(["--home", os.path.abspath(home)] if home else [])]
    passed_on = [*(one.CONFIG_VARIABLE for one in all_runtimes()), ENV_HOME]
    variables = {name: environ[name] for name in passed_on if environ.get(name)}
    return _systemd(words, variables) if kind == "systemd" else _launchd(words, variables)


def _command(environ: Mapping[str, str]) -> list[str]:
    """Return the command that starts this program: its launcher, else the current command."""
    launcher = program_paths(environ).launcher
    if launcher.is_file():
        return [str(launcher)]
    found = shutil.which(NAME, path=environ.get("PATH"))
    if found:
        return [os.path.abspath(found)]
    code = "import sys; sys.path.insert(0, sys.argv.pop(1)); from session_memory.cli import main; sys.exit(main())"
    return [sys.executable, "-c", code, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))]


def _systemd(words: list[str], variables: dict[str, str]) -> str:
    environment = "".join([f"Environment={_quoted(f'{name}={value}')}\n" for name, value in variables.items()])
    template = Path(__file__).with_name("watch.service").read_text()
    return template.format(label=LABEL, environment=environment, command=" ".join(map(_quoted, words)))


def _quoted(word: str) -> str:
    """Return a word as systemd.syntax(7) and the specifiers of systemd.unit(5) want it."""
    word = word.replace("%", "%%").replace("$", "$$").replace("\\", "\\\\").replace('"', '\\"')
    return f'"{word}"' if not word or any(character in word for character in " \t;'\"\\") else word


def _launchd(words: list[str], variables: dict[str, str]) -> str:
    facts = {
        "Label": LABEL,
        "ProgramArguments": words,
        "EnvironmentVariables": variables,
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
        "ProcessType": "Background",
    }
    if not variables:
        del facts["EnvironmentVariables"]
    text = plistlib.dumps(facts, sort_keys=False).decode()
    where = f"<!-- ~/Library/LaunchAgents/{LABEL}.plist; then: launchctl load -w that file -->\n"
    head, _, rest = text.partition("\n")
    return f"{head}\n{where}{rest}"
