"""The interface between a host and its channels.

The file defines a class `Channel` (see the protocol below) whose constructor takes one argument, a
`Chats`. All messages of a chat belong to one group; a chat's id begins with the channel's `PREFIX`,
such as `telegram:`, and `session-memory host add GROUP --chat ID` assigns the chat to a group."""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from ....common.errors import SessionMemoryError
from ....common.text.paths import is_name
from .._ledger import EmptyMessageError, Ledger, UnknownGroupError
from .._log import HostLog
from .._values import ChatReply


class ChannelError(SessionMemoryError):
    """A file without a valid channel."""


class NotYetError(SessionMemoryError):
    """A reply cannot be delivered now; the host tries again after `seconds`."""

    def __init__(self, message: str, seconds: float) -> None:
        super().__init__(message)
        self.seconds = seconds


class Chats:
    """The host's chats, for a channel. Use it only from the host's event loop."""

    def __init__(self, ledger: Ledger, wake: Callable[[], None], log: HostLog) -> None:
        self._ledger = ledger
        self._wake = wake
        self.log = log
        self.news = asyncio.Event()  # set, and replaced, when there may be new replies

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

        When this returns, the message is on disk and may be acknowledged. With the id that it has
        in the chat, receiving it twice changes nothing. For a chat without a group, or a message
        without text, only the chat's activity is recorded, and '' is returned."""
        try:
            received = self._ledger.receive(
                jid,
                text or "",
                sender=sender,
                sender_name=sender_name,
                message_id=message_id,
                at=at,
            )
        except (UnknownGroupError, EmptyMessageError):
            self.describe(jid, "", at)
            return ""
        self._wake()
        return received

    def describe(self, jid: str, name: str, at: str = "", *, is_group: bool | None = None) -> None:
        """Record a chat's name, the time of its last activity, and whether it has several people.

        The time is now by default; None means that the number of people is unknown. A new chat
        without a group is logged once."""
        is_new = self._ledger.note_chat(jid, name, at, is_group=is_group)
        if is_new and jid not in {group.jid for group in self._ledger.groups()}:
            self.log.event(
                f"{jid}: no group answers here; session-memory host add GROUP --chat {jid} "
                f"makes one"
            )

    def call_agent(self, jid: str, message_id: str) -> None:
        """Record that a received message mentions the agent and is for it, whatever the trigger."""
        self._ledger.call_agent(jid, message_id)
        self._wake()

    def edit(self, jid: str, message_id: str, text: str) -> None:
        """Give a received message another text.

        If an agent already has the message, it gets the new text as another message."""
        if self._ledger.edit(jid, message_id, text):
            self._wake()

    def move(self, old: str, new: str) -> bool:
        """Record that a chat has another id from now on; return whether that is news."""
        return self._ledger.move_chat(old, new)

    def moved(self, jid: str) -> str:
        """Return the present id of a chat."""
        return self._ledger.moved(jid)

    def note_sent(self, reply: ChatReply, parts: int) -> None:
        """Record how many parts of a reply are sent: no crash sends them again."""
        self._ledger.note_sent(reply.id, parts)

    def tell(self) -> None:
        """Wake the waiters for replies.

        They take `news` before they ask, and so miss none."""
        event, self.news = self.news, asyncio.Event()
        event.set()

    def chats_of(self, group: str) -> list[str]:
        """Return the ids of a group's chat and of its chat at the terminal.

        Raises UnknownGroupError."""
        return self._ledger.chats_of(group)

    def replies(self, jids: Sequence[str], after: int) -> list[ChatReply]:
        """Return the replies in these chats with an id above `after`, in order."""
        return self._ledger.replies_in(jids, after)

    def last_reply(self) -> int:
        return self._ledger.last_reply()


class Channel(Protocol):
    """The interface of a channel."""

    PREFIX: str
    """How the ids of its chats begin; '' for one that has none of its own."""

    async def serve(self) -> None:
        """Receive messages until cancelled.

        The host logs exceptions and calls this again after a pause."""

    async def deliver(self, reply: ChatReply) -> None:
        """Send a reply to its chat.

        The host logs exceptions and sends the reply again after a pause, for NotYetError after its
        `seconds`. After a crash a reply may be sent twice with the same `id`, because the host
        cannot know whether it arrived."""


def channels_in(directory: str, chats: Chats) -> list[Channel]:
    """Load the channels in `directory`. Raises ChannelError, and the errors of those files."""
    channels = []
    for path in sorted(Path(directory).glob("*.py")):
        if not is_name(path.stem):
            continue
        spec = importlib.util.spec_from_file_location(f"session_memory_channel_{path.stem}", path)
        if spec is None or spec.loader is None:
            raise ChannelError(f"{path}: cannot be loaded")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        make = getattr(module, "Channel", None)
        if make is None:
            raise ChannelError(
                f"{path}: it has no class `Channel`", "docs/use/host.md shows an example"
            )
        channels.append(make(chats))
    return channels
