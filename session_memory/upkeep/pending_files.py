"""Files that have changed and wait to be read: each once, however often it changes. Pure."""

from __future__ import annotations

QUIET_SECONDS = 2.0
FORCED_SECONDS = 15.0


class Pending:
    """A file is due once nothing has changed in it for QUIET_SECONDS, or FORCED_SECONDS after its first change: one
    that is written to all the time is read now and then, not at every line. Times are in seconds of one clock."""

    def __init__(self) -> None:
        self._times: dict[str, tuple[float, float]] = {}  # of the first and of the last change

    def __len__(self) -> int:
        return len(self._times)

    def add(self, path: str, now: float) -> None:
        """Notes that a file has changed."""
        first, _ = self._times.get(path, (now, now))
        self._times[path] = (first, now)

    def take_due(self, now: float) -> list[str]:
        """The files that are due, in the order of their first change; they wait no longer."""
        due = [path for path, times in self._times.items() if _due_at(*times) <= now]
        for path in due:
            del self._times[path]
        return due

    def clear(self) -> None:
        """Nothing waits any longer, as after a scan of everything."""
        self._times.clear()


def _due_at(first: float, last: float) -> float:
    return min(first + FORCED_SECONDS, last + QUIET_SECONDS)
