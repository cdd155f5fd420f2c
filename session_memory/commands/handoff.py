"""`session-memory handoff`: one page with which another session, agent or machine continues."""

from __future__ import annotations

import argparse
import os
import shlex
import time

from ..errors import SessionMemoryError
from ..patterns.handoff import handed_over, page
from ..runtimes import all_runtimes
from ..settings.homes import user_dir
from ..store.values import Conversation, Filter
from ..system.terminal import called_as
from ..upkeep.conflicts import find_conflicts, live_sessions, sides_of
from .arguments import NO_LIMIT, add_common
from .opened_store import OpenStore, last_conversation, on_store, refresh
from .output import fields

SUMMARY = "write a page with which another session or agent continues this one"
CONFLICT_SECONDS = 2.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    named = "its id or how that begins, its title or words of it"
    parser.add_argument("session", metavar="SESSION", help=named)
    runtimes = [one.name for one in all_runtimes() if one.install.START]
    command = "print the command that starts this runtime with the page"
    parser.add_argument("--to", metavar="RUNTIME", choices=runtimes, help=f"{command}: {', '.join(runtimes)}")
    add_common(parser, private=True)


@on_store
def run(opened: OpenStore, arguments: argparse.Namespace) -> int:
    refresh(opened)
    last = last_conversation(opened, arguments.session)
    if last is None:
        raise SessionMemoryError(f"there is no session {arguments.session}", "session-memory conversations lists them")
    ids = opened.store.conversation_ids(Filter(opened.location.homes, session=last.session_id, limit=NO_LIMIT))
    items = sorted((item for id in ids for item in opened.store.entries(id)), key=lambda one: one.id)
    if not items:
        raise SessionMemoryError(f"the rules in config.yaml hide the text of session {last.session_id}")
    found = handed_over(last, items, _conflicts(last, arguments.home), user_dir(os.environ))
    text = page(found, called_as())
    command = _command(arguments.to, last) if arguments.to else ""
    files = [one._asdict() for one in found.files]
    opened.terminal.result({**fields(found), "files": files, "page": text, "command": command})
    opened.terminal.line(command or text.rstrip("\n"))
    return 0


def _command(name: str, last: Conversation) -> str:
    """Return the command for a terminal: in the directory of the session, with the page as prompt."""
    [runtime] = [one for one in all_runtimes() if one.name == name]
    prompt = f'"$({called_as()} handoff {shlex.quote(last.session_id)})"'
    started = runtime.install.START.format(prompt=prompt)
    return f"cd {shlex.quote(last.cwd)} && {started}" if last.cwd else started


def _conflicts(last: Conversation, home: str) -> dict[str, str]:
    """Return the files of the session that would not merge with what other live sessions did, each with whose."""
    now = time.time()
    sides = sides_of(live_sessions(home, os.environ, now), user_dir(os.environ))
    own = {side.common_dir for side in sides if any(one.id == last.session_id for one in side.sessions)}
    same = [side for side in sides if side.common_dir in own]
    kept = [
        clash.as_kept(now)
        for clash in find_conflicts(same, CONFLICT_SECONDS)
        if any(one.id == last.session_id for one in clash.own.sessions)
    ]
    return {one["file"]: f"with {one['name'] or one['branch']}" for one in kept}
