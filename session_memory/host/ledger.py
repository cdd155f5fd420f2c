"""The messages that came in, the prompts they went into, the replies that went out: who was answered, by what, once.

A message waits in the inbox until it is put into a prompt. A prompt is open until its reply is written down, which is
one transaction with everything that hangs on it. What is open after a crash is looked for in the transcript and, unless
the answer stands there, asked again.
"""

from __future__ import annotations

import json
import re
import time
import uuid
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

from ..errors import SessionMemoryError
from ..system.sqlite import writing
from ..text.timestamps import iso_time
from . import schedule
from .prompt_text import Message, of_messages, of_task

if TYPE_CHECKING:
    import apsw

MOST_MESSAGES = 50
LAST_SEEN, LAST_ANSWERED = "last_timestamp", "last_agent_timestamp"


class UnknownGroupError(SessionMemoryError):
    """No group is registered under this name or for this chat."""


class Registered(NamedTuple):
    """A group as it is registered: the chat whose messages its agent answers, and what those must hold for it."""

    jid: str
    name: str
    folder: str
    trigger_pattern: str
    requires_trigger: bool


class Prompt(NamedTuple):
    """What is given to an agent in one piece, still unanswered. `task` is '' for messages. `begun_at` is ISO 8601."""

    id: int
    group: str
    jid: str
    uuid: str
    session_id: str
    attempt: int
    task: str
    is_isolated: bool
    begun_at: str
    text: str


class Reply(NamedTuple):
    """What goes out: `kind` is reply, task, notice or error; `answers` are the ids of the messages it answers."""

    id: int
    jid: str
    group: str
    kind: str
    text: str
    timestamp: str
    answers: tuple[str, ...]


class Ledger:
    """The ledger in an open messages.db. `now` gives seconds since the epoch."""

    def __init__(self, connection: apsw.Connection, now: Callable[[], float] = time.time) -> None:
        self.connection = connection
        self._now = now

    def close(self) -> None:
        """Closes the database."""
        self.connection.close()

    def version(self) -> int:
        """A number that is another one once some other connection has changed the database."""
        return int(self.connection.pragma("data_version"))

    def register(self, folder: str, jid: str, name: str, trigger_pattern: str, requires_trigger: bool) -> Registered:
        """Has the messages of a chat answered by the group `folder`. Raises UnknownGroupError where either is taken."""
        try:
            re.compile(trigger_pattern)
        except re.error as error:
            raise UnknownGroupError(f"the trigger {trigger_pattern!r}: {error}") from None
        with writing(self.connection):
            for one in self.groups():
                if one.jid == jid or one.folder.casefold() == folder.casefold():
                    raise UnknownGroupError(f"group {one.folder} has the chat {one.jid} already")
            self.connection.execute(
                "INSERT INTO registered_groups (jid, name, folder, trigger_pattern, added_at, requires_trigger) "
                "VALUES (?, ?, ?, ?, ?, ?)",
                (jid, name, folder, trigger_pattern, self._iso(), requires_trigger),
            )
            self._see_chat(jid, name, self._iso())
        return Registered(jid, name, folder, trigger_pattern, requires_trigger)

    def groups(self) -> list[Registered]:
        """All groups, by the name of their folder."""
        query = (
            "SELECT jid, name, folder, trigger_pattern, coalesce(requires_trigger, 1) FROM registered_groups "
            "ORDER BY folder"
        )
        found = [Registered._make(row) for row in self.connection.execute(query)]
        return [one._replace(requires_trigger=bool(one.requires_trigger)) for one in found]

    def group(self, folder: str) -> Registered:
        """The group with this folder. Raises UnknownGroupError."""
        found = {one.folder: one for one in self.groups()}
        if folder not in found:
            hint = f"there are {', '.join(found)}" if found else "session-memory host add NAME makes one"
            raise UnknownGroupError(f"there is no group {folder!r}", hint)
        return found[folder]

    def take(self, jid: str, text: str, *, sender: str, sender_name: str, message_id: str = "", at: str = "") -> str:
        """Puts a message into the inbox of the group whose chat it came from; its id. Raises UnknownGroupError.

        A message whose id is known in its chat already is the same one, and changes nothing.
        """
        timestamp = at or self._iso()
        message_id = message_id or uuid.uuid4().hex
        text = text.replace("\0", "").encode("utf-8", "replace").decode()
        with writing(self.connection):
            folder = next((one.folder for one in self.groups() if one.jid == jid), None)
            if folder is None:
                raise UnknownGroupError(f"no group has the chat {jid}")
            self._see_chat(jid, None, timestamp)
            query = "INSERT INTO messages VALUES (?, ?, ?, ?, ?, ?, 0, 0) ON CONFLICT DO NOTHING RETURNING 1"
            row = (message_id, jid, sender, sender_name, text, timestamp)
            if self.connection.execute(query, row).fetchall():
                query = "INSERT INTO inbox (message_id, chat_jid, group_folder) VALUES (?, ?, ?)"
                self.connection.execute(query, (message_id, jid, folder))
                self._set_cursor(LAST_SEEN, max(timestamp, self._cursor(LAST_SEEN)))
        return message_id

    def ready_groups(self) -> set[str]:
        """The groups with something to do now: messages that are due an answer, or open prompts not put off."""
        groups = {one.folder: one for one in self.groups()}
        query = "SELECT DISTINCT group_folder FROM inbox WHERE prompt_id IS NULL"
        waiting = {str(row[0]) for row in self.connection.execute(query)} & groups.keys()
        ready = {folder for folder in waiting if self._is_called(groups[folder])}
        query = "SELECT DISTINCT group_folder FROM prompts WHERE answered_at IS NULL AND coalesce(not_before, '') <= ?"
        return ready | ({str(row[0]) for row in self.connection.execute(query, (self._iso(),))} & groups.keys())

    def open_prompts(self, folder: str, *, even_later: bool = False) -> list[Prompt]:
        """The group's unanswered prompts in their order, without those put off unless `even_later`."""
        query = (
            "SELECT p.id, p.group_folder, p.chat_jid, p.uuid, coalesce(p.session_id, ''), p.attempt, "
            "coalesce(p.task_id, ''), coalesce(t.context_mode = 'isolated', 0), coalesce(p.begun_at, ''), "
            "coalesce(t.prompt, '') FROM prompts p LEFT JOIN scheduled_tasks t ON t.id = p.task_id "
            "WHERE p.group_folder = ? AND p.answered_at IS NULL AND coalesce(p.not_before, '') <= ? ORDER BY p.id"
        )
        rows = self.connection.execute(query, (folder, "~" if even_later else self._iso())).fetchall()
        return [self._prompt(row) for row in rows]

    def next_prompt(self, folder: str) -> Prompt | None:
        """A new prompt of the messages that wait in the group's inbox; None where none is due an answer."""
        with writing(self.connection):
            group = self.group(folder)
            if not self._is_called(group):
                return None
            query = (
                "UPDATE inbox SET prompt_id = ? WHERE seq IN "
                "(SELECT seq FROM inbox WHERE group_folder = ? AND prompt_id IS NULL ORDER BY seq LIMIT ?)"
            )
            insert = "INSERT INTO prompts (group_folder, chat_jid, uuid) VALUES (?, ?, ?)"
            self.connection.execute(insert, (folder, group.jid, str(uuid.uuid4())))
            self.connection.execute(query, (self.connection.last_insert_rowid(), folder, MOST_MESSAGES))
        return self.open_prompts(folder)[-1]

    def begin(self, prompt: Prompt, session_id: str) -> Prompt:
        """Notes that the prompt is being given to a session."""
        begun_at = self._iso()
        with writing(self.connection):
            query = "UPDATE prompts SET session_id = ?, begun_at = ? WHERE id = ?"
            self.connection.execute(query, (session_id, begun_at, prompt.id))
        return prompt._replace(session_id=session_id, begun_at=begun_at)

    def renew(self, prompt: Prompt) -> None:
        """Has the prompt asked once more, under a new id: the runtime takes none twice."""
        with writing(self.connection):
            self.connection.execute("UPDATE prompts SET uuid = ? WHERE id = ?", (str(uuid.uuid4()), prompt.id))

    def put_off(self, prompt: Prompt, seconds: float) -> None:
        """Has the prompt asked once more after that time, which is another attempt."""
        with writing(self.connection):
            query = "UPDATE prompts SET uuid = ?, attempt = attempt + 1, not_before = ? WHERE id = ?"
            self.connection.execute(query, (str(uuid.uuid4()), self._iso(seconds), prompt.id))

    def answer(self, prompts: Iterable[Prompt], text: str, error: str = "") -> int | None:
        """Writes down the one reply to all of `prompts`, which are open no more; the reply's id, None for no text.

        `error` is what went wrong where the agent could not answer. Prompts that have an answer already keep it.
        """
        with writing(self.connection):
            is_open = "SELECT 1 FROM prompts WHERE id = ? AND answered_at IS NULL"
            answered = [one for one in prompts if self.connection.execute(is_open, (one.id,)).fetchone()]
            if not answered:
                return None
            first = answered[0]
            kind = "error" if error else "task" if first.task else "reply"
            reply = self._post(first.jid, text, kind) if text.strip() else None
            for one in answered:
                query = "UPDATE prompts SET answered_at = ?, reply_id = ? WHERE id = ?"
                self.connection.execute(query, (self._iso(), reply, one.id))
                self._move_answered(one)
                if one.task:
                    schedule.log_run(self.connection, one.task, one.begun_at, self._now(), text, error)
        return reply

    def notify(self, jid: str, text: str) -> int:
        """Sends out what answers no message, such as what an agent says of work that ended in the background."""
        with writing(self.connection):
            return self._post(jid, text, "notice")

    def start_due_tasks(self) -> None:
        """Makes a prompt of every task whose time has come, and sets its next time, as one step."""
        with writing(self.connection):
            schedule.start_due(self.connection, self._now())

    def replies(self, after: int = 0, jid: str = "", limit: int = 1000) -> list[Reply]:
        """The replies with an id above `after`, of one chat or of all."""
        return self._replies("o.id > ? AND (? = '' OR o.chat_jid = ?)", (after, jid, jid), limit)

    def latest_replies(self, jid: str, count: int) -> list[Reply]:
        """The last `count` replies in a chat, in their order."""
        ids = "SELECT id FROM outbox WHERE chat_jid = ? ORDER BY id DESC LIMIT ?"
        return self._replies(f"o.id IN ({ids})", (jid, count), count)

    def undelivered(self, limit: int = 100) -> list[Reply]:
        """The replies that no channel has delivered yet."""
        return self._replies("o.delivered_at IS NULL", (), limit)

    def mark_delivered(self, reply_id: int) -> None:
        """Notes that a reply has arrived."""
        with writing(self.connection):
            self.connection.execute("UPDATE outbox SET delivered_at = ? WHERE id = ?", (self._iso(), reply_id))

    def last_reply(self) -> int:
        """The id of the latest reply; 0 where there is none."""
        (found,) = self.connection.execute("SELECT coalesce(max(id), 0) FROM outbox").fetchall()
        return int(str(found[0]))

    def reply_to(self, message_id: str, jid: str) -> tuple[bool, int | None]:
        """Whether a message is answered, and the id of the reply, None where the agent had nothing to say."""
        query = (
            "SELECT p.answered_at IS NOT NULL, p.reply_id FROM inbox i JOIN prompts p ON p.id = i.prompt_id "
            "WHERE i.message_id = ? AND i.chat_jid = ?"
        )
        row = self.connection.execute(query, (message_id, jid)).fetchone()
        return (bool(row[0]), row[1]) if row else (False, None)

    def counts(self, folder: str) -> tuple[int, int, str]:
        """How many of a group's messages wait, how many are in open prompts, and when its chat was last used."""
        query = (
            "SELECT count(*) FILTER (WHERE i.prompt_id IS NULL), count(*) FILTER (WHERE p.id IS NOT NULL) FROM inbox i "
            "LEFT JOIN prompts p ON p.id = i.prompt_id AND p.answered_at IS NULL WHERE i.group_folder = ?"
        )
        (counted,) = self.connection.execute(query, (folder,)).fetchall()
        query = (
            "SELECT coalesce(max(timestamp), '') FROM messages "
            "WHERE chat_jid = (SELECT jid FROM registered_groups WHERE folder = ?)"
        )
        (last,) = self.connection.execute(query, (folder,)).fetchall()
        return int(str(counted[0])), int(str(counted[1])), str(last[0])

    def _replies(self, condition: str, values: tuple[object, ...], limit: int) -> list[Reply]:
        query = (
            "SELECT o.id, o.chat_jid, coalesce(g.folder, ''), o.kind, m.content, m.timestamp, "
            "(SELECT json_group_array(i.message_id ORDER BY i.seq) FROM prompts p JOIN inbox i ON i.prompt_id = p.id "
            " WHERE p.reply_id = o.id) "
            "FROM outbox o JOIN messages m ON m.id = o.message_id AND m.chat_jid = o.chat_jid "
            f"LEFT JOIN registered_groups g ON g.jid = o.chat_jid WHERE {condition} ORDER BY o.id LIMIT ?"
        )
        rows = self.connection.execute(query, (*values, limit))
        found = [Reply._make(row) for row in rows]
        return [one._replace(answers=tuple(json.loads(str(one.answers)))) for one in found]

    def _prompt(self, row: tuple[object, ...]) -> Prompt:
        *facts, task_prompt = row
        found = Prompt._make([*facts, ""])
        found = found._replace(is_isolated=bool(found.is_isolated))
        if found.task:
            return found._replace(text=of_task(str(task_prompt)))
        query = (
            "SELECT m.sender_name, m.timestamp, m.content FROM inbox i JOIN messages m "
            "ON m.id = i.message_id AND m.chat_jid = i.chat_jid WHERE i.prompt_id = ? ORDER BY i.seq"
        )
        rows = self.connection.execute(query, (found.id,)).fetchall()
        return found._replace(text=of_messages([Message._make(one) for one in rows]))

    def _is_called(self, group: Registered) -> bool:
        """Whether one of the messages that wait calls the agent."""
        query = (
            "SELECT m.content FROM inbox i JOIN messages m ON m.id = i.message_id AND m.chat_jid = i.chat_jid "
            "WHERE i.group_folder = ? AND i.prompt_id IS NULL"
        )
        rows = self.connection.execute(query + ("" if group.requires_trigger else " LIMIT 1"), (group.folder,))
        texts = [str(row[0]) for row in rows]
        if not group.requires_trigger:
            return bool(texts)
        return any(re.search(group.trigger_pattern, text) for text in texts)

    def _post(self, jid: str, text: str, kind: str) -> int:
        """A message of the agent, to be delivered. Inside a transaction."""
        timestamp, message_id = self._iso(), uuid.uuid4().hex
        query = "INSERT INTO messages VALUES (?, ?, 'agent', 'agent', ?, ?, 1, 1)"
        self.connection.execute(query, (message_id, jid, text, timestamp))
        self._see_chat(jid, None, timestamp)
        query = "INSERT INTO outbox (message_id, chat_jid, kind) VALUES (?, ?, ?)"
        self.connection.execute(query, (message_id, jid, kind))
        return self.connection.last_insert_rowid()

    def _see_chat(self, jid: str, name: str | None, timestamp: str) -> None:
        self.connection.execute(
            "INSERT INTO chats (jid, name, last_message_time, channel) VALUES (?, coalesce(?, ?), ?, ?) "
            "ON CONFLICT (jid) DO UPDATE SET name = coalesce(?, name), "
            "last_message_time = max(last_message_time, excluded.last_message_time)",
            (jid, name, jid, timestamp, jid.partition(":")[0], name),
        )

    def _move_answered(self, prompt: Prompt) -> None:
        """Moves the cursor of the prompt's chat behind the messages in it."""
        query = (
            "SELECT max(m.timestamp) FROM inbox i JOIN messages m ON m.id = i.message_id AND m.chat_jid = i.chat_jid "
            "WHERE i.prompt_id = ?"
        )
        timestamp = self.connection.execute(query, (prompt.id,)).fetchall()[0][0]
        if timestamp is not None:
            cursors = json.loads(self._cursor(LAST_ANSWERED) or "{}")
            cursors[prompt.jid] = max(timestamp, cursors.get(prompt.jid, ""))
            self._set_cursor(LAST_ANSWERED, json.dumps(cursors, sort_keys=True))

    def _set_cursor(self, key: str, value: str) -> None:
        query = "INSERT INTO router_state VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value"
        self.connection.execute(query, (key, value))

    def _cursor(self, key: str) -> str:
        row = self.connection.execute("SELECT value FROM router_state WHERE key = ?", (key,)).fetchone()
        return str(row[0]) if row else ""

    def _iso(self, later_seconds: float = 0.0) -> str:
        return iso_time(self._now() + later_seconds)
