"""The channel `store/host.sock`: a Unix socket for this user alone, one JSON object per line in
both directions.

-> {"say": {"group": "main", "text": "hello", "id": "7", "sender": "Anna"}} id and sender are
optional <- {"taken": {"group": "main", "id": "7"}}
-> {"follow": {"group": "main", "after": 0}} after: the last reply that is known <- {"reply": {"id":
1, "group": "main", "kind": "reply", "text": "Hello.", "at": "2026-...Z", "answers": ["7"]}} <-
{"error": {"message": "there is no group 'man'", "hint": "there are main"}}"""

from __future__ import annotations

import asyncio
import json
import os
import socket
from typing import Any

from ....common.errors import SessionMemoryError
from .._values import ChatReply
from .channel import Chats

LINE_BYTES = 1024 * 1024
PATH_BYTES = 100
UNDERSTOOD = '{"say": {"group": ..., "text": ...}} or {"follow": {"group": ...}}'


class SocketError(SessionMemoryError):
    """The socket cannot be created, or a line received on it is invalid."""


class UnixSocket:
    """The channel.

    It has no chats of its own: a client names the group to speak to or to follow."""

    PREFIX = ""

    def __init__(self, path: str, chats: Chats) -> None:
        self._path = path
        self._chats = chats

    async def serve(self) -> None:
        """Listen until cancelled. Raises SocketError, OSError."""
        server = await asyncio.start_unix_server(
            self._converse, sock=_bound(self._path), limit=LINE_BYTES
        )
        async with server:
            await server.serve_forever()

    async def deliver(self, reply: ChatReply) -> None:
        """Do nothing: clients read the replies from the database."""

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        following: list[asyncio.Task[None]] = []
        try:
            while line := await reader.readline():
                try:
                    answer = self._answer(line, writer, following)
                except SessionMemoryError as error:
                    answer = {"error": {"message": str(error), "hint": error.hint}}
                if answer:
                    await _send(writer, answer)
        except (ConnectionError, ValueError):  # the client is gone, or its line is too long
            pass
        finally:
            for task in following:
                task.cancel()
            writer.close()

    def _answer(
        self, line: bytes, writer: asyncio.StreamWriter, following: list[asyncio.Task[None]]
    ) -> dict[str, Any] | None:
        try:
            ((verb, values),) = json.loads(line).items()
            group = str(values["group"])
            if verb == "say":
                sender, text = str(values.get("sender") or ""), values["text"]
                if not isinstance(text, str) or not text.strip():
                    raise SocketError("invalid request: text is empty or not a string", UNDERSTOOD)
                message_id = self._chats.receive(
                    self._chats.chats_of(group)[-1],
                    text,
                    sender=sender or "socket",
                    sender_name=sender,
                    message_id=str(values.get("id", "")),
                )
                return {"taken": {"group": group, "id": message_id}}
            if verb == "follow":
                after = int(values.get("after", self._chats.last_reply()))
                following.append(
                    asyncio.create_task(self._follow(self._chats.chats_of(group), after, writer))
                )
                return None
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise SocketError(f"invalid request: {error}", UNDERSTOOD) from None
        raise SocketError(f"invalid request: {verb}", UNDERSTOOD)

    async def _follow(self, jids: list[str], after: int, writer: asyncio.StreamWriter) -> None:
        while True:
            news = self._chats.news
            for reply in self._chats.replies(jids, after):
                await _send(writer, {"reply": shown(reply)})
                after = reply.id
            await news.wait()


def shown(reply: ChatReply) -> dict[str, Any]:
    """Return a reply as JSON."""
    return {
        "id": reply.id,
        "group": reply.group,
        "kind": reply.kind,
        "text": reply.text,
        "at": reply.timestamp,
        "answers": list(reply.answers),
    }


async def _send(writer: asyncio.StreamWriter, value: dict[str, Any]) -> None:
    writer.write(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace") + b"\n")
    await writer.drain()


def _bound(path: str) -> socket.socket:
    """Return a socket at `path` that only this user may connect to, replacing one that a killed
    host left."""
    if len(os.fsencode(path)) > PATH_BYTES:
        hint = f"move the host so that its path has at most {PATH_BYTES} bytes"
        raise SocketError(f"{path}: too long for a socket", hint)
    if os.path.lexists(path):
        os.unlink(path)
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        bound.bind(path)
    finally:
        os.umask(before)
    return bound
