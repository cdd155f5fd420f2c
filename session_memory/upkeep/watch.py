"""Keep a store up to date while sessions run: ingest a changed file once it is quiet, and poll everything now and then.
Nothing depends on it: every query ingests new content first.

The kernel drops events when too many come at once, and `watchfiles` does not report that. The next poll finds any
missed change, also on a file system without events."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from threading import Event
from typing import TYPE_CHECKING

from ..errors import SessionMemoryError, described
from ..store.ingest.ingestion import IngestReport
from ..store.ingest.intake import take_files, take_in
from ..store.ingest.sources import SourceDirectory
from ..store.location import StoreLocation
from ..store.sqlite.corruption import damage_recognised, quarantine_if_corrupt, quarantine_notice
from ..store.sqlite.engine import SqliteStore
from ..system.sqlite import CorruptDatabaseError, DatabaseError
from ..text.timestamps import now_milliseconds

if TYPE_CHECKING:
    from watchfiles.main import FileChange

Step = Callable[[SqliteStore], None]

TICK_SECONDS = 0.5
QUIET_SECONDS = 2.0  # read a file after it was unchanged for this long,
FORCED_SECONDS = 15.0  # or this long after its first change, if it changes all the time
BATCH_BYTES = 8 * 1024 * 1024  # a stop waits for no more than this


class ChangedFiles:
    """Changed files that wait to be read, each listed once. Times are in seconds of one clock."""

    def __init__(self) -> None:
        self._times: dict[str, tuple[float, float]] = {}  # of the first and of the last change

    def __len__(self) -> int:
        return len(self._times)

    def add(self, path: str, now: float) -> None:
        """Record a change of a file."""
        first, _ = self._times.get(path, (now, now))
        self._times[path] = (first, now)

    def take_due(self, now: float) -> list[str]:
        """Remove and return the due files, in the order of their first change."""
        due = [
            path
            for path, (first, last) in self._times.items()
            if min(first + FORCED_SECONDS, last + QUIET_SECONDS) <= now
        ]
        for path in due:
            del self._times[path]
        return due

    def clear(self) -> None:
        """Remove all files, as before a full poll."""
        self._times.clear()


class StoppedError(Exception):
    """The watcher was told to stop while it was reading."""


class Watcher:
    """Keeps one store up to date. `find_location` returns the location to watch and is called at every poll;
    `open_store` opens its store; `say` receives lines for the log, `tell` the imported sources; `steps` run after every
    poll; `stop` ends the watcher within a moment, whatever it is doing."""

    def __init__(
        self, find_location: Callable[[], StoreLocation], open_store: Callable[[StoreLocation], SqliteStore],
        stop: Event, say: Callable[[str], None], tell: Callable[[IngestReport], None], steps: Sequence[Step] = (),
    ) -> None:  # fmt: skip
        self._find_location = find_location
        self._open_store = open_store
        self._stop = stop
        self._say = say
        self._tell = tell
        self._steps = steps
        self.location = find_location()  # as last found
        self._store = open_store(self.location)
        self._inode = _inode(self.location.database)
        self._changed = ChangedFiles()
        self._poll_at = 0.0
        self._last_problem = ""
        self._problems = 0  # of the last poll

    def run(self) -> None:
        """Watch until told to stop."""
        try:
            while not self._stop.is_set():
                self._watch(self._roots())
        finally:
            self._store.close()

    def run_once(self) -> bool:
        """Poll once, twice if the store was rebuilt. Return False if something could not be ingested."""
        try:
            for _ in range(2):
                inode = self._inode
                is_done = self._poll()
                if inode == self._inode:
                    break
            return is_done and not self._problems
        finally:
            self._store.close()

    def _poll(self) -> bool:
        """Ingest new content, mark ended conversations, run the other steps. Return False if the first two failed."""
        self._changed.clear()
        self._find_location_anew()
        self._poll_at = time.monotonic() + self.location.settings.poll_seconds
        is_done = self._done(self._take_all) and self._done(self._mark_ready)
        if is_done:
            for step in self._steps:
                if not self._stop.is_set():
                    self._done(lambda step=step: step(self._store))  # type: ignore[misc]
        return is_done

    def _find_location_anew(self) -> None:
        """Update the location: groups, named sessions and settings may be new. Invalid settings change nothing."""
        try:
            location = self._find_location()
        except (SessionMemoryError, OSError) as error:
            self._say_problem(str(error))
            return
        has_other_settings = location.settings != self.location.settings
        self.location = location
        if has_other_settings:
            self._done(self._reopen)

    def _watch(self, roots: list[str]) -> None:
        """Poll, then read changes below `roots` until these are others or the watcher must stop."""
        from watchfiles._rust_notify import WatchfilesRustInternalError

        self._poll_at = 0.0
        try:
            for changes in self._changes(roots):
                self._note_changes(changes)
                self._work()
                if self._roots() != roots:
                    return
        except (OSError, WatchfilesRustInternalError) as error:
            seconds = self.location.settings.poll_seconds
            self._say_problem(f"changes cannot be watched ({error}): looking every {seconds:g} s")
            self._work()
            self._stop.wait(seconds)

    def _changes(self, roots: list[str]) -> Iterator[set[FileChange]]:
        """Yield sets of changes as they come; an empty one after a while without any."""
        from watchfiles import watch

        if roots:
            milliseconds = int(TICK_SECONDS * 1000)
            yield from watch(
                *roots, watch_filter=None, debounce=milliseconds, rust_timeout=milliseconds, yield_on_timeout=True,
                stop_event=self._stop, ignore_permission_denied=True, raise_interrupt=False,
            )  # fmt: skip
        while not roots and not self._stop.wait(TICK_SECONDS):
            yield set()

    def _note_changes(self, changes: Iterable[FileChange]) -> None:
        now = time.monotonic()
        for _, path in changes:
            for directory in self.location.watched:
                key = _key(path, directory.root)
                if key and directory.holds(key) and os.path.isfile(path):
                    self._changed.add(f"{directory.root}/{key}", now)
                elif key and not os.path.isfile(path) and not key.endswith(".tmp"):
                    # A deleted file, or a new directory, which may already contain files.
                    self._poll_at = min(self._poll_at, now + QUIET_SECONDS)

    def _work(self) -> None:
        now = time.monotonic()
        if now >= self._poll_at:
            self._poll()
            return
        due = self._changed.take_due(now)
        if due and not self._done(lambda: self._take(due)):
            for path in due:
                self._changed.add(path, now)

    def _take_all(self) -> None:
        report = take_in(self._store, self.location, self._check_stop, batch_bytes=BATCH_BYTES)
        self._problems = len(report.problems)
        self._tell(report)

    def _take(self, paths: list[str]) -> None:
        report = IngestReport()
        by_home: dict[str, list[str]] = {}
        for path in paths:
            by_home.setdefault(self._directory_of(path).home, []).append(path)
        for home, own in by_home.items():
            files = [file for path in own if (file := self._directory_of(path).file_at(path))]
            report.add(take_files(self._store, home, files, self._check_stop, batch_bytes=BATCH_BYTES))
        self._tell(report)

    def _directory_of(self, path: str) -> SourceDirectory:
        return next(one for one in self.location.watched if one.holds(_key(path, one.root)))

    def _mark_ready(self) -> None:
        self._store.mark_ready(now_milliseconds())

    def _done(self, work: Callable[[], None]) -> bool:
        """Return if some work succeeded. An error is logged; the next poll retries. A corrupt store is rebuilt."""
        try:
            if _inode(self.location.database) != self._inode:
                self._reopen()
            with damage_recognised(self._store):
                work()
        except StoppedError:
            return False
        except CorruptDatabaseError as error:
            moved = quarantine_if_corrupt(self.location.database)
            self._say(quarantine_notice(moved) if moved else str(error))
            self._reopen()
            return False
        except (DatabaseError, OSError) as error:
            self._say_problem(described(error))
            return False
        return True

    def _reopen(self) -> None:
        self._store.close()
        self._store = self._open_store(self.location)
        self._inode = _inode(self.location.database)
        self._poll_at = 0.0

    def _say_problem(self, text: str) -> None:
        """Log a problem once, until it changes."""
        if text != self._last_problem:
            self._say(text)
        self._last_problem = text

    def _check_stop(self, path: str, size: int) -> None:
        if self._stop.is_set():
            raise StoppedError

    def _roots(self) -> list[str]:
        return sorted({one.root for one in self.location.watched if os.path.isdir(one.root)})


def _key(path: str, root: str) -> str:
    """Return the key of the file at `path` below `root`; '' if it lies elsewhere. Some systems report real paths."""
    for directory in (root, os.path.realpath(root)):
        if path.startswith(directory + "/"):
            return path[len(directory) + 1 :]
    return ""


def _inode(path: str) -> int:
    try:
        return os.stat(path).st_ino
    except OSError:
        return 0
