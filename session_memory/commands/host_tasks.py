"""`session-memory host schedule`, `tasks`, `pause`, `unpause` and `drop`: the tasks of a host's groups."""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable

from ..host.ledger import Ledger
from ..host.schedule import LONGEST_INTERVAL_MILLISECONDS, SHORTEST_INTERVAL_MILLISECONDS, ScheduleError
from ..host.values import Task
from ..settings.host_layout import Layout
from ..system.terminal import Terminal
from ..text.format import one_line, shorten
from ..text.sanitize import plain
from ..text.timestamps import epoch_seconds

PROMPT_CHARACTERS = 60


def add_task_arguments(action: Callable[..., argparse.ArgumentParser]) -> None:
    """The arguments of the actions here; `action` makes the parser of one."""
    action("tasks", "show the scheduled tasks and how their last runs went")
    found = action("schedule", "give a group's agent a task")
    found.add_argument("group", metavar="GROUP")
    found.add_argument("prompt", metavar="TEXT", nargs="+", help="the prompt that the agent gets at that time")
    when = found.add_mutually_exclusive_group(required=True)
    when.add_argument("--cron", metavar="EXPRESSION", help="such as '0 8 * * 1-5', in local time")
    when.add_argument("--every", metavar="SECONDS", help="such as 3600")
    when.add_argument("--once", metavar="TIME", help="such as 2026-02-21T15:30")
    found.add_argument("--isolated", action="store_true", help="in a session of its own, not in the group's")
    for name, text in (("pause", "pause a task"), ("unpause", "have a task go on"), ("drop", "take a task away")):
        found = action(name, text)
        found.add_argument("task", metavar="TASK", help="its id, as `tasks` shows it")


def tasks(layout: Layout, arguments: argparse.Namespace, terminal: Terminal) -> None:
    """Show the tasks."""
    planned = Ledger(layout.database).schedule
    found = planned.tasks()
    for task in found:
        terminal.line(f"{task.id}  {task.group}  {task.context_mode}  {_when(task)}")
        terminal.item("", short(task.prompt))
        if task.last_run:
            terminal.item("last run", f"{local_time(task.last_run)}  {short(task.last_result or '')}")
    if not found:
        terminal.line('none; session-memory host schedule GROUP "text" --cron "0 8 * * 1-5" makes one')
    terminal.result(
        {"tasks": [{**task._asdict(), "runs": [one._asdict() for one in planned.runs(task.id)]}
                   for task in found]}
    )  # fmt: skip


def schedule(layout: Layout, arguments: argparse.Namespace, terminal: Terminal) -> None:
    """Give an agent a task."""
    ledger = Ledger(layout.database)
    if arguments.cron is not None:
        kind, value = "cron", arguments.cron
    elif arguments.every is not None:
        kind, value = "interval", _milliseconds(arguments.every)
    else:
        kind, value = "once", arguments.once
    group = ledger.group(arguments.group)
    mode = "isolated" if arguments.isolated else "group"
    prompt = " ".join(arguments.prompt)
    task = ledger.schedule.add(group.folder, group.jid, prompt, kind, value, mode)
    terminal.line(f"{task.id}  {_when(task)}")
    terminal.result({"task": task._asdict()})


def change_task(layout: Layout, arguments: argparse.Namespace, terminal: Terminal) -> None:
    """Pause a task, resume it, or delete it."""
    planned = Ledger(layout.database).schedule
    if arguments.action == "drop":
        planned.remove(arguments.task)
        terminal.line(f"{arguments.task} is gone")
        terminal.result({"task": None})
        return
    status = "paused" if arguments.action == "pause" else "active"
    task = planned.update(arguments.task, status=status)
    terminal.line(f"{task.id}  {_when(task)}")
    terminal.result({"task": task._asdict()})


def _milliseconds(seconds: str) -> str:
    """Return an interval as tasks have it. Raises ScheduleError."""
    shortest, longest = SHORTEST_INTERVAL_MILLISECONDS // 1000, LONGEST_INTERVAL_MILLISECONDS // 1000
    try:
        number = float(seconds)
    except ValueError:
        number = math.nan
    if not shortest <= number <= longest:
        raise ScheduleError(f"--every {short(seconds)}: it takes seconds, from {shortest} to {longest}", "such as 3600")
    return str(round(number * 1000))


def _when(task: Task) -> str:
    if task.status != "active":
        return task.status
    return f"next {local_time(task.next_run)}" if task.next_run else "being done for the last time"


def local_time(text: str | None) -> str:
    """Return a time of the database as people here read it."""
    seconds = epoch_seconds(text)
    return "" if seconds is None else time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))


def short(text: str) -> str:
    """Return the beginning of a text, on one line."""
    return shorten(one_line(plain(text)), PROMPT_CHARACTERS)
