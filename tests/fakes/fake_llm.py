"""A fake model that speaks both dialects that Pi knows, and does what the last prompt says.

It serves `/v1/messages` (Anthropic) and `/v1/chat/completions` (OpenAI), streaming. A prompt, or a
message that an extension put behind it, steers the reply:

    TOOL <name> <json>   calls the tool; of several such lines the next with each result; the last
    reply is a text
    THINK                a thinking block comes first
    BIGUSAGE             reports so many input tokens that the conversation gets compacted
    FAIL                 is answered with HTTP 400
    SLOW                 is answered after two seconds

Anything else is echoed: `ECHO[<number>]: <prompt>`. What asks for a summary of a `<conversation>`
gets one."""

from __future__ import annotations

import json
import re
import time
from typing import Any

from .loopback import (
    Connection,
    Events,
    Json,
    LoopbackServer,
    Request,
    anthropic_events,
    content_blocks,
    message_of,
    text_of,
)

BIG_USAGE_TOKENS = 195_000
# Kilo's, behind each prompt
_DETAILS = re.compile(r"\s*<environment_details>.*</environment_details>", re.DOTALL)


class FakeLLM(LoopbackServer):
    """A fake that keeps every request with its kind: summary, result (of a tool) or prompt."""

    def answer(self, connection: Connection) -> None:
        request = connection.request
        with self.lock:
            number = self.requests.index(request) + 1
        request.kind = _kind(request)
        news = request.news
        if request.kind == "prompt" and "FAIL" in news:
            error = {"type": "invalid_request_error", "message": "made-up failure"}
            connection.send_json({"type": "error", "error": error}, 400)
            return
        if request.kind == "prompt" and "SLOW" in news:
            time.sleep(2)
        reply = self._reply(request, number)
        is_big = "BIGUSAGE" in news and request.kind != "summary"
        input_tokens = BIG_USAGE_TOKENS if is_big else max(50, len(json.dumps(request.body)) // 4)
        blocks = content_blocks(reply, [f"toolu_{number:04d}"])
        model = str(request.body.get("model"))
        if request.path.endswith("/messages"):
            message = message_of(f"msg_{number:04d}", model, blocks, {"input_tokens": input_tokens})
            connection.send_events(anthropic_events(message))
        else:
            connection.send_events(_openai_events(f"c{number}", model, blocks, input_tokens))

    def _reply(self, request: Request, number: int) -> Json:
        """The reply in the shape that `content_blocks` takes."""
        last_text = text_of(request.messages[-1].get("content")) if request.messages else ""
        if request.kind == "summary":
            return {"text": f"## Goal\nA made-up summary of {len(last_text)} characters"}
        order = self._order(request)
        if request.kind == "result" and not order:
            return {"text": f"ECHO[{number}]: tool done"}
        if order:
            name, arguments = order
            return {
                "text": f"calling {name}",
                "tools": [{"name": name, "input": json.loads(arguments)}],
            }
        reply: dict[str, Any] = {"text": f"ECHO[{number}]: {_DETAILS.sub('', last_text)[:200]}"}
        return {"thinking": f"thought {number}", **reply} if "THINK" in request.news else reply

    def _order(self, request: Request) -> tuple[str, str] | None:
        """The next tool call that the last prompt asks for; None for none."""
        replies = 0
        for message in reversed(request.messages):
            calls = self.ordered_calls(text_of(message.get("content")))
            if message.get("role") == "user" and calls:
                return calls[replies] if replies < len(calls) else None
            if message.get("role") == "assistant":
                replies += 1
                if not _calls_a_tool(message):  # it ended an earlier turn
                    break
        return None


def _kind(request: Request) -> str:
    last = request.messages[-1] if request.messages else {}
    content = last.get("content")
    blocks = content if isinstance(content, list) else []
    if last.get("role") == "tool" or any(
        isinstance(b, dict) and b.get("type") == "tool_result" for b in blocks
    ):
        return "result"
    asked = text_of(request.body.get("system"))[:400] + text_of(content)[:400]
    return "summary" if "summar" in asked.lower() and "<conversation>" in request.text else "prompt"


def _calls_a_tool(message: Json) -> bool:
    """Whether a message of the model has a tool call, in either dialect."""
    content = message.get("content")
    blocks = content if isinstance(content, list) else []
    return bool(message.get("tool_calls")) or any(
        block.get("type") == "tool_use" for block in blocks
    )


def _openai_events(completion_id: str, model: str, blocks: list[Json], input_tokens: int) -> Events:
    """The chunk stream of one chat completion."""

    def chunk(delta: Json, finish_reason: str | None = None, **more: Any) -> tuple[str, Json]:
        choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
        head = {
            "id": completion_id,
            "object": "chat.completion.chunk",
            "created": int(time.time()),
            "model": model,
        }
        return "", {**head, "choices": [choice], **more}

    calls = 0
    yield chunk({"role": "assistant", "content": ""})
    for block in blocks:
        if block["type"] == "text":
            yield chunk({"content": block["text"]})
        elif block["type"] == "thinking":
            yield chunk({"reasoning_content": block["thinking"]})
        else:
            function = {"name": block["name"], "arguments": json.dumps(block["input"])}
            call = {"index": calls, "id": block["id"], "type": "function", "function": function}
            yield chunk({"tool_calls": [call]})
            calls += 1
    usage = {
        "prompt_tokens": input_tokens,
        "completion_tokens": 20,
        "total_tokens": input_tokens + 20,
    }
    yield chunk({}, "tool_calls" if calls else "stop", usage=usage)
    yield "", "[DONE]"
