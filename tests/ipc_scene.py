"""The directory that the agent of a group shares with its host."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

from group_builders import GroupDir

from session_memory.host.ipc import answer_requests


class Box:
    """The shared directory of a group as its agent sees it."""

    def __init__(self, host: GroupDir, group: str) -> None:
        self.host = host
        self.group = group
        self.path = Path(host.layout.group(group).ipc_dir)
        self.tasks = self.path / "tasks"
        self.responses = self.path / "responses"

    def snapshot(self, name: str) -> Any:
        return json.loads((self.path / f"{name}.json").read_text())

    def ask(self, request_id: str, tool: str, /, **arguments: Any) -> None:
        self.put(request_id, json.dumps({"tool": tool, "arguments": arguments}).encode())

    def put(self, request_id: str, content: bytes, age_seconds: float = 60) -> Path:
        path = self.tasks / f"{request_id}.json"
        path.write_bytes(content)
        then = time.time() - age_seconds
        os.utime(path, (then, then))
        return path

    def answer(self) -> int:
        return answer_requests(self.host.layout, self.group, self.host.backend(self.group))

    def response(self, request_id: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.responses / f"{request_id}.json").read_text())
        return found

    def answered(self) -> list[str]:
        return sorted(path.name for path in self.responses.iterdir())
