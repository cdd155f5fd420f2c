"""Keeps a store up to date while sessions go on: what has changed is read as soon as it is quiet, and now and then all
that is watched is looked at. Nothing depends on it: whoever asks the store takes in what is new first.

The kernel drops events when too many come at once, and `watchfiles` does not tell. So a change that was missed is found
by the next poll, as is one on a file system that sends no events at all.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from ..errors import SessionMemoryError
from ..store.ingest.intake import take_files, take_in
from ..store.sqlite.repair import set_aside_if_corrupt
from ..system.sqlite import CorruptDatabaseError, DatabaseError
from ..text.timestamps import now_milliseconds
from .pending_files import QUIET_SECONDS, Pending

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from threading import Event

    from watchfiles.main import FileChange

    from ..store.ingest.ingestion import IngestReport
    from ..store.ingest.sources import SourceDirectory
    from ..store.place import StorePlace
    from ..store.sqlite.engine import SqliteStore

    Step = Callable[[SqliteStore], None]

TICK_SECONDS = 0.5
BATCH_BYTES = 8 * 1024 * 1024  # a stop waits for no more than this


class StoppedError(Exception):
    """It was told to stop while it was reading."""


class Watching:
    """One run. `find_place` says what is to be watched, and is asked again at every poll; `open_store` opens the store
    of a place; `say` is told what happens, `tell` what was taken in; `steps` are done at every poll, after that; `stop`
    ends it within a moment, whatever it is at."""

    def __init__(
        self,
        find_place: Callable[[], StorePlace],
        open_store: Callable[[StorePlace], SqliteStore],
        stop: Event,
        say: Callable[[str], None],
        tell: Callable[[IngestReport], None],
        steps: Sequence[Step] = (),
    ) -> None:
        self._find_place = find_place
        self._place = find_place()
        self._open_store = open_store
        self._stop = stop
        self._say = say
        self._tell = tell
        self._steps = steps
        self._store = open_store(self._place)
        self._inode = _inode(self._place.database)
        self._pending = Pending()
        self._poll_at = 0.0
        self._last_trouble = ""

    @property
    def place(self) -> StorePlace:
        """What is watched for which store, as was last known."""
        return self._place

    def run(self) -> None:
        """Watches until it is told to stop."""
        try:
            while not self._stop.is_set():
                self._watch(self._roots())
        finally:
            self._store.close()

    def run_once(self) -> None:
        """Does what is to be done now, and no more."""
        try:
            self.poll()
        finally:
            self._store.close()

    def poll(self) -> None:
        """Takes in all that is new, marks the conversations that have ended, does the other steps."""
        self._pending.clear()
        self._look_around()
        self._poll_at = time.monotonic() + self._place.settings.poll_seconds
        if self._guarded(self._take_all) and self._guarded(self._mark_ready):
            for step in self._steps:
                if not self._stop.is_set():
                    self._guarded(lambda step=step: step(self._store))  # type: ignore[misc]

    def _look_around(self) -> None:
        """Takes note of what is to be watched by now: there may be new groups, named sessions, settings."""
        try:
            place = self._find_place()
        except (SessionMemoryError, OSError) as error:
            self._trouble(str(error))
            return
        has_other_settings = vars(place.settings) != vars(self._place.settings)
        self._place = place
        if has_other_settings:
            self._guarded(self._reopen)

    def _watch(self, roots: list[str]) -> None:
        """Waits for changes below `roots` until these are others, or it is told to stop. What was written before the
        wait began is found by a poll right after."""
        from watchfiles._rust_notify import WatchfilesRustInternalError

        self._poll_at = 0.0
        try:
            for changes in self._changes(roots):
                self._note(changes)
                self._work()
                if self._roots() != roots:
                    return
        except (OSError, WatchfilesRustInternalError) as error:
            self._trouble(f"changes cannot be watched ({error}): looking every {self._place.settings.poll_seconds:g} s")
            self._work()
            self._stop.wait(self._place.settings.poll_seconds)

    def _changes(self, roots: list[str]) -> Iterator[set[FileChange]]:
        """Sets of changes as they come; an empty one where for a while none has."""
        from watchfiles import watch

        if roots:
            milliseconds = int(TICK_SECONDS * 1000)
            yield from watch(
                *roots, watch_filter=None, debounce=milliseconds, rust_timeout=milliseconds, yield_on_timeout=True,
                stop_event=self._stop, ignore_permission_denied=True, raise_interrupt=False,
            )  # fmt: skip
        while not roots and not self._stop.wait(TICK_SECONDS):
            yield set()

    def _note(self, changes: Iterable[FileChange]) -> None:
        now = time.monotonic()
        for _, path in changes:
            for one in self._place.watched:
                key = _key(path, one.root)
                if key and one.holds(key) and os.path.isfile(path):
                    self._pending.add(f"{one.root}/{key}", now)
                elif key and not os.path.isfile(path) and not key.endswith(".tmp"):
                    # A file that is gone, or a directory that is new, in which files may lie already.
                    self._poll_at = min(self._poll_at, now + QUIET_SECONDS)

    def _work(self) -> None:
        now = time.monotonic()
        if now >= self._poll_at:
            self.poll()
            return
        due = self._pending.take_due(now)
        if due and not self._guarded(lambda: self._take(due)):
            for path in due:
                self._pending.add(path, now)

    def _take_all(self) -> None:
        self._tell(take_in(self._store, self._place, self._go_on, batch_bytes=BATCH_BYTES))

    def _take(self, paths: list[str]) -> None:
        found: dict[str, list[str]] = {}
        for path in paths:
            found.setdefault(self._watched_of(path).home, []).append(path)
        whole = None
        for home, own in found.items():
            files = [file for path in own if (file := self._watched_of(path).file_at(path))]
            report = take_files(self._store, home, files, self._go_on, batch_bytes=BATCH_BYTES)
            if whole is None:
                whole = report
            else:
                whole.add(report)
        if whole:
            self._tell(whole)

    def _watched_of(self, path: str) -> SourceDirectory:
        return next(one for one in self._place.watched if one.holds(_key(path, one.root)))

    def _mark_ready(self) -> None:
        self._store.mark_ready(now_milliseconds())

    def _guarded(self, work: Callable[[], None]) -> bool:
        """Does some work; whether it could be done. What stands in its way is said, and tried again at the next poll;
        a store that is corrupt, or that somebody has set aside, is made anew."""
        try:
            if _inode(self._place.database) != self._inode:
                self._reopen()
            work()
        except StoppedError:
            return False
        except CorruptDatabaseError as error:
            aside = set_aside_if_corrupt(self._place.database)
            self._say(f"{error}: it is {aside} now, and built anew" if aside else str(error))
            self._reopen()
            return False
        except (DatabaseError, OSError) as error:
            self._trouble(str(error))
            return False
        return True

    def _reopen(self) -> None:
        self._store.close()
        self._store = self._open_store(self._place)
        self._inode = _inode(self._place.database)
        self._poll_at = 0.0

    def _trouble(self, text: str) -> None:
        """Says what stands in the way, once as long as it is the same."""
        if text != self._last_trouble:
            self._say(text)
        self._last_trouble = text

    def _go_on(self, path: str, size: int) -> None:
        if self._stop.is_set():
            raise StoppedError

    def _roots(self) -> list[str]:
        return sorted({one.root for one in self._place.watched if os.path.isdir(one.root)})


def _key(path: str, root: str) -> str:
    """The key of the file at `path` below `root`; '' if it lies elsewhere. Some systems report real paths."""
    for directory in (root, os.path.realpath(root)):
        if path.startswith(directory + "/"):
            return path[len(directory) + 1 :]
    return ""


def _inode(path: str) -> int:
    try:
        return os.stat(path).st_ino
    except OSError:
        return 0
