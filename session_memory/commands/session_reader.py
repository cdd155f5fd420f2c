"""scripts/session_reader.py: shows what another session did, or which sessions there are."""

from __future__ import annotations

import argparse
import os
import time

from ..archives.former_names import former_names
from ..runtimes.detection import is_started_by_agent
from ..system.json import encode
from ..system.terminal import exit_code
from ..text.sanitize import for_people
from ..text.timestamps import age, iso_time
from ..transcripts.log import last_entries, render
from ..transcripts.sessions import FoundSession, choose, find_sessions
from .arguments import HOME, OnlyForPeopleError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

DESCRIPTION = "Shows what another session of this home did, or which sessions there are."


def main(words: list[str] | None = None, environ: Mapping[str, str] = os.environ) -> int:
    """Runs the command; returns the exit code: 1 where there is nothing to show, and it says why."""
    parser = argparse.ArgumentParser(prog="session_reader", description=DESCRIPTION)
    parser.add_argument("name", nargs="?", help="the session: its name, its title, its id, or how one of them begins")
    parser.add_argument("--lines", type=int, default=50, metavar="N", help="the last N entries (50)")
    parser.add_argument("--list", action="store_true", help="list the sessions, the latest first (as without a name)")
    parser.add_argument("--all", action="store_true", help="the sessions of all projects, not only of this one")
    parser.add_argument("--home", metavar="PATH", help=HOME)
    parser.add_argument(
        "--include-private", action="store_true", help="for people: what the settings exclude or keep without text, too"
    )
    parser.add_argument("--raw", action="store_true", help="for people: text as it is, secrets and all")
    parser.add_argument("--json", action="store_true", help="for programs")
    options = parser.parse_args(words)
    return exit_code(lambda: _run(options, environ))


def _run(options: argparse.Namespace, environ: Mapping[str, str]) -> int:
    is_agent_s = (options.include_private or options.raw) and is_started_by_agent(environ)
    with_private = options.include_private and not is_agent_s
    listed = find_sessions(options.home, options.all, environ, with_private=with_private, former_names=former_names)
    chosen = None if options.list or not options.name else choose(listed, options.name)
    if is_agent_s and not (chosen and _is_own(chosen, environ)):
        raise OnlyForPeopleError("--include-private and --raw")
    if chosen:
        print(_log(chosen, max(1, options.lines), raw=options.raw, as_json=options.json))
    else:
        print(_listing(listed, environ, as_json=options.json))
    return 0


def _is_own(one: FoundSession, environ: Mapping[str, str]) -> bool:
    """Whether it is the session of the agent that asks."""
    return one.id == environ.get(one.runtime.FILES.OWN_ID_VARIABLE)


def _listing(listed: list[FoundSession], environ: Mapping[str, str], *, as_json: bool) -> str:
    if as_json:
        return encode([_as_json(one) for one in listed])
    if not listed:
        return "No sessions yet."
    rows = []
    for one in listed:
        own = " (this one)" if _is_own(one, environ) else ""
        rows.append((one.name, age(time.time() - one.modified), _bytes(one.size), one.id + own))
    name, when, size = (max(len(row[column]) for row in rows) for column in range(3))
    return "\n".join([f"{row[0]:<{name}}  {row[1]:<{when}}  {row[2]:>{size}}  {row[3]}" for row in rows])


def _as_json(one: FoundSession) -> dict[str, object]:
    when = iso_time(one.modified)
    return {"name": one.name, "id": one.id, "modified": when, "bytes": one.size, "path": one.session.path}


def _log(one: FoundSession, lines: int, *, raw: bool, as_json: bool) -> str:
    entries, unreadable = last_entries(one.runtime, one.session.path, lines)
    entries = one.told(entries)
    if as_json:
        said = [
            {
                "role": entry.role,
                "text": entry.text if raw else for_people(entry.text),
                "timestamp": None if entry.timestamp is None else iso_time(entry.timestamp),
                "tools": [
                    {"name": tool.name, "argument": tool.argument if raw else for_people(tool.argument)}
                    for tool in entry.tools
                ],
            }
            for entry in entries
        ]
        return encode({"name": one.name, "id": one.id, "unreadable": unreadable, "entries": said})
    if not entries:
        return f"{one.name}: nothing was said yet."
    shown = "entry" if len(entries) == 1 else f"{len(entries)} entries"
    return f"Session {one.name} ({one.id}), the last {shown}:\n\n{render(entries, unreadable, raw=raw)}"


def _bytes(size: int) -> str:
    for unit in ("B", "KB", "MB"):
        if size < 1024:
            return f"{size} {unit}"
        size = (size + 512) // 1024
    return f"{size} GB"
