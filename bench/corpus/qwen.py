"""The records that Qwen Code writes: messages in parts, and as much again of telemetry."""

from __future__ import annotations

from collections.abc import Iterator

from .author import Author, Record
from .tools import call


def records(author: Author) -> Iterator[Record]:
    """The records of a chat, or those that follow `author.parent_id`, without end."""
    while True:
        yield from _turn(author)


def take_up(author: Author, record: Record) -> bool:
    """Lets `author` go on behind `record`."""
    author.parent_id = record["uuid"]
    return True


def kind(record: Record) -> str:
    """What a record is, for a tally: `user`, `assistant`, `tool_result`, `ui_telemetry`."""
    return str(record.get("subtype", record["type"]))


def _turn(author: Author) -> Iterator[Record]:
    """A prompt and all that follows until the agent has answered it."""
    yield _record(author, "user", "user", [{"text": author.prose(200)}], provenance="real_user")
    for _ in range(int(author.random.expovariate(1 / 8)) + 1):
        used, call_id = call(author), author.token("call_")
        output = used.result if isinstance(used.result, str) else "image"
        said = {"functionCall": {"id": call_id, "name": used.name.lower(), "args": used.arguments}}
        yield _record(author, "assistant", "model", [said], provenance="assistant_output")
        yield _telemetry(author)
        answered = {"functionResponse": {"id": call_id, "name": used.name.lower(), "response": {"output": output}}}
        yield _record(author, "tool_result", "user", [answered], provenance="tool_output")
    yield _record(author, "assistant", "model", [{"text": author.prose(700)}], provenance="assistant_output")
    yield _telemetry(author)


def _telemetry(author: Author) -> Record:
    event = {"event.name": "qwen-code.api_response", "duration_ms": 812, "response_text": author.text("json", 400)}
    return {**_envelope(author, "system"), "subtype": "ui_telemetry", "systemPayload": {"uiEvent": event}}


def _record(author: Author, kind: str, role: str, parts: list[Record], **fields: str) -> Record:
    return {**_envelope(author, kind), **fields, "message": {"role": role, "parts": parts}}


def _envelope(author: Author, kind: str) -> Record:
    parent, author.parent_id = author.parent_id, author.uuid()
    link = {"uuid": author.parent_id, "parentUuid": parent, "sessionId": author.session_id}
    return {**link, "timestamp": author.timestamp(), "type": kind, "cwd": author.cwd, "version": "0.24.4"}
