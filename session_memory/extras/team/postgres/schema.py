"""The schema of a team's database, created and migrated once by the first program with rights."""

import os
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import NamedTuple

from ....common.system.files import read_whole
from .connection import (
    ANSWER_SECONDS,
    CONNECT_SECONDS,
    SCHEMA,
    TeamConnection,
    TeamError,
    connect,
    explained,
    place_of,
)

_OWNED = ("session", "segment", "memory", "machine")  # tables whose rows have an owner
# tables whose rows belong to a row of another: their column, and the column it refers to
_BELONGING = (
    ("item", "session", "session", "id"),
    ("conversation", "session", "session", "id"),
    ("posting", "segment", "segment", "id"),
    ("changed_file", "session", "session", "id"),
    ("handoff", "session", "session", "id"),
    ("memory_posting", "memory", "memory", "number"),
)
_LOCK = 0x5E551011  # of no meaning but that all who migrate take it
_BEGIN = f"""\
CREATE SCHEMA IF NOT EXISTS {SCHEMA};
SET search_path = {SCHEMA};
CREATE TABLE IF NOT EXISTS schema_version (
    version integer PRIMARY KEY,
    applied_at timestamptz NOT NULL DEFAULT now()
);
"""
_TABLES = ("schema.sql", "memory.sql")
_RIGHTS = "members.sql"


def _read(*names: str) -> str:
    here = os.path.dirname(__file__)
    return "\n\n".join([read_whole(os.path.join(here, name)).decode() for name in names])


# Functions that return the SQL from version 1 to 2, and so on. Each runs once, in one transaction
# with its record.
MIGRATIONS: tuple[Callable[[], str], ...] = (
    # Members had a role that all teams on a server shared.
    partial(_read, "from_1.sql", *_TABLES, "from_1_words.sql", _RIGHTS, "from_1_members.sql"),
    partial(_read, *_TABLES, _RIGHTS, "members_again.sql"),  # there was no table `changed_file`
    partial(_read, *_TABLES, _RIGHTS, "members_again.sql"),  # there was no table `handoff`
)


class SchemaState(NamedTuple):
    """The version of the schema in a database (0: none), and this program's latest version."""

    version: int
    known: int

    @property
    def is_newer(self) -> bool:
        """Check if a newer program has changed the schema, so it is only read."""
        return self.version > self.known

    @property
    def is_older(self) -> bool:
        """Check if an earlier program made the schema, which must be migrated first."""
        return self.version < self.known


def schema_state(connection: TeamConnection) -> SchemaState:
    """Return the version of the store's schema, and the version that this program needs."""
    [(exists,)] = connection.execute(f"SELECT to_regclass('{SCHEMA}.schema_version') IS NOT NULL")
    version = 0
    if exists:
        [(version,)] = connection.execute(
            f"SELECT coalesce(max(version), 0) FROM {SCHEMA}.schema_version"
        )
    return SchemaState(version, len(MIGRATIONS) + 1)


def migrate(
    connection: TeamConnection, migrations: Sequence[Callable[[], str]] = MIGRATIONS
) -> list[int]:
    """Create or migrate the schema, once for all processes; return the missing versions.

    Raises psycopg's errors."""
    done = []
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        connection.execute(f"{_BEGIN} SET LOCAL statement_timeout = 0")
        [(version,)] = connection.execute("SELECT coalesce(max(version), 0) FROM schema_version")
        for number, sql in _missing(version, migrations):
            connection.execute(sql())
            connection.execute("INSERT INTO schema_version (version) VALUES (%s)", (number,))
            done.append(number)
    return done


def _missing(
    version: int, migrations: Sequence[Callable[[], str]]
) -> list[tuple[int, Callable[[], str]]]:
    """Return the SQL for each version that a database lacks.

    A database without any gets the present schema at once."""
    if not version:
        return [(len(migrations) + 1, lambda: _read(*_TABLES, _RIGHTS))]
    return list(enumerate(migrations, 2))[version - 1 :]


def members(connection: TeamConnection) -> list[str]:
    """Return the names of the members, in order."""
    sql = (
        "SELECT DISTINCT pg_get_userbyid(grantee)::text FROM pg_class, aclexplode(relacl) "
        f"WHERE oid = '{SCHEMA}.session'::regclass AND grantee != relowner AND "
        f"grantee != 0 ORDER BY 1"
    )
    return [name for (name,) in connection.execute(sql)]


def lets_everybody_in(connection: TeamConnection) -> str:
    """Return the SQL that lets only members connect to the database; '' if that is so already.

    Raises psycopg's errors."""
    from psycopg import sql

    privileges_sql = (
        "SELECT current_database(), has_database_privilege('public', current_database(), 'CONNECT')"
    )
    [(database, is_open)] = connection.execute(privileges_sql)
    names = sql.SQL(", ").join([sql.Identifier(name) for name in members(connection)])
    statement = "REVOKE CONNECT ON DATABASE {0} FROM PUBLIC; GRANT CONNECT ON DATABASE {0} TO {1};"
    return (
        sql.SQL(statement).format(sql.Identifier(database), names).as_string(connection)
        if is_open
        else ""
    )


def add_member(connection: TeamConnection, name: str, password: str = "") -> bool:
    """Make the user `name` a member, created with `password` if missing; return if it was.

    Raises psycopg's errors."""
    from psycopg import sql

    with connection.transaction():
        is_there = (
            connection.execute("SELECT FROM pg_roles WHERE rolname = %s", (name,)).fetchone()
            is not None
        )
        if not is_there:
            connection.execute(sql.SQL("CREATE ROLE {} LOGIN").format(sql.Identifier(name)))
            if password:  # encrypted here: the server may log the statement
                encrypted = connection.pgconn.encrypt_password(
                    password.encode(), name.encode()
                ).decode()
                statement = sql.SQL("ALTER ROLE {} PASSWORD {}")
                connection.execute(statement.format(sql.Identifier(name), sql.Literal(encrypted)))
        connection.execute(f"SELECT {SCHEMA}.add_member(%s)", (name,))
    return not is_there


def remove_member(connection: TeamConnection, name: str, *, purge: bool) -> int:
    """Revoke all rights of the user `name`, but keep the user.

    Their shared content stays, unless `purge`. Return how many of their sessions were deleted.
    Raises psycopg's errors."""
    connection.execute(f"SELECT {SCHEMA}.remove_member(%s)", (name,))
    if not purge:
        return 0
    with connection.transaction():
        connection.execute("SET LOCAL statement_timeout = 0")
        connection.execute("SELECT set_config('session_memory.purged', %s, true)", (name,))
        for table, column, parent, key in _BELONGING:
            own_rows = f"{column} IN (SELECT {key} FROM {SCHEMA}.{parent} WHERE owner = %s)"
            connection.execute(f"DELETE FROM {SCHEMA}.{table} WHERE {own_rows}", (name,))
        deleted = [
            connection.execute(f"DELETE FROM {SCHEMA}.{table} WHERE owner = %s", (name,)).rowcount
            for table in _OWNED
        ]
    return deleted[0]


def setup_sql(names: Iterable[str] = ()) -> str:
    """Return the SQL of `migrate` and `add_member` for an empty database, for its administrator."""
    parts = ["BEGIN;", f"SELECT pg_advisory_xact_lock({_LOCK});", _BEGIN]
    for number, sql in _missing(0, MIGRATIONS):
        parts += [sql(), f"INSERT INTO schema_version (version) VALUES ({number});"]
    for name in names:
        user, literal = '"' + name.replace('"', '""') + '"', "'" + name.replace("'", "''") + "'"
        parts += [f"CREATE ROLE {user} LOGIN;  -- unless there is one; then: \\password {name}"]
        parts += [f"SELECT add_member({literal});"]
    return "\n".join([*parts, "COMMIT;"]) + "\n"


def _check_member(connection: TeamConnection, place: str) -> SchemaState:
    """Return the state of the schema for a member who pushes and reads.

    Raises TeamError if there is none, if it is older than this program, or if row level security
    would not protect it."""
    state = schema_state(connection)
    if not state.version:
        raise TeamError(
            f"{place} has no team store",
            "the database administrator must run session-memory team init URL",
        )
    if state.is_older:
        problem = (
            f"an earlier session-memory made the store of the team at {place}, which must be "
            f"migrated"
        )
        raise TeamError(
            problem,
            "the database administrator must run session-memory team init URL; until then new "
            "sessions wait",
        )
    [(is_held, user)] = connection.execute(
        f"SELECT row_security_active('{SCHEMA}.session'), current_user"
    )
    if not is_held:
        hint = (
            f"join as a user of your own: session-memory team init URL --member NAME, where "
            f"URL is the URL of {user}"
        )
        raise TeamError(
            f"{place}: the database's user {user} can see everything, because row rules do not apply to it",
            hint,
        )
    return state


class TeamDatabase:
    """A member's connection to the database at `url`. Raises TeamError.

    For a waiting user, the server must be reached within `seconds`, and each answer may take
    `statement_seconds` (default: as many). Without a user the limits are longer."""

    def __init__(self, url: str, *, seconds: int = 0, statement_seconds: int = 0) -> None:
        self.url = url
        self.connection: TeamConnection = connect(
            url, seconds=seconds, statement_seconds=statement_seconds
        )
        # Within it, a server that does not answer in time raises TeamError, too.
        self.asking = partial(
            explained, url, self.connection, statement_seconds or seconds or ANSWER_SECONDS
        )
        try:
            with explained(url, self.connection, seconds or CONNECT_SECONDS):
                self.schema = _check_member(self.connection, place_of(url))
                [(self.member, self.database)] = self.connection.execute(
                    "SELECT current_user::text, current_database()"
                )
        except BaseException:
            self.connection.close()
            raise

    def close(self) -> None:
        self.connection.close()
