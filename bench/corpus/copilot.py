"""The records that Copilot CLI writes: events, of which each names the one before it."""

from __future__ import annotations

from collections.abc import Iterator

from .author import Author, Record
from .tools import call


def records(author: Author) -> Iterator[Record]:
    """The events of a session, or those that follow `author.parent_id`, without end."""
    if author.parent_id is None:
        context = {"cwd": author.cwd, "branch": "main"}
        yield _event(author, "session.start", sessionId=author.session_id, context=context)
        yield _event(author, "system.message", role="system", content=author.prose(20_000))
    while True:
        yield from _turn(author)


def take_up(author: Author, record: Record) -> bool:
    """Lets `author` go on behind `record`."""
    author.parent_id = record["id"]
    return True


def kind(record: Record) -> str:
    """What a record is, for a tally: `user.message`, `tool.execution_complete`, ..."""
    return str(record["type"])


def _turn(author: Author) -> Iterator[Record]:
    """A prompt and all that follows until the agent has answered it."""
    question = author.prose(200)
    yield _event(author, "user.message", content=question, transformedContent=question)
    for _ in range(int(author.random.expovariate(1 / 8)) + 1):
        used, call_id = call(author), author.token("call_")
        output = used.result if isinstance(used.result, str) else "image"
        asked = {"toolCallId": call_id, "name": used.name.lower(), "arguments": used.arguments}
        yield _event(author, "assistant.message", messageId=author.uuid(), content="", toolRequests=[asked])
        started = {"toolCallId": call_id, "toolName": used.name.lower(), "arguments": used.arguments}
        yield _event(author, "tool.execution_start", **started)
        result = {"content": output, "detailedContent": output}
        yield _event(author, "tool.execution_complete", toolCallId=call_id, success=True, result=result)
    yield _event(author, "assistant.message", messageId=author.uuid(), content=author.prose(700), toolRequests=[])


def _event(author: Author, kind: str, **data: object) -> Record:
    parent, author.parent_id = author.parent_id, author.uuid()
    return {"type": kind, "data": data, "id": author.parent_id, "timestamp": author.timestamp(), "parentId": parent}
