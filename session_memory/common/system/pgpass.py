"""The password file of libpq, and database URLs without their passwords."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from .files import make_private_dir, read_whole, user_dir, write_atomically

_PORT = 5432
_OF_EVERY_USER = (
    "host",
    "hostaddr",
    "port",
    "dbname",
    "ssl",
    "sslmode",
    "sslnegotiation",
    "sslsni",
    "channel_binding",
    "gssencmode",
    "require_auth",
    "target_session_attrs",
    "load_balance_hosts",
    "connect_timeout",
    "krbsrvname",
)


class DatabaseAddress(NamedTuple):
    """A database address.

    It has the `url` without its password, the `password` ('' for none), the server and the user."""

    url: str
    password: str
    server: str
    port: int
    database: str
    user: str

    def of_user(self, name: str, password: str = "") -> str:
        """Return the URL for another user of the same database.

        Only the parts of its query that lead to the server are kept."""
        parts = urlsplit(self.url)
        secret = f":{quote(password, safe='')}" if password else ""
        netloc = f"{quote(name, safe='')}{secret}@{parts.netloc.rpartition('@')[2]}"
        query = "&".join(
            [option for option in parts.query.split("&") if _name_of(option) in _OF_EVERY_USER]
        )
        return urlunsplit(parts._replace(netloc=netloc, query=query))


def address_of(url: str) -> DatabaseAddress:
    """Parse a URL, including its query, as libpq does.

    Raises ValueError if it is not a PostgreSQL URL, or has a line break, which the password file
    cannot contain."""
    parts = urlsplit(url)
    if parts.scheme not in ("postgresql", "postgres"):
        raise ValueError("it does not begin with postgresql://")
    user = parts.netloc.rpartition("@")[0].partition(":")[0]
    where = parts.netloc.rpartition("@")[2]
    options = [option for option in parts.query.split("&") if option]
    given = {_name_of(option): unquote(option.partition("=")[2]) for option in options}
    query = "&".join([option for option in options if _name_of(option) != "password"])
    bare = urlunsplit(parts._replace(netloc=f"{user}@{where}" if user else where, query=query))
    address = DatabaseAddress(
        bare,
        given.get("password", unquote(parts.password or "")),
        given.get("host", parts.hostname or ""),
        int(given.get("port", parts.port or _PORT)),
        given.get("dbname", unquote(parts.path.strip("/"))),
        given.get("user", unquote(user)),
    )
    if any(character in str(part) for part in address for character in "\n\r\0"):
        raise ValueError("it contains a line break")
    return address


def _name_of(option: str) -> str:
    """Return the name of `name=value`, which libpq decodes too."""
    return unquote(option.partition("=")[0])


def keep_password(address: DatabaseAddress, environ: Mapping[str, str]) -> str:
    """Put an address's password into the file, replacing an earlier one; return the file's path.

    Raises OSError."""
    # what a link leads to is replaced, not the link
    path = os.path.realpath(_password_file(environ))
    known = (
        address.server or "localhost",
        str(address.port),
        address.database or "*",
        address.user or "*",
    )
    start = ":".join([_escaped(part) for part in known]) + ":"
    try:
        lines = read_whole(path).decode("utf-8", "surrogateescape").removesuffix("\n").split("\n")
    except FileNotFoundError:
        lines = []
    lines = [
        start + _escaped(address.password),
        *[line for line in lines if not line.startswith(start)],
    ]
    make_private_dir(os.path.dirname(path))
    write_atomically(path, ("\n".join(lines) + "\n").encode("utf-8", "surrogateescape"))
    os.chmod(path, 0o600)  # else libpq does not read it
    return path


def _password_file(environ: Mapping[str, str]) -> str:
    """Return the path of the password file, by the environment."""
    if environ.get("PGPASSFILE"):
        return environ["PGPASSFILE"]
    if os.name == "nt":
        return os.path.join(environ.get("APPDATA", ""), "postgresql", "pgpass.conf")
    return os.path.join(user_dir(environ), ".pgpass")


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace(":", "\\:")
