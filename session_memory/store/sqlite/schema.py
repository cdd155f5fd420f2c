"""The migrations of the store: each runs once, in one transaction with its record. The tables are in schema.sql."""

from __future__ import annotations

import os
from collections.abc import Callable

from ...system.files import read_whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from apsw import Connection

TOKENIZER = "porter unicode61 remove_diacritics 2"  # as in schema.sql


def create_store(connection: Connection) -> None:
    """All tables and views."""
    connection.execute(read_whole(os.path.join(os.path.dirname(__file__), "schema.sql")).decode())


MIGRATIONS: tuple[Callable[[Connection], None], ...] = (create_store,)
