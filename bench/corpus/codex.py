"""The records that Codex writes: what the model sees of a turn beside what a person sees of it."""

from __future__ import annotations

from collections.abc import Iterator

from .author import Author, Record
from .tools import call


def records(author: Author) -> Iterator[Record]:
    """The records of a rollout, or those that follow `author.parent_id`, without end."""
    if author.parent_id is None:
        header = {"id": author.session_id, "session_id": author.session_id, "cwd": author.cwd}
        yield _line(author, "session_meta", {**header, "originator": "codex-tui", "base": author.prose(20_000)})
    while True:
        yield from _turn(author)


def take_up(author: Author, record: Record) -> bool:
    """Lets `author` go on behind `record`."""
    author.parent_id = record["timestamp"]
    return True


def kind(record: Record) -> str:
    """What a record is, for a tally: `CommandExecution`, `function_call_output`, ..."""
    payload = record["payload"]
    return str(payload.get("item", payload).get("type", record["type"]))


def _turn(author: Author) -> Iterator[Record]:
    """A prompt and all that follows until the agent has answered it."""
    turn = author.uuid()
    yield _line(author, "turn_context", {"turn_id": turn, "cwd": author.cwd})
    question = author.prose(200)
    yield _item(author, turn, {"type": "UserMessage", "content": [{"type": "text", "text": question}]})
    yield _message(author, "user", question)
    for _ in range(int(author.random.expovariate(1 / 8)) + 1):
        yield from _step(author, turn)
    answer = author.prose(700)
    yield _item(author, turn, {"type": "AgentMessage", "content": [{"type": "Text", "text": answer}]})
    yield _message(author, "assistant", answer)


def _step(author: Author, turn: str) -> Iterator[Record]:
    """A call of a tool, and what the tool gave, which is recorded twice."""
    used, call_id = call(author), author.token("call_")
    output = used.result if isinstance(used.result, str) else "image"
    command = str(used.arguments.get("command", "cat src/main.py"))
    yield _line(
        author, "response_item", {"type": "custom_tool_call", "name": "exec", "call_id": call_id, "input": command}
    )
    ran = {"type": "CommandExecution", "command": ["bash", "-lc", command], "cwd": f"file://{author.cwd}"}
    yield _item(author, turn, {**ran, "exit_code": 0, "status": "completed", "aggregated_output": output})
    yield _line(author, "response_item", {"type": "custom_tool_call_output", "call_id": call_id, "output": output})


def _message(author: Author, role: str, text: str) -> Record:
    content = [{"type": "input_text" if role == "user" else "output_text", "text": text}]
    return _line(author, "response_item", {"type": "message", "role": role, "content": content})


def _item(author: Author, turn: str, item: Record) -> Record:
    item = {"type": item["type"], "id": author.uuid(), **item}
    return _line(author, "event_msg", {"type": "item_completed", "turn_id": turn, "item": item})


def _line(author: Author, kind: str, payload: Record) -> Record:
    return {"timestamp": author.timestamp(), "ordinal": author.written, "type": kind, "payload": payload}
