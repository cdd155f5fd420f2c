"""`session-memory handoff`: one page with which another session, agent or machine can continue."""

from __future__ import annotations

import argparse
import os
import shlex
import time
from typing import Any

from ...common.errors import SessionMemoryError
from ...common.extensions import load, load_present
from ...common.system.terminal import called_as
from ...extension_points import HANDOFFS, RECEIVED_HANDOFFS
from ...history.conflicts import find_conflicts, live_sessions, sides_of
from ...history.patterns.handoff import handed_over, page
from ...history.store.values import Conversation, Filter, edits_in
from ...sessions.runtimes.detection import is_started_by_agent
from ...sessions.runtimes.table import all_runtimes
from ...sessions.settings.homes import user_dir
from .arguments import NO_LIMIT, OnlyForPeopleError, add_common
from .opened_store import OpenStore, last_conversation, on_store, refresh
from .output import fields

SUMMARY = "write a page from which another session or agent can continue this one"
CONFLICT_SECONDS = 2.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    named = "its id, the beginning of it, its title, or words of the title"
    parser.add_argument("session", metavar="SESSION", help=named)
    runtimes = [one.name for one in all_runtimes() if one.install.START]
    command = "print the command that starts this runtime with the page"
    parser.add_argument(
        "--to", metavar="RUNTIME", choices=runtimes, help=f"{command}: {', '.join(runtimes)}"
    )
    shared = "share the page with the team, after a preview"
    parser.add_argument("--team", action="store_true", dest="to_team", help=shared)
    parser.add_argument("--yes", action="store_true", help="with --team: do not ask")
    add_common(parser, private=True)


@on_store
def run(opened: OpenStore, arguments: argparse.Namespace) -> int:
    if arguments.to_team and is_started_by_agent(os.environ):
        raise OnlyForPeopleError("--team")
    refresh(opened, with_sub_agents=True)
    last = last_conversation(opened, arguments.session)
    if last is None:
        given = [
            handoff
            for received in load_present(RECEIVED_HANDOFFS.values())
            for handoff in received(opened.location.home)
            if handoff["session"].startswith(arguments.session)
        ]
        if given and not arguments.to_team:
            session = given[0]["session"]
            return _tell(opened, {"session_id": session}, given[0]["page"], arguments.to, session)
        raise SessionMemoryError(
            f"there is no session {arguments.session}", "session-memory conversations lists them"
        )
    ids = opened.store.conversation_ids(Filter(session=last.session_id, limit=NO_LIMIT))
    items = sorted(
        (item for id in ids for item in opened.store.entries(id)), key=lambda one: one.id
    )
    if not items:
        raise SessionMemoryError(
            f"the rules in config.yaml hide the text of session {last.session_id}"
        )
    calls = [*items, *(call for id in ids for call in opened.store.sub_agent_calls(id))]
    edited = [path for _, path in edits_in(calls, last.cwd)]
    found = handed_over(last, items, _conflicts(last, arguments.home), user_dir(os.environ), edited)
    if arguments.to_team:
        return int(load(HANDOFFS.get("team", ""))(opened, last, found, is_confirmed=arguments.yes))
    values = {**fields(found), "files": [one._asdict() for one in found.files]}
    return _tell(opened, values, page(found, called_as()), arguments.to, last.session_id, last.cwd)


def _tell(
    opened: OpenStore,
    values: dict[str, Any],
    text: str,
    to: str | None,
    session: str,
    cwd: str = "",
) -> int:
    """Print the page, or the command that starts the runtime `to` with it.

    The command runs in the session's directory."""
    command = ""
    if to:
        [runtime] = [one for one in all_runtimes() if one.name == to]
        command = runtime.install.START.format(
            prompt=f'"$({called_as()} handoff {shlex.quote(session)})"'
        )
        command = f"cd {shlex.quote(cwd)} && {command}" if cwd else command
    opened.terminal.result({**values, "page": text, "command": command}, verbatim=["page"])
    opened.terminal.line(command or text.rstrip("\n"))
    return 0


def _conflicts(last: Conversation, home: str) -> dict[str, str]:
    """Return the session's files that would not merge with other live sessions, each with whose."""
    now = time.time()
    sides = sides_of(live_sessions(home, os.environ, now), user_dir(os.environ))
    own = {
        side.common_dir for side in sides if any(one.id == last.session_id for one in side.sessions)
    }
    same = [side for side in sides if side.common_dir in own]
    found = {}
    for clash in find_conflicts(same, CONFLICT_SECONDS):
        if any(one.id == last.session_id for one in clash.own.sessions):
            one = clash.as_kept(now)
            found[one.file] = f"with {one.name or one.branch}"
    return found
