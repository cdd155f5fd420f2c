"""What changes while the page is looked at: transcripts, which are taken into the store at once, and what sessions were
told. Whoever listens is told that something is new, and asks for it.

The kernel drops events when too many come at once, so everything is looked at now and then as well.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from ..errors import SessionMemoryError, described
from ..store.ingest.intake import pending, take_in
from ..store.refresh import NEWER, use_store
from ..store.sqlite.repair import is_empty
from ..system.sqlite import Patience
from ..text.timestamps import now_milliseconds

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from ..store.ingest.ingestion import Progress
    from ..store.location import StoreLocation
    from ..store.sqlite.engine import SqliteStore
    from .store_pool import StorePool

DEBOUNCE_MILLISECONDS = 300
LOOK_SECONDS = 15.0  # at everything, whatever the kernel says
PATIENCE_SECONDS = 5.0
HEARTBEAT_SECONDS = 15.0
_STEP_MILLISECONDS = 50
_TICK_MILLISECONDS = 500


class Intake(NamedTuple):
    """How taking in goes on: `done` of `total` bytes (0 where nothing is being taken in), and the `problem` that the
    last attempt had."""

    done: int = 0
    total: int = 0
    problem: str = ""


class _StoppedError(Exception):
    """The page ends."""


class Live:
    """Keeps the store of `pool` up to date in a thread of its own. `version` counts how often something was new.

    `then` is called after each look, and returns whether that has made anything new; while nobody listens, only when a
    visitor comes (`catch_up`): it reads the sessions of today, 3 ms for each."""

    def __init__(
        self, pool: StorePool, find_location: Callable[[], StoreLocation], then: Callable[[], bool]
    ) -> None:  # fmt: skip
        self.version = 0
        self.intake = Intake()
        self._pool = pool
        self._find_location = find_location
        self._then = then
        self._is_behind = True  # something may be new since `then` was called
        self._catching_up = threading.Lock()
        self._stop = threading.Event()
        self._listeners: set[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = set()
        self._thread = threading.Thread(target=self._run, name="live", daemon=True)

    def start(self) -> None:
        """Begins, with all that is new so far."""
        self._thread.start()

    def stop(self) -> None:
        """Ends within a moment, and lets go of whoever listens."""
        self._stop.set()
        self._tell()

    def join(self, seconds: float) -> None:
        """Waits until it has ended, at most so long."""
        self._thread.join(seconds)

    async def versions(self) -> AsyncIterator[int | None]:
        """The version whenever it is another, from now on; None now and then where it is not, so that it shows whether
        anybody is still there."""
        event = asyncio.Event()
        listener = (asyncio.get_running_loop(), event)
        self._listeners.add(listener)
        try:
            told = self.version
            yield told
            while not self._stop.is_set():
                try:
                    await asyncio.wait_for(event.wait(), HEARTBEAT_SECONDS)
                except asyncio.TimeoutError:
                    yield None
                event.clear()
                if self.version != told:
                    told = self.version
                    yield told
        finally:
            self._listeners.discard(listener)

    def catch_up(self) -> None:
        """Do what was left undone while nobody listened."""
        with self._catching_up:
            if self._is_behind:
                self._is_behind = False
                self._then()

    def changed(self) -> None:
        """Notes that something is new: what somebody has done on the page, too."""
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
        while not self._stop.is_set():
            try:
                self._pool.location = self._find_location()
            except (SessionMemoryError, OSError) as error:  # broken settings: the last ones hold
                self.intake = Intake(problem=described(error))
            self._watch(self._roots())

    def _watch(self, roots: list[str]) -> None:
        """Looks at everything as soon as something changes below `roots`, and now and then, until they are others."""
        from watchfiles import watch
        from watchfiles._rust_notify import WatchfilesRustInternalError

        until = time.monotonic() + LOOK_SECONDS
        if not roots:
            self._stop.wait(1)
            self._look()
            return
        try:
            for changes in watch(
                *roots, watch_filter=None, debounce=DEBOUNCE_MILLISECONDS, step=_STEP_MILLISECONDS,
                stop_event=self._stop, rust_timeout=_TICK_MILLISECONDS, yield_on_timeout=True, raise_interrupt=False,
            ):  # fmt: skip
                has_new_roots = self._roots() != roots
                if changes or has_new_roots or time.monotonic() > until:
                    self._look(is_certain=bool(changes))
                    until = time.monotonic() + LOOK_SECONDS
                if has_new_roots:
                    return
        except (OSError, WatchfilesRustInternalError):  # it cannot be watched: looking has to do
            self._stop.wait(2)
            self._look()

    def _look(self, *, is_certain: bool = False) -> None:
        """Takes in what is new, and tells whoever listens if anything is: `is_certain` where a file has changed."""
        before = self.intake
        try:
            is_new = use_store(
                self._pool.location, lambda store, _: self._take_in(store), lambda _: None, self._shown,
                patience=Patience(PATIENCE_SECONDS),
            )  # fmt: skip
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
        """Whether anything was new; None where nothing can be taken in."""
        if store.is_newer:
            return None
        if store.obstacle:
            raise store.obstacle
        with self._shown(store) as progress:
            report = take_in(store, self._pool.location, progress)
        return bool(store.mark_ready(now_milliseconds())) or bool(report.bytes or report.gone)

    @contextmanager
    def _shown(self, store: SqliteStore) -> Iterator[Progress]:
        """Notes how an import goes on, and ends it where the page ends."""
        total = pending(store, self._pool.location.watched)[1] if is_empty(store) else 0
        done, told = 0, time.monotonic()
        self.intake = Intake(total=total)

        def progress(path: str, size: int) -> None:
            nonlocal done, told
            if self._stop.is_set():
                raise _StoppedError
            done += size
            self.intake = self.intake._replace(done=done)
            if time.monotonic() > told + 1:
                told = time.monotonic()
                self.changed()

        yield progress

    def _roots(self) -> list[str]:
        """The directories with transcripts, and those with what sessions were told and remember."""
        location = self._pool.location
        homes = [location.home, *(location.home_for(one.home) for one in location.watched if one.home)]
        own = [*(f"{home.state_dir}/cursors" for home in homes), location.home.memories_dir]
        return sorted({path for path in [*(one.root for one in location.watched), *own] if os.path.isdir(path)})
