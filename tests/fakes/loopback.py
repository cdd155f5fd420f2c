"""Shared parts of the fakes: a server on 127.0.0.1 that records requests, and answers with JSON or events."""

from __future__ import annotations

import json
import re
import sys
import threading
import time
from collections.abc import Callable, Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, TypeVar

Json = dict[str, Any]
Events = Iterable[tuple[str, Any]]
HOLD_SECONDS = 360
_DATED = re.compile(r"^\[\w{3} [-\d]+ [:\d]+ \w+\] ")  # OpenClaw's time before a prompt
SelfType = TypeVar("SelfType", bound="LoopbackServer")


class Request:
    """One POST: its `path` without the query, its JSON `body`, the `kind` that the fake took it for,
    and when it was answered by the monotonic clock, 0.0 before."""

    def __init__(self, path: str, body: Json) -> None:
        self.path = path
        self.body = body
        self.kind = ""
        self.answered_at = 0.0

    @property
    def messages(self) -> list[Json]:
        """The conversation as the request carries it."""
        messages: list[Json] = self.body.get("messages") or []
        return messages

    @property
    def text(self) -> str:
        """All text of the conversation."""
        return "\n".join(text_of(message.get("content")) for message in self.messages)

    @property
    def news(self) -> str:
        """Return the text after the last reply: the prompt, and texts that hooks added."""
        tail: list[str] = []
        for message in reversed(self.messages):
            if message.get("role") == "assistant":
                break
            tail.insert(0, text_of(message.get("content")))
        return "\n".join(tail)

    @property
    def tool_results(self) -> list[str]:
        """Return the texts of Claude Code's tool results after the last reply.

        A tool with values has these as JSON."""
        last = max(
            place for place, message in enumerate(self.messages) if message["role"] == "assistant"
        )
        blocks = [
            block
            for message in self.messages[last:]
            for block in message["content"]
            if isinstance(block, dict)
        ]
        contents = [block["content"] for block in blocks if block.get("type") == "tool_result"]
        return [
            one if isinstance(one, str) else "".join(part["text"] for part in one)
            for one in contents
        ]


class Hold:
    """A request that waits: it was `reached`, and is answered after it is `released`.

    Only a request with the text that `is_wanted` waits."""

    def __init__(self, text: str, is_wanted: Callable[[Request], bool]) -> None:
        self.text = text
        self.is_wanted = is_wanted
        self.reached = threading.Event()
        self.released = threading.Event()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Print nothing of a client that has gone: a command that runs in the test's process has its stderr."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


class LoopbackServer:
    """A fake API that serves from `__enter__` to `__exit__`; subclasses give the answers.

    `scripts` maps a one-line prompt to the tool calls that it requests."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.requests: list[Request] = []
        self.scripts: dict[str, list[tuple[str, str]]] = {}
        self._hold: Hold | None = None
        handler = type("Handler", (_Handler,), {"fake": self})
        self._server = _Server(("127.0.0.1", 0), handler)
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.05,), daemon=True
        )

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def answer(self, connection: Connection) -> None:
        """Answers one request through `connection`."""
        raise NotImplementedError

    def reset(self) -> None:
        """Forgets the requests so far."""
        with self.lock:
            self.requests.clear()

    def hold(self, text: str, is_wanted: Callable[[Request], bool] = lambda _: True) -> Hold:
        """Lets the next request with a text wait that `is_wanted`."""
        self._hold = Hold(text, is_wanted)
        return self._hold

    def wait(self, request: Request) -> None:
        """Waits as long as a request is held."""
        with self.lock:
            hold = self._hold
            if hold and not (hold.text in json.dumps(request.body) and hold.is_wanted(request)):
                hold = None
            if hold:
                self._hold = None
        if hold:
            hold.reached.set()
            hold.released.wait(HOLD_SECONDS)

    def ordered_calls(self, prompt: str) -> list[tuple[str, str]]:
        """Return the tool calls that a prompt requests, by its `TOOL <name> <json>` or script lines."""
        found: list[tuple[str, str]] = []
        for line in _DATED.sub("", prompt).splitlines():
            found += self.scripts.get(line.strip('"'), [])  # `opencode run` quotes its words
            if line.startswith("TOOL "):
                _, name, arguments = line.split(" ", 2)
                found.append((name, arguments))
        return found

    def __enter__(self: SelfType) -> SelfType:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()


class Connection:
    """One request and the way to answer it, exactly once."""

    def __init__(self, request: Request, handler: BaseHTTPRequestHandler) -> None:
        self.request = request
        self._handler = handler

    def send_json(self, value: Json, status: int = 200) -> None:
        content = json.dumps(value).encode()
        self._handler.send_response(status)
        self._handler.send_header("content-type", "application/json")
        self._handler.send_header("content-length", str(len(content)))
        self._handler.end_headers()
        if self._handler.command != "HEAD":
            self._handler.wfile.write(content)

    def send_events(self, events: Events) -> None:
        """Streams server-sent events: name ('' for none) and JSON value, or a string as it is."""
        self._handler.send_response(200)
        self._handler.send_header("content-type", "text/event-stream")
        self._handler.send_header("connection", "close")  # the body ends when the socket closes
        self._handler.end_headers()
        self._handler.close_connection = True
        try:
            for name, value in events:
                content = value if isinstance(value, str) else json.dumps(value)
                head = f"event: {name}\n" if name else ""
                self._handler.wfile.write(f"{head}data: {content}\n\n".encode())
                self._handler.wfile.flush()
        except (BrokenPipeError, ConnectionResetError):
            pass  # the client gave the turn up


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    fake: LoopbackServer

    def log_message(self, format: str, *args: object) -> None:
        """Keeps the tests' stderr quiet."""

    def do_HEAD(self) -> None:
        self._probe()

    def do_GET(self) -> None:
        self._probe()

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        body = json.loads(raw or b"{}")
        request = Request(self.path.partition("?")[0], body)
        with self.fake.lock:
            self.fake.requests.append(request)
        self.fake.wait(request)
        self.fake.answer(Connection(request, self))
        request.answered_at = time.monotonic()

    def _probe(self) -> None:
        """Clients ask whether the base URL is there, and for the list of models."""
        Connection(Request(self.path, {}), self).send_json({"data": []})


def text_of(content: object) -> str:
    """The text in a message's content, a string or blocks."""
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else []
    texts = [b for b in blocks if isinstance(b, dict) and b.get("type") in ("text", "input_text")]
    return "\n".join(str(block.get("text", "")) for block in texts)


def anthropic_events(message: Json) -> Events:
    """The event stream of one whole Messages API message."""
    head = {
        **message,
        "content": [],
        "stop_reason": None,
        "usage": {**message["usage"], "output_tokens": 1},
    }
    yield "message_start", {"type": "message_start", "message": head}
    for index, block in enumerate(message["content"]):
        empty, deltas = _pieces(block)
        yield (
            "content_block_start",
            {"type": "content_block_start", "index": index, "content_block": empty},
        )
        for delta in deltas:
            yield (
                "content_block_delta",
                {"type": "content_block_delta", "index": index, "delta": delta},
            )
        yield "content_block_stop", {"type": "content_block_stop", "index": index}
    end = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield "message_delta", {"type": "message_delta", "delta": end, "usage": message["usage"]}
    yield "message_stop", {"type": "message_stop"}


def _pieces(block: Json) -> tuple[Json, list[Json]]:
    """A content block as it is opened, and the deltas that fill it."""
    if block["type"] == "text":
        text = block["text"]
        parts = [text[at : at + 4000] for at in range(0, len(text), 4000)]
        return {**block, "text": ""}, [{"type": "text_delta", "text": part} for part in parts]
    if block["type"] == "thinking":
        deltas = [
            {"type": "thinking_delta", "thinking": block["thinking"]},
            {"type": "signature_delta", "signature": block["signature"]},
        ]
        return {**block, "thinking": "", "signature": ""}, deltas
    return {**block, "input": {}}, [
        {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
    ]


def content_blocks(reply: Json, call_ids: Iterable[str]) -> list[Json]:
    """The content of a reply `{"thinking", "text", "tools": [{"name", "input"}]}`, every key optional."""
    blocks: list[Json] = []
    if "thinking" in reply:
        blocks.append(
            {"type": "thinking", "thinking": reply["thinking"], "signature": "ZmFrZS1zaWduYXR1cmU="}
        )
    if "text" in reply:
        blocks.append({"type": "text", "text": reply["text"]})
    for call, call_id in zip(reply.get("tools", ()), call_ids):
        blocks.append(
            {"type": "tool_use", "id": call_id, "name": call["name"], "input": call["input"]}
        )
    return blocks or [{"type": "text", "text": "ok"}]


def message_of(message_id: str, model: str, blocks: list[Json], usage: Json) -> Json:
    """A whole Messages API message around content blocks."""
    is_call = any(block["type"] == "tool_use" for block in blocks)
    return {
        "id": message_id,
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": blocks,
        "stop_reason": "tool_use" if is_call else "end_turn",
        "stop_sequence": None,
        "usage": {
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "output_tokens": 25,
            **usage,
        },
    }
