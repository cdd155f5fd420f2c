"""The time limit of calls into other packages, for commands."""

from __future__ import annotations

from _thread import get_ident
from time import monotonic

from ...common.system.files import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    Answer = TypeVar("Answer")

SECONDS = 20.0
ALL_SESSIONS_SECONDS = 600.0  # of a call that may copy all sessions
_AGAIN_SECONDS = 1.0  # after which a call that goes on is interrupted again


class OverdueCallError(BaseException):
    """A call took too long.

    It is a BaseException, because code in another package may catch Exception."""


class CallLimit:
    """The limit of one call at a time, which may make others, in the main thread.

    A timer interrupts the call. Other threads, Windows, and processes with a timer of their own,
    such as hooks, have no limit."""

    def __init__(self) -> None:
        self._end = 0.0  # of the running call; 0 if there is none
        self._next_ring = 0.0  # of the timer; 0 if it is not set
        self._process = 0  # that has set it; its forks have no timer yet
        self._main_thread: int | None = None

    @property
    def is_running(self) -> bool:
        """Return whether a call with a limit is running."""
        return self._end > 0

    def run(
        self, seconds: float, ask: Callable[..., Answer], *arguments: object, **named: object
    ) -> Answer:
        """Return the answer of `ask`. Raises OverdueCallError."""
        if self._end or not self._has_timer():
            return ask(*arguments, **named)
        self._end = monotonic() + seconds
        try:
            is_set = self._next_ring and self._process == os.getpid()
            if not is_set or self._next_ring > self._end:
                self._set_timer()
            return ask(*arguments, **named)
        finally:
            self._end = 0.0

    def _has_timer(self) -> bool:
        """Return whether this thread can be interrupted; take the timer at the first call."""
        thread = get_ident()
        if self._main_thread is not None:
            return self._main_thread == thread
        try:
            from _signal import (
                ITIMER_REAL,
                SIG_DFL,
                SIGALRM,
                getitimer,
                getsignal,
                setitimer,
                signal,
            )
        except ImportError:
            return False
        if getsignal(SIGALRM) != SIG_DFL or getitimer(ITIMER_REAL)[0]:
            return False
        try:
            signal(SIGALRM, self._ring)
        except ValueError:  # only the main thread may
            return False
        from atexit import register

        register(setitimer, ITIMER_REAL, 0)  # Python's end takes the handler away before the timer
        self._main_thread = thread
        return True

    def _set_timer(self) -> None:
        """Let the timer ring at the end of the running call, or of a later one if it is over."""
        from _signal import ITIMER_REAL, setitimer

        self._next_ring, self._process = self._end, os.getpid()
        setitimer(ITIMER_REAL, max(self._end - monotonic(), 0.001))

    def _ring(self, *_: object) -> None:
        self._next_ring = 0.0
        if not self._end:
            return
        is_overdue = monotonic() >= self._end
        if is_overdue:
            self._end = monotonic() + _AGAIN_SECONDS
        self._set_timer()
        if is_overdue:
            raise OverdueCallError
