"""A Telegram Bot API on this machine: one bot, whose chats a test writes into and reads from."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

Json = dict[str, Any]

TOKEN = "4242:AAH-made-up-token-of-a-test_1234567890"
BOT = {"id": 4242, "is_bot": True, "first_name": "Anna", "username": "anna_test_bot"}
LONGEST_POLL_SECONDS = 0.3
START = 1_771_675_200


class FakeTelegram:
    """The server. `sent` are the messages that the bot sent, as (chat, text).

    `faults` has for each method what happens to its next calls: `drop` closes the connection before
    the call is done, `lose` after it, and an answer is given instead of doing it."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Json]] = []
        self.sent: list[tuple[int, str]] = []
        self.sendings: list[Json] = []
        self.faults: dict[str, list[str | tuple[int, Json]]] = {}
        self.held = threading.Event()
        self.held.set()
        self._lock = threading.Condition()
        self._updates: list[Json] = []
        self._next_update = 100
        self._next_message: dict[int, int] = {}
        fake = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                fake.answer(self)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> FakeTelegram:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.held.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def fail(self, method: str, *faults: str | tuple[int, Json]) -> None:
        with self._lock:
            self.faults.setdefault(method, []).extend(faults)

    def write(self, chat: int, text: str | None, kind: str = "private", **more: Any) -> int:
        """A person writes into a chat; the message's id."""
        with self._lock:
            number = self._next_message.get(chat, 0) + 1
            self._next_message[chat] = number
        message = {
            "message_id": number,
            "date": START + number,
            "chat": {"id": chat, "type": kind, "title": "The garden"},
            "from": {"id": 7, "is_bot": False, "first_name": "Ben", "last_name": "Berg"},
            "text": text,
            **more,
        }
        self.put({"message": {key: value for key, value in message.items() if value is not None}})
        return number

    def edit(self, chat: int, number: int, text: str, kind: str = "private") -> None:
        message = {
            "message_id": number,
            "date": START + number,
            "edit_date": START + 100 + number,
            "chat": {"id": chat, "type": kind, "title": "The garden"},
            "from": {"id": 7, "is_bot": False, "first_name": "Ben"},
            "text": text,
        }
        self.put({"edited_message": message})

    def put(self, update: Json) -> None:
        with self._lock:
            self._updates.append({"update_id": self._next_update, **update})
            self._next_update += 1
            self._lock.notify_all()

    def restart_numbers(self) -> None:
        """The chats are another bot's, which numbers messages from 1."""
        with self._lock:
            self._next_message.clear()

    def repeat(self) -> None:
        """The updates that are not confirmed come twice."""
        with self._lock:
            self._updates += list(self._updates)

    @property
    def unconfirmed(self) -> int:
        with self._lock:
            return len(self._updates)

    def calls_of(self, method: str) -> int:
        with self._lock:
            return [name for name, _ in self.calls].count(method)

    def texts(self, chat: int) -> list[str]:
        with self._lock:
            return [text for to, text in self.sent if to == chat]

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        body = json.loads(handler.rfile.read(int(handler.headers["Content-Length"])) or b"{}")
        bot, _, method = handler.path.removeprefix("/bot").rpartition("/")
        with self._lock:
            self.calls.append((method, body))
            waiting = self.faults.get(method, [])
            fault = waiting.pop(0) if waiting else ""
        if fault == "drop":
            handler.close_connection = True
            return
        if isinstance(fault, tuple):
            return self._send(handler, *fault)
        if bot != TOKEN:
            return self._refuse(handler, 401, "Unauthorized")
        does: dict[str, Callable[[Json], tuple[int, Json]]] = {
            "getMe": lambda values: (200, {"ok": True, "result": BOT}),
            "getUpdates": self._get_updates,
            "sendMessage": self._send_message,
        }
        status, result = does[method](body)
        if method == "sendMessage":
            self.held.wait(60)
        if fault != "lose":
            self._send(handler, status, result)

    def _get_updates(self, values: Json) -> tuple[int, Json]:
        with self._lock:
            offset = values.get("offset", 0)
            self._updates = [one for one in self._updates if one["update_id"] >= offset]
            if not self._updates:
                self._lock.wait(min(values.get("timeout", 0), LONGEST_POLL_SECONDS))
            return 200, {"ok": True, "result": self._updates[:100]}

    def _send_message(self, values: Json) -> tuple[int, Json]:
        text, chat = values["text"], values["chat_id"]
        units = len(text.encode("utf-16-le")) // 2
        if not text.strip() or units > 4096:
            problem = "message is too long" if text.strip() else "message text is empty"
            return 400, {"ok": False, "error_code": 400, "description": f"Bad Request: {problem}"}
        with self._lock:
            self.sent.append((chat, text))
            self.sendings.append(values)
        return 200, {"ok": True, "result": {"message_id": len(self.sent)}}

    def _refuse(self, handler: BaseHTTPRequestHandler, code: int, description: str) -> None:
        self._send(handler, code, {"ok": False, "error_code": code, "description": description})

    def _send(self, handler: BaseHTTPRequestHandler, status: int, value: Json) -> None:
        content = json.dumps(value).encode()
        try:
            handler.send_response(status)
            handler.send_header("Content-Length", str(len(content)))
            handler.end_headers()
            handler.wfile.write(content)
        except OSError:  # the host was killed
            pass
