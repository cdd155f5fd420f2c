"""Connections to a team's database, and PostgreSQL's errors in plain words."""

from __future__ import annotations

import logging
import os
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Timer
from typing import TYPE_CHECKING, Any

from ....memory.shared_store import SharedStoreError

if TYPE_CHECKING:
    import psycopg

    TeamConnection = psycopg.Connection[tuple[Any, ...]]
else:
    TeamConnection = Any  # psycopg is imported by those who connect, and may be missing

SCHEMA = "session_memory"
# SQL for the time by the server's clock, in milliseconds since the epoch. It is the same for all
# machines.
NOW = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"
CONNECT_SECONDS = 10
PATIENCE_SECONDS = 3  # for a waiting user, to reach the server
STATEMENT_SECONDS = 60  # after which the server cancels a statement
IDLE_SECONDS = 60  # the server closes a connection for a waiting user after so many seconds
WAIT_SECONDS = 30  # seconds for an answer after that: a large table takes its time on a slow line
ANSWER_SECONDS = 180  # after which a silent server counts as gone
# Both sides notice a dead network within half a minute, because the server would keep the locks of
# a member who is gone.
_NETWORK = {
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
}
_NETWORK_THERE = (
    "SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3; "
    "SET tcp_user_timeout = 20000"
)
_NO_TEAM = (
    "the database administrator must run `session-memory team init URL` first, and add you with "
    "--member NAME"
)
_NO_MEMBER = (
    "only members may: the database administrator adds them with session-memory team "
    "init URL --member NAME"
)
_NO_ANSWER = "is the server running there, and are the user, the password and the database right?"
# The beginning of libpq's errors, up to the cause: we name the database ourselves.
_ABOUT = re.compile(r"^connection failed: connection to server (?:at|on) .*? failed: (?:FATAL: +)?")


class TeamError(SharedStoreError):
    """The team's database cannot be used, or not now."""


class UnreachableTeamError(TeamError):
    """The server does not answer or has gone away; nothing uncommitted was saved."""


class FullTeamError(TeamError):
    """The server has no room."""


def connect(url: str, *, seconds: int = 0, statement_seconds: int = 0) -> TeamConnection:
    """Return an autocommit connection to the database at `url`.

    libpq finds values that the URL omits, such as the password. For a waiting user, the server must
    be reached within `seconds`, and each statement may take `statement_seconds` (default: as many).
    Raises TeamError."""
    try:
        import psycopg
        from psycopg.conninfo import conninfo_to_dict
    except ImportError as error:
        from ....sessions.settings.program import how_to_add

        raise TeamError(
            "a team's store needs psycopg, which is not installed", how_to_add("team")
        ) from error
    with explained(url):
        given = conninfo_to_dict(url)
        logging.getLogger("psycopg").setLevel(logging.ERROR)  # its warnings are errors too
        parameters = {
            "application_name": "session-memory",
            "connect_timeout": seconds or CONNECT_SECONDS,
        }
        connection = psycopg.connect(**{**parameters, **_NETWORK, **given}, autocommit=True)  # type: ignore[arg-type,unused-ignore]
    most = f"'{statement_seconds or seconds or STATEMENT_SECONDS}s'"
    with explained(url, connection, seconds or CONNECT_SECONDS):
        connection.execute(
            f"SET search_path = {SCHEMA}; SET jit = off; SET client_min_messages = warning; "
            f"{_NETWORK_THERE}; "
            f"SET lock_timeout = '{seconds}s'; SET statement_timeout = {most}; "
            f"SET idle_in_transaction_session_timeout = {most}; "
            f"SET idle_session_timeout = '{IDLE_SECONDS if seconds else 0}s'"
        )
    return connection


def place_of(url: str) -> str:
    """Return the database that a URL names, without user and password: `host:port/database`."""
    from psycopg.conninfo import conninfo_to_dict

    try:
        given = conninfo_to_dict(url)
    except Exception:
        return "the team's database"
    port = f":{given['port']}" if given.get("port") else ""
    return f"{given.get('host') or 'localhost'}{port}/{given.get('dbname') or ''}"


@contextmanager
def explained(
    url: str,
    connection: TeamConnection | None = None,
    seconds: float = ANSWER_SECONDS,
    *,
    forbidden: str = _NO_MEMBER,
) -> Iterator[None]:
    """Turn psycopg's errors within the block into a TeamError with the problem and its remedy.

    `forbidden` is the hint if the user lacks rights. A block with a `connection` has a limit in
    seconds, after which the connection is cut and UnreachableTeamError is raised."""
    import psycopg
    from psycopg import errors

    timer = Timer(seconds, cut, [connection]) if connection else None
    try:
        if timer:
            timer.start()
        yield
    except (errors.DiskFull, errors.OutOfMemory) as error:
        raise FullTeamError(
            f"{place_of(url)} is full: {_first_line(error)}", "new sessions wait here"
        ) from error
    except errors.LockNotAvailable as error:
        raise UnreachableTeamError(
            f"{place_of(url)}: another member keeps its tables locked", "try again soon"
        ) from error
    except (errors.UndefinedTable, errors.InvalidSchemaName) as error:
        raise TeamError(f"{place_of(url)} has no team store that you may read", _NO_TEAM) from error
    except errors.InsufficientPrivilege as error:
        raise TeamError(f"{place_of(url)}: {_first_line(error)}", forbidden) from error
    except psycopg.OperationalError as error:
        raise UnreachableTeamError(f"{place_of(url)}: {_first_line(error)}", _NO_ANSWER) from error
    except psycopg.Error as error:
        raise TeamError(f"{place_of(url)}: {_first_line(error)}") from error
    finally:
        if timer:
            timer.cancel()


def cut(connection: TeamConnection) -> None:
    """End a connection as if the server had, even while another thread uses it."""
    import psycopg

    with (
        suppress(OSError, psycopg.Error),
        socket.socket(fileno=os.dup(connection.fileno())) as connected,
    ):
        connected.shutdown(socket.SHUT_RDWR)


def _first_line(error: Exception) -> str:
    return _ABOUT.sub("", str(error).strip().partition("\n")[0])
