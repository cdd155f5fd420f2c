"""`session-memory team`: a store that several machines or people share; how it is made, joined, left and looked at."""

from __future__ import annotations

import os
import secrets
import socket
import sys
from contextlib import closing
from typing import TYPE_CHECKING

from .. import __version__
from ..errors import SessionMemoryError
from ..runtimes.detection import is_started_by_agent
from ..settings import edit
from ..store.location import find_location
from ..system.pgpass import address_of, keep_password
from ..system.terminal import Terminal
from ..text.format import counted
from ..upkeep.team import joined_team, project_of, push_to_team, read_state, shared_files, team_of, waiting_for_push
from ..upkeep.team_activity import activity_count, drop_activity
from .arguments import OnlyForPeopleError, add_common
from .opened_store import refresh, with_store
from .output import brief, iso, moment

if TYPE_CHECKING:
    import argparse
    from contextlib import AbstractContextManager

    from ..settings.sections import TeamSettings
    from ..store.location import StoreLocation
    from ..store.postgres.connection import TeamConnection
    from ..store.postgres.machines import TeamMachine
    from ..system.pgpass import DatabaseAddress
    from .opened_store import OpenStore

SUMMARY = "share a store with other machines and people"
SHOWN = 20  # sessions of a preview
TITLE_CHARACTERS = 60
_ONLY_PEOPLE = ("init", "join", "leave", "remove")


class TeamCommandError(SessionMemoryError):
    """What was asked for cannot be done like that."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of team."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)

    def action(name: str, text: str, url: str = "") -> argparse.ArgumentParser:
        found = actions.add_parser(name, help=text, description=text)
        if url:
            found.add_argument("url", metavar="URL", help=url)
        add_common(found)
        return found

    found = action("init", "make a team's store in a database, or bring it up to date", "of the database's owner")
    found.add_argument("--member", metavar="NAME", action="append", default=[], help="make this user a member")
    found.add_argument("--sql", action="store_true", help="change nothing, print the SQL that would")
    found = action("join", "have this machine share its sessions", "yours: postgresql://USER:PASSWORD@HOST/DATABASE")
    found.add_argument("--as", dest="name", metavar="NAME", default="", help="who and where, such as ann@laptop")
    action("status", "say which machines there are, and what is shared")
    action("preview", "show which sessions of this machine are shared, or would be")
    action("push", "share what is new now, not only with the next upkeep")
    found = action("project", "give the project here a name, the same on all machines")
    found.add_argument("name", metavar="NAME")
    found = action("leave", "share nothing any more")
    found.add_argument("--purge", action="store_true", help="delete what this machine has shared")
    found = action("remove", "take a member out", "of the database's owner")
    found.add_argument("name", metavar="NAME", help="the database's user")
    found.add_argument("--purge", action="store_true", help="delete what they have shared")


def run(arguments: argparse.Namespace) -> int:
    """Does what was asked for. Raises SessionMemoryError, OSError."""
    if arguments.action in _ONLY_PEOPLE and is_started_by_agent(os.environ):
        raise OnlyForPeopleError(f"team {arguments.action}")
    terminal = Terminal(os.environ, is_json=arguments.json)
    return _ACTIONS[arguments.action](arguments, terminal)


def _init(arguments: argparse.Namespace, terminal: Terminal) -> int:
    from ..store.postgres.schema import add_member, migrate, setup_sql

    if arguments.sql:
        sys.stdout.write(setup_sql(arguments.member))
        return 0
    address = _address(arguments.url)
    with closing(_connected(arguments.url)) as connection, _explained(arguments.url):
        done = migrate(connection)
        members = []
        for name in arguments.member:
            password = secrets.token_urlsafe(18)
            is_new = add_member(connection, name, password)
            members.append({"name": name, "url": _url_of_member(address, name, password if is_new else "")})
    terminal.line("The team's store was made." if done else "The team's store was there already.")
    for member in members:
        terminal.line(f"{member['name']} joins with: session-memory team join {member['url']}")
    terminal.result({"migrations": done, "members": members})
    return 0


def _join(arguments: argparse.Namespace, terminal: Terminal) -> int:
    from ..store.postgres.push import TeamPush

    location = find_location(arguments.home, os.environ)
    address = _address(arguments.url)
    person, _, machine = arguments.name.rpartition("@")
    machine = machine or socket.gethostname().partition(".")[0] or "machine"
    if address.password:
        keep_password(address, os.environ)
    with closing(TeamPush(arguments.url, machine)) as team:
        if person and person != team.member:
            hint = f"--as {team.member}@{machine}, or a URL with another user"
            raise TeamCommandError(f"the database knows you as {team.member}, not as {person}", hint)
        team.note_machine(__version__, pushed=False)
    for key, value in (("url", address.url), ("machine", machine)):
        edit.set_key(location.home.config_file, ("team", key), value)
    terminal.line(f"This machine has joined as {team.member}@{machine}: upkeep shares what is new from now on.")
    terminal.line("Its sessions are shared with your own machines; with the team, where `share: team` says so.")
    terminal.line("  session-memory team preview    shows which those are")
    terminal.result({"member": team.member, "machine": machine, "url": address.url})
    return 0


def _status(arguments: argparse.Namespace, terminal: Terminal) -> int:
    from ..store.postgres.connection import TeamError

    location, team = _joined(arguments)
    state = read_state(location.home)
    terminal.line(f"Team: {team.url}, this machine is {team.machine}.")
    terminal.line(f"Pushed last: {moment(state.pushed_at or None)}.")
    heard = counted(activity_count(location.home), "session")
    terminal.line(f"Heard from the others last: {moment(state.heard_at or None)}; {heard} of theirs are told here.")
    if state.problem:
        terminal.line(f"Since {moment(state.problem_since)} it waits: {state.problem}.")
    told = {
        "url": team.url, "machine": team.machine, "pushed_at": iso(state.pushed_at or None), "problem": state.problem,
        "heard_at": iso(state.heard_at or None),
    }  # fmt: skip

    def show(opened: OpenStore) -> int:
        refresh(opened)
        try:
            sessions, items = waiting_for_push(opened.store, location)
            machines = _machines(team.url, terminal)
        except TeamError as error:
            terminal.line(f"Now: {error}.")
            terminal.result({**told, "unreachable": str(error)})
            return 1
        new = f"{counted(sessions, 'session')} with {counted(items, 'new entry', 'new entries')}"
        terminal.line(f"To be pushed: {new if sessions else 'nothing'}.")
        for one in machines:
            shared = counted(one.sessions, "session")
            terminal.line(f"  {brief(one.who, TITLE_CHARACTERS)}: {shared}, pushed last {moment(one.pushed_at)}")
        listed = [{**one._asdict(), "pushed_at": iso(one.pushed_at)} for one in machines]
        terminal.result({**told, "waiting": {"sessions": sessions, "items": items}, "machines": listed})
        return 0

    return with_store(arguments, show)


def _machines(url: str, terminal: Terminal) -> list[TeamMachine]:
    from ..store.postgres.engine import TeamStore
    from ..store.postgres.machines import machines_of

    with closing(TeamStore(url)) as store:
        if store.is_newer:
            terminal.line("A newer session-memory made it: it is read, and nothing is pushed.")
        return machines_of(store)


def _preview(arguments: argparse.Namespace, terminal: Terminal) -> int:
    def show(opened: OpenStore) -> int:
        refresh(opened)
        found = shared_files(opened.store, opened.location)
        for file, shared in found[-SHOWN:]:
            with_whom = "the team" if shared.share == "team" else "own machines"
            title = brief(file.title or file.session_id, TITLE_CHARACTERS)
            terminal.line(f"{moment(file.last_at)}  {with_whom:<12}  {shared.directory(file.cwd)}  {title}")
        items = sum([file.item_count for file, _ in found])
        terminal.line(f"{counted(len(found), 'session')} with {counted(items, 'entry', 'entries')} in all.")
        terminal.result({
            "sessions": [
                {"session_id": file.session_id, "title": file.title, "items": file.item_count, "share": shared.share,
                 "project": shared.project, "directory": shared.directory(file.cwd)} for file, shared in found
            ]
        })  # fmt: skip
        return 0

    return with_store(arguments, show)


def _push(arguments: argparse.Namespace, terminal: Terminal) -> int:
    _joined(arguments)

    def push(opened: OpenStore) -> int:
        refresh(opened)
        opened.store.redact_again(float("inf"))
        done, memories = push_to_team(opened.store, opened.location, opened.note)
        pushed = f"{counted(done.sessions, 'session')} with {counted(done.items, 'entry', 'entries')}"
        taken_back = [
            counted(count, *words)
            for count, *words in ((done.withdrawn, "session"), (memories.withdrawn, "memory", "memories"))
            if count
        ]
        terminal.line(f"Pushed {pushed}, and {counted(memories.pushed, 'memory', 'memories')}.")
        if taken_back:
            terminal.line(f"Took back {' and '.join(taken_back)}.")
        terminal.result({**done._asdict(), "memories": memories._asdict()})
        return 0

    return with_store(arguments, push, writes=True)


def _project(arguments: argparse.Namespace, terminal: Terminal) -> int:
    from ..system.git import find_worktree, worktrees_of

    location = find_location(arguments.home, os.environ)
    here = os.path.realpath(os.getcwd())
    worktree = find_worktree(here, location.home.user_dir)
    mains = worktrees_of(worktree.common_dir) if worktree else []
    root = next((one.root for one in mains if one.git_dir == one.common_dir), worktree.root if worktree else here)
    names = {**team_of(location.home).projects, root: arguments.name}
    edit.set_key(location.home.config_file, ("team", "projects"), names)
    project, _ = project_of(here, names, location.home.user_dir)
    terminal.line(f"{terminal.short(root)} is the project {brief(project, TITLE_CHARACTERS)}.")
    terminal.result({"project": project, "root": root})
    return 0


def _leave(arguments: argparse.Namespace, terminal: Terminal) -> int:
    location, team = _joined(arguments)
    withdrawn = 0
    if arguments.purge:
        from ..store.postgres.memory_push import pushed_memories, withdraw_memories
        from ..store.postgres.push import TeamPush

        with closing(TeamPush(team.url, team.machine)) as pushing:
            withdraw_memories(pushing, [one.number for one in pushed_memories(pushing).values()])
            withdrawn = pushing.withdraw_all()
    edit.set_key(location.home.config_file, ("team", "url"), "")
    drop_activity(location.home)
    kept = f"{counted(withdrawn, 'session')} deleted there" if arguments.purge else "what it has shared stays there"
    terminal.line(f"This machine shares nothing any more; {kept}.")
    terminal.result({"withdrawn": withdrawn})
    return 0


def _remove(arguments: argparse.Namespace, terminal: Terminal) -> int:
    from ..store.postgres.schema import remove_member

    with closing(_connected(arguments.url)) as connection, _explained(arguments.url):
        deleted = remove_member(connection, arguments.name, purge=arguments.purge)
    terminal.line(f"{brief(arguments.name, TITLE_CHARACTERS)} is no member any more; {deleted} sessions deleted.")
    terminal.result({"name": arguments.name, "deleted": deleted})
    return 0


_ACTIONS = {
    "init": _init, "join": _join, "status": _status, "preview": _preview, "push": _push, "project": _project,
    "leave": _leave, "remove": _remove,
}  # fmt: skip


def _joined(arguments: argparse.Namespace) -> tuple[StoreLocation, TeamSettings]:
    location = find_location(arguments.home, os.environ)
    return location, joined_team(location.home)


def _address(url: str) -> DatabaseAddress:
    try:
        return address_of(url)
    except ValueError as error:
        raise TeamCommandError(f"the address of the database: {error}", "postgresql://USER@HOST/DATABASE") from error


def _url_of_member(address: DatabaseAddress, name: str, password: str) -> str:
    from urllib.parse import quote, urlsplit, urlunsplit

    parts = urlsplit(address.url)
    where = parts.netloc.rpartition("@")[2]
    secret = f":{quote(password, safe='')}" if password else ""
    return urlunsplit(parts._replace(netloc=f"{quote(name, safe='')}{secret}@{where}"))


def _connected(url: str) -> TeamConnection:
    from ..store.postgres.connection import connect

    return connect(url)


def _explained(url: str) -> AbstractContextManager[None]:
    from ..store.postgres.connection import explained

    return explained(url)
