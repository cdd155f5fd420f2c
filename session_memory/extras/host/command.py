"""`session-memory host`: runs a host and talks to its agents.

`_groups_command` has the actions on groups and tasks.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from typing import Any

from ...app.commands.arguments import not_negative
from ...common.errors import SessionMemoryError
from ...common.system.files import expanded
from ...common.system.sqlite import DatabaseError
from ...common.system.terminal import Result, Terminal
from ...common.text.sanitize import plain
from ...sessions.settings.host_layout import Layout
from ...sessions.settings.registry import register_host, registered_hosts
from . import _groups_command as host_groups
from ._groups_command import HostCall, add_group_arguments, add_task_arguments, local_time
from ._ledger import Ledger
from ._log import host_lock, is_served
from ._values import ChatReply
from .channels.unix_socket import shown

SUMMARY = "run isolated groups of agents, each with its sessions, archives and tasks"
POLL_SECONDS = 0.1
CREDENTIALS = (
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "CLAUDE_CODE_USE_BEDROCK",
    "CLAUDE_CODE_USE_VERTEX",
)


def is_set_up(environ: Mapping[str, str]) -> bool:
    """Check if this person has a host."""
    return any(os.path.isdir(host) for host in registered_hosts(environ))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(
        dest="action", metavar="ACTION", description="without one: status"
    )
    parser.set_defaults(action="status", at=".", json=False, check=False)

    def action(name: str, text: str, *, has_json: bool = True) -> argparse.ArgumentParser:
        subparser = actions.add_parser(name, help=text, description=text)
        subparser.add_argument(
            "--at", metavar="DIR", default=".", help="the host's directory (the current one)"
        )
        if has_json:
            subparser.add_argument("--json", action="store_true", help="print the result as JSON")
        return subparser

    subparser = actions.add_parser(
        "init", help="make a host", description="Makes a host, or adds groups to one."
    )
    subparser.add_argument("at", metavar="DIR", help="its directory")
    subparser.add_argument("groups", metavar="GROUP", nargs="*", help="its groups (main)")
    subparser.add_argument(
        "--dry-run", action="store_true", help="list the new files without creating them"
    )
    subparser.add_argument("--json", action="store_true", help="print the result as JSON")
    add_group_arguments(action)
    action("run", "serve the groups until stopped", has_json=False)
    subparser = action("say", "send a message to a group's agent, and wait for the reply")
    subparser.add_argument("group", metavar="GROUP")
    subparser.add_argument("text", metavar="TEXT", nargs="+")
    subparser.add_argument("--sender", metavar="NAME", default="", help="the sender's name")
    subparser.add_argument("--no-wait", action="store_true", help="do not wait for the reply")
    subparser = action("tail", "show the replies in a group's chat as they come")
    subparser.add_argument("group", metavar="GROUP")
    subparser.add_argument(
        "--last",
        metavar="N",
        type=not_negative,
        default=10,
        help="start with the last N replies (10)",
    )
    subparser.add_argument(
        "--no-follow", action="store_true", help="stop after the last reply so far"
    )
    add_task_arguments(action)


def run(arguments: argparse.Namespace) -> int:
    terminal = Terminal(os.environ, is_json=getattr(arguments, "json", False))
    layout = Layout(expanded(arguments.at, os.environ))
    if arguments.action != "init" and not os.path.isfile(layout.database):
        raise SessionMemoryError(
            f"{layout.root}: there is no host in this directory",
            f"session-memory host init {layout.root}",
        )
    import apsw

    if arguments.action in ("init", "run") and not getattr(arguments, "dry_run", False):
        register_host(layout.root, os.environ)
    try:
        return ACTIONS[arguments.action](HostCall(layout, arguments, terminal)) or 0
    except apsw.Error as error:
        from ._database import HostDatabase

        raise DatabaseError(f"{layout.database}: {error}", HostDatabase.IF_CORRUPT) from error


def _run(call: HostCall) -> None:
    from ._service import Host

    layout, terminal = call.layout, call.terminal
    # in a file also with the date
    clock = "%H:%M:%S" if terminal.is_interactive else "%Y-%m-%d %H:%M:%S"

    def show(line: str, is_fault: bool) -> None:
        at = terminal.paint("dim", time.strftime(clock))
        terminal.line(f"{at}  {terminal.paint('red', line) if is_fault else line}")

    with host_lock(layout):
        host = Host(layout, show)
        terminal.line(f"serving {terminal.short(layout.root)}; press Ctrl-C to stop")
        if not any(os.environ.get(name) for name in CREDENTIALS):
            terminal.note(
                "Agents have their own homes, so they do not have your login: set "
                "ANTHROPIC_API_KEY, or one of "
                f"{', '.join(CREDENTIALS[1:])}."
            )
        asyncio.run(host.run())


def _say(call: HostCall) -> int:
    layout, arguments = call.layout, call.arguments
    ledger, text = call.ledger, " ".join(arguments.text)
    group, is_called = ledger.group(arguments.group), ledger.answers(arguments.group, text)
    sender = arguments.sender
    # If nobody sees the question, nobody wants its answer in the group's chat.
    jid = ledger.chats_of(group.folder)[-1]
    message_id = ledger.receive(jid, text, sender=sender or "terminal", sender_name=sender)
    reply, note = None, ""
    if not is_called:
        note = (
            f"Kept but not answered: {group.folder} answers only messages that match "
            f"`{group.trigger_pattern}`."
        )
    elif not arguments.no_wait:
        if is_served(layout):
            reply = _wait_for_reply(ledger, jid, message_id, layout)
        if reply is None and not ledger.reply_to(message_id, jid)[0]:
            note = "Kept. The host is not running; the agent answers when it runs again."
    call.terminal.show(SentMessage(message_id, reply, note))
    return 1 if reply and reply.kind == "error" else 0


@dataclass(frozen=True)
class SentMessage(Result):
    """A message to a group's agent, and the reply, or a note why there is none."""

    message: str
    reply: ChatReply | None
    note: str

    def show(self, terminal: Terminal) -> None:
        if self.reply:
            terminal.line(plain(self.reply.text))
        if self.note:
            terminal.note(self.note)

    def as_json(self) -> dict[str, Any]:
        reply = shown(self.reply) if self.reply else None
        return {"message": self.message, "reply": reply, "note": self.note}


@dataclass(frozen=True)
class TailedReply(Result):
    """A reply in a chat; its JSON is one line of the stream."""

    reply: ChatReply
    indent = None

    def show(self, terminal: Terminal) -> None:
        reply = self.reply
        head = f"[{local_time(reply.timestamp)} {reply.kind} {reply.id}]"
        terminal.line(terminal.paint("dim", head))
        terminal.line(plain(reply.text))

    def as_json(self) -> dict[str, Any]:
        return shown(self.reply)


def _tail(call: HostCall) -> None:
    ledger, arguments = call.ledger, call.arguments
    jids = ledger.chats_of(arguments.group)
    last = ledger.latest_replies(jids, arguments.last)
    after = last[-1].id if last else 0 if arguments.last else ledger.last_reply()
    replies: Iterable[ChatReply] = (
        last if arguments.no_follow else chain(last, _follow(ledger, jids, after))
    )
    with suppress(KeyboardInterrupt):  # there is no other way to end
        for reply in replies:
            call.terminal.show(TailedReply(reply))


def _wait_for_reply(ledger: Ledger, jid: str, message_id: str, layout: Layout) -> ChatReply | None:
    """Wait for the reply to a message, and return it.

    Return None if the agent had nothing to say, or if the host has ended."""
    while True:
        is_answered, reply_id = ledger.reply_to(message_id, jid)
        if is_answered:
            return ledger.replies(reply_id - 1, jid, limit=1)[0] if reply_id else None
        if not is_served(layout):
            return None
        time.sleep(POLL_SECONDS)


def _follow(ledger: Ledger, jids: list[str], after: int) -> Iterator[ChatReply]:
    """Yield every new reply in these chats, without end."""
    while True:
        for reply in ledger.replies_in(jids, after):
            yield reply
            after = reply.id
        time.sleep(POLL_SECONDS)


_Action = Callable[[HostCall], int | None]
ACTIONS: dict[str, _Action] = {
    "init": host_groups.init,
    "add": host_groups.add,
    "set": host_groups.change,
    "remove": host_groups.remove,
    "run": _run,
    "say": _say,
    "tail": _tail,
    "status": host_groups.status,
    "tasks": host_groups.tasks,
    "schedule": host_groups.schedule,
    "pause": host_groups.change_task,
    "unpause": host_groups.change_task,
    "drop": host_groups.change_task,
}
