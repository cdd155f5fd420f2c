"""Cline's sessions as a test needs them: documents that are written anew with each message."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from records import new_id, stamp


class ClineSession:
    """A session in a data directory of Cline."""

    def __init__(self, data_dir: Path, directory: Path | str, *, at: float = 0.0) -> None:
        self.id = f"{int((at or time.time()) * 1000)}_{new_id()[4:8]}{new_id()[15:18]}"
        self.messages: list[dict[str, Any]] = []
        folder = data_dir / "sessions" / self.id
        folder.mkdir(parents=True)
        self.path = folder / f"{self.id}.messages.json"
        manifest = {"session_id": self.id, "cwd": str(directory), "metadata": {}}
        manifest["started_at"] = stamp(at or time.time())
        self.manifest = folder / f"{self.id}.json"
        self.manifest.write_text(json.dumps(manifest))

    def add(self, role: str, *blocks: dict[str, Any], at: float = 0.0, **more: Any) -> None:
        """Add a message, and write the document anew."""
        message = {"id": f"msg_{new_id()}", "role": role, "content": list(blocks)}
        self.messages.append({**message, "ts": int((at or time.time()) * 1000), **more})
        self.write()

    def forked_from(self, other: ClineSession, *, at: float) -> None:
        """Copy the messages of another session, as `/fork` does."""
        manifest = json.loads(self.manifest.read_text())
        manifest["metadata"] = {"fork": {"forkedFromSessionId": other.id, "forkedAt": stamp(at)}}
        self.manifest.write_text(json.dumps(manifest))
        self.messages = [*other.messages]
        self.write()

    def write(self) -> None:
        self.path.write_text(json.dumps({"sessionId": self.id, "messages": self.messages}))

    def exchange(self, question: str, answer: str, *, told: str = "", at: float = 0.0) -> None:
        """Add a prompt and its answer, and between them what our plugin told the agent."""
        text = f'<user_input mode="act">{question}</user_input>'
        self.add("user", {"type": "text", "text": text}, at=at)
        if told:
            text = f'<hook_context source="RunStart">\n{told}\n</hook_context>'
            by_cline = {"metadata": {"displayRole": "system"}}
            self.add("user", {"type": "text", "text": text}, at=at, **by_cline)
        self.add("assistant", {"type": "text", "text": answer}, at=at)

    def call(self, name: str, given: dict[str, Any], began: float, ended: float) -> None:
        """Add a call and its result."""
        call_id = f"call_{new_id()}"
        self.add(
            "assistant", {"type": "tool_use", "id": call_id, "name": name, "input": given}, at=began
        )
        content = [{"result": "ok", "success": True}]
        result = {"type": "tool_result", "tool_use_id": call_id, "name": name, "content": content}
        self.add("user", result, at=ended)


def lists_of(key: str, given: str) -> dict[str, Any]:
    """What a tool of Cline is given: a list of files or commands, or a path."""
    return {
        "files": {"files": [{"path": given}]},
        "commands": {"commands": [given]},
        "path": {"path": given, "old_text": "1", "new_text": "2"},
    }[key]
