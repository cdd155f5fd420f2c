"""Hermes's database as a test needs it: the columns of 0.19.0 that are read, and rows that are
added, undone, compacted and replaced as Hermes does that."""

from __future__ import annotations

import json
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from records import new_id

from bench.scratch import unsynced

SCHEMA = """
CREATE TABLE IF NOT EXISTS sessions (
  id TEXT PRIMARY KEY, source TEXT NOT NULL, model TEXT, model_config TEXT, system_prompt TEXT,
  parent_session_id TEXT, started_at REAL NOT NULL, ended_at REAL, end_reason TEXT, cwd TEXT,
  title TEXT, rewind_count INTEGER NOT NULL DEFAULT 0, archived INTEGER NOT NULL DEFAULT 0,
  FOREIGN KEY (parent_session_id) REFERENCES sessions(id)
);
CREATE TABLE IF NOT EXISTS messages (
  id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL REFERENCES sessions(id),
  role TEXT NOT NULL, content TEXT, tool_call_id TEXT, tool_calls TEXT, tool_name TEXT,
  effect_disposition TEXT, timestamp REAL NOT NULL, finish_reason TEXT, reasoning TEXT,
  reasoning_content TEXT, observed INTEGER DEFAULT 0, active INTEGER NOT NULL DEFAULT 1,
  compacted INTEGER NOT NULL DEFAULT 0, api_content TEXT
);
CREATE TABLE IF NOT EXISTS session_model_usage (
  session_id TEXT NOT NULL REFERENCES sessions(id) ON DELETE CASCADE, model TEXT NOT NULL,
  billing_provider TEXT NOT NULL DEFAULT '', billing_base_url TEXT NOT NULL DEFAULT '',
  billing_mode TEXT NOT NULL DEFAULT '', task TEXT NOT NULL DEFAULT '',
  input_tokens INTEGER NOT NULL DEFAULT 0, output_tokens INTEGER NOT NULL DEFAULT 0,
  cache_read_tokens INTEGER NOT NULL DEFAULT 0, cache_write_tokens INTEGER NOT NULL DEFAULT 0,
  last_seen REAL, PRIMARY KEY (session_id, model, billing_provider, billing_base_url, billing_mode, task)
);
CREATE INDEX IF NOT EXISTS idx_messages_session ON messages(session_id, timestamp);
CREATE INDEX IF NOT EXISTS idx_messages_session_active ON messages(session_id, active, timestamp);
"""
SUMMARY = "[CONTEXT COMPACTION - REFERENCE ONLY] Earlier turns were compacted"


class HermesDatabase:
    """The database in a directory of Hermes. Each method is one transaction."""

    def __init__(self, config_dir: Path) -> None:
        self.path = config_dir / "state.db"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with closing(unsynced(self.path)) as connection:
            connection.execute("PRAGMA journal_mode = wal")
            connection.executescript(SCHEMA)

    def run(self, statement: str, *values: object) -> None:
        with closing(unsynced(self.path)) as connection, connection:
            connection.execute(statement, values)

    def insert(self, table: str, row: dict[str, Any]) -> None:
        names = ", ".join(row)
        marks = ", ".join("?" * len(row))
        self.run(f"INSERT INTO {table} ({names}) VALUES ({marks})", *row.values())

    def session(self, directory: Path | str | None, *, at: float = 0.0, **more: Any) -> str:
        """A session without messages; a branch and a sub-agent have no directory."""
        at = at or time.time()
        stamp = time.strftime("%Y%m%d_%H%M%S", time.gmtime(at))
        row = {"id": f"{stamp}_{new_id()[14:18]:0>6}", "source": "cli", "model": "fake-1", **more}
        cwd = None if directory is None else str(directory)
        self.insert("sessions", {**row, "started_at": at, "cwd": cwd})
        return str(row["id"])

    def sub_agent(self, parent: str) -> str:
        config = json.dumps({"_delegate_from": parent})
        return self.session(None, source="subagent", parent_session_id=parent, model_config=config)

    def message(self, session_id: str, role: str, content: Any, **more: Any) -> None:
        """Adds a message."""
        row = {"session_id": session_id, "role": role, "content": content}
        self.insert("messages", {**row, "timestamp": time.time(), **more})

    def exchange(self, session_id: str, question: str, answer: str, *, at: float = 0.0) -> None:
        at = at or time.time()
        self.message(session_id, "user", question, timestamp=at)
        self.message(session_id, "assistant", answer, timestamp=at, finish_reason="stop")

    def call(
        self, session_id: str, name: str, arguments: dict[str, Any], began: float, ended: float
    ) -> None:
        """Adds a call and its result."""
        call_id = f"call_{new_id()}"
        function = {"name": name, "arguments": json.dumps(arguments)}
        calls = json.dumps([{"id": call_id, "type": "function", "function": function}])
        self.message(session_id, "assistant", "", timestamp=began, tool_calls=calls)
        result = {"output": "ok", "exit_code": 0, "error": None} if name == "terminal" else {}
        text = json.dumps(result or {"success": True, "diff": "+b"})
        self.message(session_id, "tool", text, timestamp=ended, tool_call_id=call_id)

    def uses(self, session_id: str, model: str, *amounts: int, task: str = "") -> None:
        """Adds to the tokens of a session: read, written, from a cache and into one."""
        names = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
        changes = ", ".join([f"{name} = {name} + excluded.{name}" for name in names])
        self.run(
            f"INSERT INTO session_model_usage (session_id, model, task, last_seen, {', '.join(names)})"
            f" VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET {changes}",
            *(session_id, model, task, time.time(), *amounts),
        )

    def undo(self, session_id: str, question: str) -> None:
        """Takes back a question, with all that follows."""
        first = "(SELECT max(id) FROM messages WHERE session_id = ?1 AND content = ?2)"
        self.run(
            f"UPDATE messages SET active = 0 WHERE session_id = ?1 AND id >= {first}",
            session_id,
            question,
        )

    def copy_rows(self, source: str, target: str) -> None:
        """Adds copies of the valid rows of a session, now, to another one or to itself."""
        names = "role, content, tool_call_id, tool_calls, tool_name, api_content"
        self.run(
            f"INSERT INTO messages (session_id, timestamp, {names}) SELECT ?, ?, {names}"
            " FROM messages WHERE session_id = ? AND active = 1 ORDER BY id",
            target,
            time.time(),
            source,
        )

    def branch(self, parent: str) -> str:
        config = json.dumps({"_branched_from": parent})
        branch = self.session(None, parent_session_id=parent, model_config=config)
        self.copy_rows(parent, branch)
        return branch

    def replace(self, session_id: str) -> None:
        """Replaces all rows by others with the same content."""
        last = "(SELECT max(id) FROM messages)"
        self.run(f"UPDATE messages SET id = id + {last} WHERE session_id = ?", session_id)

    def copy(self, config_dir: Path) -> HermesDatabase:
        """Copy all sessions to another directory, as a person may do by hand."""
        other = HermesDatabase(config_dir)
        with closing(unsynced(self.path)) as source, closing(unsynced(other.path)) as target:
            source.backup(target)
        return other

    def delete(self, session_id: str) -> None:
        self.run("DELETE FROM messages WHERE session_id = ?", session_id)
        self.run("DELETE FROM sessions WHERE id = ?", session_id)


def place_rows(config_dir: Path, texts: list[str], shift: float = 0.0) -> list[str]:
    """Put sessions from fixtures into the database, as many seconds later: a line with the session's
    row, then a line for each message. Return their ids."""
    database, ids = HermesDatabase(config_dir), []
    for text in texts:
        session, *messages = [json.loads(line) for line in text.splitlines()]
        ids.append(session["id"])
        session["started_at"] += shift
        database.insert("sessions", session)
        for message in messages:
            message["timestamp"] += shift
            database.insert("messages", {"session_id": session["id"], **message})
    return ids
