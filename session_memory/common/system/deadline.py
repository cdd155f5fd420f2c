"""The deadline of a hook, and calls of parts that may fail or be slow without harm to others."""

from __future__ import annotations

from time import monotonic

from .files import Opened, os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import TypeVar

    Answer = TypeVar("Answer")
    Item = TypeVar("Item")

HOOK_SECONDS = 1.0
# seconds of it that are reserved to format, print and commit the part that is ready
_FINISH_SECONDS = 0.2
# the most seconds by which waiting for a processor extends it; skipping work makes no machine less
# busy
_MOST_WAIT_SECONDS = 2.0
# one part gets at most half of the remaining time, so some is left for others if several hang
_SHARES = 2


class DeadlineError(BaseException):
    """A hook or a part of it took too long.

    It is a BaseException, because `except Exception` must not catch it."""


class Deadline:
    """The time by which a hook must be done, and the parts that failed or were late.

    `notes` are lines for the log, `failed` names each part that raised or was late, `late` the
    parts that took too long. Without `start` there is no deadline, for example in a thread, a
    command or a test."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.failed: list[str] = []
        self.late: list[str] = []
        self._end = self._limit = self._armed = float("inf")
        self._waited = self._waited_before = 0.0
        self._set_timer: Callable[[float], object] | None = None

    def start(self, seconds: float = HOOK_SECONDS) -> None:
        """Start the clock of a hook's process.

        Its timer raises DeadlineError in the running part, even while that waits for a file. The
        timer cannot interrupt the kernel or a C library, such as a read from an NFS that hangs (the
        runtime then kills the hook) or a single statement of SQLite. Windows has no such timer, so
        the time is checked between parts there."""
        self._waited_before = _seconds_without_processor()
        self._end = monotonic() + seconds - _FINISH_SECONDS
        try:
            from _signal import ITIMER_REAL, SIGALRM, setitimer, signal
        except ImportError:
            pass
        else:
            signal(SIGALRM, self._interrupt)
            self._set_timer = lambda delay: setitimer(ITIMER_REAL, delay)
        self._set_limit(self._end + _FINISH_SECONDS)

    def end(self) -> None:
        """End the clock once the hook has printed and logged.

        A process that hangs in `end` still exits."""
        self._limit = float("inf")
        if self._set_timer is not None:
            from _signal import SIGALRM, signal

            signal(SIGALRM, lambda *_: os._exit(0))
            self._set_timer(HOOK_SECONDS)

    @property
    def is_over(self) -> bool:
        """Check if the time of the hook, or of its running part, is used up."""
        return self._is_past(min(self._limit, self._end))

    def attempt(
        self, name: str | Callable[[], str], ask: Callable[..., Answer], *arguments: object
    ) -> Answer | None:
        """Return the result of `ask`, or None if it raises or takes too long.

        `name` names it in the log."""
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
            self._note(name, "it took too long and was left out")
            self.late.append(self.failed[-1])
        except Exception as error:
            self._note(name, getattr(error, "strerror", None) or f"{type(error).__name__}: {error}")
        return None

    def attempt_each(
        self, items: Iterable[Item], take: Callable[[Item], object], name_of: Callable[[Item], str]
    ) -> None:
        """Call `take` with each item.

        If one call raises or takes too long, continue with the next item unless no time is left.
        Until one fails, all calls together cost one `attempt`."""
        left = iter(items)
        begun: list[Item] = []

        def take_rest() -> bool:
            for item in left:
                begun[:] = [item]
                take(item)
            return True

        while (
            self.attempt(lambda: name_of(begun[0]) if begun else "", take_rest) is None
            and not self.is_over
        ):
            pass

    def _note(self, name: str | Callable[[], str], said: str) -> None:
        self.failed.append(name if isinstance(name, str) else name())
        self.notes.append(f"{self.failed[-1]}: {said}")

    def _set_limit(self, limit: float) -> None:
        """Set the limit, and the timer only if it would otherwise ring after the limit.

        A timer that rings early is set again then. So a first prompt makes two system calls for
        this, not 54."""
        self._limit = limit
        if self._set_timer is not None and limit < self._armed:
            self._armed = limit
            self._set_timer(max(limit - monotonic() + self._waited, 0.001))

    def _is_past(self, moment: float) -> bool:
        if monotonic() - self._waited < moment:
            return False
        self._waited = min(_seconds_without_processor() - self._waited_before, _MOST_WAIT_SECONDS)
        return monotonic() - self._waited >= moment

    def _interrupt(self, *_: object) -> None:
        self._armed = float("inf")
        # of a part that is over by now, or that had no processor
        if not self._is_past(self._limit):
            self._set_limit(self._limit)
        else:
            raise DeadlineError(f"not done within {HOOK_SECONDS:g} s")


def _seconds_without_processor() -> float:
    """Return how long this process was ready but not running, as Linux reports it; else 0."""
    try:
        with Opened("/proc/self/schedstat") as descriptor:
            return int(os.read(descriptor, 100).split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0
