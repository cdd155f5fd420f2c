"""`session-memory host`: the actions on a host's groups and on their tasks.

`init`, `add`, `set`, `remove` and `status` manage a host and its groups; `schedule`, `tasks`,
`pause`, `unpause` and `drop` manage tasks.
"""

from __future__ import annotations

import argparse
import math
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from ...common.errors import SessionMemoryError, WrongCallError
from ...common.system.terminal import Result, Terminal
from ...common.text.format import counted, one_line, shorten
from ...common.text.sanitize import plain
from ...common.text.timestamps import age, epoch_seconds
from ...history.archives.writer import open_sessions
from ...sessions.settings.homes import home_at
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
from ._values import Chat, RegisteredGroup, Task, TaskRun
from .channels import telegram
from .settings import HostSettings

TELEGRAM = "telegram"
MOST_SHOWN = 20
PROMPT_CHARACTERS = 60


def add_group_arguments(action: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the arguments of the actions here except `init`; `action` makes a parser."""
    subparser = action("add", "add a group")
    subparser.add_argument("group", metavar="GROUP")
    _add_properties(subparser)
    subparser = action("set", "change the chat, the name or the trigger of a group")
    subparser.add_argument("group", metavar="GROUP")
    _add_properties(subparser)
    subparser = action("remove", "stop answering a group's chat; its files stay")
    subparser.add_argument("group", metavar="GROUP")
    subparser.add_argument(
        "--dry-run", action="store_true", help="list the removals without changing anything"
    )
    status_action = action(
        "status",
        "show groups, sessions, waiting messages, the next tasks, and chats without a group",
    )
    status_action.add_argument(
        "--check",
        action="store_true",
        help="also ask the channels' servers if the tokens are right",
    )


def _add_properties(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--chat", metavar="ID", help="the chat of a channel in which the group answers"
    )
    parser.add_argument("--name", metavar="TEXT", help="the name of that chat")
    parser.add_argument(
        "--trigger",
        metavar="PATTERN",
        help="answer only messages that match, such as @anna, in any case; '' for all",
    )


class HostCall(NamedTuple):
    """A call of `host`: the directory's layout, the arguments and the terminal."""

    layout: Layout
    arguments: argparse.Namespace
    terminal: Terminal

    @property
    def ledger(self) -> Ledger:
        """The host's groups, messages and tasks."""
        return Ledger(self.layout.database)


def init(call: HostCall) -> None:
    layout, arguments = call.layout, call.arguments
    if arguments.dry_run:
        is_there = os.path.isfile(layout.database)
        known = {group.folder for group in call.ledger.groups()} if is_there else set()
        new = [layout.group(name).root for name in _new_groups(arguments, known)]
        call.terminal.show(HostPlan(layout.root, new))
        return
    made = prepare_host(layout)
    ledger = call.ledger
    for name in _new_groups(arguments, {group.folder for group in ledger.groups()}):
        made += add_group(layout, ledger, name)
    groups = [group.folder for group in ledger.groups()]
    first = (arguments.groups or [MAIN])[0]
    call.terminal.show(MadeHost(layout.root, made, groups, first))


@dataclass(frozen=True)
class HostPlan(Result):
    """The paths that would be made for a host."""

    host: str
    made: list[str]

    def show(self, terminal: Terminal) -> None:
        for path in self.made:
            terminal.item("would make", os.path.relpath(path, self.host))

    def as_json(self) -> dict[str, Any]:
        return {"dry_run": True, **vars(self)}


@dataclass(frozen=True)
class MadeHost(Result):
    """A host with the paths that were made, all its groups, and the group to talk to first."""

    host: str
    made: list[str]
    groups: list[str]
    first: str

    def show(self, terminal: Terminal) -> None:
        for path in self.made:
            terminal.item("made", os.path.relpath(path, self.host))
        terminal.line()
        where = terminal.short(self.host)
        terminal.line(f"  session-memory host run --at {where}")
        terminal.line(f'  session-memory host say --at {where} {self.first} "Who are you?"')

    def as_json(self) -> dict[str, Any]:
        return {"host": self.host, "made": self.made, "groups": self.groups}


def _new_groups(arguments: argparse.Namespace, known: set[str]) -> list[str]:
    return [name for name in arguments.groups or ([] if known else [MAIN]) if name not in known]


def add(call: HostCall) -> None:
    ledger, arguments = call.ledger, call.arguments
    given = arguments.chat or "", arguments.name or "", arguments.trigger or ""
    made = add_group(call.layout, ledger, arguments.group, *given)
    call.terminal.show(AddedGroup(ledger.group(arguments.group), made))


@dataclass(frozen=True)
class AddedGroup(Result):
    """A group that was added, and the paths that were made for it."""

    group: RegisteredGroup
    made: list[str]

    def show(self, terminal: Terminal) -> None:
        folder = self.group.folder
        terminal.line(
            f"{folder} answers in {self.group.jid}; groups/{folder}/CLAUDE.md says who its agent "
            "is."
        )

    def as_json(self) -> dict[str, Any]:
        return {"group": self.group.folder, "chat": self.group.jid, "made": self.made}


def change(call: HostCall) -> None:
    ledger, arguments = call.ledger, call.arguments
    if arguments.name is None and arguments.trigger is None and arguments.chat is None:
        raise WrongCallError("host set needs something to change", "--chat, --name or --trigger")
    ledger.update(
        arguments.group, name=arguments.name, trigger=arguments.trigger, jid=arguments.chat
    )
    call.terminal.show(ChangedGroup(ledger.group(arguments.group)))


@dataclass(frozen=True)
class ChangedGroup(Result):
    """A group as it is now."""

    group: RegisteredGroup

    def show(self, terminal: Terminal) -> None:
        group = self.group
        terminal.line(
            f"{group.folder} ({group.name}) answers {_what(group.trigger)} in {group.jid}"
        )

    def as_json(self) -> dict[str, Any]:
        group = self.group
        return {
            "group": group.folder,
            "chat": group.jid,
            "name": group.name,
            "trigger": group.trigger,
        }


def remove(call: HostCall) -> None:
    ledger, is_dry_run = call.ledger, call.arguments.dry_run
    group = ledger.group(call.arguments.group)
    if is_dry_run:
        tasks_of = ledger.schedule.tasks(group.folder)
        paused = [task.id for task in tasks_of if task.status == ACTIVE]
    else:
        paused = ledger.remove(group.folder)
    call.terminal.show(RemovedGroup(group, paused, is_dry_run))


@dataclass(frozen=True)
class RemovedGroup(Result):
    """A group that no longer answers (or would not), and its paused tasks."""

    group: RegisteredGroup
    paused: list[str]
    is_dry_run: bool

    @property
    def kept(self) -> list[str]:
        """The directories of the group, which stay."""
        return [f"groups/{self.group.folder}", f"data/sessions/{self.group.folder}"]

    def show(self, terminal: Terminal) -> None:
        folder, paused = self.group.folder, ", ".join(self.paused)
        if self.is_dry_run:
            terminal.line(
                f"{folder} would no longer answer in {self.group.jid}. Its files would stay."
            )
            if paused:
                terminal.line(f"Would be paused: {paused}")
            return
        terminal.line(f"{folder} no longer answers in {self.group.jid}.")
        if paused:
            terminal.line(f"Paused: {paused}")
        terminal.line(
            f"Kept: {' and '.join(self.kept)}; session-memory host add {folder} takes them up "
            "again."
        )

    def as_json(self) -> dict[str, Any]:
        result = {"group": self.group.folder, "chat": self.group.jid, "paused": self.paused}
        return {"dry_run": True, **result} if self.is_dry_run else {**result, "kept": self.kept}


def status(call: HostCall) -> int:
    layout, ledger = call.layout, call.ledger
    channels = _check_channels(layout) if call.arguments.check else None
    sessions, groups = open_sessions(layout), ledger.groups()
    call.terminal.show(
        HostStatus(
            host=layout.root,
            is_running=is_served(layout),
            groups=[_group_status(group, ledger, sessions) for group in groups],
            strangers=ledger.strangers(),
            channels=channels,
        )
    )
    return int(any(not channel.is_usable for channel in channels or []))


class ChannelState(NamedTuple):
    """The answer of a channel's server: the bot's name, or the fault."""

    name: str
    is_usable: bool
    text: str


def _check_channels(layout: Layout) -> list[ChannelState]:
    """Ask the servers of the host's channels whether the tokens are right."""
    config = HostSettings(**home_at(layout.root, os.environ, is_host=True).settings().host)
    states = []
    for name in config.channels:
        if name == TELEGRAM:
            try:
                states.append(ChannelState(name, True, telegram.check(layout.root, config)))
            except SessionMemoryError as error:
                text = f"{error}; {error.hint}" if error.hint else str(error)
                states.append(ChannelState(name, False, text))
    return states


def _group_status(group: RegisteredGroup, ledger: Ledger, sessions: SessionManager) -> GroupStatus:
    name = group.folder
    active = [task for task in ledger.schedule.tasks(name) if task.status == ACTIVE]
    return GroupStatus(
        group,
        sessions.get(name) or "",
        ledger.last_message_time(name),
        len(sessions.get_history(name)),
        *ledger.inbox_counts(name),
        next((task for task in active if task.next_run), None),
    )


class GroupStatus(NamedTuple):
    """The state of a group.

    It has its session, the time of its last message, the number of earlier sessions, the numbers of
    waiting messages and of messages being answered, and the next task."""

    group: RegisteredGroup
    session: str
    last_activity: str
    history: int
    waiting: int
    working: int
    next_task: Task | None

    def show(self, terminal: Terminal) -> None:
        """Print the state under the name of the group."""
        group, task = self.group, self.next_task
        earlier = f", {counted(self.history, 'earlier one')}" if self.history else ""
        terminal.heading(group.folder)
        called = f" ({plain(group.name)})" if group.name != group.folder else ""
        terminal.item("answers", f"{_what(group.trigger)} in {group.jid}{called}")
        session = self.session or "none: the next message starts one"
        terminal.item("session", session + earlier)
        terminal.item("last active", _ago(self.last_activity))
        terminal.item("queue", f"{self.waiting} waiting, {self.working} being answered")
        terminal.item(
            "next task", f"{local_time(task.next_run)}  {short(task.prompt)}" if task else "none"
        )

    def as_json(self) -> dict[str, Any]:
        """Return the state as values for JSON."""
        return {
            "group": self.group.folder,
            "chat": self.group.jid,
            "name": self.group.name,
            "trigger": self.group.trigger,
            "session_id": self.session,
            "last_activity": self.last_activity,
            "named_sessions": self.history,
            "waiting": self.waiting,
            "working": self.working,
            "next_task": self.next_task._asdict() if self.next_task else None,
        }


@dataclass(frozen=True)
class HostStatus(Result):
    """The state of a host and its groups, and the chats without a group."""

    host: str
    is_running: bool
    groups: list[GroupStatus]
    strangers: list[Chat]
    channels: list[ChannelState] | None

    def show(self, terminal: Terminal) -> None:
        runs = "running" if self.is_running else "not running"
        terminal.line(f"{terminal.short(self.host)}: {runs}")
        for group in self.groups:
            group.show(terminal)
        if self.channels is not None:
            terminal.heading("channels")
        for channel in self.channels or []:
            terminal.item(channel.name, channel.text)
        if self.strangers:
            terminal.heading("chats without a group")
        for chat in self.strangers[:MOST_SHOWN]:
            terminal.item(_ago(chat.last_activity), f"{chat.jid}  {short(chat.name)}")
        if len(self.strangers) > MOST_SHOWN:
            terminal.line(f"  and {len(self.strangers) - MOST_SHOWN} more (--json has them)")

    def as_json(self) -> dict[str, Any]:
        return {
            "host": self.host,
            "is_running": self.is_running,
            "groups": [group.as_json() for group in self.groups],
            "chats_without_group": [chat._asdict() for chat in self.strangers],
            **({} if self.channels is None else {"channels": self._channels()}),
        }

    def _channels(self) -> list[dict[str, Any]]:
        return [channel._asdict() for channel in self.channels or []]


def _ago(at: str) -> str:
    last = epoch_seconds(at)
    return age(time.time() - last) if last else "never"


def _what(trigger: str) -> str:
    return f"messages that match `{trigger}`" if trigger else "everything"


def add_task_arguments(action: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the arguments of the actions here; `action` makes a parser."""
    action("tasks", "show the scheduled tasks and how their last runs went")
    subparser = action("schedule", "give a group's agent a task")
    subparser.add_argument("group", metavar="GROUP")
    subparser.add_argument(
        "prompt", metavar="TEXT", nargs="+", help="the prompt that the agent gets at that time"
    )
    when = subparser.add_mutually_exclusive_group(required=True)
    when.add_argument("--cron", metavar="EXPRESSION", help="such as '0 8 * * 1-5', in local time")
    when.add_argument("--every", metavar="SECONDS", help="such as 3600")
    when.add_argument("--once", metavar="TIME", help="such as 2026-02-21T15:30")
    subparser.add_argument(
        "--isolated", action="store_true", help="in a separate session instead of the group's"
    )
    for name, text in (
        ("pause", "pause a task"),
        ("unpause", "resume a task"),
        ("drop", "cancel a task"),
    ):
        subparser = action(name, text)
        subparser.add_argument("task", metavar="TASK", help="its id, as `tasks` shows it")
        if name == "drop":
            subparser.add_argument(
                "--dry-run",
                action="store_true",
                help="list the deletions without changing anything",
            )


def tasks(call: HostCall) -> None:
    planned = call.ledger.schedule
    call.terminal.show(ListedTasks([(task, planned.runs(task.id)) for task in planned.tasks()]))


@dataclass(frozen=True)
class ListedTasks(Result):
    """The scheduled tasks with their last runs."""

    tasks: list[tuple[Task, list[TaskRun]]]

    def show(self, terminal: Terminal) -> None:
        for task, _ in self.tasks:
            terminal.line(f"{task.id}  {task.group}  {task.context_mode}  {_when(task)}")
            terminal.item("", short(task.prompt))
            if task.last_run:
                terminal.item(
                    "last run", f"{local_time(task.last_run)}  {short(task.last_result or '')}"
                )
        if not self.tasks:
            terminal.line(
                'none; session-memory host schedule GROUP "text" --cron "0 8 * * 1-5" makes one'
            )

    def as_json(self) -> dict[str, Any]:
        tasks = [
            {**task._asdict(), "runs": [run._asdict() for run in runs]} for task, runs in self.tasks
        ]
        return {"tasks": tasks}


def schedule(call: HostCall) -> None:
    ledger, arguments = call.ledger, call.arguments
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
    call.terminal.show(PlannedTask(task))


def change_task(call: HostCall) -> None:
    planned, arguments = call.ledger.schedule, call.arguments
    if arguments.action == "drop":
        if arguments.dry_run:
            dropped = DroppedTask(arguments.task, planned.task(arguments.task))
        else:
            planned.remove(arguments.task)
            dropped = DroppedTask(arguments.task, None)
        call.terminal.show(dropped)
        return
    status = "paused" if arguments.action == "pause" else "active"
    call.terminal.show(PlannedTask(planned.update(arguments.task, status=status)))


@dataclass(frozen=True)
class PlannedTask(Result):
    """A task as it is planned now."""

    task: Task

    def show(self, terminal: Terminal) -> None:
        terminal.line(f"{self.task.id}  {_when(self.task)}")

    def as_json(self) -> dict[str, Any]:
        return {"task": self.task._asdict()}


@dataclass(frozen=True)
class DroppedTask(Result):
    """The id of a task that was deleted, or a task that would be."""

    id: str
    task: Task | None

    def show(self, terminal: Terminal) -> None:
        if self.task is None:
            terminal.line(f"{self.id} was deleted")
            return
        task = self.task
        terminal.line(f"Would be deleted: {task.id}, {_when(task)}: {short(task.prompt)}")

    def as_json(self) -> dict[str, Any]:
        return {"dry_run": True, "task": self.task._asdict()} if self.task else {"task": None}


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
            f"--every {short(seconds)}: it must be {shortest} to {longest} seconds",
            "such as 3600",
        )
    return str(round(number * 1000))


def _when(task: Task) -> str:
    if task.status != "active":
        return task.status
    return f"next {local_time(task.next_run)}" if task.next_run else "running for the last time"


def local_time(text: str | None) -> str:
    """Return a time of the database as people here read it."""
    seconds = epoch_seconds(text)
    return "" if seconds is None else time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))


def short(text: str) -> str:
    return shorten(one_line(plain(text)), PROMPT_CHARACTERS)
