"""The tables of messages.db beside the pointers: those of NanoClaw, with its columns, and the host's own ledger."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..system.sqlite import connect, migrate
from ..transcripts.pointers import MIGRATIONS as POINTERS

if TYPE_CHECKING:
    import apsw

    from ..system.sqlite import Migration


def open_database(path: str) -> apsw.Connection:
    """A connection to messages.db, made or brought up to date. Raises OSError."""
    connection = connect(path, "full")
    connection.pragma("foreign_keys", True)
    migrate(connection, (*POINTERS, *MIGRATIONS))
    return connection


def create_messages(connection: apsw.Connection) -> None:
    """What was said in which chat; `router_state` holds how far the host has come."""
    connection.execute(
        """
        CREATE TABLE chats (
          jid TEXT PRIMARY KEY,
          name TEXT,
          last_message_time TEXT,
          channel TEXT,
          is_group INTEGER DEFAULT 0
        );
        CREATE TABLE messages (
          id TEXT,
          chat_jid TEXT,
          sender TEXT,
          sender_name TEXT,
          content TEXT,
          timestamp TEXT,
          is_from_me INTEGER,
          is_bot_message INTEGER DEFAULT 0,
          PRIMARY KEY (id, chat_jid),
          FOREIGN KEY (chat_jid) REFERENCES chats(jid)
        );
        CREATE INDEX idx_timestamp ON messages(timestamp);
        CREATE TABLE router_state (
          key TEXT PRIMARY KEY,
          value TEXT NOT NULL
        );
        """
    )


def create_registered_groups(connection: apsw.Connection) -> None:
    """Which chat belongs to which group, and what has its agent answer."""
    connection.execute(
        """
        CREATE TABLE registered_groups (
          jid TEXT PRIMARY KEY,
          name TEXT NOT NULL,
          folder TEXT NOT NULL UNIQUE,
          trigger_pattern TEXT NOT NULL,
          added_at TEXT NOT NULL,
          container_config TEXT,
          requires_trigger INTEGER DEFAULT 1
        );
        """
    )


def create_scheduled_tasks(connection: apsw.Connection) -> None:
    """What is to be done when, and how it went."""
    connection.execute(
        """
        CREATE TABLE scheduled_tasks (
          id TEXT PRIMARY KEY,
          group_folder TEXT NOT NULL,
          chat_jid TEXT NOT NULL,
          prompt TEXT NOT NULL,
          schedule_type TEXT NOT NULL,
          schedule_value TEXT NOT NULL,
          context_mode TEXT DEFAULT 'isolated',
          next_run TEXT,
          last_run TEXT,
          last_result TEXT,
          status TEXT DEFAULT 'active',
          created_at TEXT NOT NULL
        );
        CREATE INDEX idx_next_run ON scheduled_tasks(next_run);
        CREATE INDEX idx_status ON scheduled_tasks(status);
        CREATE TABLE task_run_logs (
          id INTEGER PRIMARY KEY AUTOINCREMENT,
          task_id TEXT NOT NULL,
          run_at TEXT NOT NULL,
          duration_ms INTEGER NOT NULL,
          status TEXT NOT NULL,
          result TEXT,
          error TEXT,
          FOREIGN KEY (task_id) REFERENCES scheduled_tasks(id)
        );
        CREATE INDEX idx_task_run_logs ON task_run_logs(task_id, run_at);
        """
    )


def create_ledger(connection: apsw.Connection) -> None:
    """Which message went into which prompt, and which reply answers that: a message is answered by the one reply of its
    prompt. A prompt without `task_id` is made of messages; `uuid` is what the runtime records it under."""
    connection.execute(
        """
        CREATE TABLE outbox (
          id INTEGER PRIMARY KEY AUTOINCREMENT,
          message_id TEXT NOT NULL,
          chat_jid TEXT NOT NULL,
          kind TEXT NOT NULL,
          delivered_at TEXT,
          FOREIGN KEY (message_id, chat_jid) REFERENCES messages(id, chat_jid)
        );
        CREATE INDEX idx_undelivered ON outbox(id) WHERE delivered_at IS NULL;
        CREATE TABLE prompts (
          id INTEGER PRIMARY KEY AUTOINCREMENT,
          group_folder TEXT NOT NULL,
          chat_jid TEXT NOT NULL,
          uuid TEXT NOT NULL UNIQUE,
          session_id TEXT,
          task_id TEXT REFERENCES scheduled_tasks(id) ON DELETE CASCADE,
          due_at TEXT,
          attempt INTEGER NOT NULL DEFAULT 1,
          not_before TEXT,
          begun_at TEXT,
          answered_at TEXT,
          reply_id INTEGER REFERENCES outbox(id),
          UNIQUE (task_id, due_at)
        );
        CREATE INDEX idx_open_prompts ON prompts(group_folder) WHERE answered_at IS NULL;
        CREATE TABLE inbox (
          seq INTEGER PRIMARY KEY AUTOINCREMENT,
          message_id TEXT NOT NULL,
          chat_jid TEXT NOT NULL,
          group_folder TEXT NOT NULL,
          prompt_id INTEGER REFERENCES prompts(id),
          UNIQUE (message_id, chat_jid),
          FOREIGN KEY (message_id, chat_jid) REFERENCES messages(id, chat_jid)
        );
        CREATE INDEX idx_waiting ON inbox(group_folder) WHERE prompt_id IS NULL;
        CREATE INDEX idx_prompt ON inbox(prompt_id);
        """
    )


MIGRATIONS: tuple[Migration, ...] = (create_messages, create_registered_groups, create_scheduled_tasks, create_ledger)
