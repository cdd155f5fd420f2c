"""An agent's database as a test needs it: the tables of OpenClaw 2026.9.2 that are read, and rows
that are added and replaced as it does that."""

from __future__ import annotations

import json
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from records import new_id, stamp

from bench.scratch import unsynced
from session_memory.common.text.timestamps import epoch_seconds

SCHEMA = """
CREATE TABLE IF NOT EXISTS session_nodes (
  session_key TEXT NOT NULL PRIMARY KEY, current_session_id TEXT NOT NULL, entry_json TEXT NOT NULL,
  updated_at INTEGER NOT NULL, created_via TEXT, parent_session_key TEXT, spawned_by TEXT,
  fork_source_session_id TEXT, label TEXT, display_name TEXT
) STRICT;
CREATE TABLE IF NOT EXISTS session_windows (
  session_id TEXT NOT NULL PRIMARY KEY, session_key TEXT NOT NULL, previous_session_id TEXT, reason TEXT,
  created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, transcript_updated_at INTEGER DEFAULT NULL,
  FOREIGN KEY (session_key) REFERENCES session_nodes(session_key) ON DELETE CASCADE
) STRICT;
CREATE TABLE IF NOT EXISTS transcript_events (
  session_id TEXT NOT NULL, seq INTEGER NOT NULL, event_json TEXT NOT NULL, created_at INTEGER NOT NULL,
  PRIMARY KEY (session_id, seq),
  FOREIGN KEY (session_id) REFERENCES session_windows(session_id) ON DELETE CASCADE
) STRICT;
CREATE TABLE IF NOT EXISTS transcript_rewrite_watermarks (
  session_id TEXT NOT NULL PRIMARY KEY, generation TEXT NOT NULL, updated_at INTEGER NOT NULL,
  FOREIGN KEY (session_id) REFERENCES session_windows(session_id) ON DELETE CASCADE
) STRICT;
"""


class OpenClawDatabase:
    """The database of an agent in a directory of OpenClaw. Each method is one transaction."""

    def __init__(self, config_dir: Path, agent: str = "main") -> None:
        self.agent = agent
        self.path = config_dir / "agents" / agent / "agent" / "openclaw-agent.sqlite"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._last: dict[str, str | None] = {}
        with closing(unsynced(self.path)) as connection:
            connection.execute("PRAGMA journal_mode = wal")
            connection.executescript(SCHEMA)

    def run(self, statement: str, *values: object) -> None:
        with closing(unsynced(self.path)) as connection, connection:
            connection.execute("PRAGMA foreign_keys = on")
            connection.execute(statement, values)

    def add_session(
        self, session_id: str, key: str, *, label: str = "", parent: str = "", at: float = 0.0
    ) -> None:
        """A session without rows."""
        now = int((at or time.time()) * 1000)
        self.run(
            "INSERT INTO session_nodes (session_key, current_session_id, entry_json, updated_at, spawned_by,"
            " label) VALUES (?, ?, '{}', ?, ?, ?)",
            key,
            session_id,
            now,
            parent or None,
            label or None,
        )
        self.run(
            "INSERT INTO session_windows (session_id, session_key, created_at, updated_at) VALUES (?, ?, ?, ?)",
            session_id,
            key,
            now,
            now,
        )
        self.run(
            "INSERT INTO transcript_rewrite_watermarks VALUES (?, ?, ?)", session_id, new_id(), now
        )

    def session(self, directory: Path | str, *, title: str = "", at: float = 0.0) -> str:
        """A session with its first record."""
        session_id, at = new_id(), at or time.time()
        self.add_session(
            session_id, f"agent:{self.agent}:explicit:{session_id}", label=title, at=at
        )
        head = {"type": "session", "version": 3, "id": session_id, "timestamp": stamp(at)}
        self.add(session_id, {**head, "cwd": str(directory)}, at=at)
        return session_id

    def add(self, session_id: str, *records: dict[str, Any] | str, at: float = 0.0) -> None:
        """Adds rows to a session."""
        now = int((at or time.time()) * 1000)
        with closing(unsynced(self.path)) as connection, connection:
            (end,) = connection.execute(
                "SELECT ifnull(max(seq) + 1, 0) FROM transcript_events WHERE session_id = ?",
                (session_id,),
            ).fetchone()
            for seq, record in enumerate(records, end):
                text = record if isinstance(record, str) else json.dumps(record)
                connection.execute(
                    "INSERT INTO transcript_events VALUES (?, ?, ?, ?)",
                    (session_id, seq, text, now),
                )
            connection.execute(
                "UPDATE session_windows SET updated_at = max(updated_at, ?), transcript_updated_at = ?"
                " WHERE session_id = ?",
                (now, now, session_id),
            )

    def replace(self, session_id: str, records: list[dict[str, Any]]) -> None:
        """Replaces all rows of a session."""
        self.run("DELETE FROM transcript_events WHERE session_id = ?", session_id)
        self.add(session_id, *records)
        self.run(
            "UPDATE transcript_rewrite_watermarks SET generation = ? WHERE session_id = ?",
            new_id(),
            session_id,
        )

    def records(self, session_id: str) -> list[dict[str, Any]]:
        with closing(unsynced(self.path)) as connection:
            rows = connection.execute(
                "SELECT event_json FROM transcript_events WHERE session_id = ? ORDER BY seq",
                (session_id,),
            )
            return [json.loads(text) for (text,) in rows]

    def message(
        self, session_id: str, role: str, content: Any, *, at: float = 0.0, **more: Any
    ) -> str:
        """Adds a message after the last one."""
        at, record_id = at or time.time(), new_id()
        message = {"role": role, "content": content, "timestamp": int(at * 1000), **more}
        record = {
            "type": "message",
            "id": record_id,
            "parentId": self._last.get(session_id),
            "timestamp": stamp(at),
            "message": message,
        }
        self._last[session_id] = record_id
        self.add(session_id, record, at=at)
        return record_id

    def exchange(self, session_id: str, question: str, answer: str, *, at: float = 0.0) -> None:
        self.message(session_id, "user", question, at=at)
        text = [{"type": "text", "text": answer}]
        self.message(session_id, "assistant", text, at=at, model="fake-1", stopReason="stop")

    def call(
        self, session_id: str, name: str, arguments: dict[str, Any], began: float, ended: float
    ) -> None:
        """Adds a call and its result."""
        call_id = f"call_{new_id()}"
        call = {"type": "toolCall", "id": call_id, "name": name, "arguments": arguments}
        self.message(session_id, "assistant", [call], at=began, stopReason="toolUse")
        details = {"details": {"status": "completed", "exitCode": 0}} if name == "exec" else {}
        text = [{"type": "text", "text": "ok"}]
        self.message(
            session_id,
            "toolResult",
            text,
            at=ended,
            toolCallId=call_id,
            toolName=name,
            isError=False,
            **details,
        )

    def delete(self, session_id: str) -> None:
        """Deletes a session with its rows."""
        self.run(
            "DELETE FROM session_nodes WHERE session_key ="
            " (SELECT session_key FROM session_windows WHERE session_id = ?)",
            session_id,
        )


def place_rows(config_dir: Path, texts: list[str]) -> list[str]:
    """Put sessions from fixtures into the database of an agent: a line with the session's key and
    label, then a line for each row. Return their ids."""
    database, ids = OpenClawDatabase(config_dir), []
    for text in texts:
        head, *rows = text.splitlines()
        window, first = json.loads(head), json.loads(rows[0])
        ids.append(first["id"])
        kind = window["session_key"].split(":")[2]
        parent = f"agent:main:explicit:{ids[0]}" if kind == "subagent" else ""
        last = max(json.loads(row)["timestamp"] for row in rows)
        at = epoch_seconds(last) or 0.0
        database.add_session(
            first["id"], window["session_key"], label=window["label"], parent=parent, at=at
        )
        database.add(first["id"], *rows, at=at)
    return ids
