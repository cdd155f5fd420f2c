"""Channels: where messages come from and replies go. A new one is one file, `channels/<name>.py` of a host's directory.

Such a file has a class `Channel` (see the protocol below) whose constructor takes one argument, a `Chats`. Messages of
one chat belong to one group; a chat's id begins with the channel's `PREFIX`, such as `telegram:`, and
`session-memory host add GROUP --chat ID` gives the chat to a group.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from ...errors import SessionMemoryError
from ...text.names import is_name
from ..ledger import EmptyMessageError, Ledger, UnknownGroupError
from ..log import HostLog
from ..values import ChatReply


class ChannelError(SessionMemoryError):
    """A file that holds no channel."""


class Chats:
    """The host's chats, for a channel. To be used from the host's event loop alone."""

    def __init__(self, ledger: Ledger, wake: Callable[[], None], log: HostLog) -> None:
        self._ledger = ledger
        self._wake = wake
        self._log = log
        self._strangers: set[str] = set()  # chats without a group that the log has named

    def receive(self, jid: str, text: str, *, sender: str, sender_name: str, message_id: str = "", at: str = "") -> str:
        """Puts a message into the inbox of the chat's group; returns the message's id.

        When this returns the message is on disk and can be acknowledged. With the id that it has in the chat it may be
        received twice: the second time changes nothing. Of a message in a chat that no group has, and of one without a
        text, it is only noted that the chat was active; then '' is returned.
        """
        try:
            received = self._ledger.receive(
                jid, text or "", sender=sender, sender_name=sender_name, message_id=message_id, at=at
            )
        except (UnknownGroupError, EmptyMessageError) as error:
            self._ledger.note_chat(jid, at=at)
            if isinstance(error, UnknownGroupError) and jid not in self._strangers:
                self._strangers.add(jid)
                self._log.event(f"{jid}: no group answers here; session-memory host add GROUP --chat {jid} makes one")
            return ""
        self._wake()
        return received

    def describe(self, jid: str, name: str, at: str = "") -> None:
        """Notes what a chat is called, and when it was last active (now), whether a group has it or not."""
        self._ledger.note_chat(jid, name, at)

    def chat_of(self, group: str) -> str:
        """The id of a group's chat. Raises UnknownGroupError."""
        return self._ledger.group(group).jid

    def replies(self, jid: str, after: int) -> list[ChatReply]:
        """The replies in a chat with an id above `after`, in their order."""
        return self._ledger.replies(after, jid)

    def last_reply(self) -> int:
        """The id of the latest reply."""
        return self._ledger.last_reply()


class Channel(Protocol):
    """What a channel offers."""

    PREFIX: str
    """How the ids of its chats begin; '' for one that has none of its own."""

    async def serve(self) -> None:
        """Receives messages until it is cancelled. What it raises is logged, and it is called again after a pause."""

    async def deliver(self, reply: ChatReply) -> None:
        """Sends a reply to its chat. What it raises is logged, and the reply is sent again after a pause.

        After a crash a reply may be sent once more, with the same `id`: the host cannot know whether it had arrived.
        """


def channels_in(directory: str, chats: Chats) -> list[Channel]:
    """The channels of the files in `directory`. Raises ChannelError, and what those files raise."""
    found = []
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
            raise ChannelError(f"{path}: it has no class `Channel`", "docs/host.md shows one")
        found.append(make(chats))
    return found
