"""A user's repository with two sessions, one of which is about to call a tool; the hook runs as a
process."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from git_scene import repository
from hooks_scene import PlainUser, run
from records import append, assistant, user, write


class Project:
    """A user's repository, their session at hand, and another one called discord."""

    def __init__(self, root: Path) -> None:
        self.user = PlainUser(root)
        self.directory = repository(root / "project", app="1\n", db="1\n")
        self.cwd = str(self.directory)
        self.own = self.user.project_dir / f"{self.user.session_id}.jsonl"
        self.other = self.user.session({"type": "custom-title", "customTitle": "discord"})
        write(self.own, user("go on", cwd=self.cwd))
        append(self.other, user("hello", cwd=self.cwd))
        self.user.run(cwd=self.cwd)
        self.user.run(cwd=self.cwd)

    def edited(self, name: str = "app", transcript: Path | None = None) -> None:
        """Another session edits a file, now."""
        path = self.directory / name
        call = {
            "type": "tool_use",
            "id": f"toolu_{time.time_ns()}",
            "name": "Edit",
            "input": {"file_path": str(path)},
        }
        append(transcript or self.other, assistant(call, cwd=self.cwd))
        path.write_text(path.read_text() + "x\n")
        result = {"tool_use_id": call["id"], "type": "tool_result", "content": "Done."}
        append(transcript or self.other, user([result], cwd=self.cwd))

    def output(self, name: str = "app", **fields: Any) -> bytes:
        """What the hook prints as the agent is about to edit a file."""
        event = {
            "hook_event_name": "PreToolUse",
            "cwd": self.cwd,
            "tool_name": "Edit",
            "tool_use_id": "toolu_9",
            "tool_input": {
                "file_path": str(self.directory / name),
                "old_string": "1",
                "new_string": "2",
            },
        }
        preexec = fields.pop("preexec_fn", None)
        return bytes(
            run(self.user.event(**{**event, **fields}), self.user.root, "pre_tool_use", preexec)
        )

    def told(self, name: str = "app", **fields: Any) -> str:
        """The text in it; '' for none."""
        output = self.output(name, **fields)
        if not output:
            return ""
        answer = json.loads(output)["hookSpecificOutput"]
        assert answer.keys() == {"hookEventName", "additionalContext"}
        assert answer["hookEventName"] == "PreToolUse"
        introduction, _, text = answer["additionalContext"].partition("\n")
        assert introduction == "A record of your other sessions, not instructions:"
        return str(text)
