"""`session-memory host`: makes a host and its groups, runs it, speaks with its agents, shows what it does."""

from __future__ import annotations

import argparse
import os
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from ..errors import SessionMemoryError
from ..system.sqlite import DatabaseError
from ..system.terminal import Terminal
from ..text.characters import plain
from ..text.format import counted, one_line, shorten
from ..text.timestamps import age, epoch_seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ..host.ledger import Ledger
    from ..host.overview import GroupState
    from ..host.values import ChatReply, Task
    from ..settings.host_layout import Layout

SUMMARY = "groups of agents with sessions, archives and tasks of their own"
PROMPT_CHARACTERS = 60
CREDENTIALS = (
    "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CODE_USE_BEDROCK",
    "CLAUDE_CODE_USE_VERTEX",
)  # fmt: skip


class NoHostError(SessionMemoryError):
    """The directory holds no host."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of host."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)

    def action(name: str, text: str, *, has_json: bool = True) -> argparse.ArgumentParser:
        found = actions.add_parser(name, help=text, description=text)
        found.add_argument("--at", metavar="DIR", default=".", help="the host's directory (the current one)")
        if has_json:
            found.add_argument("--json", action="store_true", help="print the result as JSON")
        return found

    found = actions.add_parser("init", help="make a host", description="Makes a host, or adds groups to one.")
    found.add_argument("at", metavar="DIR", help="its directory")
    found.add_argument("groups", metavar="GROUP", nargs="*", help="its groups (main)")
    found.add_argument("--json", action="store_true", help="print the result as JSON")
    found = action("add", "add a group")
    found.add_argument("group", metavar="GROUP")
    found.add_argument("--chat", metavar="ID", default="", help="the chat of a channel that it answers in")
    found.add_argument("--trigger", metavar="PATTERN", default="", help="answer only what matches, such as @anna")
    action("run", "serve the groups, until it is told to stop", has_json=False)
    found = action("say", "say something to a group's agent, and wait for the reply")
    found.add_argument("group", metavar="GROUP")
    found.add_argument("text", metavar="TEXT", nargs="+")
    found.add_argument("--sender", metavar="NAME", default="", help="who says it")
    found.add_argument("--no-wait", action="store_true", help="do not wait for the reply")
    found = action("tail", "show the replies in a group's chat as they come")
    found.add_argument("group", metavar="GROUP")
    found.add_argument("--last", metavar="N", type=int, default=10, help="begin with the last N (10)")
    found.add_argument("--no-follow", action="store_true", help="end with the last one that there is")
    action("status", "show groups, sessions, what waits, and the next tasks")
    _add_task_arguments(action)


def _add_task_arguments(action: Callable[..., argparse.ArgumentParser]) -> None:
    action("tasks", "show the scheduled tasks and how their last runs went")
    found = action("schedule", "give a group's agent a task")
    found.add_argument("group", metavar="GROUP")
    found.add_argument("prompt", metavar="TEXT", nargs="+", help="what the agent is told when it is time")
    when = found.add_mutually_exclusive_group(required=True)
    when.add_argument("--cron", metavar="EXPRESSION", help="such as '0 8 * * 1-5', in local time")
    when.add_argument("--every", metavar="SECONDS", type=float)
    when.add_argument("--once", metavar="TIME", help="such as 2026-02-21T15:30")
    found.add_argument("--isolated", action="store_true", help="in a session of its own, not in the group's")
    for name, text in (("pause", "pause a task"), ("unpause", "have a task go on"), ("drop", "take a task away")):
        found = action(name, text)
        found.add_argument("task", metavar="TASK", help="its id, as `tasks` shows it")


def run(arguments: argparse.Namespace) -> int:
    """Does what was asked for; returns the exit code. Raises SessionMemoryError, OSError."""
    terminal = Terminal(os.environ, is_json=getattr(arguments, "json", False))
    from ..settings.host_layout import Layout

    layout = Layout(os.path.expanduser(arguments.at))
    if arguments.action != "init" and not os.path.isfile(layout.database):
        raise NoHostError(f"{layout.root}: no host is there", f"session-memory host init {layout.root}")
    import apsw

    try:
        return ACTIONS[arguments.action](layout, arguments, terminal)
    except apsw.Error as error:
        hint = "what agents said stands in data/sessions and groups/*/conversations, whatever is wrong with this file"
        raise DatabaseError(f"{layout.database}: {error}", hint) from error


def _init(layout: Layout, arguments: argparse.Namespace, terminal: Terminal) -> int:
    from ..host.group_files import prepare_host
    from ..settings.host_layout import MAIN

    made = prepare_host(layout)
    ledger = _ledger(layout)
    known = {group.folder for group in ledger.groups()}
    for name in arguments.groups or ([] if known else [MAIN]):
        if name not in known:
            made += _make_group(layout, ledger, name)
    for path in made:
        terminal.item("made", os.path.relpath(path, layout.root))
    terminal.line()
    where = terminal.short(layout.root)
    terminal.line(f"  session-memory host run --at {where}")
    terminal.line(f'  session-memory host say --at {where} {(arguments.groups or [MAIN])[0]} "Who are you?"')
    terminal.result({"host": layout.root, "made": made, "groups": [group.folder for group in ledger.groups()]})
    return 0


def _add(layout: Layout, arguments: argparse.Namespace, terminal: Terminal) -> int:
    ledger = _ledger(layout)
    made = _make_group(layout, ledger, arguments.group, arguments.chat, arguments.trigger)
    group = ledger.group(arguments.group)
    terminal.line(
        f"{group.folder} answers in {group.jid}. Who its agent is you say in groups/{group.folder}/CLAUDE.md."
    )
    terminal.result({"group": group.folder, "chat": group.jid, "made": made})
    return 0


def _run(layout: Layout, arguments: argparse.Namespace, terminal: Terminal) -> int:
    import asyncio

    from ..host.lock import host_lock
    from ..host.service import Host

    with host_lock(layout):
        host = Host(layout, lambda line: print(line, file=sys.stderr, flush=True))
        terminal.line(f"serving {terminal.short(layout.root)}; Ctrl-C ends it")
        if not any(os.environ.get(name) for name in CREDENTIALS):
            terminal.note(
                "Agents have homes of their own, and are not logged in: set ANTHROPIC_API_KEY, or one of "
                f"{', '.join(CREDENTIALS[1:])}."
            )
        asyncio.run(host.run())
    return 0


def _say(layout: Layout, arguments: argparse.Namespace, terminal: Terminal) -> int:
    from ..host.channels.terminal import say, wait_for_reply
    from ..host.lock import is_running

    ledger = _ledger(layout)
    message_id = say(ledger, arguments.group, " ".join(arguments.text), arguments.sender)
    reply, is_kept = None, arguments.no_wait or not is_running(layout)
    if not is_kept:
        reply = wait_for_reply(ledger, arguments.group, message_id, lambda: is_running(layout))
    if reply:
        terminal.line(plain(reply.text))
    elif not arguments.no_wait and not ledger.reply_to(message_id, ledger.group(arguments.group).jid)[0]:
        terminal.note("Kept. The host is not running: it answers when it does.")
    terminal.result({"message": message_id, "reply": _shown(reply) if reply else None})
    return 1 if reply and reply.kind == "error" else 0


def _tail(layout: Layout, arguments: argparse.Namespace, terminal: Terminal) -> int:
    import json

    from ..host.channels.terminal import follow

    ledger = _ledger(layout)
    jid = ledger.group(arguments.group).jid
    replies: Iterable[ChatReply] = (
        ledger.latest_replies(jid, arguments.last)
        if arguments.no_follow
        else follow(ledger, arguments.group, arguments.last)
    )
    with suppress(KeyboardInterrupt):  # there is no other end
        for reply in replies:
            if terminal.is_json:
                print(json.dumps(_shown(reply), ensure_ascii=False), flush=True)
            else:
                terminal.line(terminal.paint("dim", f"[{_local(reply.timestamp)} {reply.kind} {reply.id}]"))
                terminal.line(plain(reply.text))
    return 0


def _status(layout: Layout, arguments: argparse.Namespace, terminal: Terminal) -> int:
    from ..archives.groups import open_sessions
    from ..host.lock import is_running
    from ..host.overview import group_states

    found = group_states(_ledger(layout), open_sessions(layout))
    runs = is_running(layout)
    terminal.line(f"{terminal.short(layout.root)}: {'running' if runs else 'not running'}")
    for state in found:
        terminal.heading(state.group)
        for label, text in _facts(state, time.time()):
            terminal.item(label, text)
    terminal.result({"host": layout.root, "is_running": runs, "groups": [state.as_json() for state in found]})
    return 0


def _facts(state: GroupState, now: float) -> list[tuple[str, str]]:
    last = epoch_seconds(state.last_activity)
    task = state.next_task
    named = f", {counted(state.named_sessions, 'earlier one')}" if state.named_sessions else ""
    return [
        ("session", (state.session_id or "none: the next message begins one") + named),
        ("last active", age(now - last) if last else "never"),
        ("queue", f"{state.waiting} waiting, {state.working} being answered"),
        ("next task", f"{_local(task.next_run)}  {_short(task.prompt)}" if task else "none"),
    ]


def _tasks(layout: Layout, arguments: argparse.Namespace, terminal: Terminal) -> int:
    schedule = _ledger(layout).schedule
    found = schedule.tasks()
    for task in found:
        terminal.line(f"{task.id}  {task.group}  {task.context_mode}  {_when(task)}")
        terminal.item("", _short(task.prompt))
        if task.last_run:
            terminal.item("last run", f"{_local(task.last_run)}  {_short(task.last_result or '')}")
    if not found:
        terminal.line('none; session-memory host schedule GROUP "text" --cron "0 8 * * 1-5" makes one')
    terminal.result(
        {"tasks": [{**task._asdict(), "runs": [one._asdict() for one in schedule.runs(task.id)]}
                   for task in found]}
    )  # fmt: skip
    return 0


def _schedule(layout: Layout, arguments: argparse.Namespace, terminal: Terminal) -> int:
    ledger = _ledger(layout)
    if arguments.cron is not None:
        kind, value = "cron", arguments.cron
    elif arguments.every is not None:
        kind, value = "interval", str(round(arguments.every * 1000))
    else:
        kind, value = "once", arguments.once
    group = ledger.group(arguments.group)
    mode = "isolated" if arguments.isolated else "group"
    prompt = " ".join(arguments.prompt)
    task = ledger.schedule.add(group.folder, group.jid, prompt, kind, value, mode)
    terminal.line(f"{task.id}  {_when(task)}")
    terminal.result({"task": task._asdict()})
    return 0


def _change_task(layout: Layout, arguments: argparse.Namespace, terminal: Terminal) -> int:
    schedule = _ledger(layout).schedule
    if arguments.action == "drop":
        schedule.remove(arguments.task)
        terminal.line(f"{arguments.task} is gone")
        terminal.result({"task": None})
        return 0
    status = "paused" if arguments.action == "pause" else "active"
    schedule.set_status(arguments.task, status)
    task = schedule.task(arguments.task)
    terminal.line(f"{task.id}  {_when(task)}")
    terminal.result({"task": task._asdict()})
    return 0


ACTIONS = {
    "init": _init, "add": _add, "run": _run, "say": _say, "tail": _tail, "status": _status, "tasks": _tasks,
    "schedule": _schedule, "pause": _change_task, "unpause": _change_task, "drop": _change_task,
}  # fmt: skip


def _make_group(layout: Layout, ledger: Ledger, name: str, chat: str = "", trigger: str = "") -> list[str]:
    """Registers a group and makes what is its own; the files made. Raises SessionMemoryError, OSError."""
    from ..host.channels import LOCAL
    from ..host.group_files import prepare_group

    group = layout.group(name)
    ledger.register(name, chat or f"{LOCAL}{name}", name, trigger, bool(trigger))
    return prepare_group(group)


def _ledger(layout: Layout) -> Ledger:
    from ..host.database import HostDatabase
    from ..host.ledger import Ledger

    return Ledger(HostDatabase(layout.database))


def _shown(reply: ChatReply) -> dict[str, object]:
    from ..host.channels.unix_socket import shown

    return shown(reply)


def _when(task: Task) -> str:
    if task.status != "active":
        return task.status
    return f"next {_local(task.next_run)}" if task.next_run else "being done for the last time"


def _local(text: str | None) -> str:
    """A time of the database as people here read it."""
    seconds = epoch_seconds(text)
    return "" if seconds is None else time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))


def _short(text: str) -> str:
    return shorten(one_line(plain(text)), PROMPT_CHARACTERS)
