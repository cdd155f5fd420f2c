"""OpenCode's database as a test needs it: its tables and indexes as OpenCode 1.18 makes them,
without what nobody reads, and rows that are added and changed as it does that."""

from __future__ import annotations

import json
import os
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from bench.scratch import unsynced
from session_memory.sessions.runtimes.table import runtime
from session_memory.sessions.transcripts.entries import Entry
from session_memory.sessions.transcripts.log import last_entries
from session_memory.sessions.transcripts.reader import TranscriptReader

SCHEMA = """
CREATE TABLE project (id text PRIMARY KEY, worktree text NOT NULL);
CREATE TABLE session (
    id text PRIMARY KEY, project_id text NOT NULL, parent_id text, slug text NOT NULL, directory text NOT NULL,
    title text NOT NULL, version text NOT NULL, summary_diffs text, revert text, agent text,
    time_created integer NOT NULL, time_updated integer NOT NULL, time_compacting integer, time_archived integer
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
CREATE INDEX session_project_idx ON session (project_id);
"""


class OpenCodeDatabase:
    """The database in a data directory of OpenCode or a fork, whose name it has. Each method is one
    transaction, and one step of a session. Ids begin after the number `last`."""

    def __init__(self, data_dir: Path, *, last: int = 0) -> None:
        data_dir.mkdir(parents=True, exist_ok=True)
        self.path = data_dir / f"{data_dir.name}.db"
        self._number = last
        with closing(unsynced(self.path)) as connection:
            connection.execute("PRAGMA journal_mode = wal")
            connection.executescript(SCHEMA)

    def run(self, statement: str, *values: object) -> None:
        with closing(unsynced(self.path)) as connection, connection:
            connection.execute(statement, values)

    def session(
        self, directory: Path | str, *, title: str = "", parent: str | None = None, at: float = 0.0
    ) -> str:
        """A new session; `at` in seconds since the epoch, now by default."""
        now = int((at or time.time()) * 1000)
        session_id = f"ses_{self._next():026d}"
        title = title or f"New session - {now}"
        self.run(
            "INSERT INTO session (id, project_id, parent_id, slug, directory, title, version, time_created,"
            " time_updated) VALUES (?, 'p', ?, 'neon', ?, ?, '1.18.33', ?, ?)",
            session_id,
            parent,
            str(directory),
            title,
            now,
            now,
        )
        return session_id

    def user(self, session_id: str, *texts: str, at: float = 0.0, told: str = "") -> str:
        """A prompt, with what a plugin put behind it."""
        message_id = self.message(session_id, {"role": "user", "agent": "build"}, at=at)
        for text in texts:
            self.part(session_id, message_id, {"type": "text", "text": text}, at=at)
        if told:
            self.part(
                session_id, message_id, {"type": "text", "text": told, "synthetic": True}, at=at
            )
        return message_id

    def assistant(
        self,
        session_id: str,
        parent: str,
        *parts: dict[str, Any],
        finish: str = "stop",
        at: float = 0.0,
        **data: Any,
    ) -> str:
        """A message of the model that has ended, with these parts."""
        message_id = self.begin(session_id, parent, at=at, **data)
        for part in parts:
            self.part(session_id, message_id, part, at=at)
        self.end(message_id, finish)
        return message_id

    def begin(self, session_id: str, parent: str, *, at: float = 0.0, **data: Any) -> str:
        """A message of the model that goes on."""
        tokens = {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}}
        given = {
            "role": "assistant",
            "parentID": parent,
            "modelID": "big-1",
            "providerID": "p",
            "tokens": tokens,
        }
        return self.message(session_id, {**given, **data}, at=at)

    def end(self, message_id: str, finish: str = "stop") -> None:
        """Ends a message."""
        self.run(
            "UPDATE message SET data = json_set(data, '$.finish', ?, '$.time.completed', time_created + 500)"
            " WHERE id = ?",
            finish,
            message_id,
        )

    def message(self, session_id: str, data: dict[str, Any], *, at: float = 0.0) -> str:
        now = int((at or time.time()) * 1000)
        message_id = f"msg_{self._next():026d}"
        self.run(
            "INSERT INTO message VALUES (?, ?, ?, ?, ?)",
            message_id,
            session_id,
            now,
            now,
            json.dumps({**data, "time": {"created": now}}, separators=(",", ":")),
        )
        self.run(
            "UPDATE session SET time_updated = max(time_updated, ?) WHERE id = ?", now, session_id
        )
        return message_id

    def part(
        self, session_id: str, message_id: str, data: dict[str, Any], *, at: float = 0.0
    ) -> str:
        now = int((at or time.time()) * 1000)
        part_id = f"prt_{self._next():026d}"
        text = json.dumps(data, separators=(",", ":"))
        self.run(
            "INSERT INTO part VALUES (?, ?, ?, ?, ?, ?)",
            part_id,
            message_id,
            session_id,
            now,
            now,
            text,
        )
        return part_id

    def change_part(self, part_id: str, data: dict[str, Any]) -> None:
        """What a row says once its part has gone on."""
        self.run(
            "UPDATE part SET data = ? WHERE id = ?",
            json.dumps(data, separators=(",", ":")),
            part_id,
        )

    def exchange(
        self, directory: Path | str, question: str, answer: str, *parts: dict[str, Any]
    ) -> str:
        """A session of a minute ago with one turn, in which these parts come before the answer."""
        at = time.time() - 60
        session_id = self.session(directory, at=at)
        self.turn(session_id, question, answer, *parts, at=at)
        return session_id

    def turn(
        self,
        session_id: str,
        question: str,
        answer: str,
        *parts: dict[str, Any],
        at: float = 0.0,
        told: str = "",
    ) -> str:
        """A turn of a session; the id of its prompt."""
        prompt = self.user(session_id, question, at=at, told=told)
        self.assistant(session_id, prompt, *parts, text(answer, at=at), at=at)
        return prompt

    def fork(self, session_id: str, title: str, *, before: str = "~", at: float = 0.0) -> str:
        """A session with copies of all messages before one of them, under new ids."""
        with closing(unsynced(self.path)) as connection:
            (directory,) = connection.execute(
                "SELECT directory FROM session WHERE id = ?", (session_id,)
            ).fetchone()
            messages = connection.execute(
                "SELECT id, time_created, data FROM message WHERE session_id = ? AND id < ? ORDER BY id",
                (session_id, before),
            ).fetchall()
            parts = {
                message_id: connection.execute(
                    "SELECT data FROM part WHERE message_id = ? ORDER BY id", (message_id,)
                ).fetchall()
                for message_id, _, _ in messages
            }
        forked = self.session(directory, title=title, at=at)
        ids = {message_id: f"msg_{self._next():026d}" for message_id, _, _ in messages}
        now = int((at or time.time()) * 1000)
        for message_id, created, data in messages:
            for old, new in ids.items():
                data = data.replace(old, new)
            self.run(
                "INSERT INTO message VALUES (?, ?, ?, ?, ?)",
                ids[message_id],
                forked,
                created,
                now,
                data,
            )
            for (part,) in parts[message_id]:
                self.part(forked, ids[message_id], json.loads(part), at=at)
        return forked

    def merge(self, directory: Path | str, count: int) -> str:
        """So many sessions with a turn each, and one with copies of all that is in them; its id."""
        merged, began = self.session(directory), int(time.time() * 1000) - count * 1000
        with closing(unsynced(self.path)) as connection, connection:
            for number in range(count):
                session_id, at = f"ses_old{number:04d}", began + number * 1000
                copied = "INSERT INTO session SELECT ?, project_id, parent_id, slug, directory, title, version,"
                connection.execute(
                    f"{copied} NULL, NULL, NULL, ?, ?, NULL, NULL FROM session WHERE id = ?",
                    (session_id, at, at, merged),
                )
                for place, role in ((f"{number:04d}0", "user"), (f"{number:04d}1", "assistant")):
                    data = {
                        "role": role,
                        "finish": "stop",
                        "time": {"created": at, "completed": at},
                    }
                    for kind, owner in (("old", session_id), ("own", merged)):
                        message_id, part = (
                            f"msg_{kind}{place}",
                            text(f"{role} {number}", at=at / 1000),
                        )
                        values = (
                            message_id,
                            owner,
                            at,
                            at,
                            json.dumps(data, separators=(",", ":")),
                        )
                        connection.execute("INSERT INTO message VALUES (?, ?, ?, ?, ?)", values)
                        values = (f"prt_{kind}{place}", message_id, owner, at, at, json.dumps(part))
                        connection.execute("INSERT INTO part VALUES (?, ?, ?, ?, ?, ?)", values)
        return merged

    def delete(self, session_id: str) -> None:
        """Deletes a session, as its user does."""
        for table, column in (("part", "session_id"), ("message", "session_id"), ("session", "id")):
            self.run(f"DELETE FROM {table} WHERE {column} = ?", session_id)

    def take_export(self, content: dict[str, Any]) -> str:
        """Imports a session as `opencode export` prints it; its id."""
        info = content["info"]
        self.run(
            "INSERT INTO session (id, project_id, parent_id, slug, directory, title, version, time_created,"
            " time_updated) VALUES (?, ?, NULL, ?, ?, ?, ?, ?, ?)",
            info["id"],
            info["projectID"],
            info["slug"],
            info["directory"],
            info["title"],
            info["version"],
            info["time"]["created"],
            info["time"]["updated"],
        )
        for one in content["messages"]:
            own = ("id", "sessionID", "messageID")
            said = {key: value for key, value in one["info"].items() if key not in own}
            at = said["time"]["created"]
            values = (
                one["info"]["id"],
                info["id"],
                at,
                at,
                json.dumps(said, separators=(",", ":")),
            )
            self.run("INSERT INTO message VALUES (?, ?, ?, ?, ?)", *values)
            for part in one["parts"]:
                data = json.dumps(
                    {key: value for key, value in part.items() if key not in own},
                    separators=(",", ":"),
                )
                values = (part["id"], one["info"]["id"], info["id"], at, at, data)
                self.run("INSERT INTO part VALUES (?, ?, ?, ?, ?, ?)", *values)
        return str(info["id"])

    def revert(self, session_id: str, message_id: str = "", part_id: str = "") -> None:
        """Takes back all from a message on, as `/undo` does; without one nothing is taken back any
        more."""
        value = {
            "messageID": message_id,
            **({"partID": part_id} if part_id else {}),
            "snapshot": "5eed",
        }
        self.run(
            "UPDATE session SET revert = ? WHERE id = ?",
            json.dumps(value) if message_id else None,
            session_id,
        )

    def clean_up(self, session_id: str) -> None:
        """Deletes what is taken back, as the next prompt does."""
        with closing(unsynced(self.path)) as connection:
            (value,) = connection.execute(
                "SELECT revert FROM session WHERE id = ?", (session_id,)
            ).fetchone()
        message_id = json.loads(value)["messageID"]
        self.run(
            "DELETE FROM part WHERE session_id = ? AND message_id >= ?", session_id, message_id
        )
        self.run("DELETE FROM message WHERE session_id = ? AND id >= ?", session_id, message_id)
        self.revert(session_id)

    def _next(self) -> int:
        self._number += 1
        return self._number


def text(said: str, *, at: float = 0.0) -> dict[str, Any]:
    """A text that the model has written."""
    now = int((at or time.time()) * 1000)
    return {"type": "text", "text": said, "time": {"start": now, "end": now + 100}}


def tool(
    name: str,
    given: dict[str, Any],
    output: str = "ok",
    *,
    call_id: str = "call_1",
    exit_code: int | None = None,
    at: float = 0.0,
    took: float = 0.1,
) -> dict[str, Any]:
    """A call that has ended; a command with its exit code."""
    now = int((at or time.time()) * 1000)
    state = {
        "status": "completed",
        "input": given,
        "output": output,
        "title": name,
        "metadata": {} if exit_code is None else {"exit": exit_code, "output": output},
        "time": {"start": now, "end": now + round(took * 1000)},
    }
    return {"type": "tool", "tool": name, "callID": call_id, "state": state}


OPENCODE = runtime("opencode")


class OpenCodeUser:
    """Somebody who uses OpenCode in `/srv/app`."""

    def __init__(self, root: Path) -> None:
        self.data_dir = root / ".local" / "share" / "opencode"
        self.database = OpenCodeDatabase(self.data_dir)
        self.root = root

    def refresh(self, *, everything: bool = False) -> None:
        OPENCODE.refresh(str(self.data_dir), everything)

    def mirror(self, session_id: str) -> Path:
        (path,) = (self.root / ".session-memory" / "state" / "opencode").rglob(
            f"{session_id}.jsonl"
        )
        return path

    def entries(self, session_id: str) -> list[Entry]:
        """What counts in the mirror of a session, brought up to date."""
        self.refresh()
        path = str(self.mirror(session_id))
        descriptor = os.open(path, os.O_RDONLY)
        try:
            reader = TranscriptReader(OPENCODE, Path(path).read_bytes().partition(b"\n")[0])
            found = [entry for entry in reader.conversation(descriptor) if entry]
        finally:
            os.close(descriptor)
        backward, unreadable = last_entries(OPENCODE, path, 1000, None)
        assert [entry.id for entry in backward] == [entry.id for entry in found]
        self.unreadable = unreadable
        return found

    def said(self, session_id: str) -> list[str]:
        return [entry.text or entry.tools[0].argument for entry in self.entries(session_id)]
