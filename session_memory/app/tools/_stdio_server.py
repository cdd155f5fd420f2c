"""The tools as an MCP server on stdin and stdout, without dependencies, on any supported Python.

It supports both forms of the protocol (https://modelcontextprotocol.io/specification). Up to
version 2025-11-25, a client begins with `initialize`. From 2026-07-28 on, every request states its
version in `_meta`. Each request is answered in its own form, so the server is stateless. The
package `mcp`, a dependency of claude-agent-sdk, would do the same, but takes 13 times as long to
start and needs a Python with packages.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from queue import Queue
from typing import TYPE_CHECKING, Any, BinaryIO

from ... import __version__
from ...common.system.plain_output import plain_output
from .definitions import INSTRUCTIONS, SERVER

if TYPE_CHECKING:
    from .call import Served

    Message = dict[str, Any]

HANDSHAKE_VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
MODERN_VERSIONS = ("2026-07-28",)
LINE_BYTES = 4 * 1024 * 1024
CALL = "tools/call"
CANCELLED = "notifications/cancelled"
MOST_CALLS = 8  # at the same time
MOST_WAITING = 64  # calls; then nothing more is read

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS, INTERNAL_ERROR = (
    -32700,
    -32600,
    -32601,
    -32602,
    -32603,
)
UNSUPPORTED_VERSION = -32022
_META = "io.modelcontextprotocol/"
_VERSION_KEY, _CAPABILITIES_KEY = _META + "protocolVersion", _META + "clientCapabilities"
_INFO = {"name": SERVER, "title": "Session memory", "version": __version__}
_CAPABILITIES: Message = {"tools": {}}
# the tools do not change while a server runs
_CACHEABLE = {"ttlMs": 3_600_000, "cacheScope": "private"}


class _RequestError(Exception):
    """A request that gets a JSON-RPC error: its code, a message, and data."""

    def __init__(self, code: int, message: str, data: Message | None = None) -> None:
        super().__init__(message)
        self.error: Message = {"code": code, "message": message, **({"data": data} if data else {})}


def serve(served: Served, source: BinaryIO, sink: BinaryIO) -> None:
    """Answer the requests in `source`, one per line, until it ends or `sink` is closed.

    Calls run in threads, so a slow call blocks no other request. Calls that change something run
    one at a time, in the order of their requests."""
    server = _StdioServer(served, sink)
    try:
        for line in _lines(source):
            server.take(line)
        server.finish()
    except (BrokenPipeError, KeyboardInterrupt):  # the client has gone, or is going
        return


def _lines(source: BinaryIO) -> Iterator[bytes]:
    """Yield the lines that are not blank, with b"" for a line too long to be a message."""
    while line := source.readline(LINE_BYTES + 1):
        if len(line) > LINE_BYTES:
            while (remainder := source.readline(LINE_BYTES)) and not remainder.endswith(b"\n"):
                pass
            yield b""
        elif line.strip():
            yield line


class _StdioServer:
    """The threads that answer calls, and the calls that wait for them."""

    def __init__(self, served: Served, sink: BinaryIO) -> None:
        self._served = served
        self._sink = sink
        self._writing = threading.Lock()
        self._lookups: Queue[object] = Queue(MOST_WAITING)
        self._changes: Queue[object] = Queue(MOST_WAITING)
        self._pending: set[object] = set()  # the ids of calls
        self._cancelled: set[object] = set()
        for calls, count in ((self._lookups, MOST_CALLS), (self._changes, 1)):
            for _ in range(count):
                threading.Thread(target=self._work, args=(calls,), daemon=True).start()

    def take(self, line: bytes) -> None:
        """Answer a message, or have a thread answer it."""
        try:
            message: object = json.loads(line)
        except (ValueError, RecursionError):
            self._write(_failed(None, _RequestError(PARSE_ERROR, "not JSON, or too long")))
            return
        called = _called(message)
        if called:
            self._pending.add(_id_of(message))
            tools = [tool for tool in self._served.tools if tool.name in called]
            is_lookup = all(tool.is_read_only for tool in tools)
            (self._lookups if is_lookup else self._changes).put(message)
        elif isinstance(message, dict) and message.get("method") == CANCELLED:
            given = message.get("params")
            self._cancelled |= self._pending & {_id_of(given, "requestId")} - {None}
        else:
            self._write(_answers(self._served, message))

    def finish(self) -> None:
        """Wait until all calls are answered."""
        self._lookups.join()
        self._changes.join()

    def _work(self, calls: Queue[object]) -> None:
        while True:
            message = calls.get()
            request_id = _id_of(message)
            with suppress(BrokenPipeError):  # the client is gone, so its requests end, too
                is_wanted = request_id not in self._cancelled
                answer = _answers(self._served, message) if is_wanted else None
                if request_id not in self._cancelled:
                    self._write(answer)
            self._pending.discard(request_id)
            self._cancelled.discard(request_id)
            calls.task_done()

    def _write(self, answer: Message | list[Message] | None) -> None:
        if answer is not None:
            text = json.dumps(answer, ensure_ascii=False).encode("utf-8", "replace")
            with self._writing:
                self._sink.write(text + b"\n")
                self._sink.flush()


def _called(message: object) -> set[str]:
    """Return the names of the tools that a message or a batch calls."""
    names = set()
    for request in message if isinstance(message, list) else [message]:
        if isinstance(request, dict) and request.get("method") == CALL:
            params = request.get("params")
            names.add(str(params.get("name")) if isinstance(params, dict) else "")
    return names


def _id_of(message: object, key: str = "id") -> object:
    """Return the id of a request; None for a batch or an invalid id."""
    value = message.get(key) if isinstance(message, dict) else None
    return value if isinstance(value, (str, int)) else None


def _answers(served: Served, message: object) -> Message | list[Message] | None:
    """Return the answer to a message or a batch; None if there is nothing to answer."""
    if isinstance(message, list) and message:  # clients of 2025-03-26 may send several at once
        return [
            answer for answer in (_answer(served, part) for part in message) if answer is not None
        ] or None
    return _answer(served, message)


def _answer(served: Served, message: object) -> Message | None:
    if not isinstance(message, dict) or not isinstance(message.get("method"), str):
        if isinstance(message, dict) and ("result" in message or "error" in message):
            return None  # an answer, though we ask nothing
        return _failed(None, _RequestError(INVALID_REQUEST, "a request must have a method"))
    if "id" not in message:
        return None  # a notification: none changes anything here
    request_id = message["id"]
    if not isinstance(request_id, (str, int)) or isinstance(request_id, bool):
        return _failed(None, _RequestError(INVALID_REQUEST, "an id must be a string or an integer"))
    params = message.get("params")
    try:
        result = _result(served, message["method"], params if isinstance(params, dict) else {})
    except _RequestError as refused:
        return _failed(request_id, refused)
    except Exception as error:  # a host that answers nonsense
        return _failed(
            request_id, _RequestError(INTERNAL_ERROR, f"the call failed ({type(error).__name__})")
        )
    return {"jsonrpc": "2.0", "id": request_id, "result": result}


def _result(served: Served, method: str, params: Message) -> Message:
    meta = params.get("_meta")
    if method == "initialize":
        # An unknown version gets the latest one; the client decides whether to accept it.
        wanted = params.get("protocolVersion")
        version = wanted if wanted in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[0]
        greeting = {"protocolVersion": version, "capabilities": _CAPABILITIES, "serverInfo": _INFO}
        return {**greeting, "instructions": INSTRUCTIONS}
    if not isinstance(meta, dict) or _VERSION_KEY not in meta:
        return {} if method == "ping" else _served(served, method, params)
    if meta[_VERSION_KEY] not in MODERN_VERSIONS:
        data = {
            "supported": [*MODERN_VERSIONS, *HANDSHAKE_VERSIONS],
            "requested": meta[_VERSION_KEY],
        }
        raise _RequestError(UNSUPPORTED_VERSION, "unsupported protocol version", data)
    if not isinstance(meta.get(_CAPABILITIES_KEY), dict):
        raise _RequestError(INVALID_PARAMS, f"params._meta lacks {_CAPABILITIES_KEY}")
    if method == "server/discover":
        versions = [*MODERN_VERSIONS, *HANDSHAKE_VERSIONS]
        result = {
            "supportedVersions": versions,
            "capabilities": _CAPABILITIES,
            "instructions": INSTRUCTIONS,
        }
    else:
        result = _served(served, method, params, is_modern=True)
    cacheable = {} if method == CALL else _CACHEABLE
    return {"resultType": "complete", **result, **cacheable, "_meta": {_META + "serverInfo": _INFO}}


def _served(served: Served, method: str, params: Message, *, is_modern: bool = False) -> Message:
    """Answer a request that both forms of the protocol share.

    Only the modern form gets values beside the text: earlier clients give the model the values
    instead of the text."""
    if method == "tools/list":
        return {
            "tools": [
                {
                    "name": tool.name,
                    "title": tool.title,
                    "description": tool.description,
                    "inputSchema": tool.schema,
                    "annotations": tool.annotations,
                    **({"outputSchema": tool.output} if is_modern and tool.output else {}),
                }
                for tool in served.tools
            ]
        }
    if method != CALL:
        raise _RequestError(METHOD_NOT_FOUND, f"no method {method[:80]}")
    name = params.get("name")
    if name not in [tool.name for tool in served.tools]:
        raise _RequestError(INVALID_PARAMS, f"no tool {str(name)[:80]!r}")
    answer = served.call(str(name), params.get("arguments"))
    values = {"structuredContent": answer.data} if is_modern and answer.data is not None else {}
    return {
        "content": [{"type": "text", "text": answer.text}],
        **values,
        "isError": answer.is_error,
    }


def _failed(request_id: object, refused: _RequestError) -> Message:
    return {"jsonrpc": "2.0", "id": request_id, "error": refused.error}


def serve_this_process(served: Served) -> None:
    """Serve on stdin and stdout. All other output of the process goes to stderr."""
    sink = plain_output(sys.stdout).of_protocol()
    sys.stdout = sys.stderr
    serve(served, sys.stdin.buffer, sink)
