"""The base class for a session's rows in a database, kept as lines of JSON."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from typing import Any

from ...common.system.json import encode_compactly
from ._database import DatabaseOfSessions, Error
from .backup import SessionFile


class SessionRows(SessionFile):
    """A session in the database `source`. A subclass states the class of connections, READER."""

    READER: type[DatabaseOfSessions]

    def __init__(self, path: str, source: str, stamp: list[int]) -> None:
        self.path = path
        self.source = source
        self.stamp = stamp

    def rows(self, reader: Any) -> Iterator[dict[str, Any]]:
        """Yield the rows to keep."""
        raise NotImplementedError

    def open(self, confined_to: str = "") -> int:
        try:
            with self.READER(self.source) as reader, tempfile.TemporaryFile() as file:
                reader.begin()
                for row in self.rows(reader):
                    file.write(encode_compactly(row).encode("utf-8", "replace") + b"\n")
                reader.end()
                file.flush()
                return os.dup(file.fileno())
        except Error as error:
            raise OSError(f"{self.source}: {error}") from error
