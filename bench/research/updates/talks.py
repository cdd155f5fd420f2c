"""Sessions that a repository keeps, as each runtime would write them into a home.

`Talk` is a session. `KINDS` has the runtimes: where a transcript is, which record is a prompt, what
the hook gets with it, and how the runtime records the answer."""

from __future__ import annotations

import json
import os
import re
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from session_memory.sessions.runtimes.claude import encode_cwd as claude_folder
from session_memory.sessions.runtimes.codex.content import typed_text
from session_memory.sessions.runtimes.pi import CUSTOM_TYPE
from session_memory.sessions.runtimes.pi import encode_cwd as pi_folder

from ..recall.checkpoints import AGENTS

PATCHED = re.compile(r"^\*\*\* (?:Add|Update) File: (.+)$", re.MULTILINE)
_HOME = re.compile(rb"/(?:Users|home)/[A-Za-z0-9._-]+")


class Line:
    """A line of a transcript: its time, the record, and the bytes as the home has them."""

    def __init__(self, content: bytes, record: dict[str, Any], time: float) -> None:
        self.content, self.record, self.time = content, record, time

    @property
    def payload(self) -> dict[str, Any]:
        return as_record(self.record.get("payload"))

    @property
    def message(self) -> dict[str, Any]:
        return as_record(self.record.get("message"))


class Prompt(NamedTuple):
    """A prompt that a person typed. Copies of its record have its id too."""

    id: str
    text: str


class Shown(NamedTuple):
    """The record of what a hook told, and its id, which is the next record's parent."""

    record: dict[str, Any]
    id: str = ""


class Call(NamedTuple):
    """A call of a tool: `edit` with its arguments, `patch` or `command` with its text."""

    id: str
    kind: str
    given: dict[str, Any]
    text: str = ""


class Kind:
    """A runtime."""

    SCRIPT = "user_prompt_submit.py"
    EVENT = "UserPromptSubmit"
    PARENT = ""  # the key of a record with its parent's id
    AGENTS: ClassVar[tuple[str, ...]]

    def path(self, talk: Talk, cwd: str) -> str:
        """Return the path of a transcript in a home."""
        raise NotImplementedError

    def prompt(self, line: Line) -> Prompt | None:
        """Return the prompt that a person typed in a line, if there is one."""
        raise NotImplementedError

    def shown(self, prompt: Prompt, line: Line, text: str) -> Shown:
        """Return the record of what a hook told with a prompt."""
        raise NotImplementedError

    def calls(self, line: Line) -> list[Call]:
        """Return the calls in a line that may write."""
        raise NotImplementedError

    def results(self, line: Line) -> list[tuple[str, bool, str]]:
        """Return the id, failure and text of each result in a line."""
        raise NotImplementedError

    def event(self, talk: Talk) -> dict[str, Any]:
        """Return what only this runtime puts into an event."""
        return {}

    def environment(self, number: int, cwd: str) -> dict[str, str]:
        """Return what this runtime adds to a hook's environment."""
        return {}

    def answer(self, printed: dict[str, Any]) -> str:
        """Return what a hook's output tells the agent."""
        return str(as_record(printed.get("hookSpecificOutput")).get("additionalContext", ""))


class _Claude(Kind):
    PARENT = "parentUuid"
    AGENTS = AGENTS
    _OTHERS = ("<", "[Request interrupted", "Caveat:", "This session is")
    _ENVELOPE = ("isSidechain", "userType", "cwd", "sessionId", "version", "gitBranch", "timestamp")

    def path(self, talk: Talk, cwd: str) -> str:
        return f".claude/projects/{claude_folder(cwd)}/{talk.session}.jsonl"

    def prompt(self, line: Line) -> Prompt | None:
        record = line.record
        if record.get("type") != "user" or any(
            record.get(key) for key in ("isMeta", "isSidechain", "isCompactSummary")
        ):
            return None
        if any(block.get("type") == "tool_result" for block in blocks_of(line)):
            return None
        text = flat(line.message.get("content"))
        is_typed = bool(text.strip()) and not text.strip().startswith(self._OTHERS)
        return Prompt(record["uuid"], text) if is_typed and record.get("uuid") else None

    def shown(self, prompt: Prompt, line: Line, text: str) -> Shown:
        shown = prompt.id[:-4] + f"{int(prompt.id[-4:], 16) ^ 0xFFFF:04x}"
        attachment = {
            "type": "hook_additional_context",
            "content": [text],
            "hookName": "UserPromptSubmit",
            "hookEvent": "UserPromptSubmit",
        }
        record = {
            "parentUuid": prompt.id,
            **{key: line.record.get(key) for key in self._ENVELOPE},
            "type": "attachment",
            "attachment": attachment,
            "uuid": shown,
        }
        return Shown(record, shown)

    def calls(self, line: Line) -> list[Call]:
        calls = []
        for block in blocks_of(line):
            given = as_record(block.get("input"))
            kind = {"Bash": "command"}.get(str(block.get("name")), "edit")
            if block.get("type") == "tool_use" and block.get("name") in _CLAUDE_TOOLS:
                command = str(given.get("command", ""))
                calls.append(Call(str(block.get("id")), kind, given, command))
        return calls

    def results(self, line: Line) -> list[tuple[str, bool, str]]:
        output = as_record(line.record.get("toolUseResult")).get("stdout")
        return [
            (
                str(block.get("tool_use_id")),
                bool(block.get("is_error")),
                str(flat(block.get("content")) if output is None else output),
            )
            for block in blocks_of(line)
            if block.get("type") == "tool_result"
        ]

    def environment(self, number: int, cwd: str) -> dict[str, str]:
        return {"CLAUDE_PID": str(5000 + number), "CLAUDE_PROJECT_DIR": cwd}


_CLAUDE_TOOLS = ("Bash", "Edit", "MultiEdit", "Write")


class _Codex(Kind):
    AGENTS = ("codex",)

    def path(self, talk: Talk, cwd: str) -> str:
        day = datetime.fromtimestamp(talk.lines[0].time, timezone.utc)
        name = f"rollout-{day:%Y-%m-%dT%H-%M-%S}-{talk.session}.jsonl"
        return f".codex/sessions/{day:%Y/%m/%d}/{name}"

    def prompt(self, line: Line) -> Prompt | None:
        if line.record.get("type") != "response_item" or line.payload.get("role") != "user":
            return None
        text = typed_text(line.payload.get("content"))
        prompt_id = str(line.payload.get("id") or line.record.get("timestamp"))
        return Prompt(prompt_id, text) if text else None

    def shown(self, prompt: Prompt, line: Line, text: str) -> Shown:
        content = [{"type": "input_text", "text": text}]
        message = {"type": "message", "role": "developer", "content": content}
        record = {"timestamp": line.record.get("timestamp"), "type": "response_item"}
        return Shown({**record, "payload": message})

    def calls(self, line: Line) -> list[Call]:
        if line.payload.get("type") not in ("custom_tool_call", "function_call"):
            return []
        text = str(line.payload.get("input") or line.payload.get("arguments") or "")
        kind = "patch" if "*** Begin Patch" in text else "command"
        return [Call(str(line.payload.get("call_id")), kind, {}, text)]

    def results(self, line: Line) -> list[tuple[str, bool, str]]:
        if line.payload.get("type") not in ("custom_tool_call_output", "function_call_output"):
            return []
        return [(str(line.payload.get("call_id")), False, flat(line.payload.get("output")))]


class _Pi(Kind):
    SCRIPT = "pi_prompt.py"
    EVENT = "before_agent_start"
    PARENT = "parentId"
    AGENTS = ("pi",)

    def path(self, talk: Talk, cwd: str) -> str:
        stamp = str(talk.lines[0].record.get("timestamp")).replace(":", "-").replace(".", "-")
        return f".pi/agent/sessions/{pi_folder(cwd)}/{stamp}_{talk.session}.jsonl"

    def prompt(self, line: Line) -> Prompt | None:
        if line.record.get("type") != "message" or line.message.get("role") != "user":
            return None
        text = flat(line.message.get("content"))
        return Prompt(str(line.record.get("id")), text) if text.strip() else None

    def shown(self, prompt: Prompt, line: Line, text: str) -> Shown:
        shown = f"{int(prompt.id[-8:], 16) ^ 0xFFFF:08x}"
        record = {
            "type": "custom_message",
            "customType": CUSTOM_TYPE,
            "content": text,
            "display": True,
            "id": shown,
            "parentId": prompt.id,
            "timestamp": line.record.get("timestamp"),
        }
        return Shown(record, shown)

    def calls(self, line: Line) -> list[Call]:
        calls = []
        for block in blocks_of(line):
            if block.get("type") == "toolCall" and block.get("name") in ("bash", "edit", "write"):
                given = as_record(block.get("arguments"))
                kind = "command" if block["name"] == "bash" else "edit"
                calls.append(
                    Call(str(block.get("id")), kind, _as_claude(given), str(given.get("command")))
                )
        return calls

    def results(self, line: Line) -> list[tuple[str, bool, str]]:
        if line.message.get("role") != "toolResult":
            return []
        call_id, content = str(line.message.get("toolCallId")), line.message.get("content")
        return [(call_id, bool(line.message.get("isError")), flat(content))]

    def event(self, talk: Talk) -> dict[str, Any]:
        return {"runtime": "pi", "session_dir": str(talk.path.parent)}

    def answer(self, printed: dict[str, Any]) -> str:
        return str(as_record(printed.get("message")).get("content", ""))


def _as_claude(given: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of Pi's `edit` or `write` under Claude Code's names."""
    edits = [given, *(given.get("edits") or [])]
    changes = [
        {"old_string": edit["oldText"], "new_string": edit.get("newText")}
        for edit in edits
        if isinstance(edit, dict) and "oldText" in edit
    ]
    renamed: dict[str, Any] = {"file_path": given.get("path"), "edits": changes}
    return renamed | ({"content": given["content"]} if "content" in given else {})


KINDS: tuple[Kind, ...] = (_Claude(), _Codex(), _Pi())
ALL_AGENTS = tuple(agent for kind in KINDS for agent in kind.AGENTS)


class Talk:
    """A session: its lines, and its transcript in the home."""

    def __init__(self, session: str, agent: str, content: bytes) -> None:
        self.session = session
        self.kind = next(kind for kind in KINDS if agent in kind.AGENTS)
        self.person = next(iter(_HOME.findall(content)), b"").decode()
        self.lines = _timed(content)
        cwds = [line.record.get("cwd") or line.payload.get("cwd") for line in self.lines]
        self.cwd = next((cwd for cwd in cwds if isinstance(cwd, str)), "")
        sources = [line.payload.get("source") for line in self.lines[:1]]
        self.is_sub_agent = any("subagent" in as_record(source) for source in sources)
        self.path = Path()
        self.waiting = b""
        self.relinked: tuple[bytes, bytes] = (b"", b"")

    def prompt(self, line: Line) -> Prompt | None:
        """Return the prompt that a person typed in a line, if there is one."""
        return None if self.is_sub_agent else self.kind.prompt(line)

    def prompts(self) -> list[tuple[Line, Prompt]]:
        """Return the session's prompts, each once, with their lines."""
        first_by_id: dict[str, tuple[Line, Prompt]] = {}
        for line in self.lines:
            if prompt := self.prompt(line):
                first_by_id.setdefault(prompt.id, (line, prompt))
        return list(first_by_id.values())

    def show(self, prompt: Prompt, line: Line, text: str) -> None:
        """Write the runtime's record of what a hook told."""
        shown = self.kind.shown(prompt, line, text)
        self.write(json.dumps(shown.record, separators=(",", ":")).encode())
        self.relinked = prompt.id.encode(), shown.id.encode()

    def write_line(self, content: bytes) -> None:
        """Write a line; the record after a shown one gets that as its parent."""
        before, after = self.relinked
        if after:
            key = self.kind.PARENT.encode()
            content = content.replace(b'"%b":"%b"' % (key, before), b'"%b":"%b"' % (key, after), 1)
        self.write(content)

    def write(self, content: bytes) -> None:
        self.waiting += content + b"\n"

    def flush(self, now: float) -> None:
        """Write what waits into the transcript."""
        if self.waiting:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("ab") as file:
                file.write(self.waiting)
            os.utime(self.path, (now, now))
            self.waiting = b""


def _timed(content: bytes) -> list[Line]:
    """Return the lines with a record; one without a time has that of the line before."""
    lines: list[Line] = []
    now = 0.0
    for part in content.split(b"\n"):
        try:
            record = json.loads(part)
        except ValueError:
            continue
        if isinstance(record, dict):
            now = max(now, _time(record.get("timestamp")))
            lines.append(Line(part, record, now))
    lines = [line for line in lines if line.time or lines[-1].time]
    first = next((line.time for line in lines if line.time), 0.0)
    for line in lines:
        line.time = line.time or first
    return lines


def _time(stamp: object) -> float:
    try:
        return datetime.fromisoformat(str(stamp).replace("Z", "+00:00")).timestamp()
    except ValueError:
        return 0.0


def as_record(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def blocks_of(line: Line) -> list[dict[str, Any]]:
    """Return the blocks of a message."""
    content = line.message.get("content")
    return (
        [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    )


def flat(content: object) -> str:
    """Return the text of a message's content."""
    if isinstance(content, list):
        return "\n".join(str(block.get("text", "")) for block in content if isinstance(block, dict))
    return content if isinstance(content, str) else ""
