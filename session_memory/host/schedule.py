"""Scheduled tasks: when each is due, and how its runs went."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

from ..errors import SessionMemoryError
from ..text.format import shorten
from ..text.timestamps import epoch_seconds, iso_time
from .values import Task, TaskRun

if TYPE_CHECKING:
    from .database import HostDatabase

TYPES = ("cron", "interval", "once")
CONTEXT_MODES = ("group", "isolated")
RESULT_CHARACTERS = 200
SHORTEST_INTERVAL_MILLISECONDS = 1000


class ScheduleError(SessionMemoryError):
    """A schedule that names no time, or a task that is not there."""


class Schedule:
    """The tasks in a host's database. `now` returns seconds since the epoch."""

    def __init__(self, database: HostDatabase, now: Callable[[], float]) -> None:
        self._database = database
        self._now = now

    def add(self, group: str, jid: str, prompt: str, schedule_type: str, value: str, context_mode: str) -> Task:
        """Adds a task, whose answers go to the chat `jid`. Raises ScheduleError."""
        if context_mode not in CONTEXT_MODES:
            raise ScheduleError(f"the context of a task is {' or '.join(CONTEXT_MODES)}, not {context_mode!r}")
        if not prompt.strip():
            raise ScheduleError("a task needs a prompt")
        now = self._now()
        due = _iso_or_none(next_time(schedule_type, value, now))
        added = Task(
            f"task-{uuid.uuid4().hex[:12]}", group, jid, prompt, schedule_type, value, context_mode, next_run=due,
            last_run=None, last_result=None, status="active", created_at=iso_time(now),
        )  # fmt: skip
        with self._database.transaction():
            self._database.add_task(added)
        return added

    def tasks(self) -> list[Task]:
        """All tasks, the next one first."""
        return self._database.tasks()

    def task(self, task_id: str) -> Task:
        """The task with this id. Raises ScheduleError."""
        for task in self.tasks():
            if task.id == task_id:
                return task
        raise ScheduleError(f"there is no task {task_id!r}", "session-memory host tasks lists them")

    def runs(self, task_id: str) -> list[TaskRun]:
        """How the runs of a task went, the first one first."""
        return self._database.runs(task_id)

    def set_status(self, task_id: str, status: str) -> None:
        """Pauses a task (`paused`) or resumes it (`active`); what it missed is not run. Raises ScheduleError."""
        task, now = self.task(task_id), self._now()
        due = task.next_run
        if status == "active" and due is not None and due <= iso_time(now):
            due = _iso_or_none(next_time(task.schedule_type, task.schedule_value, now))
        with self._database.transaction():
            self._database.set_next_run(task_id, due, status)

    def remove(self, task_id: str) -> None:
        """Removes a task, its log, and its prompts. Raises ScheduleError."""
        with self._database.transaction():
            self.task(task_id)
            self._database.remove_task(task_id)

    def start_due(self) -> None:
        """Makes a prompt of each task that is due, and sets its next time, as one step.

        What was missed while no host ran is run once. A task whose last run is not over is not started again.
        """
        with self._database.transaction():
            now = self._now()
            for task in self.tasks():
                if task.status != "active" or task.next_run is None or task.next_run > iso_time(now):
                    continue
                if not self._database.has_open_prompt(task.id):
                    self._database.add_prompt(task.group, task.jid, str(uuid.uuid4()), task.id, task.next_run)
                due = epoch_seconds(task.next_run)
                following = next_time(task.schedule_type, task.schedule_value, now, due)
                self._database.set_next_run(task.id, _iso_or_none(following), task.status)

    def log_run(self, task_id: str, begun_at: str, result: str, error: str) -> None:
        """Logs a run that is over. Inside a transaction."""
        now = self._now()
        seconds = now - (epoch_seconds(begun_at) or now)
        run = TaskRun(
            task_id, begun_at or iso_time(now), max(0, round(seconds * 1000)), "error" if error else "success",
            None if error else result, error or None,
        )  # fmt: skip
        summary = shorten(f"Error: {error}" if error else result or "Completed", RESULT_CHARACTERS)
        self._database.add_run(run, summary)


def next_time(schedule_type: str, value: str, now: float, before: float | None = None) -> float | None:
    """When a task is due next, in seconds since the epoch, later than `now`; None for never again.

    A `cron` expression is read in local time; an `interval` is in milliseconds, and counts from `before`, when the task
    was due last; `once` is a time (local, unless it names its zone). Raises ScheduleError for what names no time.
    """
    if schedule_type == "cron":
        return _next_of_cron(value, now)
    if schedule_type == "interval":
        if not value.isdigit() or int(value) < SHORTEST_INTERVAL_MILLISECONDS:
            hint = f"it is a number of milliseconds, at least {SHORTEST_INTERVAL_MILLISECONDS}"
            raise ScheduleError(f"the interval {value!r} is too short or no number", hint)
        seconds = int(value) / 1000
        return now + seconds if before is None else before + seconds * (max(0.0, now - before) // seconds + 1)
    if schedule_type == "once":
        try:
            at = datetime.fromisoformat(value.replace("Z", "+00:00")).timestamp()
        except (ValueError, OverflowError):
            raise ScheduleError(f"{value!r} is no time", "write it as 2026-02-21T15:30:00") from None
        return at if before is None else None
    raise ScheduleError(f"a schedule is {', '.join(TYPES)}, not {schedule_type!r}")


def _next_of_cron(expression: str, now: float) -> float:
    from croniter import croniter

    try:
        times = croniter(expression, datetime.fromtimestamp(now))
        due = now
        while due <= now:  # when clocks are set back, an hour comes twice
            due = times.get_next(datetime).timestamp()
    except (ValueError, KeyError, OverflowError) as error:
        raise ScheduleError(f"the cron expression {expression!r}: {error}", "such as `0 8 * * 1-5`") from None
    return due


def _iso_or_none(seconds: float | None) -> str | None:
    return None if seconds is None else iso_time(seconds)
