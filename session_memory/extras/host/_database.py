"""messages.db, with all SQL of the host. The tables are in schema.sql.

The pointers' tables are in the same file.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...common.system.sqlite import SharedDatabase
from ...sessions.transcripts.pointers import MIGRATIONS as POINTERS
from ._values import Chat, ChatReply, Message, Prompt, RegisteredGroup, Task, TaskRun

if TYPE_CHECKING:
    import apsw

    from ...common.system.sqlite import Migration


def create_host(connection: apsw.Connection) -> None:
    """Create the tables of schema.sql."""
    connection.execute(Path(__file__).with_name("schema.sql").read_text(encoding="utf-8"))


def add_channel_columns(connection: apsw.Connection) -> None:
    """Add columns for channels: messages that call the agent, and the sent parts of a reply."""
    connection.execute("ALTER TABLE inbox ADD COLUMN is_called INTEGER NOT NULL DEFAULT 0")
    connection.execute("ALTER TABLE outbox ADD COLUMN sent_parts INTEGER NOT NULL DEFAULT 0")


def drop_container_config(connection: apsw.Connection) -> None:
    """Drop a column of NanoClaw's that nothing read; `host.agent_command` starts an agent."""
    connection.execute("ALTER TABLE registered_groups DROP COLUMN container_config")


MIGRATIONS: tuple[Migration, ...] = (create_host, add_channel_columns, drop_container_config)


class HostDatabase(SharedDatabase):
    """An open messages.db, created or migrated. Raises DatabaseError.

    Outside a transaction, methods raise apsw's errors. Call a method that changes something in a
    `transaction`."""

    IF_CORRUPT = "the conversations are in data/sessions and groups/*/conversations, independent of this file"

    def __init__(self, path: str) -> None:
        super().__init__(path, (*POINTERS, *MIGRATIONS))
        self.connection.pragma("foreign_keys", True)

    def version(self) -> tuple[int, int]:
        """Return numbers that change with the database, over this or another connection."""
        return int(self.connection.pragma("data_version")), self.connection.total_changes()

    def change(self, table: str, id: object, **values: object) -> None:
        columns = ", ".join([f"{name} = ?" for name in values])
        self._execute(f"UPDATE {table} SET {columns} WHERE id = ?", *values.values(), id)

    # Groups

    def groups(self) -> list[RegisteredGroup]:
        rows = self._rows(
            "SELECT jid, name, folder, trigger_pattern, coalesce(requires_trigger, 1) FROM "
            "registered_groups "
            "ORDER BY folder"
        )
        groups = map(RegisteredGroup._make, rows)
        return [group._replace(requires_trigger=bool(group.requires_trigger)) for group in groups]

    def add_group(self, group: RegisteredGroup, added_at: str) -> None:
        self._execute(
            "INSERT INTO registered_groups (jid, name, folder, trigger_pattern, "
            "requires_trigger, added_at) "
            "VALUES (?, ?, ?, ?, ?, ?)",
            *group,
            added_at,
        )

    def change_group(self, folder: str, group: RegisteredGroup) -> None:
        """Change everything except a group's folder; its tasks move with it to another chat."""
        self._execute(
            "UPDATE scheduled_tasks SET chat_jid = ? WHERE group_folder = ? "
            "AND chat_jid = (SELECT jid FROM registered_groups WHERE folder = ?)",
            group.jid,
            folder,
            folder,
        )
        self._execute(
            "UPDATE registered_groups SET jid = ?, name = ?, trigger_pattern = ?, "
            "requires_trigger = ? "
            "WHERE folder = ?",
            group.jid,
            group.name,
            group.trigger_pattern,
            group.requires_trigger,
            folder,
        )

    def remove_group(self, folder: str) -> None:
        """Remove a group; its chat, messages and tasks stay."""
        self._execute("DELETE FROM registered_groups WHERE folder = ?", folder)

    # Chats and messages

    def chats(self) -> list[Chat]:
        """Return all chats, the last active one first."""
        rows = self._rows(
            "SELECT jid, coalesce(name, ''), coalesce(last_message_time, '') FROM chats "
            "ORDER BY last_message_time DESC, jid"
        )
        return [Chat._make(row) for row in rows]

    def has_chat(self, jid: str) -> bool:
        return bool(self._rows("SELECT 1 FROM chats WHERE jid = ?", jid))

    def set_is_group(self, jid: str, is_group: bool) -> None:
        """Record whether a chat has more than one person in it."""
        self._execute("UPDATE chats SET is_group = ? WHERE jid = ?", int(is_group), jid)

    def text_of_message(self, message_id: str, jid: str) -> str | None:
        """Return the text of a message, None if the chat has none with this id."""
        rows = self._rows(
            "SELECT content FROM messages WHERE id = ? AND chat_jid = ?", message_id, jid
        )
        return str(rows[0][0]) if rows else None

    def is_waiting(self, message_id: str, jid: str) -> bool:
        """Return whether a message is in the inbox and in no prompt."""
        return bool(
            self._rows(
                "SELECT 1 FROM inbox WHERE message_id = ? AND chat_jid = ? AND prompt_id IS NULL",
                message_id,
                jid,
            )
        )

    def sender_of(self, message_id: str, jid: str) -> tuple[str, str]:
        """Return the sender of a known message, and their name."""
        (row,) = self._rows(
            "SELECT sender, sender_name FROM messages WHERE id = ? AND chat_jid = ?",
            message_id,
            jid,
        )
        return str(row[0]), str(row[1])

    def is_called(self, message_id: str, jid: str) -> bool:
        """Return whether a message calls the agent, whatever its text."""
        rows = self._rows(
            "SELECT is_called FROM inbox WHERE message_id = ? AND chat_jid = ?", message_id, jid
        )
        return bool(rows and rows[0][0])

    def change_text(self, message_id: str, jid: str, text: str) -> None:
        self._execute(
            "UPDATE messages SET content = ? WHERE id = ? AND chat_jid = ?", text, message_id, jid
        )

    def add_chat(self, jid: str, name: str | None, last_message_time: str) -> None:
        """Add a chat, or update a known one. Without `name`, a new chat is named by its id."""
        self._execute(
            "INSERT INTO chats (jid, name, last_message_time, channel) VALUES (?, coalesce(?, "
            "?), ?, ?) "
            "ON CONFLICT (jid) DO UPDATE SET name = coalesce(?, name), "
            "last_message_time = max(last_message_time, excluded.last_message_time)",
            jid,
            name,
            jid,
            last_message_time,
            jid.partition(":")[0],
            name,
        )

    def add_message(
        self, message_id: str, jid: str, sender: str, sender_name: str, text: str, timestamp: str
    ) -> bool:
        """Add a received message; return False if the chat has one with this id."""
        return bool(
            self._rows(
                "INSERT INTO messages VALUES (?, ?, ?, ?, ?, ?, 0, 0) ON CONFLICT DO NOTHING "
                "RETURNING 1",
                message_id,
                jid,
                sender,
                sender_name,
                text,
                timestamp,
            )
        )

    def add_reply(self, message_id: str, jid: str, text: str, kind: str, timestamp: str) -> int:
        """Add a message of an agent for delivery; return the reply's id."""
        self._execute(
            "INSERT INTO messages VALUES (?, ?, 'agent', 'agent', ?, ?, 1, 1)",
            message_id,
            jid,
            text,
            timestamp,
        )
        self._execute(
            "INSERT INTO outbox (message_id, chat_jid, kind) VALUES (?, ?, ?)",
            message_id,
            jid,
            kind,
        )
        return self.connection.last_insert_rowid()

    def replies(self, after: int = 0, jid: str = "", limit: int = 1000) -> list[ChatReply]:
        """Return the replies with an id above `after`, of one chat, or of all with ''."""
        return self._replies("o.id > ? AND (? = '' OR o.chat_jid = ?)", (after, jid, jid), limit)

    def replies_in(self, jids: Sequence[str], after: int, limit: int = 1000) -> list[ChatReply]:
        """Return the replies in some chats with an id above `after`."""
        condition = "o.id > ? AND o.chat_jid IN (SELECT value FROM json_each(?))"
        return self._replies(condition, (after, json.dumps(list(jids))), limit)

    def latest_replies(self, jids: Sequence[str], limit: int) -> list[ChatReply]:
        ids = (
            "SELECT id FROM outbox WHERE chat_jid IN (SELECT value FROM json_each(?)) "
            "ORDER BY id DESC LIMIT ?"
        )
        return self._replies(f"o.id IN ({ids})", (json.dumps(list(jids)), limit), limit)

    def undelivered(self, held_up: Iterable[str] = (), limit: int = 100) -> list[ChatReply]:
        """Return the first replies that wait for delivery, except in the `held_up` chats."""
        condition = "o.delivered_at IS NULL AND o.chat_jid NOT IN (SELECT value FROM json_each(?))"
        return self._replies(condition, (json.dumps(list(held_up)),), limit)

    def last_reply(self) -> int:
        ((reply_id,),) = self._rows("SELECT coalesce(max(id), 0) FROM outbox")
        return int(reply_id)

    def last_message_time(self, folder: str) -> str:
        """Return the time of the last message in a group's chat; '' for none."""
        ((latest,),) = self._rows(
            "SELECT coalesce(max(timestamp), '') FROM messages "
            "WHERE chat_jid = (SELECT jid FROM registered_groups WHERE folder = ?)",
            folder,
        )
        return str(latest)

    def state(self, key: str) -> str:
        rows = self._rows("SELECT value FROM router_state WHERE key = ?", key)
        return str(rows[0][0]) if rows else ""

    def set_state(self, key: str, value: str) -> None:
        self._execute(
            "INSERT INTO router_state VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = "
            "excluded.value",
            key,
            value,
        )

    # The inbox

    def last_arrival(self) -> int:
        """Return the inbox position of the latest message; 0 for none."""
        ((sequence,),) = self._rows("SELECT coalesce(max(seq), 0) FROM inbox")
        return int(sequence)

    def arrivals(self, after: int) -> list[tuple[int, str, str, int]]:
        """Return the messages after a position in the inbox, in order.

        Each has its position, group, sender and length."""
        return self._rows(
            "SELECT i.seq, i.group_folder, m.sender_name, length(m.content) FROM inbox i JOIN "
            "messages m "
            "ON m.id = i.message_id AND m.chat_jid = i.chat_jid WHERE i.seq > ? ORDER BY i.seq",
            after,
        )

    def add_to_inbox(self, message_id: str, jid: str, folder: str) -> None:
        """Add a message to the inbox, to wait for its answer."""
        self._execute(
            "INSERT INTO inbox (message_id, chat_jid, group_folder) VALUES (?, ?, ?)",
            message_id,
            jid,
            folder,
        )

    def set_called(self, message_id: str, jid: str) -> None:
        self._execute(
            "UPDATE inbox SET is_called = 1 WHERE message_id = ? AND chat_jid = ?", message_id, jid
        )

    def groups_with_waiting_messages(self) -> set[str]:
        """Return the folders of the groups with messages in their inbox."""
        rows = self._rows("SELECT DISTINCT group_folder FROM inbox WHERE prompt_id IS NULL")
        return {str(folder) for (folder,) in rows}

    def waiting(self, folder: str, after: int) -> list[tuple[int, str, int]]:
        """Return the messages in a group's inbox after a position, in order.

        Each has its position, its text, and whether it calls the agent whatever its text."""
        return self._rows(
            "SELECT i.seq, m.content, i.is_called FROM inbox i JOIN messages m ON m.id = i.message_id AND "
            "m.chat_jid = i.chat_jid "
            "WHERE i.group_folder = ? AND i.prompt_id IS NULL AND i.seq > ? ORDER BY i.seq",
            folder,
            after,
        )

    def chat_at(self, position: int) -> str:
        """Return the chat of the message at a position in the inbox."""
        ((jid,),) = self._rows("SELECT chat_jid FROM inbox WHERE seq = ?", position)
        return str(jid)

    def move_into_prompt(
        self, folder: str, jid: str, prompt_id: int, until: int, at_least: int
    ) -> None:
        """Move a chat's messages up to a position from the inbox into a prompt.

        If possible, so many messages are moved in all."""
        self._execute(
            "UPDATE inbox SET prompt_id = ? WHERE group_folder = ? AND chat_jid = ? AND "
            "prompt_id IS NULL AND (seq <= ? OR seq IN "
            "(SELECT seq FROM inbox WHERE group_folder = ? AND chat_jid = ? AND "
            "prompt_id IS NULL ORDER BY seq LIMIT ?))",
            prompt_id,
            folder,
            jid,
            until,
            folder,
            jid,
            at_least,
        )

    def inbox_counts(self, folder: str) -> tuple[int, int]:
        """Return the number of a group's waiting messages, and of those in open prompts."""
        ((waiting, working),) = self._rows(
            "SELECT count(*) FILTER (WHERE i.prompt_id IS NULL), count(*) FILTER (WHERE p.id IS "
            "NOT NULL) FROM inbox i "
            "LEFT JOIN prompts p ON p.id = i.prompt_id AND p.answered_at IS NULL WHERE "
            "i.group_folder = ?",
            folder,
        )
        return waiting, working

    # Prompts

    def add_prompt(
        self,
        folder: str,
        jid: str,
        uuid: str,
        task_id: str | None = None,
        due_at: str | None = None,
    ) -> int:
        """Add an open prompt; return its id."""
        self._execute(
            "INSERT INTO prompts (group_folder, chat_jid, uuid, task_id, due_at) VALUES (?, ?, "
            "?, ?, ?) "
            # the same time twice, as when the clock is set back
            "ON CONFLICT (task_id, due_at) DO NOTHING",
            folder,
            jid,
            uuid,
            task_id,
            due_at,
        )
        return self.connection.last_insert_rowid()

    def groups_with_open_prompts(self, now: str) -> set[str]:
        """Return the folders of the groups with open prompts that are not delayed beyond `now`."""
        rows = self._rows(
            "SELECT DISTINCT group_folder FROM prompts WHERE answered_at IS NULL AND "
            "coalesce(not_before, '') <= ?",
            now,
        )
        return {str(folder) for (folder,) in rows}

    def prompt_rows(self, folder: str, now: str | None) -> list[Prompt]:
        """Return a group's open prompts in order; with `now`, without prompts delayed beyond it.

        A prompt made of messages has the text ''."""
        rows = self._rows(
            "SELECT p.id, p.group_folder, p.chat_jid, p.uuid, "
            "coalesce(p.session_id, ''), p.attempt, "
            "coalesce(p.task_id, ''), coalesce(t.context_mode = 'isolated', 0), "
            "coalesce(p.begun_at, ''), "
            "coalesce(t.prompt, '') FROM prompts p LEFT JOIN scheduled_tasks t ON t.id = p.task_id "
            "WHERE p.group_folder = ? AND p.answered_at IS NULL AND (? OR coalesce(p.not_before, "
            "'') <= ?) "
            "ORDER BY p.id",
            folder,
            now is None,
            now,
        )
        return [
            prompt._replace(is_isolated=bool(prompt.is_isolated))
            for prompt in map(Prompt._make, rows)
        ]

    def messages_of(self, prompt_id: int, limit: int) -> list[Message]:
        """Return the last messages in a prompt, in order of arrival."""
        rows = self._rows(
            "SELECT m.sender_name, m.timestamp, m.content FROM inbox i JOIN messages m "
            "ON m.id = i.message_id AND m.chat_jid = i.chat_jid WHERE i.prompt_id = ? ORDER BY "
            "i.seq DESC LIMIT ?",
            prompt_id,
            limit,
        )
        return [Message._make(row) for row in reversed(rows)]

    def is_open(self, prompt_id: int) -> bool:
        """Return whether a prompt has no answer yet."""
        return bool(
            self._rows("SELECT 1 FROM prompts WHERE id = ? AND answered_at IS NULL", prompt_id)
        )

    def reply_to(self, message_id: str, jid: str) -> tuple[bool, int | None]:
        """Return whether a message is answered, and the reply's id (None for an empty reply)."""
        rows = self._rows(
            "SELECT p.answered_at IS NOT NULL, p.reply_id FROM inbox i JOIN prompts p ON p.id = "
            "i.prompt_id "
            "WHERE i.message_id = ? AND i.chat_jid = ?",
            message_id,
            jid,
        )
        if not rows:
            return False, None
        is_answered, reply_id = rows[0]
        return bool(is_answered), reply_id

    # Tasks

    def tasks(self, folder: str = "") -> list[Task]:
        """Return the tasks of a group, or of all, the next one first."""
        rows = self._rows(
            "SELECT id, group_folder, chat_jid, prompt, schedule_type, schedule_value, "
            "coalesce(context_mode, 'isolated'), next_run, last_run, last_result, "
            "status, created_at "
            "FROM scheduled_tasks WHERE ? = '' OR group_folder = ? ORDER BY next_run IS NULL, "
            "next_run, id",
            folder,
            folder,
        )
        return [Task._make(row) for row in rows]

    def due_tasks(self, now: str) -> list[Task]:
        return [
            task
            for task in self.tasks()
            if task.status == "active" and task.next_run and task.next_run <= now
        ]

    def add_task(self, task: Task) -> None:
        self._execute(
            "INSERT INTO scheduled_tasks (id, group_folder, chat_jid, prompt, schedule_type, "
            "schedule_value, "
            "context_mode, next_run, last_run, last_result, status, created_at) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            *task,
        )

    def status_of(self, task_id: str) -> str:
        rows = self._rows("SELECT status FROM scheduled_tasks WHERE id = ?", task_id)
        return str(rows[0][0]) if rows else ""

    def remove_waiting_prompts(self, task_id: str) -> None:
        """Delete the prompts of a task that no agent has received."""
        self._execute(
            "DELETE FROM prompts WHERE task_id = ? AND answered_at IS NULL AND begun_at IS NULL",
            task_id,
        )

    def remove_task(self, task_id: str) -> None:
        """Delete a task, its log and its prompts."""
        for table in ("task_run_logs", "prompts"):
            self._execute(f"DELETE FROM {table} WHERE task_id = ?", task_id)
        self._execute("DELETE FROM scheduled_tasks WHERE id = ?", task_id)

    def has_open_prompt(self, task_id: str) -> bool:
        """Return whether a run of a task is unfinished."""
        return bool(
            self._rows("SELECT 1 FROM prompts WHERE task_id = ? AND answered_at IS NULL", task_id)
        )

    def add_run(self, run: TaskRun, summary: str) -> None:
        self._execute(
            "INSERT INTO task_run_logs (task_id, run_at, duration_ms, status, result, error) "
            "VALUES (?, ?, ?, ?, ?, ?)",
            *run,
        )
        self._execute(
            "UPDATE scheduled_tasks SET last_run = ?, last_result = ?, "
            "status = CASE WHEN next_run IS NULL THEN 'completed' ELSE status END WHERE id = ?",
            run.run_at,
            summary,
            run.task_id,
        )

    def runs(self, task_id: str) -> list[TaskRun]:
        rows = self._rows(
            "SELECT task_id, run_at, duration_ms, status, result, error FROM task_run_logs WHERE "
            "task_id = ? "
            "ORDER BY id",
            task_id,
        )
        return [TaskRun._make(row) for row in rows]

    def _replies(self, condition: str, values: tuple[object, ...], limit: int) -> list[ChatReply]:
        rows = self._rows(
            "SELECT o.id, o.chat_jid, coalesce(g.folder, (SELECT group_folder FROM prompts "
            "WHERE reply_id = o.id), ''), o.kind, m.content, m.timestamp, "
            "(SELECT json_group_array(i.message_id ORDER BY i.seq) FROM prompts p JOIN inbox i "
            "ON i.prompt_id = p.id "
            " WHERE p.reply_id = o.id), o.sent_parts "
            "FROM outbox o JOIN messages m ON m.id = o.message_id AND m.chat_jid = o.chat_jid "
            f"LEFT JOIN registered_groups g ON g.jid = o.chat_jid WHERE {condition} ORDER BY "
            f"o.id LIMIT ?",
            *values,
            limit,
        )
        return [
            reply._replace(answers=tuple(json.loads(str(reply.answers))))
            for reply in map(ChatReply._make, rows)
        ]

    def _rows(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        return self.connection.execute(sql, values).fetchall()

    def _execute(self, sql: str, *values: object) -> None:
        self.connection.execute(sql, values)
