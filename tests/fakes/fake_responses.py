"""A fake of OpenAI's Responses API, as far as Codex needs it: every request is answered with `ok (N)`."""

from __future__ import annotations

from .loopback import Connection, LoopbackServer


class FakeResponses(LoopbackServer):
    """Keeps every request; `input` holds the conversation."""

    def answer(self, connection: Connection) -> None:
        with self.lock:
            number = len(self.requests)
        text = {"type": "output_text", "text": f"ok ({number})", "annotations": []}
        message = {
            "type": "message",
            "id": f"msg_{number}",
            "role": "assistant",
            "status": "completed",
            "content": [text],
        }
        usage = {
            "input_tokens": 10, "output_tokens": 5, "total_tokens": 15,
            "input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0},
        }  # fmt: skip
        response = {"id": f"resp_{number}", "output": []}
        events = [
            {"type": "response.created", "response": {**response, "status": "in_progress"}},
            {"type": "response.output_item.done", "output_index": 0, "item": message},
            {"type": "response.completed", "response": {**response, "status": "completed", "usage": usage}},
        ]
        connection.send_events((str(event["type"]), event) for event in events)
