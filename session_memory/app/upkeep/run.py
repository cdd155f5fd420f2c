"""A run of upkeep, and how it executes the steps of features in `extension_points`."""

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
    """The context of upkeep's steps.

    It has the `location` of the store, and the `store` while it is open. `note` writes a line to
    the log. Once `is_spent()`, the run must end: a step then does only what cannot wait. `record`
    is this run's entry in the log `runs`."""

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
        """Run the steps of a table in `extension_points`, in its order.

        A failed step does not stop the others, see `fail`. Errors of the types `fatal` are raised,
        and end the run."""
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
        """Return an `is_spent` for a step that may take only `seconds` of CPU time."""
        end = cpu_seconds() + seconds
        return lambda: self.is_spent() or cpu_seconds() >= end

    def fail(self, error: Exception) -> None:
        """Record why a step failed: the first problem becomes the run's, others are only logged."""
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
