"""Scheduled tasks: when each is due, what becomes of it when it was run. Times are kept as ISO 8601 in UTC."""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from ..errors import SessionMemoryError
from ..system.sqlite import writing
from ..text.format import shorten
from ..text.timestamps import epoch_seconds, iso_time

if TYPE_CHECKING:
    import apsw

TYPES = ("cron", "interval", "once")
CONTEXT_MODES = ("group", "isolated")
RESULT_CHARACTERS = 200
SHORTEST_INTERVAL_MILLISECONDS = 1000


class ScheduleError(SessionMemoryError):
    """A schedule that says no time, or a task that is not there."""


class Task(NamedTuple):
    """A row of `scheduled_tasks`; `group` is its `group_folder`, `jid` its `chat_jid`."""

    id: str
    group: str
    jid: str
    prompt: str
    schedule_type: str
    schedule_value: str
    context_mode: str
    next_run: str | None
    last_run: str | None
    last_result: str | None
    status: str
    created_at: str

    def row(self) -> dict[str, object]:
        """The task with the names of its columns."""
        columns = {"group": "group_folder", "jid": "chat_jid"}
        return {columns.get(name, name): value for name, value in self._asdict().items()}


class Run(NamedTuple):
    """A row of `task_run_logs`: how one run of a task went."""

    task_id: str
    run_at: str
    duration_milliseconds: int
    status: str
    result: str | None
    error: str | None


def next_time(schedule_type: str, value: str, now: float, before: float | None = None) -> float | None:
    """When a task is due next, in seconds since the epoch, later than `now`; None for never again.

    A `cron` expression is read in local time; an `interval` is in milliseconds, and counts from `before`, when the task
    was due last; `once` is a time (local, unless it tells its zone). Raises ScheduleError for what says no time.
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
        while due <= now:  # an hour that the clock goes through twice
            due = times.get_next(datetime).timestamp()
    except (ValueError, KeyError, OverflowError) as error:
        raise ScheduleError(f"the cron expression {expression!r}: {error}", "such as `0 8 * * 1-5`") from None
    return due


def add_task(
    connection: apsw.Connection, group: str, jid: str, prompt: str, schedule_type: str, value: str, context_mode: str,
    now: float,
) -> Task:  # fmt: skip
    """A new task. Raises ScheduleError."""
    if context_mode not in CONTEXT_MODES:
        raise ScheduleError(f"the context of a task is {' or '.join(CONTEXT_MODES)}, not {context_mode!r}")
    if not prompt.strip():
        raise ScheduleError("a task needs a prompt")
    due = next_time(schedule_type, value, now)
    task_id = f"task-{uuid.uuid4().hex[:12]}"
    values = (task_id, group, jid, prompt, schedule_type, value, context_mode, due and iso_time(due), iso_time(now))
    with writing(connection):
        connection.execute(
            "INSERT INTO scheduled_tasks (id, group_folder, chat_jid, prompt, schedule_type, schedule_value, "
            "context_mode, next_run, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            values,
        )
    return task(connection, task_id)


def task(connection: apsw.Connection, task_id: str) -> Task:
    """The task with this id. Raises ScheduleError."""
    found = [one for one in tasks(connection) if one.id == task_id]
    if not found:
        raise ScheduleError(f"there is no task {task_id!r}", "session-memory host tasks lists them")
    return found[0]


def tasks(connection: apsw.Connection, group: str = "") -> list[Task]:
    """The tasks of a group, or of all, the next one first."""
    query = (
        "SELECT id, group_folder, chat_jid, prompt, schedule_type, schedule_value, "
        "coalesce(context_mode, 'isolated'), next_run, last_run, last_result, status, created_at "
        "FROM scheduled_tasks WHERE ? = '' OR group_folder = ? ORDER BY next_run IS NULL, next_run, id"
    )
    return [Task._make(row) for row in connection.execute(query, (group, group))]


def runs(connection: apsw.Connection, task_id: str) -> list[Run]:
    """How the runs of a task went, the first one first."""
    query = (
        "SELECT task_id, run_at, duration_ms, status, result, error FROM task_run_logs WHERE task_id = ? ORDER BY id"
    )
    return [Run._make(row) for row in connection.execute(query, (task_id,))]


def set_status(connection: apsw.Connection, task_id: str, status: str, now: float) -> None:
    """Pauses a task (`paused`) or has it go on (`active`): what it missed is not made up for. Raises ScheduleError."""
    found = task(connection, task_id)
    due = found.next_run
    if status == "active" and due is not None and due <= iso_time(now):
        seconds = next_time(found.schedule_type, found.schedule_value, now)
        due = iso_time(seconds) if seconds is not None else None
    with writing(connection):
        query = "UPDATE scheduled_tasks SET status = ?, next_run = ? WHERE id = ?"
        connection.execute(query, (status, due, task_id))


def remove(connection: apsw.Connection, task_id: str) -> None:
    """Takes away a task, its log, and what is still to be done of it. Raises ScheduleError."""
    with writing(connection):
        task(connection, task_id)
        for table in ("task_run_logs", "prompts"):
            connection.execute(f"DELETE FROM {table} WHERE task_id = ?", (task_id,))
        connection.execute("DELETE FROM scheduled_tasks WHERE id = ?", (task_id,))


def start_due(connection: apsw.Connection, now: float) -> None:
    """Makes a prompt of each task that is due, and sets its next time. Inside a transaction.

    What was missed while nobody was there is run once. A task whose last run is not over is not started again.
    """
    query = "SELECT 1 FROM prompts WHERE task_id = ? AND answered_at IS NULL"
    for one in tasks(connection):
        if one.status != "active" or one.next_run is None or one.next_run > iso_time(now):
            continue
        if not connection.execute(query, (one.id,)).fetchall():
            connection.execute(
                "INSERT INTO prompts (group_folder, chat_jid, uuid, task_id, due_at) VALUES (?, ?, ?, ?, ?)",
                (one.group, one.jid, str(uuid.uuid4()), one.id, one.next_run),
            )
        due = epoch_seconds(one.next_run)
        following = next_time(one.schedule_type, one.schedule_value, now, due)
        query_next = "UPDATE scheduled_tasks SET next_run = ? WHERE id = ?"
        connection.execute(query_next, (None if following is None else iso_time(following), one.id))


def log_run(connection: apsw.Connection, task_id: str, begun_at: str, now: float, result: str, error: str) -> None:
    """Writes down how a run of a task went. Inside a transaction."""
    begun = epoch_seconds(begun_at) or now
    connection.execute(
        "INSERT INTO task_run_logs (task_id, run_at, duration_ms, status, result, error) VALUES (?, ?, ?, ?, ?, ?)",
        (
            task_id, begun_at or iso_time(now), max(0, round((now - begun) * 1000)), "error" if error else "success",
            None if error else result, error or None,
        ),
    )  # fmt: skip
    summary = shorten(f"Error: {error}" if error else result or "Completed", RESULT_CHARACTERS)
    connection.execute(
        "UPDATE scheduled_tasks SET last_run = ?, last_result = ?, "
        "status = CASE WHEN next_run IS NULL THEN 'completed' ELSE status END WHERE id = ?",
        (begun_at or iso_time(now), summary, task_id),
    )
