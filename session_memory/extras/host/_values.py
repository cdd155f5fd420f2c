"""The values of a host's database: groups, messages, prompts, replies and runs of tasks. Times are
ISO 8601 in UTC."""

from __future__ import annotations

from typing import NamedTuple

from ...app.tools.values import Task as Task  # which an agent sees as it is in the database

# prefix of chats without a channel: replies are not delivered but read from the database
LOCAL = "local:"


class RegisteredGroup(NamedTuple):
    """A group and its chat: `jid` is the chat's id. With `requires_trigger` its agent answers only
    messages that match `trigger_pattern`, a regular expression."""

    jid: str
    name: str
    folder: str
    trigger_pattern: str
    requires_trigger: bool

    @property
    def trigger(self) -> str:
        """The pattern that a message must match; '' if the agent answers everything."""
        return self.trigger_pattern if self.requires_trigger else ""


class Chat(NamedTuple):
    """A known chat. `last_activity` is the time of its last message, '' for none."""

    jid: str
    name: str
    last_activity: str


class Message(NamedTuple):
    """A received message; `sender` is '' for the one person at the terminal."""

    sender: str
    timestamp: str
    text: str


class Prompt(NamedTuple):
    """A prompt for an agent. `task` is '' for messages; `uuid` is its id in the runtime's
    transcript; `session_id` and `begun_at` are '' until it is sent."""

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


class ChatReply(NamedTuple):
    """A message of an agent in a chat: `kind` is reply, task, notice or error; `answers` the
    messages' ids."""

    id: int
    jid: str
    group: str
    kind: str
    text: str
    timestamp: str
    answers: tuple[str, ...]


class TaskRun(NamedTuple):
    """The log entry of a task's run: `status` is success or error."""

    task_id: str
    run_at: str
    duration_milliseconds: int
    status: str
    result: str | None
    error: str | None
