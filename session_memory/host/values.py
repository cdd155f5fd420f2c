"""The values of a host's database: groups, messages, prompts, replies and tasks. Times are ISO 8601 in UTC."""

from __future__ import annotations

from typing import NamedTuple

LOCAL = "local:"  # prefix of chats that no channel has: nothing is delivered, replies are read in the database


class RegisteredGroup(NamedTuple):
    """A group and its chat: `jid` is the chat's id; with `requires_trigger` its agent answers what `trigger_pattern`
    (a regular expression) is found in."""

    jid: str
    name: str
    folder: str
    trigger_pattern: str
    requires_trigger: bool

    @property
    def trigger(self) -> str:
        """What a message has to match for the agent to answer; '' where it answers everything."""
        return self.trigger_pattern if self.requires_trigger else ""


class Chat(NamedTuple):
    """A chat of which the host has heard: `last_activity` is when something was last said there, '' for never."""

    jid: str
    name: str
    last_activity: str


class Arrival(NamedTuple):
    """A message that has come in, for the log: its place in the inbox, its group, who wrote it, its length."""

    seq: int
    group: str
    sender: str
    characters: int


class Message(NamedTuple):
    """A message as it came in; `sender` is '' for the one person at the terminal."""

    sender: str
    timestamp: str
    text: str


class Prompt(NamedTuple):
    """What is given to an agent in one piece. `task` is '' for messages; `uuid` is what the runtime records it under;
    `session_id` and `begun_at` are '' until it is given."""

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
    """What an agent says in a chat: `kind` is reply, task, notice or error; `answers` are the ids of the messages that
    it answers."""

    id: int
    jid: str
    group: str
    kind: str
    text: str
    timestamp: str
    answers: tuple[str, ...]


class Task(NamedTuple):
    """A scheduled task: `schedule_type` is cron, interval or once, `context_mode` group or isolated."""

    id: str
    group: str
    jid: str
    prompt: str
    schedule_type: str
    schedule_value: str
    context_mode: str
    next_run: str | None
    last_run: str | None
    last_result: str | None
    status: str
    created_at: str

    def row(self) -> dict[str, object]:
        """The task with the names of its columns in the database."""
        columns = {"group": "group_folder", "jid": "chat_jid"}
        return {columns.get(name, name): value for name, value in self._asdict().items()}


class TaskRun(NamedTuple):
    """How one run of a task went: `status` is success or error."""

    task_id: str
    run_at: str
    duration_milliseconds: int
    status: str
    result: str | None
    error: str | None
