"""Runtimes for `bench.acknowledgement`: their records of prompts and hooks, and interruptions."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
import uuid
from pathlib import Path
from typing import Any

from tests.records import stamp

from .scenes import REPOSITORY

CWD = "/srv/agent"


class Transcript:
    """A session's transcript.

    `leaf` is the parent of the next record. LACKS names events that do not happen in the
    runtime."""

    SCRIPT = ""
    LACKS: tuple[str, ...] = ()
    ID, PARENT = "uuid", "parentUuid"

    def __init__(self, root: Path, folder: str, prefix: str = "") -> None:
        self.root = root
        self.id = str(uuid.uuid4())
        self.leaf: str | None = None
        self.prompt_id = ""
        self.process = uuid.uuid4().int % 30_000
        self.path = root / folder / f"{prefix}{self.id}.jsonl"
        self.path.parent.mkdir(parents=True, exist_ok=True)

    def shown_in(self, record: dict[str, Any]) -> list[str]:
        """Return what a record shows that hooks told."""
        raise NotImplementedError

    def told(self) -> list[str]:
        """Return the hooks' texts for the agent, on the branch that ends at the leaf."""
        records = {
            record[self.ID]: record
            for record in map(json.loads, self.path.read_bytes().splitlines())
            if self.ID in record
        }
        texts, at = [], self.leaf
        while at:
            texts += self.shown_in(records[at])
            at = records[at][self.PARENT] or records[at].get("logicalParentUuid")
        return texts

    def add(self, **record: Any) -> None:
        """Appends a record, which goes on from the leaf."""
        linked = {
            self.PARENT: self.leaf,
            **record,
            self.ID: uuid.uuid4().hex,
            "timestamp": stamp(time.time()),
        }
        self.leaf = linked[self.ID]
        self.write(linked)

    def write(self, record: dict[str, Any]) -> None:
        with self.path.open("ab") as file:
            file.write(json.dumps(record, separators=(",", ":")).encode() + b"\n")

    def hook(self, script: str, event: dict[str, Any]) -> subprocess.Popen[bytes]:
        """A hook as the runtime starts it."""
        hook = subprocess.Popen(
            [sys.executable, "-I", "-S", str(REPOSITORY / "hooks" / script)],
            env={"HOME": str(self.root), **self.environment()},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert hook.stdin is not None
        hook.stdin.write(json.dumps(event).encode())
        hook.stdin.close()
        hook.stdin = None
        return hook

    def environment(self) -> dict[str, str]:
        """Return what the runtime tells its hooks in their environment."""
        return {}

    def fail(self) -> None:
        """Record that a hook failed."""

    def resume(self) -> None:
        """Go on in another process."""
        self.process += 1


class ClaudeSession(Transcript):
    SCRIPT = "user_prompt_submit.py"
    _is_resumed = False

    def __init__(self, root: Path) -> None:
        super().__init__(root, ".claude/projects/-srv-agent")

    def environment(self) -> dict[str, str]:
        return {"CLAUDE_PID": str(self.process), "CLAUDE_CODE_ENTRYPOINT": "cli"}

    def event(self, prompt: str, *, is_same_prompt: bool = False) -> dict[str, Any]:
        self.prompt_id = self.prompt_id if is_same_prompt else str(uuid.uuid4())
        origin = {"session_id": self.id, "transcript_path": str(self.path), "cwd": CWD}
        return {
            **origin,
            "hook_event_name": "UserPromptSubmit",
            "prompt": prompt,
            "prompt_id": self.prompt_id,
        }

    def text_in(self, printed: bytes) -> str:
        return (
            str(json.loads(printed)["hookSpecificOutput"]["additionalContext"]) if printed else ""
        )

    def shown_in(self, record: dict[str, Any]) -> list[str]:
        attachment = record.get("attachment", {})
        return (
            list(attachment["content"])
            if attachment.get("type") == "hook_additional_context"
            else []
        )

    def name(self, name: str) -> None:
        self.write({"type": "custom-title", "customTitle": name, "sessionId": self.id})

    def ask(self, text: str) -> None:
        if self._is_resumed:  # as Claude Code does where the last prompt has no answer
            self._say(
                "assistant",
                [{"type": "text", "text": "No response requested."}],
                model="<synthetic>",
            )
        self._is_resumed = False
        self._say("user", text)

    def answer(self, text: str) -> None:
        self._say("assistant", [{"type": "text", "text": text}])

    def show(self, text: str) -> None:
        if text:
            self._attach("hook_additional_context", content=[text], hookEvent="UserPromptSubmit")

    def fail(self) -> None:
        self._attach("hook_non_blocking_error", hookEvent="UserPromptSubmit")

    def cancel(self, before: str | None) -> None:
        self.leaf = before

    def resume(self) -> None:
        super().resume()
        self._is_resumed = True

    def compact(self) -> None:
        last, self.leaf = self.leaf, None
        self.add(type="system", subtype="compact_boundary", logicalParentUuid=last)
        self._say("user", "A summary.", isCompactSummary=True)

    def fork(self) -> ClaudeSession:
        fork = ClaudeSession(self.root)
        shutil.copyfile(self.path, fork.path)
        fork.leaf = self.leaf
        start = {"hook_event_name": "SessionStart", "source": "fork"}
        fork.hook("session_start.py", {**fork.event(""), **start}).communicate()
        return fork

    def use_tool(self) -> None:
        """Has the agent begin with something."""
        call = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "make"}}
        self._say("assistant", [call])

    def take_up(self, queued: list[tuple[str, str]]) -> None:
        """End this, and give the agent the prompts typed meanwhile, each with the hook's text."""
        self._say(
            "user", [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "x" * 20_000}]
        )
        for prompt, text in queued:
            self._attach(
                "queued_command", prompt=prompt, commandMode="prompt", origin={"kind": "human"}
            )
            self.show(text)

    def _say(
        self, role: str, content: object, *, model: str = "claude-x", **fields: object
    ) -> None:
        message = {
            "role": role,
            "content": content,
            **({"model": model} if role == "assistant" else {}),
        }
        self.add(
            isSidechain=False, type=role, message=message, cwd=CWD, sessionId=self.id, **fields
        )

    def _attach(self, kind: str, **fields: object) -> None:
        self.add(isSidechain=False, attachment={"type": kind, **fields}, type="attachment", cwd=CWD)


class PiSession(Transcript):
    SCRIPT = "pi_prompt.py"
    LACKS = ("typed in the middle of a turn", "hook run twice")
    ID, PARENT = "id", "parentId"

    def __init__(self, root: Path, parent: PiSession | None = None) -> None:
        super().__init__(root, ".pi/agent/sessions/--srv-agent--", "2026-11-20T23-18-26-727Z_")
        header = {
            "type": "session",
            "version": 3,
            "id": self.id,
            "timestamp": stamp(time.time()),
            "cwd": CWD,
        }
        self.write({**header, **({"parentSession": str(parent.path)} if parent else {})})

    def event(self, prompt: str, *, is_same_prompt: bool = False) -> dict[str, Any]:
        place = {
            "transcript_path": str(self.path),
            "session_dir": str(self.path.parent),
            "cwd": CWD,
        }
        origin = {"hook_event_name": "before_agent_start", "runtime": "pi", "session_id": self.id}
        return {**origin, **place, "prompt": prompt}

    def text_in(self, printed: bytes) -> str:
        return str(json.loads(printed)["message"]["content"]) if printed else ""

    def shown_in(self, record: dict[str, Any]) -> list[str]:
        return [record["content"]] if record["type"] == "custom_message" else []

    def name(self, name: str) -> None:
        self.add(type="session_info", name=name)

    def ask(self, text: str) -> None:
        self._say("user", text)

    def answer(self, text: str) -> None:
        self._say("assistant", [{"type": "text", "text": text}], stopReason="stop")

    def show(self, text: str) -> None:
        if text:
            self.add(type="custom_message", customType="session-update", content=text, display=True)

    def cancel(self, before: str | None) -> None:
        self._say("assistant", [], stopReason="aborted")

    def compact(self) -> None:
        self.add(
            type="compaction", summary="A summary.", firstKeptEntryId=self.leaf, tokensBefore=9
        )

    def fork(self) -> PiSession:
        fork = PiSession(self.root, self)
        with fork.path.open("ab") as file:
            file.writelines(self.path.read_bytes().splitlines(keepends=True)[1:])
        fork.leaf = self.leaf
        return fork

    def _say(self, role: str, content: object, **fields: object) -> None:
        self.add(type="message", message={"role": role, "content": content, **fields})


RuntimeSession = ClaudeSession | PiSession
