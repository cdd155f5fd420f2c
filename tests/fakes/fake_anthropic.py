"""A fake Messages API for the real Claude Code: replies by script, and keeps the requests for a
test to look at.

    with FakeAnthropic() as api:
        api.replies = ["first reply", {"tools": [{"name": "Bash", "input": {"command": "ls"}}]},
        "done"]
        ... run the CLI with ANTHROPIC_BASE_URL=api.base_url ...
        assert "hello" in api.prompts()[0].news

A reply is a text, or a dict with any of `text`, `thinking`, `tools` (a list of `{"name",
"input"}`), `usage` (overrides the token counts), `seconds` (to wait before answering) and `error`
(an HTTP status to fail with)."""

from __future__ import annotations

import itertools
import json
import time
from typing import Any

from .loopback import (
    Connection,
    Json,
    LoopbackServer,
    Request,
    anthropic_events,
    content_blocks,
    message_of,
    text_of,
)

SUMMARY = "<analysis>none</analysis>\n<summary>\n1. Primary Request and Intent: a made-up summary.\n</summary>"
Reply = str | dict[str, Any]


class FakeAnthropic(LoopbackServer):
    """`replies` answer the main conversation in order, `ok (N)` its N-th request when they are used
    up; `subagents` maps a part of the prompt that starts a sub-agent to its replies."""

    def __init__(self) -> None:
        super().__init__()
        self.replies: list[Reply] = []
        self.subagents: dict[str, list[Reply]] = {}
        self._numbers = itertools.count(1)

    def reset(self) -> None:
        super().reset()
        with self.lock:
            self.replies = []
            self.subagents = {}

    def prompts(self) -> list[Request]:
        """The requests of main conversations so far, without titles, compactions and sub-agents."""
        with self.lock:
            return [request for request in self.requests if request.kind == "main"]

    def answer(self, connection: Connection) -> None:
        request = connection.request
        if request.path == "/v1/messages/count_tokens":
            connection.send_json({"input_tokens": _rough_tokens(request)})
        elif request.path != "/v1/messages":
            connection.send_json(_error("not_found_error", request.path), 404)
        else:
            self._answer_messages(connection, self._reply(request))

    def _answer_messages(self, connection: Connection, reply: Json) -> None:
        body = connection.request.body
        time.sleep(reply.get("seconds", 0))
        if "error" in reply:
            connection.send_json(
                _error("api_error", reply.get("text", "made-up error")), reply["error"]
            )
            return
        blocks = content_blocks(reply, (f"toolu_fake{number:06d}" for number in self._numbers))
        usage = {"input_tokens": _rough_tokens(connection.request), **reply.get("usage", {})}
        message = message_of(
            f"msg_fake{next(self._numbers):06d}", body.get("model", "fake"), blocks, usage
        )
        if body.get("stream"):
            connection.send_events(anthropic_events(message))
        else:
            connection.send_json(message)

    def _reply(self, request: Request) -> Json:
        """Return the answer, and note the kind of the request: compaction, subagent, side or main."""
        with self.lock:
            request.kind, script = self._kind_and_script(request)
            count = sum(earlier.kind == request.kind for earlier in self.requests)
            reply = script.pop(0) if script else f"ok ({count})"
        return {"text": reply} if isinstance(reply, str) else reply

    def _kind_and_script(self, request: Request) -> tuple[str, list[Reply]]:
        if _is_compaction(request):
            return "compaction", [SUMMARY]
        first_prompt = next(
            (text_of(m.get("content")) for m in request.messages if m.get("role") == "user"), ""
        )
        for part, replies in self.subagents.items():
            if part in first_prompt:
                return "subagent", replies
        # Titles and other chores come without tools, or ask for structured output.
        if not request.body.get("tools") or (request.body.get("output_config") or {}).get("format"):
            return "side", ['{"title": "A made-up title"}']
        return "main", self.replies


def _is_compaction(request: Request) -> bool:
    """Whether the request asks for the summary that replaces a conversation."""
    last = request.messages[-1] if request.messages else {}
    if last.get("role") != "user":
        return False
    return "create a detailed summary of" in text_of(last.get("content")) or (
        "tasked with summarizing conversations" in text_of(request.body.get("system"))
    )


def _rough_tokens(request: Request) -> int:
    return max(1, len(json.dumps(request.messages)) // 4)


def _error(kind: str, message: str) -> Json:
    return {"type": "error", "error": {"type": kind, "message": message}}
