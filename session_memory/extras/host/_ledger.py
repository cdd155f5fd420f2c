"""The ledger: received messages, the prompts they went into, and the one reply to each.

A message waits in the inbox until it is put into a prompt. A prompt is open until its reply is
recorded; one transaction records the reply and everything that it changes. After a crash the host
looks for the answers to open prompts in the transcript (recovery.py), and asks the other prompts
again.
"""

from __future__ import annotations

import json
import re
import time
import uuid
import zlib
from collections.abc import Callable, Iterable, Sequence
from html import escape

from ...common.errors import SessionMemoryError, WrongCallError
from ...common.text.format import one_line, shorten
from ...common.text.sanitize import plain
from ...common.text.timestamps import iso_time
from ...history.archives.format import TASK_INTRODUCTION
from ._database import HostDatabase
from ._schedule import ACTIVE, PAUSED, Schedule, storable
from ._values import LOCAL, Chat, Message, Prompt, RegisteredGroup

MOST_MESSAGES = 50  # in one prompt
MOST_STRANGERS = 500
MOST_CHAT_CHARACTERS = 200  # in the id or the name of a chat
LAST_SEEN, LAST_ANSWERED = "last_timestamp", "last_agent_timestamp"
MOVED_CHATS = "moved_chats"
EDITED = "(edited)"


class EmptyMessageError(WrongCallError):
    """A message without a text."""


class UnknownGroupError(SessionMemoryError):
    """No group is registered under this name or for this chat, or another one is."""


class WrongGroupError(WrongCallError):
    """A group cannot have this chat or trigger."""


class Ledger(HostDatabase):
    """The ledger in the host's database at `path`, with the schedule of its tasks.

    `now` returns seconds since the epoch. A method that changes something opens a transaction
    itself, unlike HostDatabase's methods."""

    def __init__(self, path: str, now: Callable[[], float] = time.time) -> None:
        super().__init__(path)
        self.schedule = Schedule(self, now)
        self._now = now
        # by group, its trigger, and the position in the inbox
        self._compared: dict[str, tuple[str, int]] = {}

    def register(
        self, folder: str, jid: str, name: str, trigger_pattern: str, requires_trigger: bool
    ) -> RegisteredGroup:
        """Assign a chat's messages to the group `folder`.

        Raises UnknownGroupError if either is already in use, WrongGroupError."""
        registered = _checked(RegisteredGroup(jid, name, folder, trigger_pattern, requires_trigger))
        with self.transaction():
            for group in self.groups():
                if group.jid == jid or group.folder.casefold() == folder.casefold():
                    raise UnknownGroupError(
                        f"group {group.folder} already has the chat {group.jid}"
                    )
            self.add_group(registered, self._iso())
            self._meet(jid, name)
        return registered

    def update(
        self,
        folder: str,
        *,
        name: str | None = None,
        trigger: str | None = None,
        jid: str | None = None,
    ) -> RegisteredGroup:
        """Change the given properties of a group; with '' as trigger it answers everything.

        Raises UnknownGroupError, WrongGroupError."""
        with self.transaction():
            group = self.group(folder)
            if trigger is not None:
                group = group._replace(trigger_pattern=trigger, requires_trigger=bool(trigger))
            changed = _checked(
                group._replace(name=group.name if name is None else name, jid=jid or group.jid)
            )
            for other in self.groups():
                if other.jid == changed.jid and other.folder != folder:
                    raise UnknownGroupError(
                        f"group {other.folder} already has the chat {changed.jid}"
                    )
            self._meet(changed.jid, changed.name)
            self.change_group(folder, changed)
        return changed

    def remove(self, folder: str) -> list[str]:
        """Unassign a group from its chat and pause its tasks; return their ids.

        The group's files and messages stay. Raises UnknownGroupError."""
        with self.transaction():
            self.group(folder)
            self.remove_group(folder)
            active = [task for task in self.schedule.tasks(folder) if task.status == ACTIVE]
            for task in active:
                self.change("scheduled_tasks", task.id, status=PAUSED)
        return [task.id for task in active]

    def note_chat(
        self, jid: str, name: str = "", at: str = "", *, is_group: bool | None = None
    ) -> bool:
        """Record a chat's name and its activity; return whether it was unknown.

        `at` is ISO 8601, '' for now."""
        with self.transaction():
            is_new = not self.has_chat(jid)
            self.add_chat(jid, one_line(plain(name)) or None, at or self._iso())
            if is_group is not None:
                self.set_is_group(jid, is_group)
        return is_new

    def move_chat(self, old: str, new: str) -> bool:
        """Record that a channel has given a chat another id; return whether that is new.

        The chat's group, and replies to the old id, move to the new one."""
        with self.transaction():
            moved = self._moved_chats()
            if moved.get(old) == new or old == new:
                return False
            self.set_state(MOVED_CHATS, json.dumps({**moved, old: new}, sort_keys=True))
            groups = {group.jid: group for group in self.groups()}
            self._meet(new, groups[old].name if old in groups else new)
            if old in groups and new not in groups:
                self.change_group(groups[old].folder, groups[old]._replace(jid=new))
        return True

    def moved(self, jid: str) -> str:
        """Return the present id of a chat."""
        moved, seen = self._moved_chats(), {jid}
        while (new := moved.get(jid, jid)) not in seen:
            jid = new
            seen.add(jid)
        return jid

    def _moved_chats(self) -> dict[str, str]:
        return dict(json.loads(self.state(MOVED_CHATS) or "{}"))

    def group(self, folder: str) -> RegisteredGroup:
        """Return the group with this folder. Raises UnknownGroupError."""
        groups = {group.folder: group for group in self.groups()}
        if folder not in groups:
            hint = (
                f"there are {', '.join(groups)}"
                if groups
                else "session-memory host add NAME makes one"
            )
            raise UnknownGroupError(f"there is no group {folder!r}", hint)
        return groups[folder]

    def chats_of(self, folder: str) -> list[str]:
        """Return the ids of a group's chat and of its chat at the terminal.

        Raises UnknownGroupError."""
        return list(dict.fromkeys((self.group(folder).jid, f"{LOCAL}{folder}")))

    def strangers(self) -> list[Chat]:
        """Return at most MOST_STRANGERS chats without a group, the last active ones first.

        The terminal's chats belong to their groups, and a chat that moved counts under its new id.
        """
        known_jids = {group.jid for group in self.groups()} | self._moved_chats().keys()
        return [
            chat
            for chat in self.chats()
            if chat.jid not in known_jids and not chat.jid.startswith(LOCAL)
        ][:MOST_STRANGERS]

    def receive(
        self,
        jid: str,
        text: str,
        *,
        sender: str,
        sender_name: str,
        message_id: str = "",
        at: str = "",
    ) -> str:
        """Put a message into the inbox of the chat's group; return the message's id.

        A message with an id that its chat already has is the same message and changes nothing.
        Raises UnknownGroupError, EmptyMessageError."""
        text = storable(text)
        if not text.strip():
            raise EmptyMessageError("a message needs a text", "send a text")
        timestamp = at or self._iso()
        message_id = message_id or uuid.uuid4().hex
        with self.transaction():
            folder = self._group_of(jid)
            if folder is None:
                raise UnknownGroupError(f"no group has the chat {jid}")
            self.add_chat(jid, None, timestamp)
            if self.add_message(message_id, jid, sender, sender_name, text, timestamp):
                self.add_to_inbox(message_id, jid, folder)
                self.set_state(LAST_SEEN, max(timestamp, self.state(LAST_SEEN)))
        return message_id

    def call_agent(self, jid: str, message_id: str) -> None:
        """Record that a message is for the agent, whatever its group's trigger."""
        with self.transaction():
            self.set_called(message_id, jid)
        self._compared.clear()

    def edit(self, jid: str, message_id: str, text: str) -> bool:
        """Change the text of a message that waits for its answer; return whether anything changed.

        If an agent already has it, put the new text into the inbox as another message. An unknown
        message, or one with this text already, stays as it is."""
        text = storable(text)
        with self.transaction():
            before = self.text_of_message(message_id, jid)
            folder = self._group_of(jid)
            if before is None or folder is None or before == text or not text.strip():
                return False
            if self.is_waiting(message_id, jid):
                self.change_text(message_id, jid, text)
                self._compared.pop(folder, None)
                return True
            edit_id = f"{message_id}.{zlib.crc32(text.encode()):08x}"
            sender, sender_name = self.sender_of(message_id, jid)
            edited = f"{EDITED} {text}"
            if not self.add_message(edit_id, jid, sender, sender_name, edited, self._iso()):
                return False
            self.add_to_inbox(edit_id, jid, folder)
            if self.is_called(message_id, jid):
                self.set_called(edit_id, jid)
        return True

    def _group_of(self, jid: str) -> str | None:
        """Return the group of a chat; at the terminal, the one that the chat names."""
        groups = self.groups()
        having = next((group.folder for group in groups if group.jid == jid), None)
        named = jid.removeprefix(LOCAL) if jid.startswith(LOCAL) else ""
        return having or next((group.folder for group in groups if group.folder == named), None)

    def ready_groups(self) -> set[str]:
        """Return the groups with messages to answer now, or open prompts that are not delayed."""
        groups = {group.folder: group for group in self.groups()}
        waiting = self.groups_with_waiting_messages() & groups.keys()
        ready = {folder for folder in waiting if self._called_at(groups[folder])}
        return ready | (self.groups_with_open_prompts(self._iso()) & groups.keys())

    def open_prompts(self, folder: str, *, even_later: bool = False) -> list[Prompt]:
        prompts = self.prompt_rows(folder, None if even_later else self._iso())
        return [prompt._replace(text=self._text_of(prompt)) for prompt in prompts]

    def next_prompt(self, folder: str) -> Prompt | None:
        """Make a prompt of the messages in the group's inbox.

        It has the messages up to the first that is for the agent, or more, and of these the last
        MOST_MESSAGES. Return None if no message needs an answer, or the group is gone."""
        with self.transaction():
            group = next((group for group in self.groups() if group.folder == folder), None)
            called_at = self._called_at(group) if group else 0
            if group is None or not called_at:
                return None
            jid = self.chat_at(called_at)
            prompt_id = self.add_prompt(folder, jid, str(uuid.uuid4()))
            self.move_into_prompt(folder, jid, prompt_id, called_at, MOST_MESSAGES)
        return self.open_prompts(folder)[-1]

    def begin(self, prompt: Prompt, session_id: str) -> Prompt:
        """Record that a session receives the prompt; return the prompt as it is now."""
        begun_at = self._iso()
        with self.transaction():
            self.change("prompts", prompt.id, session_id=session_id, begun_at=begun_at)
        return prompt._replace(session_id=session_id, begun_at=begun_at)

    def ask_again(self, prompt: Prompt) -> None:
        """Give the prompt a new id: the runtime refuses an id it has seen."""
        with self.transaction():
            self.change("prompts", prompt.id, uuid=str(uuid.uuid4()))

    def put_off(self, prompt: Prompt, seconds: float) -> None:
        """Retry the prompt after that time; counts as another attempt."""
        with self.transaction():
            self.change(
                "prompts",
                prompt.id,
                uuid=str(uuid.uuid4()),
                attempt=prompt.attempt + 1,
                not_before=iso_time(self._now() + seconds),
            )

    def answer(self, prompts: Iterable[Prompt], text: str, error: str = "") -> int | None:
        """Record one reply to all of `prompts`, in each of their chats, and close them.

        Return the id of the first reply, None if `text` is blank. `error` is the reason if the
        agent could not answer. Prompts with an answer keep it."""
        with self.transaction():
            answered = [prompt for prompt in prompts if self.is_open(prompt.id)]
            if not answered:
                return None
            first = answered[0]
            kind = "error" if error else "task" if first.task else "reply"
            replies = {
                jid: self._post(jid, text, kind) if text.strip() else None
                for jid in dict.fromkeys(prompt.jid for prompt in answered)
            }
            for prompt in answered:
                reply_id = replies[prompt.jid]
                self.change("prompts", prompt.id, answered_at=self._iso(), reply_id=reply_id)
                self._note_last_answered(prompt)
                if prompt.task:
                    self.schedule.log_run(prompt.task, prompt.begun_at, text, error)
        return replies[first.jid]

    def notify(self, jid: str, text: str) -> int:
        """Send text that answers no message, such as an agent's report on background work."""
        with self.transaction():
            return self._post(jid, text, "notice")

    def mark_delivered(self, reply_id: int) -> None:
        with self.transaction():
            self.change("outbox", reply_id, delivered_at=self._iso())

    def note_sent(self, reply_id: int, parts: int) -> None:
        """Record how many parts of a reply its channel has sent."""
        with self.transaction():
            self.change("outbox", reply_id, sent_parts=parts)

    def _text_of(self, prompt: Prompt) -> str:
        return (
            task_text(prompt.text)
            if prompt.task
            else messages_text(self.messages_of(prompt.id, MOST_MESSAGES))
        )

    def answers(self, folder: str, text: str) -> bool:
        """Return whether the group's agent would answer a message with this text.

        Raises UnknownGroupError."""
        group = self.group(folder)
        return _calls(group, text) or bool(self._called_at(group))

    def _called_at(self, group: RegisteredGroup) -> int:
        """Return the inbox position of the first waiting message for the agent; 0 without one.

        Each message is compared with the trigger once."""
        trigger, after = self._compared.get(group.folder, ("", 0))
        after = after if trigger == group.trigger else 0
        called_at = 0
        for seq, text, is_called in self.waiting(group.folder, after):
            if is_called or _calls(group, text):
                called_at = seq
                break
            after = seq
        self._compared[group.folder] = group.trigger, after
        return called_at

    def _meet(self, jid: str, name: str) -> None:
        """Add the chat if it is new, within a transaction; a channel's name for it stays."""
        if jid not in {chat.jid for chat in self.chats()}:
            self.add_chat(jid, name, "")

    def _post(self, jid: str, text: str, kind: str) -> int:
        """Add a message of the agent for delivery; return its id as a reply.

        Inside a transaction."""
        timestamp = self._iso()
        self.add_chat(jid, None, timestamp)
        return self.add_reply(uuid.uuid4().hex, jid, text, kind, timestamp)

    def _note_last_answered(self, prompt: Prompt) -> None:
        """Record the time of the latest answered message in the prompt's chat, as NanoClaw does."""
        times = [message.timestamp for message in self.messages_of(prompt.id, MOST_MESSAGES)]
        if times:
            by_chat = json.loads(self.state(LAST_ANSWERED) or "{}")
            by_chat[prompt.jid] = max(*times, by_chat.get(prompt.jid, ""))
            self.set_state(LAST_ANSWERED, json.dumps(by_chat, sort_keys=True))

    def _iso(self) -> str:
        return iso_time(self._now())


def _checked(group: RegisteredGroup) -> RegisteredGroup:
    """Return the group with its name on one line.

    Raises WrongGroupError if its properties are invalid."""
    try:
        re.compile(group.trigger_pattern)
    except re.error as error:
        raise WrongGroupError(
            f"the trigger {group.trigger_pattern!r}: {error}", "write a regular expression"
        ) from None
    if (
        not group.jid
        or one_line(plain(group.jid)) != group.jid
        or len(group.jid) > MOST_CHAT_CHARACTERS
    ):
        raise WrongGroupError(
            f"{group.jid[:MOST_CHAT_CHARACTERS]!r} is not a chat id", "such as telegram:123"
        )
    return group._replace(
        name=shorten(one_line(plain(group.name)), MOST_CHAT_CHARACTERS) or group.folder
    )


def _calls(group: RegisteredGroup, text: str) -> bool:
    """Return whether a text is for the group's agent."""
    return (
        not group.requires_trigger
        or re.search(group.trigger_pattern, text, re.IGNORECASE) is not None
    )


def messages_text(messages: Sequence[Message]) -> str:
    """Return the prompt for messages, each with its sender and time.

    A single message without a sender is only its text. Texts are escaped, so no message can end
    early or begin another in somebody else's name."""
    if len(messages) == 1 and not messages[0].sender:
        return messages[0].text
    return "\n".join(map(_marked, messages))


def task_text(prompt: str) -> str:
    """Return the prompt for a scheduled task."""
    return f"{TASK_INTRODUCTION}\n\n{prompt}"


def _marked(message: Message) -> str:
    sender = f' from="{escape(message.sender)}"' if message.sender else ""
    return (
        f"<message{sender} "
        f'at="{escape(message.timestamp)}">{escape(message.text, quote=False)}</message>'
    )
