"""Builders of transcripts: records as Claude Code writes them, with as little noise as a test can bear."""

from __future__ import annotations

import itertools
import json
import time
import uuid
from pathlib import Path
from typing import Any

CWD = "/srv/agent"
_numbers = itertools.count(1)


def stamp(seconds: float) -> str:
    """A point in time as transcripts write it."""
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{int(seconds % 1 * 1000):03}Z"


def new_id() -> str:
    return str(uuid.UUID(int=next(_numbers) << 64 | 0x4000_8000_0000_0000_0000, version=4))


def record(kind: str, *, at: float | None = None, **fields: Any) -> dict[str, Any]:
    envelope = {"parentUuid": None, "isSidechain": False, "userType": "external", "cwd": CWD, "version": "2.1.329"}
    when = stamp(time.time() if at is None else at)
    return {**envelope, "type": kind, "uuid": new_id(), "timestamp": when, **fields}


def user(content: Any, **fields: Any) -> dict[str, Any]:
    return record("user", message={"role": "user", "content": content}, **fields)


def assistant(*blocks: Any, message_id: str = "", **fields: Any) -> dict[str, Any]:
    """An assistant record; a string stands for a text block, a pair (name, input) for a tool use."""
    content = [_block(block) for block in blocks]
    message = {"id": message_id or f"msg_{new_id()}", "role": "assistant", "model": "claude-x", "content": content}
    return record("assistant", message={**message, **fields.pop("message", {})}, **fields)


def _block(block: Any) -> dict[str, Any]:
    if isinstance(block, str):
        return {"type": "text", "text": block}
    if isinstance(block, tuple):
        return {"type": "tool_use", "id": f"toolu_{new_id()}", "name": block[0], "input": block[1]}
    assert isinstance(block, dict)
    return block


def tool_result(content: Any = "done", **fields: Any) -> dict[str, Any]:
    return user([{"tool_use_id": "toolu_1", "type": "tool_result", "content": content}], **fields)


def line(value: dict[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"


def lines(*records: dict[str, Any]) -> bytes:
    return b"".join(line(one) for one in records)


def write(path: Path, *records: dict[str, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(lines(*records))
    return path


def append(path: Path, *records: dict[str, Any]) -> None:
    with path.open("ab") as file:
        file.write(lines(*records))


def exchange(question: str, answer: str, **fields: Any) -> list[dict[str, Any]]:
    return [user(question, **fields), assistant(answer, **fields)]


class NamedHome:
    """An agent home with named sessions, whose transcripts lie in its own Claude directory."""

    def __init__(self, root: Path, memory_dir: str = ".session-memory") -> None:
        self.root = root
        self.sessions_dir = root / memory_dir / "sessions"
        self.project_dir = root / ".claude" / "projects" / "-srv-agent"
        self.sessions_dir.mkdir(parents=True)
        self.project_dir.mkdir(parents=True)

    def session(self, name: str, *records: dict[str, Any]) -> Path:
        session_id = new_id()
        (self.sessions_dir / f"{name}.json").write_text(json.dumps({"sessionId": session_id}))
        return write(self.project_dir / f"{session_id}.jsonl", *records)

    def session_id(self, name: str) -> str:
        return str(json.loads((self.sessions_dir / f"{name}.json").read_text())["sessionId"])

    def resolve(self, name: str) -> Path:
        return self.project_dir / f"{self.session_id(name)}.jsonl"
