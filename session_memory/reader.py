"""The reader, as a command: what another session did, in full; or which sessions there are."""

from __future__ import annotations

import argparse
import os
import sys
import time

from . import home as homes
from .entries import Session
from .errors import SessionMemoryError
from .fastjson import encode
from .files import NotAFileError
from .news import title_of
from .runtimes import claude
from .sanitize import readable
from .text import one_line, shorten
from .timestamps import age
from .transcript_log import last_entries, render

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

DESCRIPTION = "Shows what another session of this home did, or which sessions there are."
TITLE_CHARACTERS = 60
CANDIDATES = 12


class UnknownSessionError(SessionMemoryError):
    """No session, or more than one, goes by the name that was asked for."""


class Listed:
    """A session as the reader lists it: `modified` in seconds since the epoch, `size` in bytes."""

    def __init__(self, session: Session, status: os.stat_result, title: str) -> None:
        self.session = session
        self.modified = status.st_mtime
        self.size = status.st_size
        self.name = session.name or shorten(one_line(readable(title)), TITLE_CHARACTERS) or session.key
        self.id = session.path.rpartition("/")[2].removesuffix(".jsonl")


def main(arguments: list[str] | None = None, environ: Mapping[str, str] = os.environ) -> int:
    """Runs the command; the exit code is 1 where it has to say why there is nothing to show."""
    parser = argparse.ArgumentParser(prog="session_reader", description=DESCRIPTION)
    parser.add_argument("name", nargs="?", help="the session: its name, its title, its id, or how one of them begins")
    parser.add_argument("--lines", type=int, default=50, metavar="N", help="the last N entries (50)")
    parser.add_argument("--list", action="store_true", help="list the sessions, the latest first (as without a name)")
    parser.add_argument("--all", action="store_true", help="the sessions of all projects, not only of this one")
    parser.add_argument("--home", metavar="PATH", help="the agent home or Claude directory to look in")
    parser.add_argument("--raw", action="store_true", help="text as it is, secrets, control characters and all")
    parser.add_argument("--json", action="store_true", help="for programs")
    options = parser.parse_args(arguments)
    sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]
    try:
        listed = list_sessions(options.home, options.all, environ)
        if options.list or not options.name:
            print(_listing(listed, environ, as_json=options.json))
        else:
            chosen = choose(listed, options.name)
            print(_log(chosen, max(1, options.lines), raw=options.raw, as_json=options.json))
    except (SessionMemoryError, NotAFileError) as error:
        print(f"session_reader: {error}", file=sys.stderr)
        if isinstance(error, SessionMemoryError) and error.hint:
            print(error.hint, file=sys.stderr)
        return 1
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # `| head` has seen enough
    return 0


def list_sessions(home: str | None, all_projects: bool, environ: Mapping[str, str]) -> list[Listed]:
    """The sessions of a home, the latest first. Raises UnknownSessionError where there is no home with sessions."""
    found = []
    for session in _sessions(home, all_projects, environ):
        try:
            status = os.stat(session.path, follow_symlinks=False)
            title = "" if session.name else title_of(claude, session.path)
        except OSError:
            continue
        found.append(Listed(session, status, title))
    return sorted(found, key=lambda one: -one.modified)


def choose(listed: list[Listed], name: str) -> Listed:
    """The session that goes by `name`: exactly, else the only one that begins so. Raises UnknownSessionError."""
    wanted = name.casefold()
    exact = [one for one in listed if wanted in (one.name.casefold(), one.id.casefold())]
    found = exact or [one for one in listed if one.name.casefold().startswith(wanted) or one.id.startswith(wanted)]
    if len(found) == 1:
        return found[0]
    candidates = found or listed
    names = [f"  {one.name}  ({one.id})" for one in candidates[:CANDIDATES]]
    if len(candidates) > CANDIDATES:
        names.append(f"  and {len(candidates) - CANDIDATES} more: see --list")
    problem = f"{name!r} could be any of:" if found else f"no session goes by {name!r}; there are:"
    raise UnknownSessionError(problem, "\n".join(names or ["  none"]))


def _sessions(path: str | None, all_projects: bool, environ: Mapping[str, str]) -> list[Session]:
    start = os.path.abspath(path) if path else environ.get(homes.ENV_HOME) or os.getcwd()
    agent_home = homes.agent_home(start, stop="" if path else environ.get("HOME", ""))
    config_dir = homes.claude_config_dir(environ)
    if agent_home and not all_projects:
        return claude.located_sessions(agent_home.sessions_dir, config_dir, agent_home.root)
    if path and not agent_home:
        config_dir = start if os.path.isdir(f"{start}/projects") else f"{start}/.claude"
    if not os.path.isdir(f"{config_dir}/projects"):
        hint = "name the agent home or the Claude directory to look in: --home PATH"
        raise UnknownSessionError(f"{config_dir}: no sessions there", hint)
    project_dir = claude.project_dir_of(config_dir, environ.get("CLAUDE_CODE_SESSION_ID", ""), start)
    if all_projects or not project_dir:
        return claude.all_sessions(config_dir, project_dir)
    return claude.project_sessions(project_dir)


def _listing(listed: list[Listed], environ: Mapping[str, str], *, as_json: bool) -> str:
    own_id = environ.get("CLAUDE_CODE_SESSION_ID", "")
    if as_json:
        return encode(
            [
                {"name": one.name, "id": one.id, "modified": one.modified, "bytes": one.size, "path": one.session.path}
                for one in listed
            ]
        )
    if not listed:
        return "No sessions yet."
    rows = []
    for one in listed:
        own = " (this one)" if one.id == own_id else ""
        rows.append((one.name, age(time.time() - one.modified), _bytes(one.size), one.id + own))
    name, when, size = (max(len(row[column]) for row in rows) for column in range(3))
    return "\n".join([f"{row[0]:<{name}}  {row[1]:<{when}}  {row[2]:>{size}}  {row[3]}" for row in rows])


def _log(one: Listed, lines: int, *, raw: bool, as_json: bool) -> str:
    entries, unreadable = last_entries(claude, one.session.path, lines)
    if as_json:
        said = [
            {
                "role": entry.role,
                "text": entry.text if raw else readable(entry.text),
                "timestamp": entry.timestamp,
                "tools": [
                    {"name": tool.name, "argument": tool.argument if raw else readable(tool.argument)}
                    for tool in entry.tools
                ],
            }
            for entry in entries
        ]
        return encode({"name": one.name, "id": one.id, "unreadable": unreadable, "entries": said})
    if not entries:
        return f"{one.name}: nothing was said yet."
    return f"Session {one.name} ({one.id}), the last {len(entries)} entries:\n\n{render(entries, unreadable, raw=raw)}"


def _bytes(size: int) -> str:
    for unit in ("B", "KB", "MB"):
        if size < 1024:
            return f"{size} {unit}"
        size = (size + 512) // 1024
    return f"{size} GB"
