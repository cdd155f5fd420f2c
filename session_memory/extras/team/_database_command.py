"""`session-memory team init` and `remove`: the database administrator's actions on a team's
store."""

from __future__ import annotations

import argparse
import secrets
from contextlib import closing
from shlex import quote

from ...app.commands.output import brief
from ...common.system.pgpass import address_of
from ...common.system.terminal import Terminal
from ...common.text.format import counted
from .postgres import schema
from .postgres.connection import connect, explained

NAME_CHARACTERS = 60
_NO_OWNER = "this takes the URL of a user who owns the database, and may make roles"


def database_url(text: str) -> str:
    """Return the address of a PostgreSQL database as it was typed. Raises ArgumentTypeError."""
    try:
        address_of(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{error}: postgresql://USER@HOST/DATABASE") from error
    return text


def init(arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Make a team's store and its members, or prints the SQL that would. Raises TeamError."""
    if arguments.sql:
        sql = schema.setup_sql(arguments.member)
        terminal.verbatim(sql)
        terminal.result({"sql": sql}, verbatim=["sql"])
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
            added.append({"name": name, "url": url, "is_new": is_new})
        known = schema.members(connection)
        open_to_all = schema.lets_everybody_in(connection) if known else ""
    terminal.line(
        "The team's store was made, or brought up to date." if done else "It was there already."
    )
    if before.version == 1:
        terminal.line(
            "Of the members that version 0.2.0 had, those who joined here stay: add others with "
            "--member."
        )
    terminal.line(
        f"Members: {', '.join([brief(name, NAME_CHARACTERS) for name in known]) or 'none'}."
    )
    for member in added:
        how = (
            "joins with"
            if member["is_new"]
            else "was a user there already, and joins with their password"
        )
        terminal.line(f"{brief(str(member['name']), NAME_CHARACTERS)} {how}:")
        terminal.line(f"  session-memory team join {quote(str(member['url']))}")
    if open_to_all:
        terminal.line(
            "Every user of the server may connect to this database, and reads no rows. To keep "
            "others out:"
        )
        terminal.line(f"  {open_to_all}")
    made = {
        "migrations": done,
        "members": added,
        "all_members": known,
        "open_to_all": bool(open_to_all),
    }
    terminal.result(made, verbatim=["members"])  # their addresses have new passwords
    return 0


def remove(arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Take a member out. Raises TeamError."""
    with (
        closing(connect(arguments.url)) as connection,
        explained(arguments.url, forbidden=_NO_OWNER),
        connection.transaction(force_rollback=arguments.dry_run),
    ):
        deleted = schema.remove_member(connection, arguments.name, purge=arguments.purge)
    if arguments.dry_run:
        would = f"{brief(arguments.name, NAME_CHARACTERS)} would be no member any more"
        terminal.line(f"{would}; {counted(deleted, 'session')} would be deleted.")
        terminal.result({"dry_run": True, "name": arguments.name, "deleted": deleted})
        return 0
    gone = f"{counted(deleted, 'session')} deleted"
    kept = "what they have shared stays, until this is done with --purge"
    terminal.line(
        f"{brief(arguments.name, NAME_CHARACTERS)} is no longer a member; "
        f"{gone if arguments.purge else kept}."
    )
    terminal.result({"name": arguments.name, "deleted": deleted})
    return 0
