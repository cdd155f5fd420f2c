"""A run of upkeep, and how it takes the steps that features register in `extension_points`."""

import time
from collections.abc import Callable, Mapping

from ...common.errors import SessionMemoryError, described
from ...common.extensions import AbsentFeatureError, load
from ...common.text.format import one_line
from ...common.text.sanitize import for_people
from ...history.store.location import StoreLocation
from ...history.store.sqlite.engine import SqliteStore
from ._runs import RunLog, UpkeepRun, cpu_seconds


class Run:
    """The values that the steps of upkeep work with: the `location` of the store, and the `store`
    while it is open; `note`, which writes a line to the log; `is_spent`,
    which says if the run must end. A step does nothing that can wait once `is_spent()`. `record` is
    what the run's log keeps of it, and `runs` that log."""

    store: SqliteStore

    def __init__(
        self,
        location: StoreLocation,
        note: Callable[[str], None],
        is_spent: Callable[[], bool] = lambda: False,
    ) -> None:
        self.location = location
        self.note = note
        self.is_spent = is_spent
        self.runs = RunLog(location.home)
        self.record = UpkeepRun(time.time())

    def take(self, steps: Mapping[str, str], fatal: tuple[type[Exception], ...] = ()) -> None:
        """Take the steps of a table in `extension_points`, in its order. A step that fails costs
        only that step: see `fail`. Errors of the types `fatal` are raised, and end the others."""
        for place in steps.values():
            try:
                load(place)(self)
            except AbsentFeatureError:
                pass
            except fatal:
                raise
            except Exception as error:
                self.fail(error)

    def within(self, seconds: float) -> Callable[[], bool]:
        """Return `is_spent` for a step that may take only so many seconds of CPU time."""
        end = cpu_seconds() + seconds
        return lambda: self.is_spent() or cpu_seconds() >= end

    def fail(self, error: Exception) -> None:
        """Record why a step failed: the first problem is the run's, the next are only logged."""
        problem = _in_a_line(error)
        if self.record.problem:
            self.note(problem)
        else:
            self.record.problem = problem


def _in_a_line(error: Exception) -> str:
    """Return an error on one line, with its type unless it is ours."""
    is_foreseen = isinstance(error, SessionMemoryError | OSError)
    return one_line(
        for_people(described(error) if is_foreseen else f"{type(error).__name__}: {error}")
    )
