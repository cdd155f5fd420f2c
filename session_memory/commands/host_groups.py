"""`session-memory host init`, `add`, `set`, `remove` and `status`: a host and its groups."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable

from ..archives.groups import open_sessions
from ..errors import WrongCallError
from ..host.group_files import add_group, prepare_host
from ..host.ledger import Ledger
from ..host.log import is_served
from ..host.overview import GroupState, group_states, strangers
from ..settings.host_layout import MAIN, Layout
from ..system.terminal import Terminal
from ..text.format import counted
from ..text.sanitize import plain
from ..text.timestamps import age, epoch_seconds
from .host_tasks import local_time, short

MOST_SHOWN = 20


class NothingToChangeError(WrongCallError):
    """The command names no change to the group."""


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
    action("status", "show groups, sessions, what waits, the next tasks, and chats without a group")


def _add_properties(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--chat", metavar="ID", help="the chat of a channel that it answers in")
    parser.add_argument("--name", metavar="TEXT", help="the name of that chat")
    parser.add_argument(
        "--trigger", metavar="PATTERN",
        help="answer only messages that match, such as @anna, ignoring case; '' for all",
    )  # fmt: skip


def init(layout: Layout, arguments: argparse.Namespace, terminal: Terminal) -> None:
    """Make a host, or add groups to one."""
    made = prepare_host(layout)
    ledger = Ledger(layout.database)
    known = {group.folder for group in ledger.groups()}
    for name in arguments.groups or ([] if known else [MAIN]):
        if name not in known:
            made += add_group(layout, ledger, name)
    for path in made:
        terminal.item("made", os.path.relpath(path, layout.root))
    terminal.line()
    where = terminal.short(layout.root)
    terminal.line(f"  session-memory host run --at {where}")
    terminal.line(f'  session-memory host say --at {where} {(arguments.groups or [MAIN])[0]} "Who are you?"')
    terminal.result({"host": layout.root, "made": made, "groups": [group.folder for group in ledger.groups()]})


def add(layout: Layout, arguments: argparse.Namespace, terminal: Terminal) -> None:
    """Add a group."""
    ledger = Ledger(layout.database)
    made = add_group(
        layout, ledger, arguments.group, arguments.chat or "", arguments.name or "", arguments.trigger or ""
    )
    group = ledger.group(arguments.group)
    terminal.line(
        f"{group.folder} answers in {group.jid}. Who its agent is you say in groups/{group.folder}/CLAUDE.md."
    )
    terminal.result({"group": group.folder, "chat": group.jid, "made": made})


def change(layout: Layout, arguments: argparse.Namespace, terminal: Terminal) -> None:
    """Change the given settings of a group."""
    if arguments.name is None and arguments.trigger is None and arguments.chat is None:
        raise NothingToChangeError("nothing to change is given", "--chat, --name or --trigger")
    ledger = Ledger(layout.database)
    ledger.update(arguments.group, name=arguments.name, trigger=arguments.trigger, jid=arguments.chat)
    group = ledger.group(arguments.group)
    terminal.line(f"{group.folder} ({group.name}) answers {_what(group.trigger)} in {group.jid}")
    terminal.result({"group": group.folder, "chat": group.jid, "name": group.name, "trigger": group.trigger})


def remove(layout: Layout, arguments: argparse.Namespace, terminal: Terminal) -> None:
    """Stop answering in a group's chat."""
    ledger = Ledger(layout.database)
    group = ledger.group(arguments.group)
    paused = ledger.remove(group.folder)
    terminal.line(f"{group.folder} answers no longer in {group.jid}.")
    kept = [f"groups/{group.folder}", f"data/sessions/{group.folder}"]
    if paused:
        terminal.line(f"Paused: {', '.join(paused)}")
    terminal.line(f"Kept: {' and '.join(kept)}; session-memory host add {group.folder} takes them up again.")
    terminal.result({"group": group.folder, "chat": group.jid, "paused": paused, "kept": kept})


def status(layout: Layout, arguments: argparse.Namespace, terminal: Terminal) -> None:
    """Print what the host is doing."""

    ledger = Ledger(layout.database)
    found, others = group_states(ledger, open_sessions(layout)), strangers(ledger)
    runs = is_served(layout)
    terminal.line(f"{terminal.short(layout.root)}: {'running' if runs else 'not running'}")
    for state in found:
        terminal.heading(state.group)
        for label, text in _facts(state):
            terminal.item(label, text)
    if others:
        terminal.heading("chats without a group")
    for chat in others[:MOST_SHOWN]:
        terminal.item(_ago(chat.last_activity), f"{chat.jid}  {short(chat.name)}")
    if len(others) > MOST_SHOWN:
        terminal.line(f"  and {len(others) - MOST_SHOWN} more (--json has them)")
    terminal.result(
        {"host": layout.root, "is_running": runs, "groups": [state.as_json() for state in found],
         "chats_without_group": [chat._asdict() for chat in others]}
    )  # fmt: skip


def _facts(state: GroupState) -> list[tuple[str, str]]:
    task = state.next_task
    named = f", {counted(state.named_sessions, 'earlier one')}" if state.named_sessions else ""
    return [
        (
            "answers",
            f"{_what(state.trigger)} in {state.chat}"
            + (f" ({plain(state.name)})" if state.name != state.group else ""),
        ),
        ("session", (state.session_id or "none: the next message begins one") + named),
        ("last active", _ago(state.last_activity)),
        ("queue", f"{state.waiting} waiting, {state.working} being answered"),
        ("next task", f"{local_time(task.next_run)}  {short(task.prompt)}" if task else "none"),
    ]


def _ago(at: str) -> str:
    last = epoch_seconds(at)
    return age(time.time() - last) if last else "never"


def _what(trigger: str) -> str:
    return f"what holds `{trigger}`" if trigger else "everything"
