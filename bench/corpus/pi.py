"""The records that Pi writes (session format 3): a tree of entries, several content blocks to a message."""

from __future__ import annotations

from collections.abc import Iterator

from .author import Author, Record
from .tools import call

MODEL = {"api": "anthropic-messages", "provider": "anthropic", "model": "claude-opus-4-5"}


def records(author: Author) -> Iterator[Record]:
    """The records of a session, or those that follow `author.parent_id`, without end."""
    if author.parent_id is None:
        time = author.timestamp()
        yield {"type": "session", "version": 3, "id": author.session_id, "timestamp": time, "cwd": author.cwd}
        yield _entry(author, "model_change", provider="anthropic", modelId="claude-opus-4-5")
    while True:
        yield from _turn(author)


def take_up(author: Author, record: Record) -> bool:
    """Lets `author` go on behind `record`."""
    author.parent_id = record["id"]
    return True


def kind(record: Record) -> str:
    """What a record is, for a tally: `tool_result`, `user`, `assistant`, ..."""
    name = str(record["message"]["role"] if record["type"] == "message" else record["type"])
    return "tool_result" if name == "toolResult" else name


def _turn(author: Author) -> Iterator[Record]:
    """A prompt and all that follows until the agent has answered it."""
    yield _message(author, "user", content=[{"type": "text", "text": author.prose(200)}])
    for _ in range(int(author.random.expovariate(1 / 8)) + 1):
        yield from _step(author)
    yield _assistant(author, [{"type": "text", "text": author.prose(700)}], "stop")


def _step(author: Author) -> Iterator[Record]:
    """One answer of the API that calls a tool, and what the tool gave."""
    used = call(author)
    use_id = author.token("toolu_01")
    content: list[Record] = []
    if author.chance(0.35):
        content.append({"type": "thinking", "thinking": author.prose(500), "thinkingSignature": "x" * 300})
    if author.chance(0.4):
        content.append({"type": "text", "text": author.prose(120)})
    content.append({"type": "toolCall", "id": use_id, "name": used.name.lower(), "arguments": used.arguments})
    yield _assistant(author, content, "toolUse")
    result = used.result if isinstance(used.result, str) else "image"
    details = {"diff": author.text("diff", 600)} if used.name == "Edit" else None
    yield _message(
        author,
        "toolResult",
        toolCallId=use_id,
        toolName=used.name.lower(),
        content=[{"type": "text", "text": result}],
        details=details,
        isError=False,
    )


def _assistant(author: Author, content: list[Record], stop_reason: str) -> Record:
    random = author.random
    usage = {
        "input": random.randrange(9_000),
        "output": random.randrange(900),
        "cacheRead": random.randrange(99_999),
        "cacheWrite": random.randrange(9_000),
        "totalTokens": 9_000,
        "cost": {"input": 0.013875, "output": 0.003525, "cacheRead": 0.1, "cacheWrite": 0, "total": 0.1174},
    }
    return _message(author, "assistant", content=content, **MODEL, usage=usage, stopReason=stop_reason)


def _message(author: Author, role: str, **fields: object) -> Record:
    message = {"role": role, **fields, "timestamp": int(author.now() * 1000)}
    return _entry(author, "message", message=message)


def _entry(author: Author, type: str, **fields: object) -> Record:
    """A record in Pi's envelope, a child of the one before it."""
    entry_id = f"{author.random.getrandbits(32):08x}"
    record = {"type": type, "id": entry_id, "parentId": author.parent_id, "timestamp": author.timestamp(), **fields}
    author.parent_id = entry_id
    return record
