"""A fake OpenAI-style API for graphiti: it understands sentences such as "Ada uses Redis" and
nothing else.

`/v1/chat/completions` answers each of graphiti's questions by the name of the schema that it asks
for; `/v1/embeddings` makes numbers of words, so that texts with words in common lie close together.
`failures` are taken first, one for each completion: an HTTP status, a text to answer with, or
seconds to wait (a float)."""

from __future__ import annotations

import json
import re
import time
import zlib
from typing import Any

from .loopback import Connection, Json, LoopbackServer, Request, text_of

DIMENSIONS = 64
_SENTENCE = re.compile(r"\b([A-Z]\w+) (uses|likes|owns) ([A-Z]\w+)")
_MESSAGE = re.compile(r"<CURRENT[ _]MESSAGE>(.*?)</CURRENT[ _]MESSAGE>", re.DOTALL)


class FakeOpenAI(LoopbackServer):
    """A fake that keeps every request with its kind: the schema's name, or `embedding`."""

    def __init__(self) -> None:
        super().__init__()
        self.failures: list[int | str | float] = []

    @property
    def url(self) -> str:
        return f"{self.base_url}/v1"

    def reset(self) -> None:
        super().reset()
        self.failures = []

    def kinds(self) -> list[str]:
        """The kinds of the requests so far."""
        with self.lock:
            return [request.kind for request in self.requests]

    def answer(self, connection: Connection) -> None:
        request = connection.request
        if request.path.endswith("/embeddings"):
            request.kind = "embedding"
            connection.send_json(_embeddings(request.body))
            return
        schema = (request.body.get("response_format") or {}).get("json_schema") or {}
        request.kind = schema.get("name", "json")
        with self.lock:
            failure = self.failures.pop(0) if self.failures else None
        if isinstance(failure, float):
            time.sleep(failure)
        if isinstance(failure, int):
            connection.send_json(
                {"error": {"message": "made-up failure", "type": "error"}}, failure
            )
            return
        text = failure if isinstance(failure, str) else json.dumps(_reply(request))
        message = {"role": "assistant", "content": text}
        usage = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
        connection.send_json(
            {
                "id": "c1",
                "object": "chat.completion",
                "created": 1,
                "model": request.body.get("model"),
                "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
                "usage": usage,
            }
        )


def _reply(request: Request) -> Json:
    """A valid answer to one of graphiti's questions."""
    asked = "\n".join(text_of(message.get("content")) for message in request.messages)
    found = _MESSAGE.search(asked)
    facts = _SENTENCE.findall(found[1] if found else "")
    if request.kind == "ExtractedEntities":
        names = dict.fromkeys(name for one, _, other in facts for name in (one, other))
        return {"extracted_entities": [{"name": name, "entity_type_id": 0} for name in names]}
    if request.kind == "ExtractedEdges":
        edges = [
            {
                "source_entity_name": one,
                "target_entity_name": other,
                "relation_type": verb.upper(),
                "fact": f"{one} {verb} {other}",
            }
            for one, verb, other in facts
        ]
        return {"edges": edges}
    answers: dict[str, Json] = {
        "NodeResolutions": {"entity_resolutions": []},
        "EdgeDuplicate": {"duplicate_facts": [], "contradicted_facts": []},
        "EdgeTimestamps": {"valid_at": None, "invalid_at": None},
        "BatchEdgeTimestamps": {"timestamps": [{"valid_at": None, "invalid_at": None}] * 20},
        "SummarizedEntities": {"summaries": []},
        "EntitySummary": {"summary": "made up"},
    }
    return answers[request.kind]


def _embeddings(body: Json) -> Json:
    texts = body["input"] if isinstance(body["input"], list) else [body["input"]]
    data = [
        {"object": "embedding", "index": n, "embedding": _embedding(text)}
        for n, text in enumerate(texts)
    ]
    usage = {"prompt_tokens": 5 * len(texts), "total_tokens": 5 * len(texts)}
    return {"object": "list", "data": data, "model": body.get("model"), "usage": usage}


def _embedding(text: Any) -> list[float]:
    numbers = [0.001] * DIMENSIONS
    for word in str(text).lower().split():
        numbers[zlib.crc32(word.strip(".,?!").encode()) % DIMENSIONS] += 1.0
    length = sum(number * number for number in numbers) ** 0.5
    return [number / length for number in numbers]
