"""Rows in the binary format of `COPY`. Pure.

A row is the number of its fields and each field with its size before it, the highest byte first
(https://www.postgresql.org/docs/current/sql-copy.html). psycopg's `write_row` makes the same; but here a row can be
made before all of it is known.
"""

from __future__ import annotations

from struct import Struct

BEFORE_ROWS = b"PGCOPY\n\xff\r\n\0" + bytes(8)
AFTER_ROWS = b"\xff\xff"
NULL = b"\xff\xff\xff\xff"
_FIELDS = Struct(">h").pack
_BIGINT = Struct(">iq").pack
size = Struct(">i").pack  # of the field that comes next, in bytes


def row_start(fields: int) -> bytes:
    """What a row of so many fields begins with."""
    return _FIELDS(fields)


def field(value: bytes) -> bytes:
    """A field of bytes."""
    return size(len(value)) + value


def bigint(value: int | None) -> bytes:
    """A field of the type bigint."""
    return NULL if value is None else _BIGINT(8, value)


def text(value: str | None) -> bytes:
    """A field of the type text."""
    return NULL if value is None else field(storable(value).encode())


def storable(value: str) -> str:
    """A text as PostgreSQL takes it: without NUL."""
    return value.replace("\0", "\ufffd")
