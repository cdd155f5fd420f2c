"""`session-memory team`: joins, leaves and shows a store that several machines or people share."""

from __future__ import annotations

import argparse
import os
import socket
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from ... import __version__
from ...app.commands.arguments import OnlyForPeopleError, add_common
from ...app.commands.opened_store import OpenStore, refresh, with_store
from ...app.commands.output import brief, iso, moment
from ...common.errors import SessionMemoryError, WrongCallError
from ...common.system.git import find_worktree, worktrees_of
from ...common.system.pgpass import address_of, keep_password
from ...common.system.terminal import Result, Terminal
from ...common.text.format import counted, one_line
from ...common.text.paths import is_name
from ...common.text.sanitize import for_people
from ...history.store.location import StoreLocation, find_location
from ...sessions.runtimes.detection import is_started_by_agent
from ...sessions.settings.check import refused
from ...sessions.settings.keys import set_key
from ._activity import activity_count
from ._database_command import NAME_CHARACTERS, database_url, init, remove
from ._sharing import (
    TeamState,
    drop_state,
    joined_team,
    project_of,
    push_to_team,
    read_state,
    shared_files,
    team_of,
    unshared_counts,
    waiting_for_push,
)
from .postgres.connection import PATIENCE_SECONDS, TeamError
from .postgres.engine import TeamMachine, TeamStore, machines_of
from .postgres.memories import pushed_memories, withdraw_memories
from .postgres.push import TeamPush
from .settings import TeamSettings

if TYPE_CHECKING:
    from ...history.store.sqlite.tool_uses import StoredFile
    from ._memories import MemoryPushReport
    from .push import SharedAs, TeamPushReport

SUMMARY = "share sessions with other machines and people"
SHOWN = 20  # sessions of a preview
_ONLY_PEOPLE = ("init", "join", "leave", "remove")


def is_set_up(environ: Mapping[str, str]) -> bool:
    """Check if the home here has joined a team. Raises ConfigError."""
    return bool(team_of(find_location(None, environ).home).url)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(
        dest="action", metavar="ACTION", description="without one: status"
    )
    parser.set_defaults(action="status", home=None, json=False)

    def action(name: str, text: str, url: str = "") -> argparse.ArgumentParser:
        subparser = actions.add_parser(name, help=text, description=text)
        if url:
            subparser.add_argument("url", metavar="URL", type=database_url, help=url)
        add_common(subparser)
        return subparser

    owner = (
        "postgresql://OWNER@HOST/DATABASE, for a user who owns the database and may create roles"
    )
    subparser = action("init", "create a team's store in a database, or update it", owner)
    of_members = "make this database user a member, and create the user if missing; repeatable"
    subparser.add_argument("--member", metavar="NAME", action="append", default=[], help=of_members)
    subparser.add_argument("--sql", action="store_true", help="print the SQL instead of running it")
    _add_member_actions(action)
    subparser = action(
        "remove", "remove a member, who can then no longer read or write there", owner
    )
    subparser.add_argument(
        "name", metavar="NAME", help="the member's user name in the database; that user stays"
    )
    subparser.add_argument(
        "--purge", action="store_true", help="also delete everything that the member has shared"
    )
    subparser.add_argument(
        "--dry-run", action="store_true", help="list the deletions without changing anything"
    )


def _add_member_actions(action: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the actions of members; `action` makes the parser of one."""
    subparser = action(
        "join",
        "let this machine share its sessions",
        "yours: postgresql://USER:PASSWORD@HOST/DATABASE",
    )
    of_machine = (
        "the name of this machine there, such as laptop or ann@laptop (default: its own name)"
    )
    subparser.add_argument(
        "--as", dest="name", metavar="NAME", type=_name_there, default=("", ""), help=of_machine
    )
    action(
        "status",
        "show the state, what waits, and the machines; exits with 1 if the server does not answer",
    )
    action("preview", "show the sessions of this machine that are or would be shared")
    action("push", "share new sessions now, not only with the next upkeep")
    subparser = action(
        "project", "name the project here, the same on all machines, or show its name"
    )
    of_project = (
        "the name for a directory, or a repository without a remote `origin`; '' removes the name"
    )
    subparser.add_argument("name", metavar="NAME", nargs="?", type=_project_name, help=of_project)
    subparser = action("leave", "stop sharing; sessions shared so far stay there")
    subparser.add_argument(
        "--purge", action="store_true", help="first delete everything that this machine has shared"
    )
    subparser.add_argument(
        "--dry-run", action="store_true", help="list the deletions without changing anything"
    )


def run(arguments: argparse.Namespace) -> int:
    if arguments.action in _ONLY_PEOPLE and is_started_by_agent(os.environ):
        raise OnlyForPeopleError(f"team {arguments.action}")
    terminal = Terminal(os.environ, is_json=arguments.json)
    return _ACTIONS[arguments.action](arguments, terminal)


def _join(arguments: argparse.Namespace, terminal: Terminal) -> int:
    location = find_location(arguments.home, os.environ)
    before = team_of(location.home)
    address = address_of(arguments.url)
    person, machine = arguments.name
    own_name = socket.gethostname().partition(".")[0]
    machine = machine or (own_name if is_name(own_name) else "machine")
    if before.url and (before.url, before.machine) != (address.url, machine):
        problem = f"this machine has joined {before.url} as {before.machine}"
        raise SessionMemoryError(
            problem, "session-memory team leave, with --purge to delete what it has shared there"
        )
    with closing(TeamPush(arguments.url, machine)) as team:
        if person and person != team.member:
            hint = f"--as {team.member}@{machine}, or a URL with another user"
            raise WrongCallError(f"the database knows you as {team.member}, not as {person}", hint)
        is_known = bool(team.pushed()) and not before.url
        team.note_machine(__version__, pushed=False)
    if address.password:
        keep_password(address, os.environ)
    for key, value in (("url", address.url), ("machine", machine)):
        set_key(location.home.config_file, ("team", key), value)
    for text in refused(location.home, "team.url"):
        terminal.note(for_people(text))
    terminal.show(JoinedTeam(team.member, machine, address.url, is_known))
    return 0


@dataclass(frozen=True)
class JoinedTeam(Result):
    """A member's machine that has joined; `is_known` means that it has shared something before."""

    member: str
    machine: str
    url: str
    is_known: bool

    def show(self, terminal: Terminal) -> None:
        name = f"{self.member}@{self.machine}"
        terminal.line(f"This machine has joined as {name}: upkeep shares new sessions from now on.")
        if self.is_known:
            other = "if that was another machine, leave the team and join again with another name: --as NAME"
            terminal.note(f"Something was shared as {name} before: {other}.")
        terminal.line(
            "Its sessions are shared with your own machines, and with the team if `share: team` "
            "applies to them."
        )
        terminal.line("  session-memory team preview    shows which those are")


def _status(arguments: argparse.Namespace, terminal: Terminal) -> int:
    location, team = _joined(arguments)

    def ask(opened: OpenStore) -> TeamStatus:
        refresh(opened)
        state, heard = read_state(location.home), activity_count(location.home)
        try:
            waiting = waiting_for_push(opened.store, location)
            with closing(TeamStore(team.url, seconds=PATIENCE_SECONDS)) as store:
                there = TeamThere(waiting, machines_of(store), store.is_newer)
        except TeamError as error:
            return TeamStatus(team, state, heard, error)
        return TeamStatus(team, state, heard, there)

    status = with_store(arguments, ask)
    terminal.show(status)
    return int(isinstance(status.there, TeamError))


class TeamThere(NamedTuple):
    """The state of the team's store.

    It has the numbers of sessions and items that wait to be pushed, and the machines. `is_newer`
    means that a newer version made the store."""

    waiting: tuple[int, int]
    machines: list[TeamMachine]
    is_newer: bool


@dataclass(frozen=True)
class TeamStatus(Result):
    """A team's status on this machine, the number of known sessions, and its store or an error."""

    team: TeamSettings
    state: TeamState
    heard: int
    there: TeamThere | TeamError

    def show(self, terminal: Terminal) -> None:
        team, state, heard = self.team, self.state, counted(self.heard, "session")
        terminal.line(f"Team: {team.url}, this machine is {team.machine}.")
        terminal.line(f"Last push: {_when(state.pushed_at)}.")
        terminal.line(
            f"Last news from the others: {_when(state.heard_at)}; {heard} of the last two days."
        )
        if state.problem:
            terminal.line(
                f"It has been waiting since {_when(state.problem_since)}: {state.problem}."
            )
        if isinstance(self.there, TeamError):
            terminal.line(f"Now: {self.there}.")
            terminal.line(f"  {self.there.hint}")
        else:
            _show_there(self.there, terminal)

    def as_json(self) -> dict[str, Any]:
        state, there = self.state, self.there
        here = {
            "url": self.team.url,
            "machine": self.team.machine,
            "pushed_at": iso(state.pushed_at or None),
            "problem": state.problem,
            "problem_since": iso(state.problem_since or None) if state.problem else None,
            "heard_at": iso(state.heard_at or None),
            "heard_sessions": self.heard,
        }
        if isinstance(there, TeamError):
            return {**here, "unreachable": str(there)}
        sessions, items = there.waiting
        machines = [
            {**machine._asdict(), "pushed_at": iso(machine.pushed_at)} for machine in there.machines
        ]
        return {
            **here,
            "is_newer": there.is_newer,
            "waiting": {"sessions": sessions, "items": items},
            "machines": machines,
        }


def _show_there(there: TeamThere, terminal: Terminal) -> None:
    """Print the state of the team's store."""
    if there.is_newer:
        terminal.line(
            "A newer session-memory made it, so this version reads it but pushes nothing."
        )
    sessions, items = there.waiting
    new = f"{counted(sessions, 'session')} with {counted(items, 'new entry', 'new entries')}"
    terminal.line(f"To be pushed: {new if sessions else 'nothing'}.")
    for machine in there.machines:
        shared = f"{counted(machine.sessions, 'session')} that you may read"
        pushed = f"pushed last: {_when(machine.pushed_at)}"
        terminal.line(f"  {brief(machine.who, NAME_CHARACTERS)}: {shared}, {pushed}")


def _preview(opened: OpenStore) -> int:
    refresh(opened)
    files = shared_files(opened.store, opened.location)
    opened.terminal.show(TeamPreview(files, *unshared_counts(opened.store, opened.location)))
    return 0


@dataclass(frozen=True)
class TeamPreview(Result):
    """The files that are shared, and the numbers of sessions that are not.

    Sessions are not shared without a project, or if rules keep them back."""

    files: list[tuple[StoredFile, SharedAs]]
    no_project: int
    by_rules: int

    def show(self, terminal: Terminal) -> None:
        for file, shared in self.files[-SHOWN:]:
            with_whom = "the team" if shared.share == "team" else "own machines"
            title = brief(file.title or file.session_id, NAME_CHARACTERS)
            terminal.line(
                f"{moment(file.last_at)}  {with_whom:<12}  {shared.directory(file.cwd)}  {title}"
            )
        items = counted(sum([file.item_count for file, _ in self.files]), "entry", "entries")
        terminal.line(f"{counted(len(self.files), 'session')} with {items} in all.")
        if self.no_project:
            how = "`session-memory team project NAME` there names one"
            terminal.line(
                "Not shared, because the directory has no repository with a remote and no project name: "
                f"{self.no_project}; {how}."
            )
        if self.by_rules:
            terminal.line(f"Not shared by rules (`share: off`): {self.by_rules}.")

    def as_json(self) -> dict[str, Any]:
        sessions = [
            {
                "session_id": file.session_id,
                "title": file.title,
                "items": file.item_count,
                "share": shared.share,
                "project": shared.project,
                "directory": shared.directory(file.cwd),
            }
            for file, shared in self.files
        ]
        unshared = {"no_project": self.no_project, "rules": self.by_rules}
        return {"unshared": unshared, "sessions": sessions}


def _push(opened: OpenStore) -> int:
    joined_team(opened.location.home)
    refresh(opened)
    opened.store.redact_again(float("inf"))
    done, memories = push_to_team(opened.store, opened.location, opened.note)
    opened.terminal.show(Pushed(done, memories))
    return 0


@dataclass(frozen=True)
class Pushed(Result):
    """The sessions and memories that were pushed to the team, and the withdrawn ones."""

    sessions: TeamPushReport
    memories: MemoryPushReport

    def show(self, terminal: Terminal) -> None:
        sessions, memories = self.sessions, self.memories
        pushed = counted(sessions.sessions, "session")
        pushed += f" with {counted(sessions.items, 'entry', 'entries')}"
        terminal.line(f"Pushed {pushed}, and {counted(memories.pushed, 'memory', 'memories')}.")
        withdrawn = [counted(sessions.withdrawn, "session")] if sessions.withdrawn else []
        if memories.withdrawn:
            withdrawn.append(counted(memories.withdrawn, "memory", "memories"))
        if withdrawn:
            terminal.line(f"Withdrew {' and '.join(withdrawn)}.")

    def as_json(self) -> dict[str, Any]:
        return {**self.sessions._asdict(), "memories": self.memories._asdict()}


def _project(arguments: argparse.Namespace, terminal: Terminal) -> int:
    location = find_location(arguments.home, os.environ)
    user_dir = location.home.user_dir
    here = os.path.realpath(os.getcwd())
    worktree = find_worktree(here, user_dir)
    mains = worktrees_of(worktree.common_dir) if worktree else []
    root = next(
        (worktree.root for worktree in mains if worktree.git_dir == worktree.common_dir),
        worktree.root if worktree else here,
    )
    names = dict(team_of(location.home).projects)
    if arguments.name is not None:
        if root in (os.path.realpath(user_dir or "/"), "/"):
            raise SessionMemoryError(
                f"{root} is not a project: all your work is below it",
                "change to the directory of a project",
            )
        names = {path: name for path, name in {**names, root: arguments.name}.items() if name}
        set_key(location.home.config_file, ("team", "projects"), names)
    project, project_root = project_of(here, names, user_dir)
    if not project and arguments.name is None:
        problem = (
            f"{root} is not in a repository with a remote and has no name, so its sessions are "
            f"not shared"
        )
        raise SessionMemoryError(problem, "session-memory team project NAME gives it one")
    terminal.show(NamedProject(project, project_root or root))
    return 0


@dataclass(frozen=True)
class NamedProject(Result):
    """A project's name, the same on all machines, and its directory.

    The name is '' if it no longer has one."""

    project: str
    root: str

    def show(self, terminal: Terminal) -> None:
        named = f"is the project {brief(self.project, NAME_CHARACTERS)}"
        is_called = named if self.project else "no longer has a name"
        terminal.line(f"{terminal.short(self.root)} {is_called}.")


def _leave(arguments: argparse.Namespace, terminal: Terminal) -> int:
    location, team = _joined(arguments)
    withdrawn = _purge(team, is_dry_run=arguments.dry_run) if arguments.purge else 0
    if not arguments.dry_run:
        set_key(location.home.config_file, ("team", "url"), "")
        drop_state(location.home)
    terminal.show(LeftTeam(team.machine, withdrawn, arguments.purge, arguments.dry_run))
    return 0


@dataclass(frozen=True)
class LeftTeam(Result):
    """A machine that has left its team, or would, with the number of sessions withdrawn."""

    machine: str
    withdrawn: int
    is_purged: bool
    is_dry_run: bool

    def show(self, terminal: Terminal) -> None:
        sessions = counted(self.withdrawn, "session")
        if self.is_dry_run:
            deleted = f"{sessions} would be deleted there"
            what = deleted if self.is_purged else "what it shared would stay"
            terminal.line(f"This machine would no longer share anything; {what}.")
            return
        kept = (
            f"{sessions} deleted there"
            if self.is_purged
            else "the sessions shared so far stay there"
        )
        terminal.line(f"This machine no longer shares anything; {kept}.")
        if not self.is_purged:
            terminal.line(
                f"To delete that too, join again --as {self.machine}, and leave with --purge."
            )

    def as_json(self) -> dict[str, Any]:
        result = {"withdrawn": self.withdrawn}
        return {"dry_run": True, **result} if self.is_dry_run else result


def _purge(team: TeamSettings, *, is_dry_run: bool) -> int:
    """Delete everything that this machine has shared, unless it is a dry run.

    Return the number of sessions. Raises TeamError."""
    try:
        with closing(TeamPush(team.url, team.machine)) as pushing:
            if is_dry_run:
                return len(pushing.pushed())
            withdraw_memories(
                pushing, [memory.number for memory in pushed_memories(pushing).values()]
            )
            return pushing.withdraw_all()
    except TeamError as error:
        hint = "it has not left: try again, or leave without --purge, which needs no server"
        raise TeamError(str(error), hint) from error


_ACTIONS: dict[str, Callable[[argparse.Namespace, Terminal], int]] = {
    "init": init,
    "join": _join,
    "status": _status,
    "project": _project,
    "leave": _leave,
    "remove": remove,
    "preview": lambda arguments, _: with_store(arguments, _preview),
    "push": lambda arguments, _: with_store(arguments, _push, writes=True),
}


def _joined(arguments: argparse.Namespace) -> tuple[StoreLocation, TeamSettings]:
    location = find_location(arguments.home, os.environ)
    return location, joined_team(location.home)


def _name_there(text: str) -> tuple[str, str]:
    """Parse a member and a machine, such as `ann@laptop`, `laptop` or `ann@`.

    Raises ArgumentTypeError."""
    person, _, machine = text.rpartition("@")
    if machine and not is_name(machine):
        raise argparse.ArgumentTypeError(
            f"{machine!r}: a machine's name may contain letters, digits, `.`, `_` and `-`"
        )
    return person, machine


def _project_name(text: str) -> str:
    """Check the name of a project; '' removes it. Raises ArgumentTypeError."""
    name = text.strip()
    if name != one_line(for_people(name)) or len(name) > NAME_CHARACTERS:
        raise argparse.ArgumentTypeError(
            f"{text!r}: a project has at most {NAME_CHARACTERS} letters on one line"
        )
    return name


def _when(milliseconds: int | None) -> str:
    return moment(milliseconds) if milliseconds else "never"
