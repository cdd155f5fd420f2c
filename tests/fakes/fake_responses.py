"""A fake of OpenAI's Responses API, as far as Codex needs it: every request is answered with `ok
(N)`, or with the tool call that the last prompt asks for (`TOOL <name> <json>`, as in fake_llm;
`TOOL exec {"script": ...}` in code mode)."""

from __future__ import annotations

import json

from .loopback import Connection, Json, LoopbackServer, text_of


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
        call = self._call(connection.request.body.get("input") or [])
        if call:
            message = {
                "type": "function_call",
                "id": f"fc_{number}",
                "call_id": f"call_{number}",
                **call,
            }
        if call.get("name") == "exec":  # the one tool of code mode, to which a script is given
            script = str(json.loads(call["arguments"])["script"])
            message = {
                "type": "custom_tool_call",
                "id": f"ctc_{number}",
                "call_id": f"call_{number}",
                "name": "exec",
            }
            message |= {"input": script, "status": "completed"}
        usage = {
            "input_tokens": 10,
            "output_tokens": 5,
            "total_tokens": 15,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
        }
        response = {"id": f"resp_{number}", "output": []}
        events = [
            {"type": "response.created", "response": {**response, "status": "in_progress"}},
            {"type": "response.output_item.done", "output_index": 0, "item": message},
            {
                "type": "response.completed",
                "response": {**response, "status": "completed", "usage": usage},
            },
        ]
        connection.send_events((str(event["type"]), event) for event in events)

    def _call(self, items: list[Json]) -> Json:
        """Return the next tool call that the last prompt requests; empty for none.

        Its name is plain or `<namespace>.<name>`."""
        results = 0
        for item in reversed(items):
            if item.get("role") == "user" and (
                calls := self.ordered_calls(text_of(item.get("content")))
            ):
                if results == len(calls):
                    return {}
                namespace, _, name = calls[results][0].rpartition(".")
                return {
                    "name": name,
                    "arguments": calls[results][1],
                    **({"namespace": namespace} if namespace else {}),
                }
            results += item.get("type") in ("function_call_output", "custom_tool_call_output")
        return {}
