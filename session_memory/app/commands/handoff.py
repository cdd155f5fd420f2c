"""`session-memory handoff`: a page from which another session, agent or machine can continue."""

from __future__ import annotations

import argparse
import os
import shlex
import time
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from ...common.errors import SessionMemoryError
from ...common.extensions import load, load_present
from ...common.system.terminal import Result, Terminal, called_as
from ...extension_points import HANDOFFS, RECEIVED_HANDOFFS
from ...history.conflicts import find_conflicts, live_sessions, sides_of
from ...history.patterns.handoff import handed_over, page
from ...history.store.values import Conversation, Filter, edits_in
from ...sessions.runtimes.detection import is_started_by_agent
from ...sessions.runtimes.table import all_runtimes
from ...sessions.settings.homes import user_dir
from ._picker import picked_session
from .arguments import NO_LIMIT, OnlyForPeopleError, add_common
from .opened_store import OpenStore, last_conversation, on_store, refresh
from .output import fields

SUMMARY = "write a page with which another session or agent can continue this session"
CONFLICT_SECONDS = 2.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    named = (
        "its id, the beginning of it, its title, words of the title, or a runtime's name for that "
        "runtime's latest session"
    )
    parser.add_argument("session", metavar="SESSION", nargs="?", default="", help=named)
    runtimes = [runtime.name for runtime in all_runtimes() if runtime.install.START]
    command = "print the command that starts this runtime with the page"
    parser.add_argument(
        "--to", metavar="RUNTIME", choices=runtimes, help=f"{command}: {', '.join(runtimes)}"
    )
    shared = "share the page with the team, after a preview"
    parser.add_argument("--team", action="store_true", dest="is_shared", help=shared)
    parser.add_argument("--yes", action="store_true", help="with --team: do not ask")
    add_common(parser, private=True)


def run(arguments: argparse.Namespace) -> int:
    """Print the page. Raises SessionMemoryError, OSError."""
    if arguments.is_shared and is_started_by_agent(os.environ):
        raise OnlyForPeopleError("--team")
    arguments.session = arguments.session or picked_session(arguments)
    return _hand_over(arguments)


@on_store
def _hand_over(opened: OpenStore, arguments: argparse.Namespace) -> int:
    refresh(opened, with_sub_agents=True)
    last = last_conversation(opened, arguments.session)
    if last is None:
        given = [
            handoff
            for received in load_present(RECEIVED_HANDOFFS.values())
            for handoff in received(opened.location.home)
            if handoff["session"].startswith(arguments.session)
        ]
        if given and not arguments.is_shared:
            session = given[0]["session"]
            values = {"session_id": session}
            opened.terminal.show(HandoffPage(session, values, given[0]["page"], arguments.to))
            return 0
        raise SessionMemoryError(
            f"no session is called {arguments.session!r}",
            "session-memory sessions --all lists them",
        )
    ids = opened.store.conversation_ids(Filter(session=last.session_id, limit=NO_LIMIT))
    items = sorted(
        (item for id in ids for item in opened.store.entries(id)), key=lambda item: item.id
    )
    if not items:
        raise SessionMemoryError(
            f"the rules in config.yaml hide the text of session {last.session_id}"
        )
    calls = [*items, *(call for id in ids for call in opened.store.sub_agent_calls(id))]
    edited = [path for _, path in edits_in(calls, last.cwd)]
    rewound = opened.location.rewound_offsets(last)
    stood = [item for item in items if item.offset not in rewound]
    handoff = handed_over(
        last, stood, _conflicts(last, arguments.home), user_dir(os.environ), edited
    )
    if arguments.is_shared:
        return int(
            load(HANDOFFS.get("team", ""))(opened, last, handoff, is_confirmed=arguments.yes)
        )
    values = {**fields(handoff), "files": [file._asdict() for file in handoff.files]}
    text = page(handoff, called_as())
    opened.terminal.show(HandoffPage(last.session_id, values, text, arguments.to, last.cwd))
    return 0


@dataclass(frozen=True)
class HandoffPage(Result):
    """The page from which to continue `session`, and its `values` for JSON.

    If it is for a runtime (`to`), the text is the command that starts this runtime in the session's
    directory."""

    session: str
    values: dict[str, Any]
    page: str
    to: str | None
    directory: str = ""

    @property
    def command(self) -> str:
        """The command that starts the runtime with the page; '' without a runtime."""
        if not self.to:
            return ""
        [runtime] = [runtime for runtime in all_runtimes() if runtime.name == self.to]
        page = f'"$({called_as()} handoff {shlex.quote(self.session)})"'
        command = runtime.install.START.format(prompt=page)
        return f"cd {shlex.quote(self.directory)} && {command}" if self.directory else command

    @property
    def verbatim(self) -> Collection[str]:
        return ("page",)

    def show(self, terminal: Terminal) -> None:
        if self.command:
            terminal.line(self.command)
            return
        with terminal.paged():
            terminal.markdown(self.page.rstrip("\n"))

    def as_json(self) -> dict[str, Any]:
        return {**self.values, "page": self.page, "command": self.command}


def _conflicts(last: Conversation, home: str) -> dict[str, str]:
    """Return the session's files that conflict with other live sessions, with their names."""
    now = time.time()
    sides = sides_of(live_sessions(home, os.environ, now), user_dir(os.environ))
    own_repositories = {
        side.common_dir
        for side in sides
        if any(session.id == last.session_id for session in side.sessions)
    }
    same = [side for side in sides if side.common_dir in own_repositories]
    conflicts_by_file = {}
    for clash in find_conflicts(same, CONFLICT_SECONDS):
        if any(session.id == last.session_id for session in clash.own.sessions):
            conflict = clash.as_kept(now)
            conflicts_by_file[conflict.file] = f"with {conflict.name or conflict.branch}"
    return conflicts_by_file
