"""Live changes while the page is open.

It ingests transcripts at once, watches delivered updates, and checks for failures that need the
person. Listeners are notified that something changed, and fetch it. The kernel drops events when
too many come at once, so there is also a periodic poll.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from ...app.upkeep.watch import wake_ups
from ...common.errors import SessionMemoryError, described
from ...common.system.files import path_stamp
from ...common.system.sqlite import Patience
from ...common.text.timestamps import now_milliseconds
from ...history.store.ingest.intake import pending, take_in
from ...history.store.location import StoreLocation
from ...history.store.refresh import NEWER, read_sub_agents, use_store
from ...history.store.sqlite.engine import SqliteStore
from ...history.store.values import Progress
from ._store_pool import StorePool

QUIET_MILLISECONDS, LONGEST_MILLISECONDS = 50, 300  # as upkeep.watch has them
LOOK_SECONDS = 15.0  # between two polls, whatever the kernel reports
PATIENCE_SECONDS = 5.0
HEARTBEAT_SECONDS = 15.0
# the time between two checks for failures; each runs a hook, which takes a second
CHECK_SECONDS = 600.0
STAMP_SECONDS = 1.0  # between two looks at the times of the files that may cause one


class Intake(NamedTuple):
    """The progress of an ingest.

    It has done `done` of `total` bytes (0 if none is running); `problem` is the last attempt's."""

    done: int = 0
    total: int = 0
    problem: str = ""


class _StoppedError(Exception):
    """The page ends."""


class Live:
    """Keeps the store of `pool` up to date in its own thread. `version` counts the changes.

    `more_roots` returns directories to watch besides the store's. `then` is called after each poll
    and returns whether it changed anything. It reads the sessions of today, 3 ms for
    each, so without listeners it is called only when a visitor comes (`catch_up`)."""

    def __init__(
        self,
        pool: StorePool,
        find_location: Callable[[], StoreLocation],
        then: Callable[[], bool],
        more_roots: Callable[[], list[str]] = list,
    ) -> None:
        self.version = 0
        self.intake = Intake()
        self._pool = pool
        self._find_location = find_location
        self._then = then
        self._more_roots = more_roots
        self._is_behind = True  # something may have changed since the last call of `then`
        self._catching_up = threading.Lock()
        self._stop = threading.Event()
        self._listeners: set[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = set()
        self._thread = threading.Thread(target=self._run, name="live", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._tell()

    def join(self, seconds: float) -> None:
        self._thread.join(seconds)

    async def versions(self) -> AsyncIterator[int | None]:
        """Yield the version whenever it changes, and None now and then.

        None lets the caller find out whether the client is still there."""
        event = asyncio.Event()
        listener = (asyncio.get_running_loop(), event)
        self._listeners.add(listener)
        try:
            sent = self.version
            yield sent
            while not self._stop.is_set():
                try:
                    await asyncio.wait_for(event.wait(), HEARTBEAT_SECONDS)
                except asyncio.TimeoutError:
                    yield None
                event.clear()
                if self.version != sent:
                    sent = self.version
                    yield sent
        finally:
            self._listeners.discard(listener)

    def catch_up(self) -> None:
        """Do the work that was left while nobody listened."""
        with self._catching_up:
            if self._is_behind:
                self._is_behind = False
                self._then()

    def changed(self) -> None:
        """Record a change, also one that a person made on the page."""
        self.version += 1
        self._tell()

    def _tell(self) -> None:
        for loop, event in list(self._listeners):
            try:
                loop.call_soon_threadsafe(event.set)
            except RuntimeError:  # the loop has ended
                pass

    def _run(self) -> None:
        self._look()
        for has_changed in wake_ups(
            self._roots,
            self._stop,
            lambda: LOOK_SECONDS,
            lambda _: None,
            QUIET_MILLISECONDS,
            LONGEST_MILLISECONDS,
        ):
            try:
                self._pool.location = self._pool.location if has_changed else self._find_location()
            # broken settings: the last valid ones stay
            except (SessionMemoryError, OSError) as error:
                self.intake = Intake(problem=described(error))
                continue
            self._look(is_certain=has_changed)

    def _look(self, *, is_certain: bool = False) -> None:
        """Ingest new content and notify listeners of a change.

        `is_certain` means that a file has certainly changed."""
        before = self.intake
        try:
            is_new = use_store(
                self._pool.location,
                lambda store, _: self._take_in(store),
                lambda _: None,
                self._shown,
                patience=Patience(PATIENCE_SECONDS),
            )
            self.intake = Intake(problem=NEWER if is_new is None else "")
        except _StoppedError:
            return
        except (SessionMemoryError, OSError) as error:
            is_new = False
            self.intake = Intake(problem=described(error))
        if is_certain or is_new or self.intake.problem != before.problem:
            self.changed()
        if not self._listeners:
            self._is_behind = True
        elif not self._stop.is_set() and self._then():
            self.changed()

    def _take_in(self, store: SqliteStore) -> bool | None:
        """Ingest and return whether anything was new; None if ingesting failed."""
        if store.is_newer:
            return None
        if store.obstacle:
            raise store.obstacle
        with self._shown(store) as progress:
            report = take_in(store, self._pool.location, progress)
        read_sub_agents(store)
        return bool(store.mark_ready(now_milliseconds())) or bool(report.bytes or report.gone)

    @contextmanager
    def _shown(self, store: SqliteStore) -> Iterator[Progress]:
        """Report an import's progress, and end it when the page ends."""
        total = pending(store, self._pool.location.watched).bytes if store.is_empty() else 0
        done, shown_at = 0, time.monotonic()
        self.intake = Intake(total=total)

        def progress(path: str, size: int) -> None:
            nonlocal done, shown_at
            if self._stop.is_set():
                raise _StoppedError
            done += size
            self.intake = self.intake._replace(done=done)
            if time.monotonic() > shown_at + 1:
                shown_at = time.monotonic()
                self.changed()

        yield progress

    def _roots(self) -> list[str]:
        location = self._pool.location
        agents = [
            location.home,
            *(location.home_for(watched.home) for watched in location.watched if watched.home),
        ]
        ours = [*(f"{home.state_dir}/cursors" for home in agents), location.home.memories_dir]
        ours += self._more_roots()
        return sorted(
            {
                path
                for path in [*(watched.root for watched in location.watched), *ours]
                if os.path.isdir(path)
            }
        )


class Alarm(NamedTuple):
    """A problem for the user to fix: its subject, the error, the fix."""

    about: str
    text: str
    mend: str = ""


class Alarms:
    """Failures that need the person, such as a dead hook or a broken setting.

    `found` is the last result of `find`, and `tell` is called when it changes. `watched` returns
    the paths of the relevant files."""

    def __init__(
        self,
        find: Callable[[], list[Alarm]],
        watched: Callable[[], list[str]],
        tell: Callable[[], None],
    ) -> None:
        self.found: list[Alarm] = []
        self._find = find
        self._watched = watched
        self._tell = tell
        self._stop = threading.Event()

    def start(self) -> None:
        threading.Thread(target=self._run, name="alarms", daemon=True).start()

    def stop(self) -> None:
        self._stop.set()

    def _run(self) -> None:
        while not self._stop.is_set():
            paths: list[str] = []
            stamps: list[list[int]] = []
            try:
                paths = self._watched()
                stamps = [path_stamp(path) for path in paths]
                alarms = self._find()
            except (SessionMemoryError, OSError) as error:
                alarms = [Alarm("checks", described(error), "session-memory doctor shows details")]
            if alarms != self.found:
                self.found = alarms
                self._tell()
            until = time.monotonic() + CHECK_SECONDS
            while time.monotonic() < until and not self._stop.wait(STAMP_SECONDS):
                if stamps != [path_stamp(path) for path in paths]:
                    break
