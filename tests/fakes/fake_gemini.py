"""A fake of Google's API as Gemini CLI uses it: each prompt is echoed, `ECHO[<number>]: <prompt>`."""

from __future__ import annotations

from typing import Any

from .loopback import Connection, Json, LoopbackServer, Request


class FakeGemini(LoopbackServer):
    """Keeps every request. What asks for a title or a choice of models gets a text, and is echoed too."""

    def answer(self, connection: Connection) -> None:
        request = connection.request
        with self.lock:
            number = self.requests.index(request) + 1
        if request.path.endswith(":countTokens"):
            connection.send_json({"totalTokens": 50})
        elif request.path.endswith(":streamGenerateContent"):
            connection.send_events([("", _answer(f"ECHO[{number}]: {_prompt(request)[:200]}"))])
        else:
            connection.send_json(_answer(f"ECHO[{number}]"))


def _prompt(request: Request) -> str:
    """What was typed last, without what Gemini and hooks put beside it."""
    contents: list[Any] = request.body.get("contents") or [{}]
    texts = [str(part.get("text", "")) for part in contents[-1].get("parts", ())]
    return "\n".join([text for text in texts if not text.startswith("<")])


def _answer(text: str) -> Json:
    content = {"role": "model", "parts": [{"text": text}]}
    usage = {"promptTokenCount": 50, "candidatesTokenCount": 20, "totalTokenCount": 70}
    candidate = {"index": 0, "content": content, "finishReason": "STOP"}
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "fake", "responseId": "r1"}
