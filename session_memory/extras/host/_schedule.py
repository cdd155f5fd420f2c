"""Scheduled tasks: due times and the log of their runs."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import datetime, timedelta

from ...common.errors import SessionMemoryError, WrongCallError
from ...common.text.format import shorten, whole_number
from ...common.text.sanitize import for_people
from ...common.text.timestamps import epoch_seconds, iso_time, milliseconds_at
from ._database import HostDatabase
from ._values import Task, TaskRun

TYPES = ("cron", "interval", "once")
CONTEXT_MODES = ("group", "isolated")
ACTIVE, PAUSED, COMPLETED = "active", "paused", "completed"
CANCELLED = "cancelled"  # deleted during a run whose answer is still to come
RESULT_CHARACTERS = 200
SHORTEST_INTERVAL_MILLISECONDS = 1000
LONGEST_INTERVAL_MILLISECONDS = 10 * 366 * 24 * 3600 * 1000
_LATEST = 253_402_214_400  # the last day of 9999: times are compared as texts
_VALUE_CHARACTERS = 60
_LONGEST_FOLD_SECONDS = 2 * 3600  # that clocks are set back


class ScheduleError(WrongCallError):
    """A schedule without a valid time, or a task without a text."""


class UnknownTaskError(SessionMemoryError):
    """There is no such task."""


class Schedule:
    """The tasks in a host's database. `now` returns seconds since the epoch."""

    def __init__(self, database: HostDatabase, now: Callable[[], float]) -> None:
        self._database = database
        self._now = now

    def add(
        self, group: str, jid: str, prompt: str, schedule_type: str, value: str, context_mode: str
    ) -> Task:
        """Add a task that answers in the chat `jid`; a call repeated after a crash adds nothing.

        Raises ScheduleError."""
        now = self._now()
        wanted = _checked(
            Task(
                f"task-{uuid.uuid4().hex[:12]}",
                group,
                jid,
                storable(prompt),
                schedule_type,
                value,
                context_mode,
                next_run=iso_time(first_time(schedule_type, value, now)),
                last_run=None,
                last_result=None,
                status=ACTIVE,
                created_at=iso_time(now),
            )
        )
        with self._database.transaction():
            for task in self.tasks(group):
                if _what_it_is(task) == _what_it_is(wanted):
                    return task
            self._database.add_task(wanted)
        return wanted

    def tasks(self, group: str = "") -> list[Task]:
        return [task for task in self._database.tasks(group) if task.status != CANCELLED]

    def task(self, task_id: str, group: str = "") -> Task:
        for task in self.tasks(group):
            if task.id == task_id:
                return task
        raise UnknownTaskError(
            f"there is no task {task_id!r}", "session-memory host tasks shows them"
        )

    def runs(self, task_id: str) -> list[TaskRun]:
        return self._database.runs(task_id)

    def update(self, task_id: str, group: str = "", **changes: str) -> Task:
        """Change prompt, schedule_type, schedule_value, context_mode or status; return the task.

        The status is active or paused. A new time counts from now; runs missed during a pause are
        skipped. Raises ScheduleError, UnknownTaskError."""
        with self._database.transaction():
            now, before = self._now(), self.task(task_id, group)
            task = _checked(
                before._replace(**{name: storable(value) for name, value in changes.items()})
            )
            is_new_time = (task.schedule_type, task.schedule_value) != (
                before.schedule_type,
                before.schedule_value,
            )
            if is_new_time and "status" not in changes and before.status == COMPLETED:
                task = task._replace(status=ACTIVE)
            is_late = task.next_run is None or task.next_run <= iso_time(now)
            if is_new_time or (is_late and task.status == ACTIVE != before.status):
                task = task._replace(
                    next_run=iso_time(first_time(task.schedule_type, task.schedule_value, now))
                )
            changed = (
                "prompt",
                "schedule_type",
                "schedule_value",
                "context_mode",
                "next_run",
                "status",
            )
            self._database.change(
                "scheduled_tasks", task.id, **{name: getattr(task, name) for name in changed}
            )
        return task

    def remove(self, task_id: str, group: str = "") -> None:
        """Delete a task and its log; a run that has begun is still answered.

        Raises UnknownTaskError."""
        with self._database.transaction():
            self.task(task_id, group)
            self._database.remove_waiting_prompts(task_id)
            if self._database.has_open_prompt(task_id):
                self._database.change("scheduled_tasks", task_id, next_run=None, status=CANCELLED)
            else:
                self._database.remove_task(task_id)

    def start_due(self) -> list[str]:
        """Make a prompt of each due task and set its next time, in one transaction.

        Return a line for each task that ended because its schedule never occurs again. Runs missed
        while no host ran are made up once. A task with an unfinished run is not started again."""
        ended: list[str] = []
        now = self._now()
        if not self._database.due_tasks(iso_time(now)):  # an idle host begins no transaction
            return ended
        with self._database.transaction():
            for task in self._database.due_tasks(iso_time(now)):
                due = epoch_seconds(task.next_run or "") or now
                try:
                    following = next_time(task.schedule_type, task.schedule_value, now, due)
                except ScheduleError as error:
                    self._end(task, str(error))
                    ended.append(f"{task.group}: {task.id} has ended: {error}")
                    continue
                if not self._database.has_open_prompt(task.id):
                    self._database.add_prompt(
                        task.group, task.jid, str(uuid.uuid4()), task.id, task.next_run
                    )
                next_run = None if following is None else iso_time(following)
                self._database.change("scheduled_tasks", task.id, next_run=next_run)
        return ended

    def log_run(self, task_id: str, begun_at: str, result: str, error: str) -> None:
        """Log a finished run. Inside a transaction."""
        if self._database.status_of(task_id) == CANCELLED:
            self._database.remove_task(task_id)
            return
        now = self._now()
        seconds = now - (epoch_seconds(begun_at) or now)
        run = TaskRun(
            task_id,
            begun_at or iso_time(now),
            max(0, round(seconds * 1000)),
            "error" if error else "success",
            None if error else result,
            error or None,
        )
        summary = shorten(
            for_people(f"Error: {error}" if error else result or "Completed"), RESULT_CHARACTERS
        )
        self._database.add_run(run, summary)

    def _end(self, task: Task, error: str) -> None:
        self._database.change("scheduled_tasks", task.id, next_run=None)
        self._database.add_run(
            TaskRun(task.id, iso_time(self._now()), 0, "error", None, error), f"Error: {error}"
        )


def first_time(schedule_type: str, value: str, now: float) -> float:
    """Return the first due time of a new task, in seconds since the epoch. Raises ScheduleError."""
    due = next_time(schedule_type, value, now)
    if due is None or due < now:
        raise ScheduleError(
            f"{_shown(value)} is in the past", f"it is {datetime.fromtimestamp(now):%Y-%m-%dT%H:%M}"
        )
    return due


def next_time(
    schedule_type: str, value: str, now: float, before: float | None = None
) -> float | None:
    """Return a task's next due time after `now`, in seconds since the epoch; None for never.

    A `cron` expression is read in local time. An `interval` is in milliseconds and counts from
    `before`, the last due time. `once` is a time (local, unless it names its zone). Raises
    ScheduleError for an invalid time."""
    if schedule_type == "cron":
        return _next_of_cron(value, now)
    if schedule_type == "interval":
        milliseconds = whole_number(value) or 0
        if not SHORTEST_INTERVAL_MILLISECONDS <= milliseconds <= LONGEST_INTERVAL_MILLISECONDS:
            hint = (
                f"a number from {SHORTEST_INTERVAL_MILLISECONDS} to {LONGEST_INTERVAL_MILLISECONDS}"
            )
            raise ScheduleError(f"{_shown(value)} is not an interval in milliseconds", hint)
        seconds = milliseconds / 1000
        return (
            now + seconds
            if before is None
            else before + seconds * (max(0.0, now - before) // seconds + 1)
        )
    if schedule_type == "once":
        try:
            at = _time_of(value)
            if at > _LATEST:
                raise ValueError(value)
        except (ValueError, OverflowError, OSError):
            hint = "write it as 2026-02-21T15:30:00, or with its zone as 2026-02-21T15:30:00+01:00"
            raise ScheduleError(f"{_shown(value)} is not a time", hint) from None
        return at if before is None else None
    raise ScheduleError(f"a schedule is {', '.join(TYPES)}, not {_shown(schedule_type)}")


def _time_of(value: str) -> float:
    """Return the seconds since 1970 of a time, local unless it names its zone.

    Raises ValueError, OverflowError, OSError."""
    try:
        return datetime.fromisoformat(value.strip().replace("Z", "+00:00")).timestamp()
    except ValueError:  # Python 3.10 reads fewer spellings
        at = milliseconds_at(value)
        if at is None:
            raise
        return at / 1000


def _next_of_cron(expression: str, now: float) -> float:
    """Return the next time of a cron expression.

    As in cron, when clocks are set back, a fixed time occurs once, and one with `*` for the minute
    or the hour every time. A time that clocks skip occurs an hour later."""
    from croniter import CroniterBadDateError, croniter

    shown = f"the cron expression {_shown(expression)}"
    is_by_real_time = expression == "@hourly" or any(
        field.startswith("*") for field in expression.split()[:2]
    )
    # croniter also takes seconds and years
    if len(expression.split()) != 5 and not expression.startswith("@"):
        raise ScheduleError(f"{shown} does not have the five fields of cron", "such as 0 8 * * 1-5")
    try:
        around = [
            datetime.fromtimestamp(now + fold_offset)
            for fold_offset in (-_LONGEST_FOLD_SECONDS, 0, _LONGEST_FOLD_SECONDS)
        ]
        is_shifted = around[2] - around[0] != timedelta(seconds=2 * _LONGEST_FOLD_SECONDS)
        # Either of two fields for the day is enough, but both must match if one begins with `*`, as
        # in `*/2`.
        times = croniter(expression, around[0 if is_shifted else 1], implement_cron_bug=True)
        candidate = now
        earliest = float("inf")
        while candidate <= now:
            local = times.get_next(datetime)
            candidate, again = local.timestamp(), local.replace(fold=1).timestamp()
            if candidate < again and is_by_real_time and again > now:
                earliest = min(earliest, again)
        return min(earliest, candidate)
    except CroniterBadDateError:
        raise ScheduleError(f"{shown} never occurs", "choose a day that exists") from None
    except (ValueError, KeyError, OverflowError) as error:
        raise ScheduleError(
            f"{shown}: {shorten(str(error), 2 * _VALUE_CHARACTERS)}", "such as 0 8 * * 1-5"
        ) from None


def _checked(task: Task) -> Task:
    """Return the task if everything but its time is valid. Raises ScheduleError."""
    if task.context_mode not in CONTEXT_MODES:
        problem = (
            f"the context of a task is {' or '.join(CONTEXT_MODES)}, not "
            f"{_shown(task.context_mode)}"
        )
        raise ScheduleError(problem)
    if not task.prompt.strip():
        raise ScheduleError("a task needs a prompt", "say what its agent should do")
    return task


def _what_it_is(task: Task) -> tuple[object, ...]:
    """Return the properties that make two tasks the same."""
    is_over = task.id if task.status == COMPLETED else ""
    return (
        task.group,
        task.jid,
        task.prompt,
        task.schedule_type,
        task.schedule_value,
        task.context_mode,
        is_over,
    )


def storable(text: str) -> str:
    """Return the text without characters that databases reject."""
    return text.replace("\0", "").encode("utf-8", "replace").decode()


def _shown(value: str) -> str:
    return repr(shorten(value, _VALUE_CHARACTERS))
