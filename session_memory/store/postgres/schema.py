"""The schema of a team's database: made and brought up to date once, by whoever has the right to and comes first."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from ...system.files import read_whole
from .connection import SCHEMA, TeamError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from .connection import TeamConnection

MEMBER = "session_memory_member"  # the role that every member is given
_OWNED = ("session", "segment", "memory", "machine")  # tables whose rows have an owner
_BELONGING = (  # tables whose rows belong to one of these: by which column of theirs to which of its
    ("item", "session", "session", "id"),
    ("conversation", "session", "session", "id"),
    ("posting", "segment", "segment", "id"),
    ("memory_posting", "memory", "memory", "number"),
)
_LOCK = 0x5E551011  # of no meaning but that all who migrate take it
_ROLE = f"""\
DO $$ BEGIN
    CREATE ROLE {MEMBER} NOLOGIN;
EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
END $$;
"""
_BEGIN = f"""\
CREATE SCHEMA IF NOT EXISTS {SCHEMA};
SET search_path = {SCHEMA};
CREATE TABLE IF NOT EXISTS schema_version (
    version integer PRIMARY KEY,
    applied_at timestamptz NOT NULL DEFAULT now()
);
"""


def _tables() -> str:
    here = os.path.dirname(__file__)
    return "\n\n".join([read_whole(os.path.join(here, name)).decode() for name in ("schema.sql", "memory.sql")])


# The SQL of each version. Each runs once, in one transaction with its record.
MIGRATIONS: tuple[Callable[[], str], ...] = (_tables,)


class SchemaState(NamedTuple):
    """Which version of the schema a database has (0: none), and which one this program knows."""

    version: int
    known: int

    @property
    def is_newer(self) -> bool:
        """Whether a newer program has changed the schema: it is read, and nothing is pushed."""
        return self.version > self.known

    @property
    def is_older(self) -> bool:
        """Whether there is a migration to be done, or nothing there yet."""
        return self.version < self.known


def schema_state(connection: TeamConnection) -> SchemaState:
    """What there is. Raises what psycopg raises."""
    [(found,)] = connection.execute(f"SELECT to_regclass('{SCHEMA}.schema_version') IS NOT NULL")
    version = 0
    if found:
        [(version,)] = connection.execute(f"SELECT coalesce(max(version), 0) FROM {SCHEMA}.schema_version")
    return SchemaState(version, len(MIGRATIONS))


def migrate(connection: TeamConnection, migrations: Iterable[Callable[[], str]] = MIGRATIONS) -> list[int]:
    """Brings the schema up to date; returns the versions that were missing. Of several who do so at once one does it,
    and the others find it done. Raises what psycopg raises."""
    done = []
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        connection.execute(_ROLE)
        connection.execute(_BEGIN)
        [(version,)] = connection.execute("SELECT coalesce(max(version), 0) FROM schema_version")
        for number, migration in enumerate(migrations, 1):
            if number > version:
                connection.execute(migration())
                connection.execute("INSERT INTO schema_version (version) VALUES (%s)", (number,))
                done.append(number)
    return done


def add_member(connection: TeamConnection, name: str, password: str = "") -> bool:
    """Makes the database's user `name` a member; makes the user where there is none, with `password`. Returns whether
    it was made. Raises what psycopg raises."""
    from psycopg import sql

    user = sql.Identifier(name)
    with connection.transaction():
        is_there = connection.execute("SELECT FROM pg_roles WHERE rolname = %s", (name,)).fetchone() is not None
        if not is_there:
            secret = sql.SQL(" PASSWORD {}").format(sql.Literal(password)) if password else sql.SQL("")
            connection.execute(sql.SQL("CREATE ROLE {} LOGIN{}").format(user, secret))
        connection.execute(sql.SQL("GRANT {} TO {}").format(sql.Identifier(MEMBER), user))
    return not is_there


def remove_member(connection: TeamConnection, name: str, *, purge: bool) -> int:
    """Takes the membership from the user `name`, who reads and writes nothing from then on; their user stays. What they
    shared stays too, unless `purge`. Returns how many of their sessions were deleted. Raises what psycopg raises."""
    from psycopg import sql

    tables = (*[table for table, *_ in _BELONGING], *_OWNED)
    with connection.transaction():
        connection.execute(sql.SQL("REVOKE {} FROM {}").format(sql.Identifier(MEMBER), sql.Identifier(name)))
        if not purge:
            return 0
        for table in tables:  # even the owner of a table is held to its policies
            connection.execute(f"ALTER TABLE {SCHEMA}.{table} NO FORCE ROW LEVEL SECURITY")
        for table, column, parent, key in _BELONGING:
            own = f"{column} IN (SELECT {key} FROM {SCHEMA}.{parent} WHERE owner = %s)"
            connection.execute(f"DELETE FROM {SCHEMA}.{table} WHERE {own}", (name,))
        deleted = [
            connection.execute(f"DELETE FROM {SCHEMA}.{table} WHERE owner = %s", (name,)).rowcount for table in _OWNED
        ]
        for table in tables:
            connection.execute(f"ALTER TABLE {SCHEMA}.{table} FORCE ROW LEVEL SECURITY")
    return deleted[0]


def setup_sql(members: Iterable[str] = ()) -> str:
    """All that `migrate` and `add_member` do to a database where nothing is, as SQL for whoever administers it."""
    parts = ["BEGIN;", f"SELECT pg_advisory_xact_lock({_LOCK});", _ROLE + _BEGIN]
    for number, migration in enumerate(MIGRATIONS, 1):
        parts += [migration(), f"INSERT INTO schema_version (version) VALUES ({number});"]
    for name in members:
        user = '"' + name.replace('"', '""') + '"'
        parts += [f"CREATE ROLE {user} LOGIN;  -- unless there is one; then: \\password {name}"]
        parts += [f"GRANT {MEMBER} TO {user};"]
    return "\n".join([*parts, "COMMIT;"]) + "\n"


def check_member(connection: TeamConnection, place: str) -> SchemaState:
    """What the schema is like, for somebody who is to push and read. Raises TeamError where there is none, or where row
    level security would not hold for them."""
    state = schema_state(connection)
    if not state.version:
        raise TeamError(f"{place} holds no store of a team", "whoever administers it: session-memory team init URL")
    [(is_held, user)] = connection.execute(f"SELECT row_security_active('{SCHEMA}.session'), current_user")
    if not is_held:
        hint = f"join as a user of your own: session-memory team init URL --member NAME, where URL is that of {user}"
        raise TeamError(f"{place}: the database's user {user} sees everything, whatever its rules say", hint)
    return state
