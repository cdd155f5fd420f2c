"""The channel `telegram:`: chats of a Telegram bot, by long polling.

Requesting the next update confirms the last one to Telegram, so this happens only after its message
is in the database. A message has one id there, so a repeated update changes nothing. A long reply
is sent in parts, each recorded after Telegram has it. If the host is killed in between, only that
part is sent twice, because the Bot API has no ids from the sender.
"""

from __future__ import annotations

import asyncio
import os
import stat
import time
from collections.abc import Iterator
from typing import Any

from ....common.errors import SessionMemoryError
from ....common.text.timestamps import iso_time
from .._values import ChatReply
from ..settings import HostSettings
from ._bot_api import BotApi, BotApiError, Json
from .channel import Chats, NotYetError

PREFIX = "telegram:"
TOKEN_VARIABLE = "TELEGRAM_BOT_TOKEN"
TOKEN_FILE = ".session-memory/telegram-token"
MOST_UNITS = 4096  # of UTF-16, in one message
POLL_SECONDS, SHORTEST_POLL_SECONDS = 50, 0.2
ALLOWED_UPDATES = ["message", "edited_message"]
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 1.0, 60.0
REFUSED_SECONDS = 300.0  # until a chat that refuses the bot is tried again
_GROUP_TYPES = ("group", "supergroup", "channel")
# Content without a text; an agent at least learns that it came.
_OTHER_CONTENT = (
    "photo",
    "voice",
    "video",
    "video_note",
    "audio",
    "animation",
    "document",
    "sticker",
    "location",
    "contact",
    "poll",
)


class TokenError(SessionMemoryError):
    """The bot's token is missing, or other people can read it."""


class Telegram:
    """The channel of the host in the directory `root`."""

    PREFIX = PREFIX

    def __init__(self, root: str, config: HostSettings, chats: Chats) -> None:
        self._root = root
        self._config = config
        self._chats = chats
        # Taken out of the environment: agents inherit it.
        self._token = os.environ.pop(TOKEN_VARIABLE, "")
        self._api: BotApi | None = None
        self._username = ""

    async def serve(self) -> None:
        """Receive messages until cancelled.

        Raises TokenError, BotApiError for a fault that stays, and the errors of the database."""
        api = self._connected()
        offset, pause = 0, FIRST_PAUSE_SECONDS
        while True:
            try:
                if not self._username:
                    self._username = str((await api.call("getMe")).get("username") or "")
                began = time.monotonic()
                updates = await self._updates(api, offset)
                for update in updates:
                    self._take(update)
                    offset = update["update_id"] + 1
                pause = FIRST_PAUSE_SECONDS
                if not updates and time.monotonic() - began < SHORTEST_POLL_SECONDS:
                    await asyncio.sleep(FIRST_PAUSE_SECONDS)  # the server does not wait
            except BotApiError as error:
                if not error.is_passing and error.code != 409:
                    raise
                if pause == FIRST_PAUSE_SECONDS or error.code == 409:
                    self._chats.log.fault(f"telegram: {error}")
                await asyncio.sleep(max(pause, error.retry_after))
                pause = min(2 * pause, LONGEST_PAUSE_SECONDS)

    async def deliver(self, reply: ChatReply) -> None:
        """Send the parts of a reply that were not sent yet. Raises NotYetError."""
        chat = self._chats.moved(reply.jid).removeprefix(PREFIX)
        parts = list(_parts_of(reply.text))
        for number, part in enumerate(parts[reply.sent_parts :], reply.sent_parts + 1):
            await self._send(reply, chat, part, is_first=number == 1)
            self._chats.note_sent(reply, number)

    async def _send(self, reply: ChatReply, chat: str, text: str, *, is_first: bool) -> None:
        values: Json = {"chat_id": int(chat), "text": text}
        bot_id, _, answered = (reply.answers[-1] if reply.answers else "").partition(".")
        answered = answered.partition(".")[0]
        api = self._connected()
        if is_first and chat.startswith("-") and bot_id == api.bot_id and answered.isdecimal():
            values["reply_parameters"] = {
                "message_id": int(answered),
                "allow_sending_without_reply": True,
            }
        try:
            await api.call("sendMessage", **values)
        except BotApiError as error:
            if error.migrate_to:
                self._move(f"{PREFIX}{chat}", f"{PREFIX}{error.migrate_to}")
                raise NotYetError("the chat has a new id", 0.0) from None
            if error.code == 400:  # this text will never be accepted, and others wait behind it
                self._chats.log.fault(
                    f"{reply.jid}: Telegram refuses reply {reply.id}; it stays in the database: "
                    f"{error}"
                )
                return
            if error.is_passing:
                raise NotYetError(str(error), error.retry_after) from None
            raise NotYetError(str(error), REFUSED_SECONDS) from None

    async def _updates(self, api: BotApi, offset: int) -> list[Json]:
        result = await api.call(
            "getUpdates",
            POLL_SECONDS + 15,
            timeout=POLL_SECONDS,
            allowed_updates=ALLOWED_UPDATES,
            **({"offset": offset} if offset else {}),
        )
        if not isinstance(result, list):
            raise BotApiError("getUpdates: no list of updates")
        updates = [
            update
            for update in result
            if isinstance(update, dict) and isinstance(update.get("update_id"), int)
        ]
        return sorted(updates, key=lambda update: int(update["update_id"]))

    def _take(self, update: Json) -> None:
        """Put an update's message into the database. Raises the errors of the database."""
        edited = update.get("edited_message")
        message = edited if isinstance(edited, dict) else update.get("message")
        try:
            received = Received(message, self._connected().bot_id, self._username)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            if message is not None:
                self._chats.log.fault(
                    f"telegram: update {update['update_id']} is not understood: {error!r}"
                )
            return
        if received.moved_to:
            self._move(received.jid, received.moved_to)
        self._chats.describe(
            received.jid, received.chat_name, received.at, is_group=received.is_group
        )
        if not received.text:
            return
        if edited:
            self._chats.edit(received.jid, received.id, received.text)
            return
        message_id = self._chats.receive(
            received.jid,
            received.text,
            sender=received.sender,
            sender_name=received.sender_name,
            message_id=received.id,
            at=received.at,
        )
        if message_id and received.is_called:
            self._chats.call_agent(received.jid, message_id)

    def _move(self, old: str, new: str) -> None:
        if self._chats.move(old, new):
            self._chats.log.event(f"{old} is now {new}: Telegram made a supergroup of it")

    def _connected(self) -> BotApi:
        if self._api is None:
            token = self._token or _token_in(f"{self._root}/{TOKEN_FILE}")
            self._api = BotApi(self._config.telegram_api, token)
        return self._api


class Received:
    """A message of the Bot API.

    Raises KeyError, TypeError, ValueError or AttributeError if it has another form."""

    def __init__(self, message: Any, bot_id: str, username: str) -> None:
        chat, user = message["chat"], message.get("from") or {}
        channel = message.get("sender_chat") or {}
        self.jid = f"{PREFIX}{int(chat['id'])}"
        self.is_group = chat["type"] in _GROUP_TYPES
        self.chat_name = str(chat.get("title") or _name(chat))
        self.at = iso_time(float(message["date"]))
        # Another bot numbers the messages of a private chat from 1 again.
        self.id = f"{bot_id}.{int(message['message_id'])}"
        self.sender = str(channel.get("id") or user.get("id") or "")
        self.sender_name = str(channel.get("title") or _name(user))
        moved_to = message.get("migrate_to_chat_id")
        self.moved_to = f"{PREFIX}{int(moved_to)}" if moved_to else ""
        self.text = _text(message)
        self.is_called = _calls_bot(message, bot_id, username)


def check(root: str, config: HostSettings) -> str:
    """Ask Telegram for the bot of the host in `root`; return its name.

    Raises TokenError, BotApiError."""
    token = os.environ.get(TOKEN_VARIABLE) or _token_in(f"{root}/{TOKEN_FILE}")
    bot = BotApi(config.telegram_api, token).call_now("getMe")
    return f"@{bot.get('username')}" if isinstance(bot, dict) else ""


def _name(user: Json) -> str:
    names = [str(user[key]) for key in ("first_name", "last_name") if user.get(key)]
    return " ".join(names) or str(user.get("username") or "")


def _text(message: Json) -> str:
    """Return a message's text; '' for a service message, such as a new member."""
    text = str(message.get("text") or message.get("caption") or "")
    kinds = [kind for kind in _OTHER_CONTENT if message.get(kind)]
    return " ".join([*(f"[{kind}]" for kind in kinds[:1]), *([text] if text else [])])


def _calls_bot(message: Json, bot_id: str, username: str) -> bool:
    """Return whether a message mentions the bot or replies to it."""
    replied = (message.get("reply_to_message") or {}).get("from") or {}
    if str(replied.get("id")) == bot_id:
        return True
    text = message.get("text") or message.get("caption") or ""
    units = text.encode("utf-16-le", "surrogatepass")
    for entity in message.get("entities") or message.get("caption_entities") or []:
        start, end = entity["offset"], entity["offset"] + entity["length"]
        part = units[2 * start : 2 * end].decode("utf-16-le", "replace").lower()
        name = f"@{username.lower()}"
        if entity["type"] == "mention" and username and part == name:
            return True
        if entity["type"] == "bot_command" and username and part.endswith(name):
            return True
        if entity["type"] == "text_mention" and str(entity["user"]["id"]) == bot_id:
            return True
    return False


def _parts_of(text: str) -> Iterator[str]:
    """Yield a text in parts that Telegram accepts, divided at lines or words where possible."""
    left = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").strip()
    while left:
        end = _end_of_part(left)
        part, left = left[:end].rstrip(), left[end:].lstrip()
        if part:
            yield part


def _end_of_part(text: str) -> int:
    units = end = 0
    for character in text:
        units += 2 if ord(character) > 0xFFFF else 1
        if units > MOST_UNITS:
            break
        end += 1
    else:
        return len(text)
    for separator in ("\n\n", "\n", " "):
        at = text.rfind(separator, end // 2, end)
        if at > 0:
            return at
    return end


def _token_in(path: str) -> str:
    """Return the token in a file that only its owner can read. Raises TokenError."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
    except FileNotFoundError:
        raise TokenError(
            "telegram: no token", f"set {TOKEN_VARIABLE}, or write it into {path} (chmod 600)"
        ) from None
    except OSError as error:
        raise TokenError(f"{path}: {error.strerror}") from None
    with os.fdopen(descriptor, encoding="utf-8", errors="replace") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode) or status.st_mode & 0o077:
            raise TokenError(f"{path}: other users may read the token", f"chmod 600 {path}")
        return file.read(1000).strip()
