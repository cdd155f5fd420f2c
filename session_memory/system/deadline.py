"""The deadline of a hook, and the one way in which it asks for what may be odd or slow: that costs itself alone."""

from __future__ import annotations

from time import monotonic

from .files import open_regular, os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import TypeVar

    Answer = TypeVar("Answer")
    Item = TypeVar("Item")

HOOK_SECONDS = 1.0
_FINISH_SECONDS = 0.2  # of these, for what is ready: to put it into words, print it and note that
_MOST_WAIT_SECONDS = 2.0  # for a processor, that does not count: to leave something out makes no machine less busy
_SHARES = 2  # a part gets at most one of these of the time that is left: if several hang, the others still have some


class DeadlineError(BaseException):
    """A part of a hook, or all of it, took too long. It is raised wherever that part is, so no `except Exception` there
    may take it for a fault."""


class Deadline:
    """When a hook has to be done, and what it did without.

    `notes` are lines for the log, `failed` names each part that raised something or took too long, `late` those that
    took too long. Without `start` there is no deadline: as in a thread, a command or a test.
    """

    __slots__ = ("_end", "_limit", "_set_timer", "_waited", "_waited_before", "failed", "late", "notes")

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.failed: list[str] = []
        self.late: list[str] = []
        self._end = self._limit = float("inf")
        self._waited = self._waited_before = 0.0
        self._set_timer: Callable[[float], object] | None = None

    def start(self, seconds: float = HOOK_SECONDS) -> None:
        """Start the clock of a process that is a hook's. Its timer raises DeadlineError in the part that runs at the
        time, also where that waits for a file. It cannot where the kernel or a C library does not let it: in a read
        from NFS that hangs (the runtime kills the hook then) and within one statement of SQLite. Windows has no such
        timer: there the time is looked at between parts."""
        self._waited_before = _seconds_without_processor()
        self._end = monotonic() + seconds - _FINISH_SECONDS
        try:
            from _signal import ITIMER_REAL, SIGALRM, setitimer, signal  # type: ignore[import-not-found,unused-ignore]
        except ImportError:
            pass
        else:
            signal(SIGALRM, self._interrupt)
            self._set_timer = lambda delay: setitimer(ITIMER_REAL, delay)
        self._set_limit(self._end + _FINISH_SECONDS)

    def end(self) -> None:
        """End the clock: all is told, and the log is written. A process that hangs in that ends all the same."""
        self._limit = float("inf")
        if self._set_timer is not None:
            from _signal import SIGALRM, signal  # type: ignore[import-not-found,unused-ignore]

            signal(SIGALRM, lambda *_: os._exit(0))
            self._set_timer(HOOK_SECONDS)

    @property
    def is_over(self) -> bool:
        """Check that nothing more is to be begun, in the hook or in the part of it that runs."""
        return self._is_past(min(self._limit, self._end))

    def attempt(self, name: str | Callable[[], str], ask: Callable[..., Answer], *arguments: object) -> Answer | None:
        """Return what `ask` returns; None where it raises whatever it may be, or takes too long. `name` says in the log
        what was asked."""
        before, now = self._limit, monotonic() - self._waited
        end = min(before, self._end) if now < self._end else before
        try:
            try:
                self._set_limit(now + (end - now) / _SHARES)
                return ask(*arguments)
            finally:
                self._set_limit(before)
        except DeadlineError:
            self._set_limit(before)  # it may have come while that was being done
            self._note(name, "it took too long, and was left out")
            self.late.append(self.failed[-1])
        except Exception as error:
            self._note(name, getattr(error, "strerror", None) or f"{type(error).__name__}: {error}")
        return None

    def attempt_each(
        self, items: Iterable[Item], take: Callable[[Item], object], name_of: Callable[[Item], str]
    ) -> None:
        """Call `take` with each item; where it raises or takes too long, go on with the next, unless no time is left.
        As long as none does, all of them together cost one `attempt`."""
        left = iter(items)
        taken: list[Item] = []

        def take_rest() -> bool:
            for item in left:
                taken[:] = [item]
                take(item)
            return True

        while self.attempt(lambda: name_of(taken[0]) if taken else "", take_rest) is None and not self.is_over:
            pass

    def _note(self, name: str | Callable[[], str], said: str) -> None:
        self.failed.append(name if isinstance(name, str) else name())
        self.notes.append(f"{self.failed[-1]}: {said}")

    def _set_limit(self, limit: float) -> None:
        self._limit = limit
        if self._set_timer is not None:
            self._set_timer(max(limit - monotonic() + self._waited, 0.001))

    def _is_past(self, moment: float) -> bool:
        if monotonic() - self._waited < moment:
            return False
        self._waited = min(_seconds_without_processor() - self._waited_before, _MOST_WAIT_SECONDS)
        return monotonic() - self._waited >= moment

    def _interrupt(self, *_: object) -> None:
        if not self._is_past(self._limit):  # of a part that is over by now, or that had no processor
            self._set_limit(self._limit)
        else:
            raise DeadlineError(f"not done within {HOOK_SECONDS:g} s")


def _seconds_without_processor() -> float:
    """Return for how long this process was ready to run and did not, as Linux has it; 0 elsewhere."""
    try:
        descriptor = open_regular("/proc/self/schedstat")
        try:
            return int(os.read(descriptor, 100).split()[1]) / 1e9
        finally:
            os.close(descriptor)
    except (OSError, ValueError, IndexError):
        return 0.0
