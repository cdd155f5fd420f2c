"""`session-memory host init`, `add`, `set`, `remove` and `status`: a host and its groups;
`schedule`, `tasks`, `pause`, `unpause` and `drop`: the tasks of the groups."""

from __future__ import annotations

import argparse
import math
import os
import time
from collections.abc import Callable
from typing import Any

from ...common.errors import WrongCallError
from ...common.system.terminal import Terminal
from ...common.text.format import counted, one_line, shorten
from ...common.text.sanitize import plain
from ...common.text.timestamps import age, epoch_seconds
from ...history.archives.writer import open_sessions
from ...sessions.settings.host_layout import MAIN, Layout
from ...sessions.transcripts.pointers import SessionManager
from ._group_files import add_group, prepare_host
from ._ledger import Ledger
from ._log import is_served
from ._schedule import (
    ACTIVE,
    LONGEST_INTERVAL_MILLISECONDS,
    SHORTEST_INTERVAL_MILLISECONDS,
    ScheduleError,
)
from ._values import RegisteredGroup, Task

MOST_SHOWN = 20
PROMPT_CHARACTERS = 60


def add_group_arguments(action: Callable[..., argparse.ArgumentParser]) -> None:
    """The arguments of the actions here but `init`; `action` makes the parser of one."""
    found = action("add", "add a group")
    found.add_argument("group", metavar="GROUP")
    _add_properties(found)
    found = action("set", "change the chat, the name or the trigger of a group")
    found.add_argument("group", metavar="GROUP")
    _add_properties(found)
    found = action("remove", "have a group's chat answered no longer; its files stay")
    found.add_argument("group", metavar="GROUP")
    found.add_argument(
        "--dry-run", action="store_true", help="list the removals, and change nothing"
    )
    action("status", "show groups, sessions, what waits, the next tasks, and chats without a group")


def _add_properties(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--chat", metavar="ID", help="the chat of a channel that it answers in")
    parser.add_argument("--name", metavar="TEXT", help="the name of that chat")
    parser.add_argument(
        "--trigger",
        metavar="PATTERN",
        help="answer only messages that match, such as @anna, in any case; '' for all",
    )


def init(layout: Layout, arguments: argparse.Namespace, terminal: Terminal) -> None:
    if arguments.dry_run:
        known = (
            {one.folder for one in Ledger(layout.database).groups()}
            if os.path.isfile(layout.database)
            else set()
        )
        new = [layout.group(name).root for name in _new_groups(arguments, known)]
        for path in new:
            terminal.item("would make", os.path.relpath(path, layout.root))
        terminal.result({"dry_run": True, "host": layout.root, "made": new})
        return
    made = prepare_host(layout)
    ledger = Ledger(layout.database)
    for name in _new_groups(arguments, {group.folder for group in ledger.groups()}):
        made += add_group(layout, ledger, name)
    for path in made:
        terminal.item("made", os.path.relpath(path, layout.root))
    terminal.line()
    where = terminal.short(layout.root)
    terminal.line(f"  session-memory host run --at {where}")
    terminal.line(
        f'  session-memory host say --at {where} {(arguments.groups or [MAIN])[0]} "Who are you?"'
    )
    terminal.result(
        {"host": layout.root, "made": made, "groups": [group.folder for group in ledger.groups()]}
    )


def _new_groups(arguments: argparse.Namespace, known: set[str]) -> list[str]:
    return [name for name in arguments.groups or ([] if known else [MAIN]) if name not in known]


def add(layout: Layout, arguments: argparse.Namespace, terminal: Terminal) -> None:
    ledger = Ledger(layout.database)
    given = arguments.chat or "", arguments.name or "", arguments.trigger or ""
    made = add_group(layout, ledger, arguments.group, *given)
    group = ledger.group(arguments.group)
    terminal.line(
        f"{group.folder} answers in {group.jid}; groups/{group.folder}/CLAUDE.md "
        f"says who its agent is."
    )
    terminal.result({"group": group.folder, "chat": group.jid, "made": made})


def change(layout: Layout, arguments: argparse.Namespace, terminal: Terminal) -> None:
    if arguments.name is None and arguments.trigger is None and arguments.chat is None:
        raise WrongCallError("nothing to change is given", "--chat, --name or --trigger")
    ledger = Ledger(layout.database)
    ledger.update(
        arguments.group, name=arguments.name, trigger=arguments.trigger, jid=arguments.chat
    )
    group = ledger.group(arguments.group)
    terminal.line(f"{group.folder} ({group.name}) answers {_what(group.trigger)} in {group.jid}")
    terminal.result(
        {"group": group.folder, "chat": group.jid, "name": group.name, "trigger": group.trigger}
    )


def remove(layout: Layout, arguments: argparse.Namespace, terminal: Terminal) -> None:
    ledger = Ledger(layout.database)
    group = ledger.group(arguments.group)
    if arguments.dry_run:
        active = [task.id for task in ledger.schedule.tasks(group.folder) if task.status == ACTIVE]
        terminal.line(
            f"{group.folder} would answer no longer in {group.jid}. Its files would stay."
        )
        if active:
            terminal.line(f"Would be paused: {', '.join(active)}")
        terminal.result(
            {"dry_run": True, "group": group.folder, "chat": group.jid, "paused": active}
        )
        return
    paused = ledger.remove(group.folder)
    terminal.line(f"{group.folder} answers no longer in {group.jid}.")
    kept = [f"groups/{group.folder}", f"data/sessions/{group.folder}"]
    if paused:
        terminal.line(f"Paused: {', '.join(paused)}")
    terminal.line(
        f"Kept: {' and '.join(kept)}; session-memory host add {group.folder} takes them up again."
    )
    terminal.result({"group": group.folder, "chat": group.jid, "paused": paused, "kept": kept})


def status(layout: Layout, arguments: argparse.Namespace, terminal: Terminal) -> None:
    ledger, sessions = Ledger(layout.database), open_sessions(layout)
    runs, others = is_served(layout), ledger.strangers()
    terminal.line(f"{terminal.short(layout.root)}: {'running' if runs else 'not running'}")
    groups = [_show_group(group, ledger, sessions, terminal) for group in ledger.groups()]
    if others:
        terminal.heading("chats without a group")
    for chat in others[:MOST_SHOWN]:
        terminal.item(_ago(chat.last_activity), f"{chat.jid}  {short(chat.name)}")
    if len(others) > MOST_SHOWN:
        terminal.line(f"  and {len(others) - MOST_SHOWN} more (--json has them)")
    terminal.result(
        {
            "host": layout.root,
            "is_running": runs,
            "groups": groups,
            "chats_without_group": [chat._asdict() for chat in others],
        }
    )


def _show_group(
    group: RegisteredGroup, ledger: Ledger, sessions: SessionManager, terminal: Terminal
) -> dict[str, Any]:
    """Print the state of a group; return it for JSON."""
    name, last = group.folder, ledger.last_message_time(group.folder)
    session, history = sessions.get(name) or "", len(sessions.get_history(name))
    waiting, working = ledger.inbox_counts(name)
    task = next(
        (one for one in ledger.schedule.tasks(name) if one.status == ACTIVE and one.next_run), None
    )
    earlier = f", {counted(history, 'earlier one')}" if history else ""
    terminal.heading(name)
    called = f" ({plain(group.name)})" if group.name != name else ""
    terminal.item("answers", f"{_what(group.trigger)} in {group.jid}{called}")
    terminal.item("session", (session or "none: the next message starts one") + earlier)
    terminal.item("last active", _ago(last))
    terminal.item("queue", f"{waiting} waiting, {working} being answered")
    terminal.item(
        "next task", f"{local_time(task.next_run)}  {short(task.prompt)}" if task else "none"
    )
    return {
        "group": name,
        "chat": group.jid,
        "name": group.name,
        "trigger": group.trigger,
        "session_id": session,
        "last_activity": last,
        "named_sessions": history,
        "waiting": waiting,
        "working": working,
        "next_task": task._asdict() if task else None,
    }


def _ago(at: str) -> str:
    last = epoch_seconds(at)
    return age(time.time() - last) if last else "never"


def _what(trigger: str) -> str:
    return f"what holds `{trigger}`" if trigger else "everything"


def add_task_arguments(action: Callable[..., argparse.ArgumentParser]) -> None:
    """The arguments of the actions here; `action` makes the parser of one."""
    action("tasks", "show the scheduled tasks and how their last runs went")
    found = action("schedule", "give a group's agent a task")
    found.add_argument("group", metavar="GROUP")
    found.add_argument(
        "prompt", metavar="TEXT", nargs="+", help="the prompt that the agent gets at that time"
    )
    when = found.add_mutually_exclusive_group(required=True)
    when.add_argument("--cron", metavar="EXPRESSION", help="such as '0 8 * * 1-5', in local time")
    when.add_argument("--every", metavar="SECONDS", help="such as 3600")
    when.add_argument("--once", metavar="TIME", help="such as 2026-02-21T15:30")
    found.add_argument(
        "--isolated", action="store_true", help="in a separate session instead of the group's"
    )
    for name, text in (
        ("pause", "pause a task"),
        ("unpause", "have a task go on"),
        ("drop", "take a task away"),
    ):
        found = action(name, text)
        found.add_argument("task", metavar="TASK", help="its id, as `tasks` shows it")
        if name == "drop":
            found.add_argument(
                "--dry-run",
                action="store_true",
                help="list the deletions, and change nothing",
            )


def tasks(layout: Layout, arguments: argparse.Namespace, terminal: Terminal) -> None:
    planned = Ledger(layout.database).schedule
    found = planned.tasks()
    for task in found:
        terminal.line(f"{task.id}  {task.group}  {task.context_mode}  {_when(task)}")
        terminal.item("", short(task.prompt))
        if task.last_run:
            terminal.item(
                "last run", f"{local_time(task.last_run)}  {short(task.last_result or '')}"
            )
    if not found:
        terminal.line(
            'none; session-memory host schedule GROUP "text" --cron "0 8 * * 1-5" makes one'
        )
    terminal.result(
        {
            "tasks": [
                {**task._asdict(), "runs": [one._asdict() for one in planned.runs(task.id)]}
                for task in found
            ]
        }
    )


def schedule(layout: Layout, arguments: argparse.Namespace, terminal: Terminal) -> None:
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
    planned = Ledger(layout.database).schedule
    if arguments.action == "drop":
        if arguments.dry_run:
            found = planned.task(arguments.task)
            terminal.line(f"Would be deleted: {found.id}, {_when(found)}: {short(found.prompt)}")
            terminal.result({"dry_run": True, "task": found._asdict()})
            return
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
    shortest, longest = (
        SHORTEST_INTERVAL_MILLISECONDS // 1000,
        LONGEST_INTERVAL_MILLISECONDS // 1000,
    )
    try:
        number = float(seconds)
    except ValueError:
        number = math.nan
    if not shortest <= number <= longest:
        raise ScheduleError(
            f"--every {short(seconds)}: it takes seconds, from {shortest} to {longest}",
            "such as 3600",
        )
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
    return shorten(one_line(plain(text)), PROMPT_CHARACTERS)
