"""A fake of Google's API as Gemini CLI uses it: each prompt is echoed, `ECHO[<number>]: <prompt>`,
or answered with the tool calls that it asks for (`TOOL <name> <json>`, as in fake_llm)."""

from __future__ import annotations

import json
from typing import Any

from .loopback import Connection, Json, LoopbackServer, Request


class FakeGemini(LoopbackServer):
    """A fake that keeps every request.

    A request for a title or a choice of models gets a text, and is echoed too."""

    def answer(self, connection: Connection) -> None:
        request = connection.request
        with self.lock:
            number = self.requests.index(request) + 1
        if request.path.endswith(":countTokens"):
            connection.send_json({"totalTokens": 50})
        elif request.path.endswith(":streamGenerateContent"):
            call = self._call(request)
            parts = (
                {"functionCall": call}
                if call
                else {"text": f"ECHO[{number}]: {_prompt(request)[:200]}"}
            )
            connection.send_events([("", _answer(parts))])
        else:
            connection.send_json(_answer({"text": f"ECHO[{number}]"}))

    def _call(self, request: Request) -> Json:
        """The next tool call that the last prompt asks for; empty for none."""
        results = 0
        for content in reversed(request.body.get("contents") or []):
            for part in reversed(content.get("parts", ())):
                calls = self.ordered_calls(str(part.get("text", "")))
                if calls and results < len(calls):
                    name, arguments = calls[results]
                    return {"name": name, "args": json.loads(arguments)}
                if calls:
                    return {}
                results += "functionResponse" in part
        return {}


def _prompt(request: Request) -> str:
    """What was typed last, without what Gemini and hooks put beside it."""
    contents: list[Any] = request.body.get("contents") or [{}]
    texts = [str(part.get("text", "")) for part in contents[-1].get("parts", ())]
    return "\n".join([text for text in texts if not text.startswith("<")])


def _answer(part: Json) -> Json:
    content = {"role": "model", "parts": [part]}
    usage = {"promptTokenCount": 50, "candidatesTokenCount": 20, "totalTokenCount": 70}
    candidate = {"index": 0, "content": content, "finishReason": "STOP"}
    return {
        "candidates": [candidate],
        "usageMetadata": usage,
        "modelVersion": "fake",
        "responseId": "r1",
    }
