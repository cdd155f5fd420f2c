"""The store's database: opened, made and brought up to date. Its tables are in schema.sql."""

from __future__ import annotations

import os
from collections.abc import Callable

from ...system.files import read_whole
from ...system.sqlite import Database

TYPE_CHECKING = False
if TYPE_CHECKING:
    from apsw import Connection

TOKENIZER = "porter unicode61 remove_diacritics 2"  # as in schema.sql


def create_store(connection: Connection) -> None:
    """All tables and views, and in them what is known from before of the queue and the token accounts."""
    from .queue_copy import restore

    connection.execute(read_whole(os.path.join(os.path.dirname(__file__), "schema.sql")).decode())
    restore(connection)


# Each runs once, in one transaction with its record.
MIGRATIONS: tuple[Callable[[Connection], None], ...] = (create_store,)


def open_database(path: str) -> Database:
    """The database at `path`, made where it is missing; set aside and made anew where it is corrupt, with the queue
    and the token accounts as far as they can be had. Raises DatabaseError, OSError."""
    return Database(path, MIGRATIONS, _salvage)


def _salvage(path: str) -> None:
    from .queue_copy import salvage

    salvage(path)
