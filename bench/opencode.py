"""OpenCode's database, with sessions of any size."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from tests.opencode_scene import OpenCodeDatabase

from .corpus import Author
from .corpus.formats import OpenCode
from .scratch import unsynced

# A session once more, under ids that begin otherwise.
COPY = (
    "INSERT INTO session SELECT ? || id, project_id, parent_id, slug, directory, title, version, "
    "summary_diffs, revert,"
    " agent, time_created, time_updated, time_compacting, time_archived FROM session WHERE id = ?",
    "INSERT INTO message SELECT ? || id, ? || session_id, time_created, "
    "time_updated, data FROM message"
    " WHERE session_id = ?",
    "INSERT INTO part SELECT ? || id, ? || message_id, ? || session_id, time_created, "
    "time_updated, data FROM part"
    " WHERE session_id = ?",
)
LONG_AGO_SECONDS = 40 * 24 * 3600.0


class LargeDatabase(OpenCodeDatabase):
    """The database in a data directory, for sessions started in `directory`."""

    def __init__(self, data_dir: Path, directory: str) -> None:
        super().__init__(data_dir)
        self._directory = directory
        self._cut: dict[str, list[tuple[Any, ...]]] = {"message": [], "part": []}

    def add(self, author: Author, kind: str = "ses") -> str:
        """Add a session of at least `author.size` bytes; return its id, beginning with `kind`."""
        session_id, began = f"{kind}_{self._next():026d}", int(author.now() * 1000)
        with self._transaction() as connection:
            while author.written < author.size:
                for turn in OpenCode().turn(author):
                    self._insert(connection, session_id, author, turn["message"], turn["parts"])
            row = (session_id, self._directory, author.words(5), began, int(author.now() * 1000))
            connection.execute(
                "INSERT INTO session (id, project_id, slug, directory, title, version, "
                "time_created, time_updated)"
                " VALUES (?, 'p', 'neon', ?, ?, '1.18.33', ?, ?)",
                row,
            )
        return session_id

    def fill(self, author: Author, size: int) -> None:
        """Fill the database up to `size` bytes with copies of one old session."""
        session_id = self.add(author, "old")
        while self.path.stat().st_size < size:
            prefix = f"old_{self._next():026d}"
            with self._transaction() as connection:
                for statement in COPY:
                    connection.execute(
                        statement, (*[prefix] * (statement.count("?") - 1), session_id)
                    )

    def cut(self, size: int) -> None:
        """Delete the last messages of each added session, at least `size` bytes, for `put`."""
        with self._transaction() as connection:
            for (session_id,) in connection.execute(
                "SELECT id FROM session WHERE id LIKE 'ses%'"
            ).fetchall():
                cut, query = 0, "SELECT * FROM message WHERE session_id = ? ORDER BY id DESC"
                for message in connection.execute(query, (session_id,)).fetchall():
                    if cut >= size:
                        break
                    parts = connection.execute(
                        "SELECT * FROM part WHERE message_id = ?", message[:1]
                    ).fetchall()
                    cut += sum(len(part[-1]) for part in parts)
                    self._cut["message"].insert(0, message)
                    self._cut["part"] += parts
            self._delete_cut(connection)

    def put(self) -> None:
        """Add the removed rows after all others, even if they are already back."""
        with self._transaction() as connection:
            self._delete_cut(connection)
            for table, rows in self._cut.items():
                places = ", ".join("?" * len(rows[0]))
                connection.executemany(f"INSERT INTO {table} VALUES ({places})", rows)

    def _delete_cut(self, connection: sqlite3.Connection) -> None:
        for table, rows in self._cut.items():
            connection.executemany(f"DELETE FROM {table} WHERE id = ?", [row[:1] for row in rows])

    def _insert(
        self,
        connection: sqlite3.Connection,
        session_id: str,
        author: Author,
        message: dict[str, Any],
        parts: list[Any],
    ) -> None:
        message_id, now = f"msg_{self._next():026d}", int(author.now() * 1000)
        data = _encode({**message, "time": {"created": now, "completed": now}})
        connection.execute(
            "INSERT INTO message VALUES (?, ?, ?, ?, ?)", (message_id, session_id, now, now, data)
        )
        for part in parts:
            text = _encode(part)
            author.written += len(text)
            values = (f"prt_{self._next():026d}", message_id, session_id, now, now, text)
            connection.execute("INSERT INTO part VALUES (?, ?, ?, ?, ?, ?)", values)

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with closing(unsynced(self.path)) as connection, connection:
            yield connection


def _encode(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
