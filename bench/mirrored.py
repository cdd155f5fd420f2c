"""Sessions of OpenCode, which lie in its database, and of Gemini CLI, whose chats say nothing of their directory: the
hook reads mirrors of both."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any

from .corpus import Author
from .corpus.tools import call

# As OpenCode 1.18 makes them, without what nobody reads.
SCHEMA = """
PRAGMA journal_mode = wal;
CREATE TABLE session (
    id text PRIMARY KEY, project_id text NOT NULL, parent_id text, slug text NOT NULL, directory text NOT NULL,
    title text NOT NULL, version text NOT NULL, revert text,
    time_created integer NOT NULL, time_updated integer NOT NULL
);
CREATE TABLE message (
    id text PRIMARY KEY, session_id text NOT NULL, time_created integer NOT NULL, time_updated integer NOT NULL,
    data text NOT NULL
);
CREATE TABLE part (
    id text PRIMARY KEY, message_id text NOT NULL, session_id text NOT NULL, time_created integer NOT NULL,
    time_updated integer NOT NULL, data text NOT NULL
);
CREATE INDEX message_session_time_created_id_idx ON message (session_id, time_created, id);
CREATE INDEX part_message_id_id_idx ON part (message_id, id);
CREATE INDEX part_session_idx ON part (session_id);
"""
# A session once more, under ids that begin otherwise.
COPY = (
    "INSERT INTO session SELECT ? || id, project_id, parent_id, slug, directory, title, version, revert,"
    " time_created, time_updated FROM session WHERE id = ?",
    "INSERT INTO message SELECT ? || id, ? || session_id, time_created, time_updated, data FROM message"
    " WHERE session_id = ?",
    "INSERT INTO part SELECT ? || id, ? || message_id, ? || session_id, time_created, time_updated, data FROM part"
    " WHERE session_id = ?",
)
LONG_AGO_SECONDS = 40 * 24 * 3600.0


class OpenCodeDatabase:
    """The database in a data directory of OpenCode, for sessions that are started in `directory`."""

    def __init__(self, data_dir: Path, directory: str) -> None:
        data_dir.mkdir(parents=True)
        self._path = data_dir / "opencode.db"
        self._directory = directory
        self._number = 0
        self._cut: dict[str, list[tuple[Any, ...]]] = {"message": [], "part": []}
        with closing(sqlite3.connect(self._path)) as connection:
            connection.executescript(SCHEMA)

    def add(self, author: Author, kind: str = "ses") -> str:
        """A session of `author.size` bytes or a little more; its id, which begins with `kind`."""
        session_id, began = self._next(kind), int(author.now() * 1000)
        with closing(sqlite3.connect(self._path)) as connection, connection:
            while author.written < author.size:
                for message, parts in _turn(author):
                    self._insert(connection, session_id, author, message, parts)
            ended = int(author.now() * 1000)
            row = (session_id, "p", None, "neon", self._directory, author.words(5), "1.18.33", None, began, ended)
            connection.execute(f"INSERT INTO session VALUES ({', '.join('?' * len(row))})", row)
        return session_id

    def fill(self, author: Author, size: int) -> None:
        """Makes the database as large as `size`, in bytes, with copies of one session of long ago."""
        session_id = self.add(author, "old")
        with closing(sqlite3.connect(self._path)) as connection:
            while self._path.stat().st_size < size:
                prefix = self._next("old")
                with connection:
                    for statement in COPY:
                        connection.execute(statement, (*[prefix] * (statement.count("?") - 1), session_id))

    def cut(self, size: int) -> None:
        """Takes the last messages of each session that was added away, `size` bytes or a little more; `put` adds them
        again."""
        with closing(sqlite3.connect(self._path)) as connection, connection:
            for (session_id,) in connection.execute("SELECT id FROM session WHERE id LIKE 'ses%'").fetchall():
                cut = 0
                messages = connection.execute(
                    "SELECT * FROM message WHERE session_id = ? ORDER BY id DESC", (session_id,)
                )
                for message in messages.fetchall():
                    if cut >= size:
                        break
                    parts = connection.execute("SELECT * FROM part WHERE message_id = ?", message[:1]).fetchall()
                    cut += sum(len(part[-1]) for part in parts)
                    self._cut["message"].insert(0, message)
                    self._cut["part"] += parts
            self._delete(connection)

    def put(self) -> None:
        """Adds what was cut, whether it is there again or not, as rows behind all others."""
        with closing(sqlite3.connect(self._path)) as connection, connection:
            self._delete(connection)
            for table, rows in self._cut.items():
                places = ", ".join("?" * len(rows[0]))
                connection.executemany(f"INSERT INTO {table} VALUES ({places})", rows)

    def _delete(self, connection: sqlite3.Connection) -> None:
        for table, rows in self._cut.items():
            connection.executemany(f"DELETE FROM {table} WHERE id = ?", [row[:1] for row in rows])

    def _insert(
        self, connection: sqlite3.Connection, session_id: str, author: Author, message: dict[str, Any], parts: list[Any]
    ) -> None:
        message_id, times = self._next("msg"), [int(author.now() * 1000)] * 2
        data = {**message, "time": {"created": times[0], "completed": times[0]}}
        connection.execute(
            "INSERT INTO message VALUES (?, ?, ?, ?, ?)", (message_id, session_id, *times, _encode(data))
        )
        for part in parts:
            text = _encode(part)
            author.written += len(text)
            values = (self._next("prt"), message_id, session_id, *times, text)
            connection.execute("INSERT INTO part VALUES (?, ?, ?, ?, ?, ?)", values)

    def _next(self, kind: str) -> str:
        self._number += 1
        return f"{kind}_{self._number:026d}"


def _turn(author: Author) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """A prompt and all that follows until the agent has answered it: messages with their parts."""
    yield {"role": "user", "agent": "build"}, [{"type": "text", "text": author.prose(200)}]
    said = {"role": "assistant", "modelID": "big-1", "providerID": "p"}
    for _ in range(int(author.random.expovariate(1 / 8)) + 1):
        used = call(author)
        output = used.result if isinstance(used.result, str) else "image"
        state = {"status": "completed", "input": used.arguments, "output": output, "title": used.name, "metadata": {}}
        part = {"type": "tool", "tool": used.name.lower(), "callID": author.token("call_"), "state": state}
        yield {**said, "finish": "tool-calls"}, [part]
    yield {**said, "finish": "stop"}, [{"type": "text", "text": author.prose(700), "time": {"start": 1, "end": 2}}]


def write_chat(config_dir: Path, author: Author) -> Path:
    """A chat of Gemini CLI with `author.size` bytes or a little more, and what tells its directory beside it."""
    project = config_dir / "tmp" / Path(author.cwd).name
    (project / "chats").mkdir(parents=True, exist_ok=True)
    (project / ".project_root").write_text(author.cwd)
    path = project / "chats" / f"session-2026-11-22T02-15-{author.session_id[:8]}.jsonl"
    with path.open("wb") as file:
        checksum = sha256(author.cwd.encode()).hexdigest()
        header = {"sessionId": author.session_id, "projectHash": checksum, "startTime": author.timestamp()}
        file.write(_encode({**header, "kind": "main"}).encode() + b"\n")
        while author.written < author.size:
            for kind, fields in _said(author):
                message = {"id": author.uuid(), "timestamp": author.timestamp(), "type": kind, **fields}
                author.written += file.write(_encode(message).encode() + b"\n")
    return path


def _said(author: Author) -> Iterator[tuple[str, dict[str, Any]]]:
    """A prompt and the answer: the type of each message, and what it holds."""
    yield "user", {"content": [{"text": author.prose(200)}]}
    for _ in range(int(author.random.expovariate(1 / 8)) + 1):
        used, call_id = call(author), author.token("call_")
        output = used.result if isinstance(used.result, str) else "image"
        answered = {"functionResponse": {"id": call_id, "name": used.name.lower(), "response": {"output": output}}}
        done = {"id": call_id, "name": used.name.lower(), "args": used.arguments, "result": [answered]}
        yield "gemini", {"content": "", "toolCalls": [{**done, "status": "success"}]}
    yield "gemini", {"content": author.prose(700)}


def _encode(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
