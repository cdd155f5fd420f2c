"""The ledger: which messages came in, which prompts they went into, and which reply answers each, once.

A message waits in the inbox until it is put into a prompt. A prompt is open until its reply is written down, together
with everything else that the reply changes, in one transaction. After a crash the open prompts are looked for in the
transcript (recovery.py); those whose answer is not there are asked again.
"""

from __future__ import annotations

import json
import re
import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

from ..archives.format import TASK_INTRODUCTION
from ..errors import SessionMemoryError
from ..text.timestamps import iso_time
from .schedule import Schedule
from .values import ChatReply, Message, Prompt, RegisteredGroup

if TYPE_CHECKING:
    from .database import HostDatabase

MOST_MESSAGES = 50  # in one prompt
LAST_SEEN, LAST_ANSWERED = "last_timestamp", "last_agent_timestamp"


class UnknownGroupError(SessionMemoryError):
    """No group is registered under this name or for this chat, or it cannot be."""


class Ledger:
    """The ledger in a host's database, with the schedule of its tasks. `now` returns seconds since the epoch."""

    def __init__(self, database: HostDatabase, now: Callable[[], float] = time.time) -> None:
        self.schedule = Schedule(database, now)
        self.database = database
        self._now = now

    def close(self) -> None:
        """Closes the database."""
        self.database.close()

    def register(
        self, folder: str, jid: str, name: str, trigger_pattern: str, requires_trigger: bool
    ) -> RegisteredGroup:
        """Has the messages of a chat answered by the group `folder`. Raises UnknownGroupError where either is taken."""
        try:
            re.compile(trigger_pattern)
        except re.error as error:
            raise UnknownGroupError(f"the trigger {trigger_pattern!r}: {error}") from None
        registered = RegisteredGroup(jid, name, folder, trigger_pattern, requires_trigger)
        with self.database.transaction():
            for group in self.groups():
                if group.jid == jid or group.folder.casefold() == folder.casefold():
                    raise UnknownGroupError(f"group {group.folder} has the chat {group.jid} already")
            self.database.add_group(registered, self._iso())
            self.database.add_chat(jid, name, self._iso())
        return registered

    def groups(self) -> list[RegisteredGroup]:
        """All groups, by the name of their folder."""
        return self.database.groups()

    def group(self, folder: str) -> RegisteredGroup:
        """The group with this folder. Raises UnknownGroupError."""
        found = {group.folder: group for group in self.groups()}
        if folder not in found:
            hint = f"there are {', '.join(found)}" if found else "session-memory host add NAME makes one"
            raise UnknownGroupError(f"there is no group {folder!r}", hint)
        return found[folder]

    def receive(self, jid: str, text: str, *, sender: str, sender_name: str, message_id: str = "", at: str = "") -> str:
        """Puts a message into the inbox of the group that has the chat `jid`; returns the message's id.

        A message whose id is known in its chat already is the same one, and changes nothing. Raises UnknownGroupError.
        """
        timestamp = at or self._iso()
        message_id = message_id or uuid.uuid4().hex
        text = text.replace("\0", "").encode("utf-8", "replace").decode()
        with self.database.transaction():
            folder = next((group.folder for group in self.groups() if group.jid == jid), None)
            if folder is None:
                raise UnknownGroupError(f"no group has the chat {jid}")
            self.database.add_chat(jid, None, timestamp)
            if self.database.add_message(message_id, jid, sender, sender_name, text, timestamp):
                self.database.add_to_inbox(message_id, jid, folder)
                self.database.set_state(LAST_SEEN, max(timestamp, self.database.state(LAST_SEEN)))
        return message_id

    def ready_groups(self) -> set[str]:
        """The groups with something to do now: messages that are to be answered, or open prompts not put off."""
        groups = {group.folder: group for group in self.groups()}
        waiting = self.database.groups_with_waiting_messages() & groups.keys()
        ready = {folder for folder in waiting if self._is_called(groups[folder])}
        return ready | (self.database.groups_with_open_prompts(self._iso()) & groups.keys())

    def open_prompts(self, folder: str, *, even_later: bool = False) -> list[Prompt]:
        """The group's unanswered prompts in their order, without those put off unless `even_later`."""
        found = self.database.open_prompts(folder, None if even_later else self._iso())
        return [prompt._replace(text=self._text_of(prompt)) for prompt in found]

    def next_prompt(self, folder: str) -> Prompt | None:
        """A new prompt of the messages that wait in the group's inbox; None where none is to be answered."""
        with self.database.transaction():
            group = self.group(folder)
            if not self._is_called(group):
                return None
            prompt_id = self.database.add_prompt(folder, group.jid, str(uuid.uuid4()))
            self.database.move_into_prompt(folder, prompt_id, MOST_MESSAGES)
        return self.open_prompts(folder)[-1]

    def begin(self, prompt: Prompt, session_id: str) -> Prompt:
        """Notes that the prompt is being given to a session; returns the prompt as it is now."""
        begun_at = self._iso()
        with self.database.transaction():
            self.database.set_begun(prompt.id, session_id, begun_at)
        return prompt._replace(session_id=session_id, begun_at=begun_at)

    def ask_again(self, prompt: Prompt) -> None:
        """Gives the prompt a new id: the runtime takes no prompt twice under the same one."""
        with self.database.transaction():
            self.database.set_uuid(prompt.id, str(uuid.uuid4()))

    def put_off(self, prompt: Prompt, seconds: float) -> None:
        """Has the prompt asked once more after that time, which counts as another attempt."""
        with self.database.transaction():
            self.database.set_uuid(prompt.id, str(uuid.uuid4()))
            self.database.put_off(prompt.id, iso_time(self._now() + seconds))

    def answer(self, prompts: Iterable[Prompt], text: str, error: str = "") -> int | None:
        """Writes down the one reply to all of `prompts`, which closes them; the reply's id, None where `text` is blank.

        `error` is what went wrong where the agent could not answer. Prompts that have an answer already keep it.
        """
        with self.database.transaction():
            answered = [prompt for prompt in prompts if self.database.is_open(prompt.id)]
            if not answered:
                return None
            first = answered[0]
            kind = "error" if error else "task" if first.task else "reply"
            reply_id = self._post(first.jid, text, kind) if text.strip() else None
            for prompt in answered:
                self.database.set_answered(prompt.id, reply_id, self._iso())
                self._note_last_answered(prompt)
                if prompt.task:
                    self.schedule.log_run(prompt.task, prompt.begun_at, text, error)
        return reply_id

    def notify(self, jid: str, text: str) -> int:
        """Sends text that answers no message, such as what an agent says of work that ended in the background."""
        with self.database.transaction():
            return self._post(jid, text, "notice")

    def replies(self, after: int = 0, jid: str = "", limit: int = 1000) -> list[ChatReply]:
        """The replies with an id above `after`, of one chat or of all."""
        return self.database.replies_after(after, jid, limit)

    def latest_replies(self, jid: str, count: int) -> list[ChatReply]:
        """The last `count` replies in a chat, in their order."""
        return self.database.latest_replies(jid, count)

    def undelivered(self, limit: int = 100) -> list[ChatReply]:
        """The replies that no channel has delivered yet."""
        return self.database.undelivered(limit)

    def mark_delivered(self, reply_id: int) -> None:
        """Notes that a reply has arrived."""
        with self.database.transaction():
            self.database.set_delivered(reply_id, self._iso())

    def last_reply(self) -> int:
        """The id of the latest reply; 0 where there is none."""
        return self.database.last_reply()

    def reply_to(self, message_id: str, jid: str) -> tuple[bool, int | None]:
        """Whether a message is answered, and the id of the reply, None where the agent had nothing to say."""
        return self.database.answer_of(message_id, jid)

    def _text_of(self, prompt: Prompt) -> str:
        return task_text(prompt.text) if prompt.task else messages_text(self.database.messages_of(prompt.id))

    def _is_called(self, group: RegisteredGroup) -> bool:
        """Whether one of the messages that wait is for the agent."""
        texts = self.database.waiting_texts(group.folder)
        return any(not group.requires_trigger or re.search(group.trigger_pattern, text) for text in texts)

    def _post(self, jid: str, text: str, kind: str) -> int:
        """Adds a message of the agent, to be delivered; its id as a reply. Inside a transaction."""
        timestamp = self._iso()
        self.database.add_chat(jid, None, timestamp)
        return self.database.add_reply(uuid.uuid4().hex, jid, text, kind, timestamp)

    def _note_last_answered(self, prompt: Prompt) -> None:
        """Notes, as NanoClaw does, when the latest message was written that is answered in the prompt's chat."""
        times = [message.timestamp for message in self.database.messages_of(prompt.id)]
        if times:
            by_chat = json.loads(self.database.state(LAST_ANSWERED) or "{}")
            by_chat[prompt.jid] = max(*times, by_chat.get(prompt.jid, ""))
            self.database.set_state(LAST_ANSWERED, json.dumps(by_chat, sort_keys=True))

    def _iso(self) -> str:
        return iso_time(self._now())


def messages_text(messages: Sequence[Message]) -> str:
    """The prompt for messages: the text alone of a single one without a sender, else each with its sender and time.

    Texts are escaped, so that no message can end before its end or begin another in somebody else's name.
    """
    if len(messages) == 1 and not messages[0].sender:
        return messages[0].text
    return "\n".join(map(_marked, messages))


def task_text(prompt: str) -> str:
    """The prompt for a scheduled task."""
    return f"{TASK_INTRODUCTION}\n\n{prompt}"


def _marked(message: Message) -> str:
    sender = f' from="{escape(message.sender)}"' if message.sender else ""
    return f'<message{sender} at="{escape(message.timestamp)}">{escape(message.text, quote=False)}</message>'
