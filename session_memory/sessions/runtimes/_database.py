"""The base class for reading a program's database of sessions while that program writes to it.

Nothing is written or created, and no lock outlasts a read."""

from __future__ import annotations

from ...common.system.files import irregular, is_file, path_stamp, status_at
from ...common.system.quick_sqlite import Error, connect

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from sqlite3 import Connection
    from typing import Any, TypeVar

    Reader = TypeVar("Reader", bound="DatabaseOfSessions")

__all__ = ["DatabaseOfSessions", "Error", "is_damaged"]


def is_damaged(error: Exception) -> bool:
    """Check if an error of SQLite says that a file is damaged or not a database.

    An error that may pass, such as a lock, is of a subclass of this class."""
    return type(error).__name__ == "DatabaseError"


class DatabaseOfSessions:
    """A connection to the database at `path`, for a `with` block.

    Raises sqlite3.Error if it cannot be read at the moment. Without a write-ahead log nobody is
    writing, so the file is read without one; SQLite would otherwise create a log. If a log appears
    meanwhile, the results may be wrong (`is_same`). On file systems that do not support this log,
    a journal has the earlier content of a change that is being written, or was broken off."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._is_still = not is_file(path + "-wal")
        self._stamp = path_stamp(path)

    def __enter__(self: Reader) -> Reader:
        if irregular(self._path):  # SQLite would wait for ever for a FIFO's writer
            raise Error(f"not a regular file: {irregular(self._path)}")
        name = self._path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
        if self._is_still and self._has_journal:
            raise Error("a change is not finished")
        mode = "mode=ro&immutable=1" if self._is_still else "mode=ro"
        self.connection: Connection = connect(
            f"file:{name}?{mode}", uri=True, timeout=0, isolation_level=None
        )
        self.connection.text_factory = lambda content: content.decode("utf-8", "replace")
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()

    def begin(self) -> None:
        """Read from one snapshot of the database until `end`."""
        self.connection.execute("BEGIN")

    def end(self) -> None:
        """Let the program shorten its log again."""
        if self.connection.in_transaction:
            self.connection.execute("COMMIT")

    @property
    def _has_journal(self) -> bool:
        status = status_at(f"{self._path}-journal")
        return status is not None and status.st_size > 0

    @property
    def is_same(self) -> bool:
        """Return whether the results are still valid."""
        return not self._is_still or (
            not is_file(self._path + "-wal")
            and not self._has_journal
            and path_stamp(self._path) == self._stamp
        )

    def strings(self, statement: str, *values: object) -> list[str]:
        """Return the distinct texts in the only column of a statement; skip other types."""
        rows = self.connection.execute(statement, values)
        return list(dict.fromkeys([value for (value,) in rows if isinstance(value, str)]))

    def rows_of(self, statement: str, *values: object) -> Iterator[dict[str, Any]]:
        """Yield the rows of a statement, by the names of their columns."""
        cursor = self.connection.execute(statement, values)
        names = [column[0] for column in cursor.description]
        for row in cursor:
            yield dict(zip(names, row))
