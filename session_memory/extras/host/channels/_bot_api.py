"""Calls of the Telegram Bot API over HTTP (https://core.telegram.org/bots/api).

Every address contains the bot's token, so no error of the HTTP library leaves this module: each
becomes a `BotApiError` without it.
"""

from __future__ import annotations

import asyncio
import json
import re
import threading
from contextlib import suppress
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from ....common.errors import SessionMemoryError

Json = dict[str, Any]

CALL_SECONDS = 30.0
ANSWER_BYTES = 32 * 1024 * 1024
_TOKEN = re.compile(r"[0-9]{1,20}:[A-Za-z0-9_-]{20,100}")
# Telegram's codes for a token that it does not know
_UNKNOWN_BOT = (401, 404)


class BotApiError(SessionMemoryError):
    """A call failed: `code` is the status of Telegram's answer, 0 without one.

    `retry_after` is in seconds, `migrate_to` is the new id of the chat ('' for none)."""

    def __init__(
        self, message: str, code: int = 0, *, retry_after: float = 0.0, migrate_to: str = ""
    ) -> None:
        super().__init__(message)
        self.code = code
        self.retry_after = retry_after
        self.migrate_to = migrate_to

    @property
    def is_passing(self) -> bool:
        """True if the same call may succeed soon: after a broken connection, too many calls, or a
        server's fault."""
        return self.code == 0 or self.code == 429 or self.code >= 500


class BotApi:
    """The API at the address `api_url` for the bot with this token.

    Raises BotApiError if the text is not a token."""

    def __init__(self, api_url: str, token: str) -> None:
        if not _TOKEN.fullmatch(token):
            raise BotApiError(
                "the bot's token does not have the form of BotFather's tokens, such as 123456:ABC-DEF"
            )
        self.bot_id = token.partition(":")[0]
        self._token = token
        self._address = f"{api_url.rstrip('/')}/bot{token}/"

    async def call(self, method: str, seconds: float = CALL_SECONDS, **values: object) -> Any:
        """Call a method and return its result; `seconds` is the longest silence.

        Raises BotApiError."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Any] = loop.create_future()

        def settle(result: Any, error: BotApiError | None) -> None:
            if answer.done():  # nobody waits any more
                return
            if error is None:
                answer.set_result(result)
            else:
                answer.set_exception(error)

        def work() -> None:
            result, failure = None, None
            try:
                result = self.call_now(method, seconds, **values)
            except BotApiError as error:
                failure = error
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(settle, result, failure)

        # A daemon: the host ends without waiting for a poll.
        threading.Thread(target=work, name="telegram", daemon=True).start()
        return await answer

    def call_now(self, method: str, seconds: float = CALL_SECONDS, **values: object) -> Any:
        """Call a method, blocking, and return its result. Raises BotApiError."""
        headers = {"Content-Type": "application/json", "Connection": "close"}
        try:
            request = Request(self._address + method, json.dumps(values).encode(), headers)
            with urlopen(request, timeout=seconds) as response:
                content, code = response.read(ANSWER_BYTES), response.status
        except HTTPError as error:
            with error:
                content, code = self._body(error), error.code
        except (OSError, HTTPException, ValueError) as error:
            raise BotApiError(self._without_token(f"no answer to {method}: {error!r}")) from None
        return self._result(method, content, code)

    def _body(self, error: HTTPError) -> bytes:
        try:
            return error.read(ANSWER_BYTES)
        except (OSError, HTTPException):
            return b""

    def _result(self, method: str, content: bytes, code: int) -> Any:
        try:
            answer = json.loads(content)
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            raise BotApiError(
                f"{method}: {code}, and the answer is not JSON", code if code >= 400 else 0
            )
        if answer.get("ok") is True and "result" in answer:
            return answer["result"]
        code = answer["error_code"] if isinstance(answer.get("error_code"), int) else code
        code = code if code >= 400 else 0
        parameters = answer.get("parameters")
        parameters = parameters if isinstance(parameters, dict) else {}
        retry_after = parameters.get("retry_after")
        migrate_to = parameters.get("migrate_to_chat_id")
        description = self._without_token(str(answer.get("description") or "no description"))
        raise BotApiError(
            f"{method}: {code} {description}" + _advice(code, description),
            code,
            retry_after=float(retry_after) if isinstance(retry_after, int | float) else 0.0,
            migrate_to=str(migrate_to) if isinstance(migrate_to, int) else "",
        )

    def _without_token(self, text: str) -> str:
        return text.replace(self._token, "<token>").replace(self._token[-35:], "<token>")


def _advice(code: int, description: str) -> str:
    if code in _UNKNOWN_BOT:
        return ": Telegram does not know this token; get a new one from @BotFather"
    if code == 409 and "webhook" in description.lower():
        return ": another program has set a webhook for this bot; remove it with deleteWebhook"
    if code == 409:
        return ": another program receives this bot's messages; stop it, or use another bot"
    return ""
