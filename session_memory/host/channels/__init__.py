"""Channels: where messages come from and replies go. A new one is one file, `channels/<name>.py` of a host's directory.

Such a file has a class `Channel` that is made with one argument, the door. Messages of one chat belong to one group; a
chat's id begins with the channel's `PREFIX`, such as `telegram:`, and `session-memory host add GROUP --chat ID` gives
the chat to a group.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from ...errors import SessionMemoryError
from ...text.names import is_name
from ..ledger import Ledger, Reply

LOCAL = "local:"  # chats of groups that no other program has a chat with: nothing delivers there, they are read


class ChannelError(SessionMemoryError):
    """A file that holds no channel."""


class Door:
    """What a channel reaches of the host. To be used from the host's event loop alone."""

    def __init__(self, ledger: Ledger, poke: Callable[[], None]) -> None:
        self._ledger = ledger
        self._poke = poke

    def take(self, jid: str, text: str, *, sender: str, sender_name: str, message_id: str = "", at: str = "") -> str:
        """Takes a message in; its id. When this returns the message is on disk, and may be acknowledged to wherever it
        came from. With the id that it has there it may be taken in twice: the second time changes nothing.

        Raises UnknownGroupError for a chat that no group has.
        """
        taken = self._ledger.take(jid, text, sender=sender, sender_name=sender_name, message_id=message_id, at=at)
        self._poke()
        return taken

    def chat_of(self, group: str) -> str:
        """The id of a group's chat. Raises UnknownGroupError."""
        return self._ledger.group(group).jid

    def replies(self, jid: str, after: int) -> list[Reply]:
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
        """Takes messages in, until it is cancelled. What it raises is logged, and it is served anew after a while."""

    async def deliver(self, reply: Reply) -> None:
        """Brings a reply to its chat. What it raises is logged, and the reply is brought again after a while.

        After a crash a reply that had arrived may be brought once more, with the same `id`: the only thing that is not
        exactly once, for the host cannot know whether it had.
        """


def channels_in(directory: str, door: Door) -> list[Channel]:
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
        found.append(make(door))
    return found
