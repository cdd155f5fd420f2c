"""The values of a host's database: groups, messages, prompts, replies and runs of tasks.

Times are ISO 8601 in UTC.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

# prefix of chats without a channel, whose replies are read from the database
LOCAL = "local:"


class RegisteredGroup(NamedTuple):
    """A group and its chat: `jid` is the chat's id.

    With `requires_trigger` its agent answers only messages that match `trigger_pattern`, a regular
    expression."""

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
    """A prompt for an agent.

    `task` is '' for messages; `uuid` is its id in the runtime's transcript; `session_id` and
    `begun_at` are '' until it is sent."""

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
    """A message of an agent in a chat.

    `kind` is reply, task, notice or error; `answers` are the answered messages' ids; `sent_parts`
    is the number of parts that its channel has sent."""

    id: int
    jid: str
    group: str
    kind: str
    text: str
    timestamp: str
    answers: tuple[str, ...]
    sent_parts: int = 0


class TaskRun(NamedTuple):
    """The log entry of a task's run: `status` is success or error."""

    task_id: str
    run_at: str
    duration_milliseconds: int
    status: str
    result: str | None
    error: str | None


class Task(NamedTuple):
    """A scheduled task.

    `schedule_type` is cron, interval or once, `context_mode` group or isolated. `jid` is the id of
    the chat for its answers. Times are ISO 8601 in UTC, or None."""

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
        """Return the task as a dict of database columns."""
        columns = {"group": "group_folder", "jid": "chat_jid"}
        return {columns.get(name, name): value for name, value in self._asdict().items()}


class ListedChat(NamedTuple):
    """A known chat and the group that answers in it, '' for none.

    `trigger` is the pattern that addresses its agent, '' if it answers everything; `last_activity`
    is ISO 8601 in UTC, '' for never."""

    chat: str
    name: str
    group: str
    trigger: str
    last_activity: str


class Administration(Protocol):
    """A host's services for the agent of one of its groups, beyond its sessions.

    They are the tasks that it may change, the next one first. For main they include the chats,
    those of groups first, and the groups. The agent's own `group` is fixed at construction. As an
    argument, '' means this group, and only main may name others. Methods raise as Backend's do."""

    group: str
    is_main: bool

    def tasks(self) -> list[Task]: ...
    def schedule(
        self, group: str, prompt: str, schedule_type: str, schedule_value: str, context_mode: str
    ) -> Task: ...
    def update_task(self, task_id: str, changes: dict[str, str]) -> Task: ...
    def cancel_task(self, task_id: str) -> None: ...
    def chats(self) -> list[ListedChat]: ...
    def register_group(self, group: str, chat: str, name: str, trigger: str) -> ListedChat: ...
    def update_group(self, group: str, changes: dict[str, str]) -> ListedChat: ...
