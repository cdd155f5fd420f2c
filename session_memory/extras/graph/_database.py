"""The graph database that a URL names, as one of graphiti's drivers.

kuzu:///path                        embedded; a directory, in it a file for each group
neo4j://, neo4j+s://, bolt://...    a Neo4j server
falkor://host:port                  a FalkorDB server, in it a graph for each group
"""

from __future__ import annotations

import os
import shlex
import sys
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, urlsplit

from ...common.errors import ConfigError
from ...common.system.files import lock, make_private_dir
from ...memory.strategy import StrategyError, UnavailableError

if TYPE_CHECKING:
    from graphiti_core.driver.driver import GraphDriver

EMBEDDED = "kuzu"
NEO4J = ("neo4j", "neo4j+s", "neo4j+ssc", "bolt", "bolt+s", "bolt+ssc")
FALKORDB = ("falkor", "falkordb")
FALKORDB_PORT = 6379
LOCK_WAIT_SECONDS = 30.0
_HINT = "it must be kuzu:///path, neo4j://host:7687 or falkor://host:6379"


def checked_url(url: Any) -> str:
    """Return `url` if it names a graph database. Raises ConfigError."""
    if not isinstance(url, str):
        raise ConfigError(f"memories: graphiti: url is {url!r}", _HINT)
    try:
        parts = urlsplit(url)
        is_known = parts.scheme == EMBEDDED and parts.path.startswith("/") and not parts.netloc
        is_known = is_known or (
            parts.scheme in (*NEO4J, *FALKORDB) and bool(parts.hostname) and parts.port != 0
        )
    except ValueError:
        is_known = False
    if not is_known:
        raise ConfigError(f"memories: graphiti: url is {url!r}", _HINT)
    if parts.password:
        raise ConfigError(
            "memories: graphiti: the url contains a password",
            "put it in a variable and name the variable in `password_env`",
        )
    return url


def graph_name_of(name: str, *, is_untrusted: bool = False) -> str:
    """Return a group's name in the graph: letters, digits, hyphens and underscores.

    Untrusted sessions have a separate name."""
    name = (
        "".join([c if c.isascii() and (c.isalnum() or c == "-") else f"_{ord(c):x}_" for c in name])
        or "main"
    )
    return f"{name}_untrusted" if is_untrusted else name


async def open_driver(url: str, name: str, password: str) -> GraphDriver:
    """Open the driver for a group's graph and create its indexes. Raises StrategyError."""
    parts = urlsplit(url)
    if parts.scheme == EMBEDDED:
        return await _kuzu(parts.path, name)
    if parts.scheme in NEO4J:
        return await _neo4j(url, parts, password)
    return await _falkordb(parts, name, password)


async def _kuzu(directory: str, name: str) -> GraphDriver:
    from ._kuzu import open_kuzu

    make_private_dir(directory.rstrip("/"))
    path = os.path.join(directory, f"{name}.kuzu")
    held = lock(f"{path}.lock", LOCK_WAIT_SECONDS)
    try:
        return await open_kuzu(path, name)
    except RuntimeError as error:
        if "lock" in str(error).lower():
            message = f"{os.path.basename(path)}: another process has the graph open"
            hint = "try again when it has finished"
            raise StrategyError(message, hint, is_temporary=True) from error
        raise UnavailableError(f"{path}: {error}") from error
    finally:
        os.close(held)


async def _neo4j(url: str, parts: SplitResult, password: str) -> GraphDriver:
    from graphiti_core.driver.neo4j_driver import Neo4jDriver

    class Driver(Neo4jDriver):
        """One database for all groups, told apart by their ids; most servers have only one."""

        def clone(self, database: str) -> GraphDriver:
            return self

    user = parts.username or "neo4j"
    address = url.replace(f"{parts.username}@", "", 1) if parts.username else url
    driver = Driver(
        address.partition("?")[0].rstrip("/"), user, password, parts.path.strip("/") or "neo4j"
    )
    await driver.build_indices_and_constraints()
    return driver


async def _falkordb(parts: SplitResult, name: str, password: str) -> GraphDriver:
    try:
        from graphiti_core.driver.falkordb_driver import FalkorDriver
    except ImportError as error:
        # an install's own environment has no pip
        base = getattr(sys, "_base_executable", sys.executable)
        hint = (
            f"{shlex.quote(base)} -m pip --python {shlex.quote(sys.executable)} install "
            f"'graphiti-core[falkordb]'"
        )
        raise UnavailableError("the driver for FalkorDB is not installed", hint) from error

    class Driver(FalkorDriver):
        """One graph for all groups of a home, told apart by their ids."""

        def clone(self, database: str) -> GraphDriver:
            return self

    driver = Driver(
        parts.hostname or "localhost",
        parts.port or FALKORDB_PORT,
        parts.username,
        password or None,
        database=name,
    )
    await driver.build_indices_and_constraints()  # type: ignore[no-untyped-call,unused-ignore]
    return driver
