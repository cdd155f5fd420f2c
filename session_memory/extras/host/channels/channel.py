"""The interface between a host and its channels.

The file defines a class `Channel` (see the protocol below) whose constructor takes one argument, a
`Chats`. All messages of a chat belong to one group; a chat's id begins with the channel's `PREFIX`,
such as `telegram:`, and `session-memory host add GROUP --chat ID` assigns the chat to a group."""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from ....common.errors import SessionMemoryError
from ....common.text.paths import is_name
from .._ledger import EmptyMessageError, Ledger, UnknownGroupError
from .._log import HostLog
from .._values import ChatReply


class ChannelError(SessionMemoryError):
    """A file without a valid channel."""


class Chats:
    """The host's chats, for a channel. Use it only from the host's event loop."""

    def __init__(self, ledger: Ledger, wake: Callable[[], None], log: HostLog) -> None:
        self._ledger = ledger
        self._wake = wake
        self._log = log
        self._strangers: set[str] = set()  # chats without a group, already logged
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
        """Put a message into the inbox of the chat's group; return the message's id. When this
        returns, the message is on disk and may be acknowledged. With the id that it has in the
        chat, receiving it twice changes nothing. For a chat without a group, or a message without
        text, it only records the chat's activity and returns ''."""
        try:
            given = {
                "sender": sender,
                "sender_name": sender_name,
                "message_id": message_id,
                "at": at,
            }
            received = self._ledger.receive(jid, text or "", **given)
        except (UnknownGroupError, EmptyMessageError) as error:
            self._ledger.note_chat(jid, at=at)
            if isinstance(error, UnknownGroupError) and jid not in self._strangers:
                self._strangers.add(jid)
                self._log.event(
                    f"{jid}: no group answers here; session-memory host add GROUP --chat {jid} "
                    f"makes one"
                )
            return ""
        self._wake()
        return received

    def describe(self, jid: str, name: str, at: str = "") -> None:
        """Record a chat's name and the time of its last activity (default: now), with or without a
        group."""
        self._ledger.note_chat(jid, name, at)

    def tell(self) -> None:
        """Wake those who wait for replies: they take `news` before they ask, and so miss none."""
        event, self.news = self.news, asyncio.Event()
        event.set()

    def chat_of(self, group: str) -> str:
        """Return the id of a group's chat. Raises UnknownGroupError."""
        return self._ledger.group(group).jid

    def replies(self, jid: str, after: int) -> list[ChatReply]:
        """Return the replies in a chat with an id above `after`, in order."""
        return self._ledger.replies(after, jid)

    def last_reply(self) -> int:
        return self._ledger.last_reply()


class Channel(Protocol):
    """The interface of a channel."""

    PREFIX: str
    """How the ids of its chats begin; '' for one that has none of its own."""

    async def serve(self) -> None:
        """Receive messages until cancelled. The host logs its exceptions and calls it again after a
        pause."""

    async def deliver(self, reply: ChatReply) -> None:
        """Send a reply to its chat. The host logs its exceptions and sends the reply again after a
        pause. After a crash a reply may be sent twice with the same `id`: the host cannot know
        whether it arrived."""


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
