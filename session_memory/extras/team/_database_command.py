"""`session-memory team init` and `remove`: the database administrator's actions on a team's
store."""

from __future__ import annotations

import argparse
import secrets
from collections.abc import Collection
from contextlib import closing
from dataclasses import dataclass
from shlex import quote
from typing import Any, NamedTuple

from ...app.commands.output import brief
from ...common.system.pgpass import address_of
from ...common.system.terminal import Result, Terminal
from ...common.text.format import counted
from .postgres import schema
from .postgres.connection import connect, explained

NAME_CHARACTERS = 60
_NO_OWNER = "this needs the URL of a user who owns the database and may create roles"


def database_url(text: str) -> str:
    """Return the address of a PostgreSQL database as typed. Raises ArgumentTypeError."""
    try:
        address_of(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{error}: postgresql://USER@HOST/DATABASE") from error
    return text


def init(arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Make a team's store and its members, or print the SQL that would. Raises TeamError."""
    if arguments.sql:
        terminal.show(SetupSql(schema.setup_sql(arguments.member)))
        return 0
    address = address_of(arguments.url)
    with (
        closing(connect(arguments.url)) as connection,
        explained(arguments.url, forbidden=_NO_OWNER),
    ):
        before = schema.schema_state(connection)
        done = schema.migrate(connection)
        added = []
        for name in arguments.member:
            password = secrets.token_urlsafe(18)
            is_new = schema.add_member(connection, name, password)
            url = address.of_user(name, password if is_new else "")
            added.append(AddedMember(name, url, is_new))
        known = schema.members(connection)
        open_to_all = schema.lets_everybody_in(connection) if known else ""
    terminal.show(MadeStore(done, before.version, added, known, open_to_all))
    return 0


class AddedMember(NamedTuple):
    """A member who joins with `url`; it has a new password if the user `is_new`."""

    name: str
    url: str
    is_new: bool


@dataclass(frozen=True)
class SetupSql(Result):
    """The SQL that would make a team's store."""

    sql: str

    @property
    def verbatim(self) -> Collection[str]:
        return ("sql",)

    def show(self, terminal: Terminal) -> None:
        terminal.verbatim(self.sql)


@dataclass(frozen=True)
class MadeStore(Result):
    """A team's store: its migrations, its version before, the added members and all members.

    `open_to_all` is the SQL that keeps other users of the server out; '' if they already are."""

    migrations: list[int]
    version_before: int
    added: list[AddedMember]
    members: list[str]
    open_to_all: str

    @property
    def verbatim(self) -> Collection[str]:
        return ("members",)  # their addresses have new passwords

    def show(self, terminal: Terminal) -> None:
        terminal.line(
            "The team's store was created or updated."
            if self.migrations
            else "It was there already."
        )
        if self.version_before == 1:
            terminal.line(
                "Members of version 0.2.0 who had joined this database stay. Add the others with "
                "--member."
            )
        names = ", ".join([brief(name, NAME_CHARACTERS) for name in self.members])
        terminal.line(f"Members: {names or 'none'}.")
        for member in self.added:
            how = (
                "joins with"
                if member.is_new
                else "was already a user there, and joins with their password"
            )
            terminal.line(f"{brief(member.name, NAME_CHARACTERS)} {how}:")
            terminal.line(f"  session-memory team join {quote(member.url)}")
        if self.open_to_all:
            terminal.line(
                "Every user of the server may connect to this database, but cannot read rows. To "
                "keep other users out:"
            )
            terminal.line(f"  {self.open_to_all}")

    def as_json(self) -> dict[str, Any]:
        return {
            "migrations": self.migrations,
            "members": [member._asdict() for member in self.added],
            "all_members": self.members,
            "open_to_all": bool(self.open_to_all),
            "close_with": self.open_to_all or None,
        }


def remove(arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Take a member out. Raises TeamError."""
    with (
        closing(connect(arguments.url)) as connection,
        explained(arguments.url, forbidden=_NO_OWNER),
        connection.transaction(force_rollback=arguments.dry_run),
    ):
        deleted = schema.remove_member(connection, arguments.name, purge=arguments.purge)
    terminal.show(RemovedMember(arguments.name, deleted, arguments.purge, arguments.dry_run))
    return 0


@dataclass(frozen=True)
class RemovedMember(Result):
    """A member who is (or would be) removed, and the number of sessions deleted with that."""

    name: str
    deleted: int
    is_purged: bool
    is_dry_run: bool

    def show(self, terminal: Terminal) -> None:
        name, sessions = brief(self.name, NAME_CHARACTERS), counted(self.deleted, "session")
        if self.is_dry_run:
            terminal.line(f"{name} would no longer be a member; {sessions} would be deleted.")
            return
        kept = "their shared sessions stay until you run this with --purge"
        gone = f"{sessions} deleted" if self.is_purged else kept
        terminal.line(f"{name} is no longer a member; {gone}.")

    def as_json(self) -> dict[str, Any]:
        result = {"name": self.name, "deleted": self.deleted}
        return {"dry_run": True, **result} if self.is_dry_run else result
