"""Keeps a store up to date while sessions run: ingests new content once the files are quiet.

It also polls now and then. The kernel drops events when too many come at once, which `watchfiles`
does not report; the next poll finds any missed change, also on a file system without events.
Nothing depends on this module, because every query ingests new content first.
"""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from threading import Event

from ...common.errors import SessionMemoryError, described
from ...common.system.sqlite import CorruptDatabaseError, DatabaseError
from ...common.text.timestamps import now_milliseconds
from ...history.store.ingest.ingestion import IngestReport
from ...history.store.ingest.intake import take_in
from ...history.store.location import StoreLocation
from ...history.store.refresh import NEWER, use_store
from ...history.store.sqlite.engine import SqliteStore

Step = Callable[[SqliteStore, StoreLocation], None]

TICK_MILLISECONDS = 500
QUIET_MILLISECONDS = 500  # after the last change,
LONGEST_MILLISECONDS = 15_000  # or this long after the first, if files change all the time
BLIND_SECONDS = 2.0  # between two looks if the kernel reports nothing
BATCH_BYTES = 8 * 1024 * 1024  # a stop waits for no more than this


def wake_ups(
    find_roots: Callable[[], list[str]],
    stop: Event,
    seconds: Callable[[], float],
    note: Callable[[str], None],
    quiet_milliseconds: int = QUIET_MILLISECONDS,
    longest_milliseconds: int = LONGEST_MILLISECONDS,
) -> Iterator[bool]:
    """Yield whenever something may be new below the roots, until `stop` is set.

    Yield True if the kernel reports a change, and False after so many `seconds` or if the roots,
    even at the same paths, are other directories now. `note` gets the reason if changes cannot be
    watched."""
    from watchfiles._rust_notify import WatchfilesRustInternalError

    while not stop.is_set():
        # so the first wake-up comes at once, when changes are watched
        roots, until = find_roots(), 0.0
        watched = _identities(roots)
        try:
            for has_changed in (
                _changes(roots, stop, quiet_milliseconds, longest_milliseconds)
                if roots
                else _ticks(stop)
            ):
                there = find_roots()
                now, is_same = time.monotonic(), there == roots and _identities(there) == watched
                if has_changed or now >= until or not is_same:
                    until = now + seconds() if now >= until else until
                    yield has_changed
                if not is_same:
                    break
        except (OSError, WatchfilesRustInternalError) as error:
            pause = min(seconds(), BLIND_SECONDS)
            note(f"changes cannot be watched ({error}): looking every {pause:g} s")
            yield False
            stop.wait(pause)


def _identities(roots: list[str]) -> list[tuple[int, int]]:
    """Return the device and inode of each root, which change if a directory is replaced."""
    identities = []
    for root in roots:
        try:
            status = os.stat(root)
            identities.append((status.st_dev, status.st_ino))
        except OSError:
            identities.append((0, 0))
    return identities


def _changes(
    roots: list[str], stop: Event, quiet_milliseconds: int, longest_milliseconds: int
) -> Iterator[bool]:
    """Yield True for changes below the roots, and False now and then without any."""
    from watchfiles import watch

    for changes in watch(
        *roots,
        watch_filter=None,
        debounce=longest_milliseconds,
        step=quiet_milliseconds,
        stop_event=stop,
        rust_timeout=TICK_MILLISECONDS,
        yield_on_timeout=True,
        ignore_permission_denied=True,
        raise_interrupt=False,
    ):
        yield bool(changes)


def _ticks(stop: Event) -> Iterator[bool]:
    while not stop.wait(TICK_MILLISECONDS / 1000):
        yield False


class StoppedError(Exception):
    """The watcher was told to stop while it was reading."""


class Watcher:
    """Keeps one store up to date.

    `find_location` returns the location to watch and is called at every poll. `note` receives lines
    for the log, `tell` the ingested content. `steps` run after every poll. Setting `stop` ends the
    watcher within a moment, whatever it is doing."""

    def __init__(
        self,
        find_location: Callable[[], StoreLocation],
        stop: Event,
        note: Callable[[str], None],
        tell: Callable[[IngestReport], None],
        steps: Sequence[Step] = (),
    ) -> None:
        self._find_location = find_location
        self._stop = stop
        self._note = note
        self._tell = tell
        self._steps = steps
        self._location = find_location()  # as last found
        self._poll_at = 0.0

    def run(self) -> None:
        """Watch until stopped. Raises SessionMemoryError if a newer version made the store."""
        for _ in wake_ups(
            self._roots, self._stop, lambda: self._location.settings.poll_seconds, self._note
        ):
            if time.monotonic() >= self._poll_at:
                self.poll()
            else:
                self._use(self._take)

    def poll(self) -> bool:
        """Ingest new content, mark ended conversations, and run the other steps.

        Return False if something could not be ingested. Raises SessionMemoryError if a newer
        version made the store."""
        try:
            self._location = self._find_location()  # groups, named sessions and settings may be new
        except (SessionMemoryError, OSError) as error:  # invalid settings change nothing
            self._note(described(error))
        self._poll_at = time.monotonic() + self._location.settings.poll_seconds
        return self._use(self._work)

    def _use(self, work: Callable[[SqliteStore], bool]) -> bool:
        """Return the result of `work`; on an error, log it and return False.

        The next poll tries again."""
        try:
            return use_store(self._location, lambda store, _: work(_writable(store)), self._note)
        except StoppedError:
            return False
        except (DatabaseError, OSError) as error:
            self._note(described(error))
            return False

    def _take(self, store: SqliteStore) -> bool:
        report = take_in(store, self._location, self._check_stop, batch_bytes=BATCH_BYTES)
        self._tell(report)
        return not report.problems

    def _work(self, store: SqliteStore) -> bool:
        is_done = self._take(store)
        store.mark_ready(now_milliseconds())
        for step in self._steps:
            try:
                if not self._stop.is_set():
                    step(store, self._location)
            except CorruptDatabaseError:
                raise
            except (DatabaseError, OSError) as error:
                self._note(described(error))
        return is_done

    def _check_stop(self, path: str, size: int) -> None:
        if self._stop.is_set():
            raise StoppedError

    def _roots(self) -> list[str]:
        return sorted(
            {
                directory.root
                for directory in self._location.watched
                if os.path.isdir(directory.root)
            }
        )


def _writable(store: SqliteStore) -> SqliteStore:
    """Return the store, opened for writing.

    Raises SessionMemoryError if a newer version made it, DatabaseError if it can only be read."""
    if store.is_newer:
        raise SessionMemoryError(f"{store.path}: {NEWER}")
    if store.obstacle:
        raise store.obstacle
    return store
